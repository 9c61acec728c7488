"""The operator's own settings of git, where their word is asked for: read from their files, never just applied."""

from __future__ import annotations

import os
from pathlib import Path

from bailiwick.config.variables import Environment
from bailiwick.git.runner import Git, GitOptions

SYSTEM = Path("/etc/gitconfig")


async def read_settings(
    git: Git, environment: Environment, pattern: str, repository: Path | None = None
) -> dict[str, list[str]]:
    """The values of all settings whose lower-case names match, later files last: machine, person, repository."""
    home = environment.home()
    xdg = environment.directory("XDG_CONFIG_HOME") or home / ".config"
    files = [SYSTEM, xdg / "git" / "config", home / ".gitconfig"]
    files += [repository / "config"] if repository else []
    found: dict[str, list[str]] = {}
    for file in files:
        if not file.is_file():
            continue
        call = GitOptions(env={"HOME": str(home)})
        done = await git.run("config", "-f", str(file), "--includes", "-z", "--get-regexp", pattern, call=call)
        for record in os.fsdecode(done.stdout).split("\0"):
            key, _, value = record.partition("\n")
            if key:
                found.setdefault(key, []).append(value)
    return found


def as_path(value: str, home: Path) -> Path:
    """A path as git reads it in a setting."""
    return home / value[2:] if value.startswith("~/") else Path(value)


async def signing(git: Git, environment: Environment, repository: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Settings and variables for commit signing as the operator does it: their key, their program, their agent."""
    found = await read_settings(git, environment, r"^(gpg\..*|user\.signingkey)$", repository)
    config = {"gpg.program": "gpg"} | {key: values[-1] for key, values in found.items()}
    names = ("HOME", "GNUPGHOME", "SSH_AUTH_SOCK", "GPG_TTY", "XDG_RUNTIME_DIR")
    return config, {name: value for name in names if (value := environment.text(name))}
