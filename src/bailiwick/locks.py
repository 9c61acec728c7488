"""One at a time, over processes: a lock that its holder's death frees."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

STEP = 0.02


@asynccontextmanager
async def held(file: Path) -> AsyncIterator[None]:
    """Hold the lock of a file; waits for whoever has it. The file stays: removing it would make two locks of one."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _taken(handle):  # noqa: ASYNC110 - the holder may be another process
            await asyncio.sleep(STEP)
        yield
    finally:
        os.close(handle)


async def first_free(files: Sequence[Path], give_up: Callable[[], bool] = lambda: False) -> int | None:
    """A descriptor with the lock of the first file that nobody holds; waits while all are held.

    None once `give_up` says so. Closing the descriptor lets go; so does the death of the process.
    """
    handles: list[int] = []
    taken: int | None = None
    try:
        handles.extend(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for file in files)
        while (taken := next((each for each in handles if _taken(each)), None)) is None and not give_up():  # noqa: ASYNC110
            await asyncio.sleep(STEP)  # the holder may be another process, which can't set our events
    finally:
        for handle in handles:
            if handle != taken:
                os.close(handle)
    return taken


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
