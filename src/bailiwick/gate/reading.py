"""Reads many files of a tree at once: each costs two short processes, and a change may have hundreds of files."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bailiwick.gate.port import Which
    from bailiwick.git.objects import TreeChange

AT_ONCE = 8
Files = dict[str, bytes | None]


async def read_versions(
    read: Callable[[Which, str], Awaitable[bytes | None]], changes: Sequence[TreeChange]
) -> tuple[Files, Files]:
    """The files of a change as they are on the base, and as they are proposed; without those that are not there."""
    old = await read_all(lambda path: read("base", path), (c.path for c in changes if c.status != "A"))
    return old, await read_all(lambda path: read("proposed", path), (c.path for c in changes if c.status != "D"))


async def read_all(read: Callable[[str], Awaitable[bytes | None]], paths: Iterable[str]) -> Files:
    """The bytes of some files by their paths, in their order; None for one that is not there."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(path: str) -> tuple[str, bytes | None]:
        async with slots:
            return path, await read(path)

    return dict(await asyncio.gather(*(one(path) for path in paths)))
