# ruff: noqa: S101 - a conformance suite asserts
"""Promises about runs that belong to somebody from the beginning: created, held and begun in one transaction."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bailiwick.errors import BudgetExceeded, JournalCorrupt
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Batch, Owner, Reservation, RunClaim
from bailiwick.testing.store_conformance.stage import (
    ANY,
    LAPTOP,
    NOW,
    TOWER,
    StoreFixture,
    ended_run,
    event,
    new_run,
    on_store,
    on_two_handles,
    sure,
)

MINE = RunClaim(LAPTOP, NOW + 60)
THEIRS = RunClaim(TOWER, NOW + 60)


def begun(text: str = "2", limit: float = 10.0) -> Batch:
    """The first batch of a run that has one event: another, and money that is set aside."""
    money = Reservation("day:1", key=text, unit="usd", amount=3.0, limit=limit)
    return Batch(after=1, events=(event(text),), reserve=(money,), summary={"at": text})


class CreationPromises(StoreFixture):
    """What is promised about creating, claiming and beginning a run at once."""

    def test_a_run_is_created_held_and_begun_at_once(self, tmp_path: Path) -> None:
        """One commit, and nobody can come between: what is created for a caller who waits belongs to its caller."""

        async def made(store: Store) -> None:
            row = await store.create(new_run(first=(event("1"),)), MINE, begun())
            assert (row.epoch, row.owner, row.lease_until, row.seq) == (1, LAPTOP, NOW + 60, 2)
            assert (row.status, row.wake_at, row.summary) == ("ready", NOW, {"at": "2"})
            assert row == await sure(store)

        async def found(store: Store) -> None:
            assert [one.body for one in await store.read("r1")] == ["1", "2"]
            assert [line.reserved for line in await store.spend("day:1")] == [3.0]
            assert await store.claim(TOWER, NOW + 59, lease_until=NOW + 99, reader=1, which=ANY) is None
            assert await store.append("r1", 1, Batch(after=2, events=(event("3"),))) == 3
            taken = await store.claim(TOWER, NOW + 60, lease_until=NOW + 99, reader=1, which=ANY)
            assert taken is not None
            assert taken.epoch == 2

        self.play(tmp_path, made, found)

    @on_store
    async def test_each_part_stands_by_itself(self, store: Store) -> None:
        """A run may be held without a batch, or begun and left for whoever comes."""
        held = await store.create(new_run("held"), MINE)
        assert (held.epoch, held.owner, held.seq) == (1, LAPTOP, 0)
        free = await store.create(new_run("free", first=(event(),)), batch=begun())
        assert (free.epoch, free.owner, free.seq) == (0, None, 2)
        over = await store.create(new_run("over"), MINE, Batch(after=0, status="done", release=True))
        assert (over.status, over.owner) == ("done", None)

    @pytest.mark.parametrize(
        ("batch", "error"), [(begun(limit=2.0), BudgetExceeded), (Batch(after=7, events=(event(),)), JournalCorrupt)]
    )
    def test_what_can_not_begin_is_not_created(self, tmp_path: Path, batch: Batch, error: type[Exception]) -> None:
        """A run without its money, or without its beginning, would lie about for ever."""

        async def scene(store: Store) -> None:
            new = new_run(run_key="k", first=(event("1"),))
            with pytest.raises(error):
                await store.create(new, MINE, batch)
            assert (await store.run("r1"), await store.find("flow", "k")) == (None, None)
            assert await store.spend("day:1") == []
            assert (await store.create(new_run("r2", run_key="k"), MINE)).id == "r2"

        self.play(tmp_path, scene)

    @on_store
    async def test_a_run_that_was_there_is_neither_claimed_nor_appended_to(self, store: Store) -> None:
        """Whoever asks again learns from epoch and owner that it is not theirs."""
        await store.create(new_run("free", run_key="k"))
        again = await store.create(new_run("other", run_key="k", first=(event("1"),)), MINE, begun())
        assert (again.id, again.epoch, again.owner, again.seq) == ("free", 0, None, 0)
        await ended_run(store, "over")
        await store.archive("over")
        same = await store.create(new_run("over", run_key="new", first=(event("1"),)), MINE, begun())
        assert (same.status, same.owner, same.seq) == ("done", None, 0)
        assert await store.spend("day:1") == []

    @on_two_handles
    async def test_of_two_that_create_one_run_one_holds_it(self, first: Store, second: Store) -> None:
        """Both are told whose it is, and it begins once."""

        async def create(store: Store, number: int, claim: RunClaim) -> Owner | None:
            new = new_run(f"{claim.owner.host}{number}", run_key=f"k{number}", first=(event("1"),))
            return (await store.create(new, claim, begun(f"b{number}", 99.0))).owner

        for number in range(8):
            told = await asyncio.gather(create(first, number, MINE), create(second, number, THEIRS))
            assert told[0] == told[1]
        rows = await first.runs()
        assert [(row.epoch, row.seq) for row in rows] == [(1, 2)] * 8
        assert [line.reserved for line in await second.spend("day:1")] == [3.0] * 8
