"""What a directory tells about its repository: the root, the remote, and the configuration as of the base commit.

Nothing here runs code of the repository: the remote is read from git's own file, and the one git process that may be
started reads an object and nothing else.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from bailiwick.config.variables import Environment
from bailiwick.errors import NotReady, Place

FOLDER = ".bailiwick"
CONFIG = f"{FOLDER}/config.yaml"
GIT_UNREADABLE = "BW214"

# Patterns are compiled at their first use: most commands never look at a remote.
_SECTION = r'\[\s*(?i:remote)\s+"((?:[^"\\]|\\.)+)"\s*\]'
_URL_LINE = r'(?i:url)\s*=\s*"?([^"\s#;]+)'
_SCHEME = r"[a-z+]+://(?:[^@/]+@)?([^/:]+)(?::\d+)?/(.+)"
_SCP = r"(?:[^@/:]+@)?([^/:]+):(?!//)(.+)"
_PART = r"(?!\.+$)[A-Za-z0-9._-]+"


@dataclass(frozen=True, slots=True)
class Repository:
    """A directory with a `.bailiwick` folder or a git work tree; `git` says which."""

    root: Path
    git: bool

    @property
    def has_folder(self) -> bool:
        """Whether there is a `.bailiwick` folder in the work tree."""
        return _is_directory(self.root / FOLDER)


@dataclass(frozen=True, slots=True)
class Remote:
    """Where a repository comes from; `owner` may hold several parts."""

    host: str
    owner: str
    name: str


def find_repository(cwd: Path) -> Repository | None:
    """The work tree around a directory, else the nearest directory above with a `.bailiwick` folder."""
    folder: Path | None = None
    for directory in (cwd, *cwd.parents):
        if is_work_tree(directory):
            return Repository(directory, git=True)
        if folder is None and _is_directory(directory / FOLDER):
            folder = directory
    return Repository(folder, git=False) if folder else None


def is_work_tree(directory: Path) -> bool:
    """Whether git would take a directory for a work tree: an empty `.git` folder, as sandboxes leave them, is none."""
    git = directory / ".git"
    return os.path.lexists(git) and (not _is_directory(git) or os.path.lexists(git / "HEAD"))


def _is_directory(path: Path) -> bool:
    """Like `Path.is_dir`, and false instead of an error where the directory above can't be entered."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def find_remote(root: Path) -> Remote | None:
    """The remote `origin`, or the first one there is. Reads a file, runs nothing."""
    urls = _remote_urls(root)
    return parse_remote(urls.get("origin") or next(iter(urls.values()), ""))


def remote_name(root: Path) -> str | None:
    """What git calls the remote that a branch would be pushed to: `origin`, or the first one there is."""
    urls = _remote_urls(root)
    return "origin" if "origin" in urls else next(iter(urls), None)


def _remote_urls(root: Path) -> dict[str, str]:
    """The URL of each remote, by name, in the order of the file."""
    urls: dict[str, str] = {}
    try:
        text = (_common_git_dir(root) / "config").read_text("utf-8", "replace")
    except OSError:
        return urls
    section = ""
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            match = re.match(_SECTION, line)
            section = match[1] if match else ""
        elif section and (url := re.match(_URL_LINE, line)):
            urls.setdefault(section, url[1])
    return urls


def parse_remote(url: str) -> Remote | None:
    """Host, owner and name of a remote's URL; None for a path or for names that could leave a directory."""
    match = re.fullmatch(_SCHEME, url) or (re.fullmatch(_SCP, url) if "://" not in url else None)
    if match is None:
        return None
    parts = match[2].strip("/").removesuffix(".git").split("/")
    host = match[1].lower()
    if len(parts) < 2 or not all(re.fullmatch(_PART, part) for part in (host, *parts)):
        return None
    return Remote(host, "/".join(parts[:-1]), parts[-1])


def _common_git_dir(root: Path) -> Path:
    git = root / ".git"
    if git.is_dir():
        return git
    pointed = root / git.read_text("utf-8").strip().removeprefix("gitdir:").strip()
    common = pointed / "commondir"
    return (pointed / common.read_text("utf-8").strip()) if common.is_file() else pointed


def committed(root: Path, path: str, environment: Environment) -> bytes | None:
    """The bytes of a file as of HEAD, None where HEAD has no such file; raises `NotReady` where git can't tell."""
    import subprocess

    command = ["git", "--no-replace-objects", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
    command += ["-c", "protocol.allow=never", "-C", str(root), "cat-file", "--batch"]
    names = ("PATH", "HOME", "XDG_CONFIG_HOME")
    kept = {name: value for name in names if (value := environment.text(name))}
    fixed = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, input=f"HEAD:{path}\n".encode(), capture_output=True, env=kept | fixed, check=False, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unreadable(root, str(error)) from error
    head, _, rest = done.stdout.partition(b"\n")
    if done.returncode != 0:
        raise _unreadable(root, done.stderr.decode("utf-8", "replace").strip().partition("\n")[0])
    words = head.split()
    if len(words) != 3 or words[1] != b"blob":
        return None
    return rest[: int(words[2])]


def _unreadable(root: Path, reason: str) -> NotReady:
    return NotReady(
        f"git can't read the committed configuration: {reason}",
        place=Place(str(root / CONFIG)),
        hint="make `git status` work in this directory",
        code=GIT_UNREADABLE,
    )
