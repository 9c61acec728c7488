"""Watches how much a sandbox writes: quotas of file systems are seldom there, so somebody has to look.

The nearer a limit is, the more often it is looked at; who would pass it before the next look could end is ended now.
What a program wrote beyond its limit is removed again, so that no full disk is left behind.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bailiwick.processes.command import Exit
from bailiwick.sandbox.spec import OURS, SandboxLimits

EVERY = 1.0
"""Seconds between two looks, while they are quick and no limit is near."""
SOONEST = 0.05
SHARE = 10
"""A look may take this part of the time: the next one waits so many times as long as it took, unless a limit nears."""
LARGE, MANY, KEPT = 200, 50, 20
"""Parts of a limit: of the disk, a file that is removed first; of the files, a directory that is; and what may stay."""
_BLOCK = 512
COARSE = 0.1
"""Seconds by which the time of a file may lag behind the clock."""


class DiskUsage(NamedTuple):
    """Bytes on disk and files of some trees; `whole` is False where the look ended at a limit."""

    bytes: int
    files: int
    whole: bool = True


def measure(paths: Iterable[Path], limits: SandboxLimits) -> DiskUsage:
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
                return DiskUsage(size, count, whole=False)
    return DiskUsage(size, count)


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


@dataclass(slots=True)
class Growth:
    """How fast trees grow, told from one look to the next."""

    limits: SandboxLimits
    last: DiskUsage | None = None
    at: float = 0.0
    seconds: float = float("inf")
    """Until a limit is passed, if it goes on like this."""

    def see(self, used: DiskUsage, now: float) -> None:
        """Take a look's outcome."""
        if self.last is not None and now > self.at:
            spans = (
                self._until(used.bytes, self.last.bytes, self.limits.disk, now),
                self._until(used.files, self.last.files, self.limits.inodes, now),
            )
            self.seconds = min(spans)
        self.last, self.at = used, now

    def _until(self, used: int, before: int, limit: int, now: float) -> float:
        rate = (used - before) / (now - self.at)
        return (limit - used) / rate if rate > 0 else float("inf")

    def pause(self, took: float) -> float:
        """Seconds until the next look."""
        return min(max(EVERY, SHARE * took), max(SOONEST, self.seconds / 4))

    def is_too_fast(self, took: float) -> bool:
        """Whether a limit would be passed before another look could end it in time."""
        return self.seconds < SOONEST + 2 * took


async def watch_disk(paths: tuple[Path, ...], limits: SandboxLimits, on_over: Callable[[str], None]) -> None:
    """Look about every second, more often near a limit, until cancelled; say once, in words, that one is passed."""
    growth = Growth(limits)
    while paths:
        began = time.monotonic()
        used = await asyncio.to_thread(measure, paths, limits)
        took = time.monotonic() - began
        growth.see(used, began + took)
        if not used.whole or growth.is_too_fast(took):
            on_over(over(used, limits))
            return
        await asyncio.sleep(growth.pause(took))


def over(used: DiskUsage, limits: SandboxLimits) -> str:
    """Which limit was passed, or is about to be."""
    if used.whole:
        done = f"it wrote {size_words(used.bytes)} and {used.files} files so fast that it would pass the limit of a "
        return f"{done}sandbox at once: {size_words(limits.disk)} on disk, {limits.inodes} files"
    if used.bytes > limits.disk:
        return f"it wrote more than {size_words(limits.disk)} to disk, the limit of a sandbox"
    return f"it made more than {limits.inodes} files on disk, the limit of a sandbox"


def disk_words(end: Exit) -> str:
    """Which limit of the disk ended a program; empty where none did."""
    return end.stderr.decode("utf-8", "replace").rpartition(OURS)[2].strip() if end.why == "disk" else ""


def size_words(size: int) -> str:
    """Bytes for people."""
    return f"{size / 10**9:.3g} GB" if size >= 10**9 else f"{size / 10**6:.3g} MB"


def reclaim(paths: Iterable[Path], limits: SandboxLimits, since: float) -> DiskUsage:
    """Remove what was written since a time until little of it is left; gives what that took.

    Large files go first, then crowded directories, then everything that is new; what was there before stays, and so
    does what is small where that is enough. Times of change can't be set back by who writes.
    """
    folders = [os.fspath(path) for path in paths]
    since -= COARSE
    freed = [0, 0]
    large, crowded = limits.disk // LARGE, limits.inodes // MANY
    for removes in (
        lambda size, _beside: size >= max(1, large),
        lambda _size, beside: beside > crowded,
        lambda _size, _beside: True,
    ):
        left = _remove(folders, since, removes, freed)
        if left.bytes <= limits.disk // KEPT and left.files <= limits.inodes // KEPT:
            break
    return DiskUsage(freed[0], freed[1])


def _remove(folders: list[str], since: float, removes: Callable[[int, int], bool], freed: list[int]) -> DiskUsage:
    """Remove the new files that are to go, and new directories that are empty then; gives what new ones are left."""
    size = count = 0
    for top in folders:
        for here, below, _ in os.walk(top, topdown=False):
            fresh = _fresh(here, since)
            for path, taken in fresh:
                if removes(taken, len(fresh) + len(below)) and _unlinked(path):
                    freed[0], freed[1] = freed[0] + taken, freed[1] + 1
                else:
                    size, count = size + taken, count + 1
            if here != top and _is_fresh_folder(here, since):
                try:
                    os.rmdir(here)  # noqa: PTH106 - paths here are plain text
                    freed[1] += 1
                except OSError:
                    count += 1
    return DiskUsage(size, count)


def _fresh(folder: str, since: float) -> list[tuple[str, int]]:
    """The files of a directory that changed since a time, with what they take."""
    found: list[tuple[str, int]] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                told = entry.stat(follow_symlinks=False)
                if not entry.is_dir(follow_symlinks=False) and told.st_ctime >= since:
                    found.append((entry.path, told.st_blocks * _BLOCK))
    return found


def _unlinked(path: str) -> bool:
    with suppress(OSError):
        os.unlink(path)  # noqa: PTH108 - paths here are plain text
        return True
    return False


def _is_fresh_folder(folder: str, since: float) -> bool:
    """Whether a directory is new and empty enough to go; its time changes with what is removed in it, too."""
    with suppress(OSError):
        return os.lstat(folder).st_ctime >= since
    return False
