"""The store, for a command that needs nothing else of an opened state directory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from bailiwick.clock import SystemClock
from bailiwick.journal.port import Store

T = TypeVar("T")


def with_store(state: Path, look: Callable[[Store], Awaitable[T]]) -> T:
    """What `look` gives for the store of a state directory, which is made if there is none."""
    from bailiwick.journal.opening import opened_store

    async def opened() -> T:
        async with opened_store(state, SystemClock()) as store:
            return await look(store)

    return asyncio.run(opened())
