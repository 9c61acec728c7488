"""Packs our git dirs: thousands of small files become one. Every object stays, also those that no name leads to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bailiwick.config.variables import Environment
from bailiwick.git.objects import Objects
from bailiwick.git.runner import Git
from bailiwick.git.store import FOLDER
from bailiwick.locks import held

MOST_LOOSE = 1000
MOST_PACKS = 20
DAY = 86_400.0
_HEX = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class PackingDue:
    """A git dir that should be packed, with what lies around in it."""

    git_dir: Path
    loose: int
    packs: int
    size: int


def packing_due(state: Path) -> Iterator[PackingDue]:
    """The git dirs of the state directory that hold too many files."""
    for git_dir in sorted((state / FOLDER).glob("*.git")):
        objects = git_dir / "objects"
        loose = [file for digit in _HEX for folder in objects.glob(f"{digit}?") for file in folder.iterdir()]
        packs = len(list((objects / "pack").glob("*.pack")))
        if len(loose) > MOST_LOOSE or packs > MOST_PACKS:
            yield PackingDue(git_dir, len(loose), packs, sum(_allocated(file) for file in loose))


def _allocated(file: Path) -> int:
    try:
        return file.lstat().st_blocks * 512
    except OSError:  # another process packed it away
        return 0


async def pack_git_dir(git_dir: Path, now: float) -> None:
    """Pack all objects, and remove what a crash left in between.

    Nothing is pruned: a run that waits for weeks refers to trees by their id alone, which git can't know.
    """
    git = Git(Environment().text("PATH") or os.defpath)
    async with held(git_dir / "fetch.lock"):
        for path in git_dir.glob("*-*"):
            if path.name.startswith(("index-", "ignore-")) and path.stat().st_mtime < now - DAY:
                shutil.rmtree(path, ignore_errors=True)
        for note in git_dir.glob("checkouts/*"):
            if not os.path.isdir(note.read_bytes().partition(b"\n")[2]):  # noqa: PTH112 - bytes
                note.unlink(missing_ok=True)
        call = Objects(git, git_dir).call(timeout=3600.0)
        await git.out("repack", "-d", "-l", "-q", "--geometric=2", call=call)
