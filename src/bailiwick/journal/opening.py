"""Opens the store of a state directory: the one place that knows which kind it is and where its file lies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.clock import Clock

if TYPE_CHECKING:
    from bailiwick.journal.sqlite import SqliteStore


def database_of(state: Path) -> Path:
    """The file of the store; others beside it begin with its name."""
    return state / "bailiwick.db"


async def open_store(state: Path, clock: Clock) -> SqliteStore:
    """The store, made if there is none. Whoever opens it closes it."""
    from bailiwick.journal.sqlite import SqliteStore

    return await SqliteStore.open(database_of(state), now=clock.now)


@asynccontextmanager
async def opened_store(state: Path, clock: Clock) -> AsyncIterator[SqliteStore]:
    """The store, for as long as it is needed."""
    store = await open_store(state, clock)
    try:
        yield store
    finally:
        await store.close()
