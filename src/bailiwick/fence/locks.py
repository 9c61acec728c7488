"""One at a time, over processes: a lock that its holder's death frees."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
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


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
