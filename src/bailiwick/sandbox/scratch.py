"""The directory for temporary files of one process, locked for as long as the process lives.

What a killed one left is known by that, and removed by the next. The number of a process would not do, as a cache may
be shared by several systems.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import secrets
from contextlib import suppress
from pathlib import Path

from bailiwick.config.paths import make_private
from bailiwick.removal import sweep

FOLDER = "scratch"
TRIES = 10
"""A directory that is made but not locked yet may be taken for one that was left; then another is made."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_held: dict[Path, tuple[Path, int]] = {}
"""This process's own directory in each cache, with the descriptor that holds its lock."""


def own_scratch(cache: Path) -> Path:
    """The directory of this process in a cache; the same each time. It is gone when the process ends by itself."""
    top = make_private(make_private(cache) / FOLDER)
    known = _held.get(top)
    if known is not None and _is_at(known[0], known[1]):
        return known[0]
    for _ in range(TRIES):
        path = make_private(top / f"{os.getpid()}-{secrets.token_hex(4)}")
        handle = _locked(path)
        if handle is not None:
            break
    else:
        handle = os.open(path, _OPEN)  # a file system without locks: then nobody can take it for left behind either
    _held[top] = (path, handle)
    atexit.register(_leave, path, os.getpid())
    return path


def sweep_scratch(cache: Path) -> int:
    """Remove what processes left that ended without a chance to; how many directories that were."""
    top, count = cache / FOLDER, 0
    if not top.is_dir():
        return 0
    for path in sorted(top.iterdir()):
        if _held.get(top, (None,))[0] == path:
            continue
        handle = _locked(path)
        if handle is None:
            continue
        try:
            with suppress(OSError):  # what resists stays for the next one
                sweep(path)
                count += 1
        finally:
            os.close(handle)
    return count


def _locked(path: Path) -> int | None:
    """The descriptor of a directory that is ours alone from now on; None where it is somebody's, or gone."""
    try:
        handle = os.open(path, _OPEN)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    if _is_at(path, handle):
        return handle
    os.close(handle)
    return None


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except OSError:
        return False


def _leave(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        with suppress(OSError):
            sweep(path)
