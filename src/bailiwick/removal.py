"""Deletes a directory that an agent filled: any depth, any modes, any names; no link in it is ever followed."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def sweep(directory: Path) -> None:
    """Delete a directory with all that is in it; raises `OSError` where something resists. None is no error.

    Directories within are first moved to the top and then emptied one by one, so that neither the depth of the tree
    nor the length of its paths matters.
    """
    try:
        top = os.open(directory.parent, _READ)
    except FileNotFoundError:
        return
    try:
        _sweep(top, directory.name)
    finally:
        os.close(top)


def _sweep(top: int, name: str) -> None:
    if not _is_directory(name, top):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=top)
        return
    numbers = count()
    home = _open(name, top)
    try:
        waiting = [one for one in _names(home) if not _removed(one, home)]
        while waiting:
            folder = waiting.pop()
            handle = _open(folder, home)
            try:
                waiting += _empty(handle, home, numbers)
            finally:
                os.close(handle)
            os.rmdir(folder, dir_fd=home)
    finally:
        os.close(home)
    os.rmdir(name, dir_fd=top)


def _empty(folder: int, home: int, numbers: count[int]) -> list[str]:
    """Remove what is in a folder; its directories go up into `home` under new names, which are given back."""
    moved = []
    for name in _names(folder):
        if _removed(name, folder):
            continue
        os.close(_open(name, folder))
        fresh = next(one for number in numbers if not _exists(one := f"sweep-{number}", home))
        os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=home)
        moved.append(fresh)
    return moved


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _removed(name: str, folder: int) -> bool:
    """Whether an entry is gone now; a directory stays."""
    if _is_directory(name, folder):
        return False
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    return True


def _open(name: str, folder: int) -> int:
    """Open a directory and make it one that we may empty, whatever its mode was."""
    look = os.open(name, _LOOK, dir_fd=folder)
    try:
        if stat.S_IMODE(os.fstat(look).st_mode) & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{look}", 0o700)  # noqa: PTH101 - no path leads there that could be swapped
        return os.open(name, _READ, dir_fd=folder)
    finally:
        os.close(look)


def _is_directory(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
