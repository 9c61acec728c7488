# ruff: noqa: S101 - a conformance suite asserts
"""Promises about the append: whole or not at all, by the holder only, without gaps."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bailiwick.errors import BudgetExceeded, JournalCorrupt, LeaseLost
from bailiwick.ids import digest
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Batch, Reservation, WaitFilter, WaitRow
from bailiwick.testing.store_conformance.stage import (
    ANY,
    NOW,
    TOWER,
    StoreFixture,
    event,
    held_run,
    message,
    new_run,
    on_store,
    sure,
    wait_row,
)


class AppendPromises(StoreFixture):
    """What is promised about a batch."""

    @on_store
    async def test_events_are_numbered_in_order_and_read_by_range(self, store: Store) -> None:
        """Resuming reads all of them, following reads those behind a place."""
        row = await held_run(store)
        assert await store.append("r1", row.epoch, Batch(after=0, events=(event("1"), event("2")))) == 2
        assert await store.append("r1", row.epoch, Batch(after=2, events=(event("3"),))) == 3
        assert await store.append("r1", row.epoch, Batch(after=3)) == 3
        assert [(one.seq, one.body) for one in await store.read("r1")] == [(1, "1"), (2, "2"), (3, "3")]
        assert [one.seq for one in await store.read("r1", after=1)] == [2, 3]
        assert [one.seq for one in await store.read("r1", after=1, upto=2)] == [2]
        assert (await sure(store)).seq == 3

    @on_store
    async def test_an_event_comes_back_as_it_was_written(self, store: Store) -> None:
        """Golden journals compare bytes."""
        row = await held_run(store)
        odd = replace(event('{"t":"ä\\u0000\U0001f600"}', "Odd"), version=7, at=NOW + 0.125)
        await store.append("r1", row.epoch, Batch(after=0, events=(odd,)))
        (back,) = await store.read("r1")
        assert (back.type, back.version, back.body, back.at) == (odd.type, odd.version, odd.body, odd.at)

    @on_store
    async def test_a_former_holder_is_fenced_and_changes_nothing(self, store: Store) -> None:
        """A process that slept through its lease must not write into its successor's journal."""
        row = await held_run(store)
        taken = await store.claim(TOWER, NOW + 60, lease_until=NOW + 120, reader=1, which=ANY)
        assert taken is not None
        with pytest.raises(LeaseLost):
            await store.append("r1", row.epoch, Batch(after=0, events=(event(),)))
        with pytest.raises(LeaseLost):
            await store.append("nobody", 1, Batch(after=0, events=(event(),)))
        assert await store.read("r1") == []
        assert await store.append("r1", taken.epoch, Batch(after=0, events=(event(),))) == 1

    @on_store
    async def test_a_gap_or_an_overlap_under_the_right_epoch_is_corruption(self, store: Store) -> None:
        """It is our bug, not a takeover; letting go quietly would hide it."""
        row = await held_run(store)
        await store.append("r1", row.epoch, Batch(after=0, events=(event(),)))
        for after in (0, 2):
            with pytest.raises(JournalCorrupt):
                await store.append("r1", row.epoch, Batch(after=after, events=(event(),)))
        assert len(await store.read("r1")) == 1

    @on_store
    async def test_a_batch_that_fails_leaves_nothing_of_itself(self, store: Store) -> None:
        """The reservation is checked last: everything before it has to be taken back."""
        row = await held_run(store)
        await store.create(new_run("peer", created_at=NOW + 50))
        before = (await sure(store), await sure(store, "peer"))
        data = b"only here"
        batch = Batch(
            after=0,
            events=(event(),),
            blobs={digest(data): data},
            waits_opened=(wait_row(),),
            children=(new_run("kid"),),
            messages=(message("peer"),),
            reserve=(
                Reservation("s", key="fits", unit="usd", amount=1, limit=2),
                Reservation("s", key="too much", unit="usd", amount=5, limit=2),
            ),
            summary={"x": 1},
            status="done",
            release=True,
        )
        with pytest.raises(BudgetExceeded):
            await store.append("r1", row.epoch, batch)
        assert (await sure(store), await sure(store, "peer")) == before
        assert await store.run("kid") is None
        assert await store.read("r1") == []
        assert await store.waits() == []
        assert await store.inbox("peer") == []
        assert await store.spend("s") == []
        with pytest.raises(JournalCorrupt):
            store.blob(digest(data))

    @on_store
    async def test_one_bad_operation_does_not_harm_those_beside_it(self, store: Store) -> None:
        """Operations that were asked for at once may share a commit; they don't share a fate."""
        row = await held_run(store)
        other = await held_run(store, "r2")
        good, fenced, corrupt, sent, late = await asyncio.gather(
            store.append("r1", row.epoch, Batch(after=0, events=(event("1"),))),
            store.append("r1", row.epoch - 1, Batch(after=1, events=(event("x"),))),
            store.append("r2", other.epoch, Batch(after=9, events=(event("x"),))),
            store.send(message("r2")),
            store.append("r1", row.epoch, Batch(after=1, events=(event("2"),))),
            return_exceptions=True,
        )
        assert (good, sent, late) == (1, True, 2)
        assert isinstance(fenced, LeaseLost)
        assert isinstance(corrupt, JournalCorrupt)
        assert [one.body for one in await store.read("r1")] == ["1", "2"]
        assert await store.read("r2") == []

    @on_store
    async def test_a_batch_sets_what_it_names_and_leaves_the_rest(self, store: Store) -> None:
        """None means: as it was. A wake time counts only when the run is let go."""
        row = await held_run(store, summary={"node": "a"})
        await store.append("r1", row.epoch, Batch(after=0, wake_at=NOW + 5))
        assert await sure(store) == row
        await store.append(
            "r1", row.epoch, Batch(after=0, definition="d2", min_reader=3, host="laptop", summary={"node": "b"})
        )
        changed = await sure(store)
        assert (changed.definition, changed.min_reader, changed.host) == ("d2", 3, "laptop")
        assert changed.summary == {"node": "b"}
        assert (changed.status, changed.owner, changed.wake_at) == (row.status, row.owner, row.wake_at)
        await store.append("r1", row.epoch, Batch(after=0, status="failed", release=True))
        ended = await sure(store)
        assert (ended.status, ended.owner, ended.lease_until, ended.wake_at) == ("failed", None, 0, None)
        assert (ended.definition, ended.summary) == ("d2", {"node": "b"})

    @on_store
    async def test_children_are_created_with_the_events_that_name_them(self, store: Store) -> None:
        """A parent must not wait for a child that was lost, nor start it again when it tries again."""
        row = await held_run(store)
        child = new_run("kid", root_id="r1", parent="r1", first=(event("first"),))
        await store.append("r1", row.epoch, Batch(after=0, events=(event(),), children=(child,)))
        kid = await sure(store, "kid")
        assert (kid.status, kid.parent, kid.root_id, kid.seq) == ("ready", "r1", "r1", 1)
        await store.append("r1", row.epoch, Batch(after=1, children=(child,)))
        assert len(await store.read("kid")) == 1

    @on_store
    async def test_waits_are_listed_until_closed_earliest_due_first(self, store: Store) -> None:
        """What `status` shows as waiting for a person or for time."""
        row = await held_run(store)
        await held_run(store, "r2")
        never, soon, late = wait_row(), wait_row(wait="soon", due_at=1), wait_row(wait="late", due_at=9)
        await store.append("r1", row.epoch, Batch(after=0, waits_opened=(never, late, soon)))
        await store.append("r2", 1, Batch(after=0, waits_opened=(wait_row("r2", "mid", due_at=5),)))
        assert [one.id for one in await store.waits()] == ["soon", "mid", "late", "w1"]
        assert await store.waits(WaitFilter(run_id="r1")) == [soon, late, never]
        both = Batch(after=0, waits_closed=("soon", "brief"), waits_opened=(wait_row(wait="brief"),))
        await store.append("r1", row.epoch, both)
        assert await store.waits(WaitFilter(run_id="r1")) == [late, never]

    @on_store
    async def test_waits_are_found_by_tree_and_kind_and_page_by_page(self, store: Store) -> None:
        """Those without an end come last; a page goes on exactly behind the last one."""
        for name, root in (("r1", "r1"), ("r2", "r1"), ("r3", "r3")):
            row = await held_run(store, name, root_id=root)
            opened = [wait_row(name, f"w{number}", due_at=due) for number, due in enumerate((7, None, 7, 2, None))]
            asks = replace(wait_row(name, "q"), kind="gate")
            await store.append(name, row.epoch, Batch(after=0, waits_opened=(*opened, asks)))
        everything = await store.waits()
        assert len(everything) == 18
        for most in (1, 4):
            paged: list[WaitRow] = []
            while rows := await store.waits(limit=most, after=paged[-1] if paged else None):
                assert len(rows) <= most
                paged += rows
            assert paged == everything
        tree = await store.waits(WaitFilter(root_id="r1"))
        assert tree == [one for one in everything if one.run_id != "r3"]
        kinds = await store.waits(WaitFilter(root_id="r1", kind="gate"))
        assert [(one.run_id, one.id) for one in kinds] == [("r1", "q"), ("r2", "q")]
