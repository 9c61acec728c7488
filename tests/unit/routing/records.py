"""Records for the tests of statistics: calls, attempts, agents' attempts, in a store of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bailiwick.clock import ManualClock
from bailiwick.engine.events import EffectFinished, Entry
from bailiwick.ids import Json
from bailiwick.journal.codec import encode
from bailiwick.journal.port import Store
from bailiwick.journal.rows import AttemptRow, Batch, CallRow, Reservation
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.routing.asked import ModelAttempt
from bailiwick.runtime.attempt_rows import attempt_rows
from bailiwick.testing.store_conformance.calls import attempt, call, ended
from bailiwick.testing.store_conformance.stage import NOW, held_run

T = TypeVar("T")


def with_store(folder: Path, look: Callable[[Store], Awaitable[T]]) -> T:
    """What `look` finds in the store of a folder."""

    async def opened() -> T:
        store = await SqliteStore.open(folder / "bailiwick.db", now=ManualClock().now)
        try:
            return await look(store)
        finally:
            await store.close()

    return asyncio.run(opened())


async def routed(
    store: Store, row: CallRow, attempts: Sequence[AttemptRow] = (), spent: float | None = None, reserve: float = 0.0
) -> None:
    """A call with its attempts, over; with a reservation it is in the day's ledger."""
    day = (Reservation("day:2023-11-14", "", "usd", reserve, None),) if reserve else ()
    await store.begin_call(row, day)
    await store.end_call(ended(row), attempts, {"usd": spent})


def agent_log(**changes: Json) -> dict[str, Json]:
    """What the attempt of an agent node leaves in the journal."""
    return {"backend": "claude", "model": "claude-sonnet", "usage": {"input": 10, "output": 5, "usd": 0.5}, **changes}


async def walked(store: Store, run: str, logs: Sequence[dict[str, Json]], failure: Json = None, **changes: Any) -> None:
    """A run in which an agent was asked once for each log, a second apart."""
    row = await held_run(store, run, **changes)
    history: list[Entry] = []
    for number, log in enumerate(logs):
        event, at = EffectFinished("", "key", {}, failure, log, seconds=2.5), NOW + number
        rows = attempt_rows(run, row.seq + number, [(event, at)], history)
        await store.append(run, row.epoch, Batch(after=row.seq + number, events=(encode(event, at)[0],), attempts=rows))
        history.append((row.seq + number + 1, at, event))


def ask(call_id: str = "c-1", model: str = "small", verdict: str = "accept", **changes: Any) -> ModelAttempt:
    """A model was asked once in a call."""
    facts: dict[str, Any] = {
        "subject": "review",
        "tier": "local",
        "at": NOW,
        "duration_ms": 100,
        "cold": False,
        "input_tokens": 10,
        "output_tokens": 5,
        "cost": 0.0,
        "call": call_id,
    }
    return ModelAttempt(model=model, verdict=verdict, **{**facts, **changes})


__all__ = ["NOW", "agent_log", "ask", "attempt", "call", "ended", "routed", "walked", "with_store"]
