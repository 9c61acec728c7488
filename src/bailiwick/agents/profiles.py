"""The operator's codex profiles, brought into an agent's own home with the variables that their providers name."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from bailiwick.ids import Json

MAX_FILE = 256 << 10
"""Bytes of a profile; a larger file is none."""


def carry_profiles(env: Mapping[str, str], home: Path) -> dict[str, str]:
    """Copy the profiles to `home`; gives the variables of `env` that they name, and nothing else."""
    there = Path(env["CODEX_HOME"]) if env.get("CODEX_HOME") else Path(env.get("HOME", "/")) / ".codex"
    folder = home / ".codex"
    names: set[str] = set()
    for source in sorted([*there.glob("*.config.toml"), there / "config.toml"]):
        if not source.is_file() or source.stat().st_size > MAX_FILE:
            continue
        text = source.read_text("utf-8", "replace")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / source.name).write_text(text, "utf-8")
        names.update(_keys(text))
    return {"CODEX_HOME": str(folder), **{name: env[name] for name in sorted(names) if name in env}}


def _keys(text: str) -> Iterator[str]:
    """The variables in which the providers of a profile look for their key."""
    try:
        providers: Json = tomllib.loads(text).get("model_providers", {})
    except tomllib.TOMLDecodeError:
        return
    for provider in providers.values() if isinstance(providers, dict) else ():
        name = provider.get("env_key") if isinstance(provider, dict) else None
        if isinstance(name, str):
            yield name
