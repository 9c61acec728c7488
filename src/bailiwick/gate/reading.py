"""Reads many files of a tree at once: each costs two short processes, and a change may have hundreds of files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

AT_ONCE = 8


async def read_all(read: Callable[[str], Awaitable[bytes | None]], paths: Iterable[str]) -> dict[str, bytes | None]:
    """The bytes of some files by their paths, in their order; None for one that is not there."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(path: str) -> tuple[str, bytes | None]:
        async with slots:
            return path, await read(path)

    return dict(await asyncio.gather(*(one(path) for path in paths)))
