"""Watches how much a sandbox writes: quotas of file systems are seldom there, so somebody has to look."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bailiwick.fence.cage import Limits

EVERY = 1.0
"""Seconds between two looks, while they are quick."""
SHARE = 10
"""A look may take this part of the time at most: the next one waits so many times as long as it took."""
_BLOCK = 512


class Usage(NamedTuple):
    """Bytes on disk and files of some trees; `whole` is False where the look ended at a limit."""

    bytes: int
    files: int
    whole: bool = True


def measure(paths: Iterable[Path], limits: Limits) -> Usage:
    """What trees take, without following links; ends as soon as a limit is passed."""
    size = count = 0
    folders = [os.fspath(path) for path in paths]
    while folders:
        for taken, below in _look(folders.pop()):
            size += taken
            count += 1
            if below:
                folders.append(below)
            if size > limits.disk or count > limits.inodes:
                return Usage(size, count, whole=False)
    return Usage(size, count)


def _look(folder: str) -> Iterator[tuple[int, str]]:
    """The bytes of each entry of a directory, and its path where it is one; what goes away meanwhile counts nothing."""
    try:
        entries = os.scandir(folder)
    except OSError:
        return
    with entries:
        for entry in entries:
            with suppress(OSError):
                taken = entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                yield taken, entry.path if entry.is_dir(follow_symlinks=False) else ""


async def watch_disk(paths: tuple[Path, ...], limits: Limits, on_over: Callable[[str], None]) -> None:
    """Look about every second until cancelled; say once, in words, that a limit was passed, and end."""
    while paths:
        began = time.monotonic()
        used = await asyncio.to_thread(measure, paths, limits)
        if not used.whole:
            on_over(over(used, limits))
            return
        await asyncio.sleep(max(EVERY, SHARE * (time.monotonic() - began)))


def over(used: Usage, limits: Limits) -> str:
    """Which limit was passed."""
    if used.bytes > limits.disk:
        return f"it wrote more than {limits.disk / 1024**3:.3g} GB, the limit of a sandbox"
    return f"it made more than {limits.inodes} files, the limit of a sandbox"
