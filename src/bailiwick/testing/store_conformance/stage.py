"""The stage of the suite: how a store is opened, and the rows its scenes are played with."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bailiwick.errors import StoreError
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Batch, ClaimFilter, EncodedEvent, Message, NewRun, Owner, RunRow, WaitRow

NOW = 1_700_000_000.0
ANY = ClaimFilter()
LAPTOP = Owner(host="laptop", boot="b1", pidns="n1", pid=100, start=1, name="ann@laptop")
TOWER = Owner(host="tower", boot="b2", pidns="n1", pid=200, start=2)

Scene = Callable[[Store], Awaitable[None]]
PairScene = Callable[[Store, Store], Awaitable[None]]
S = TypeVar("S", bound="StoreFixture")


class StoreFixture(ABC):
    """Opens stores and plays scenes on them."""

    @abstractmethod
    async def open(self, tmp_path: Path) -> Store:
        """Open the store that belongs to this directory; twice means two handles on the same data."""

    def play(self, tmp_path: Path, *scenes: Scene) -> None:
        """Play scenes one after the other, each on a store opened again on the same data."""
        for scene in scenes:
            asyncio.run(self._play(tmp_path, scene))

    def play_pair(self, tmp_path: Path, scene: PairScene) -> None:
        """Play a scene with two handles on the same data, as two processes would have."""
        asyncio.run(self._play_pair(tmp_path, scene))

    async def _play(self, tmp_path: Path, scene: Scene) -> None:
        store = await self.open(tmp_path)
        try:
            await scene(store)
        finally:
            await store.close()

    async def _play_pair(self, tmp_path: Path, scene: PairScene) -> None:
        first, second = await self.open(tmp_path), await self.open(tmp_path)
        try:
            await scene(first, second)
        finally:
            await first.close()
            await second.close()


def on_store(test: Callable[[S, Store], Awaitable[None]]) -> Callable[[S, Path], None]:
    """A test that is a scene: it is played on a store that was just opened."""

    def played(self: S, tmp_path: Path) -> None:
        self.play(tmp_path, partial(test, self))

    return _named_as(test, played)


def on_two_handles(test: Callable[[S, Store, Store], Awaitable[None]]) -> Callable[[S, Path], None]:
    """A test that is a scene with two handles on the same data, as two processes would have."""

    def played(self: S, tmp_path: Path) -> None:
        self.play_pair(tmp_path, partial(test, self))

    return _named_as(test, played)


def _named_as(test: Callable[..., Any], played: Callable[[S, Path], None]) -> Callable[[S, Path], None]:
    """Pytest asks for what the signature names, so the test itself must not be seen behind it."""
    played.__name__, played.__qualname__, played.__doc__ = test.__name__, test.__qualname__, test.__doc__
    return played


def new_run(run_id: str = "r1", **changes: Any) -> NewRun:
    """A run to create, in a tree of its own unless told otherwise."""
    facts: dict[str, Any] = {
        "workflow": "flow",
        "run_key": run_id,
        "definition": "d1",
        "root_id": run_id,
        "created_at": NOW,
    }
    return NewRun(id=run_id, **{**facts, **changes})


def event(body: str = "{}", kind: str = "Stepped") -> EncodedEvent:
    """An event as it is stored."""
    return EncodedEvent(kind, 1, body, NOW)


def message(run_id: str = "r1", dedupe: str = "m1", at: float = NOW, body: Any = None) -> Message:
    """A message for an inbox."""
    return Message(run_id=run_id, kind="answer", dedupe=dedupe, body=body, at=at)


def wait_row(run_id: str = "r1", wait: str = "w1", due_at: float | None = None) -> WaitRow:
    """An open wait."""
    return WaitRow(run_id=run_id, id=wait, scope="fan[3]", node="ask", kind="answer", due_at=due_at, body={"q": 1})


async def held_run(store: Store, run_id: str = "r1", **changes: Any) -> RunRow:
    """Create a run and claim it for the laptop until a minute from now."""
    await store.create(new_run(run_id, **changes))
    row = await store.claim(LAPTOP, NOW, lease_until=NOW + 60, reader=1, which=ClaimFilter(run_id=run_id))
    if row is None:
        raise StoreError(f"the run {run_id} could not be claimed")
    return row


async def ended_run(store: Store, run_id: str = "r1", **changes: Any) -> RunRow:
    """Create a run and bring it to its end."""
    row = await held_run(store, run_id, **changes)
    await store.append(run_id, row.epoch, Batch(after=row.seq, status="done", release=True))
    return await sure(store, run_id)


async def sure(store: Store, run_id: str = "r1") -> RunRow:
    """A run that has to be there."""
    row = await store.run(run_id)
    if row is None:
        raise StoreError(f"the run {run_id} is not there")
    return row
