# ruff: noqa: S101 - a conformance suite asserts
"""Promises about the inbox: nothing is lost, nothing comes twice, and whoever gets a message wakes."""

from __future__ import annotations

import asyncio

import pytest

from bailiwick.errors import JournalCorrupt, NotFound
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Batch
from bailiwick.testing.store_conformance.stage import (
    NOW,
    StoreFixture,
    ended_run,
    event,
    held_run,
    message,
    new_run,
    on_store,
    on_two_handles,
    sure,
)


class InboxPromises(StoreFixture):
    """What is promised about messages."""

    @on_store
    async def test_a_message_makes_a_resting_run_ready_and_due(self, store: Store) -> None:
        """An answer to a parked run, or a resume of a stopped one, is what brings it back."""
        parked = await held_run(store)
        await store.release("r1", parked.epoch, None)
        await ended_run(store, "r2")
        for run_id in ("r1", "r2"):
            assert await store.send(message(run_id, at=NOW + 3)) is True
            row = await sure(store, run_id)
            assert (row.status, row.wake_at) == ("ready", NOW + 3)

    @on_store
    async def test_a_message_never_puts_off_an_earlier_wake(self, store: Store) -> None:
        """It may only pull the time nearer."""
        await store.create(new_run())
        await store.send(message(at=NOW + 3))
        assert (await sure(store)).wake_at == NOW
        await store.send(message(dedupe="m2", at=NOW - 3))
        assert (await sure(store)).wake_at == NOW - 3

    @on_store
    async def test_messages_come_in_order_of_arrival_with_their_bodies(self, store: Store) -> None:
        """A stop after an answer is not the same as an answer after a stop."""
        await store.create(new_run())
        for number in range(3):
            await store.send(message(dedupe=f"m{number}", at=NOW - number, body={"n": number, "t": "ä"}))
        rows = await store.inbox("r1")
        assert [row.body for row in rows] == [{"n": number, "t": "ä"} for number in range(3)]
        assert [(row.run_id, row.kind) for row in rows] == [("r1", "answer")] * 3
        assert [row.at for row in rows] == [NOW, NOW - 1, NOW - 2]

    @on_store
    async def test_a_duplicate_is_dropped_also_after_the_first_was_read(self, store: Store) -> None:
        """A sender that did not hear the answer sends again, perhaps much later."""
        row = await held_run(store)
        assert await store.send(message()) is True
        assert await store.send(message(body="again")) is False
        (only,) = await store.inbox("r1")
        await store.append("r1", row.epoch, Batch(after=0, events=(event(),), consumed=(only.id,), release=True))
        assert await store.send(message()) is False
        assert await store.inbox("r1") == []
        assert (await sure(store)).wake_at is None

    @on_store
    async def test_the_same_dedupe_in_another_run_is_no_duplicate(self, store: Store) -> None:
        """Two parents may be told the same thing."""
        await store.create(new_run())
        await store.create(new_run("r2"))
        assert await store.send(message()) is True
        assert await store.send(message("r2")) is True

    @on_two_handles
    async def test_of_many_equal_messages_sent_at_once_one_arrives(self, first: Store, second: Store) -> None:
        """Two people press the button, or one presses it twice."""
        await first.create(new_run())
        answers = await asyncio.gather(*(store.send(message()) for store in [first, second] * 4))
        assert answers.count(True) == 1
        assert len(await first.inbox("r1")) == 1

    @on_store
    async def test_a_message_is_consumed_once(self, store: Store) -> None:
        """A second event made of one message would answer twice."""
        row = await held_run(store)
        await store.create(new_run("r2"))
        await store.send(message("r2"))
        await store.send(message())
        (mine,), (theirs,) = await store.inbox("r1"), await store.inbox("r2")
        await store.append("r1", row.epoch, Batch(after=0, events=(event(),), consumed=(mine.id,)))
        for wrong in (mine.id, theirs.id):
            with pytest.raises(JournalCorrupt):
                await store.append("r1", row.epoch, Batch(after=1, events=(event(),), consumed=(wrong,)))
        assert len(await store.read("r1")) == 1
        assert len(await store.inbox("r2")) == 1

    @on_store
    async def test_a_holder_tells_other_runs_in_its_own_append(self, store: Store) -> None:
        """A child's end and the news of it are one thing; a crash can't part them."""
        parent = await held_run(store)
        await store.release("r1", parent.epoch, None)
        row = await held_run(store, "kid", parent="r1")
        done = Batch(after=0, events=(event(),), messages=(message(at=NOW + 2),), status="done", release=True)
        await store.append("kid", row.epoch, done)
        assert len(await store.inbox("r1")) == 1
        assert (await sure(store)).wake_at == NOW + 2

    @on_store
    async def test_nobody_is_told_to_a_run_that_is_gone(self, store: Store) -> None:
        """A person hears that it can't be; a holder goes on, for the news concerns nobody."""
        await ended_run(store, "aside")
        await store.archive("aside")
        row = await held_run(store)
        for gone in ("aside", "nobody"):
            with pytest.raises(NotFound, match=gone):
                await store.send(message(gone))
        news = (message("aside"), message("nobody"))
        assert await store.append("r1", row.epoch, Batch(after=0, events=(event(),), messages=news)) == 1
        assert (await sure(store, "aside")).status == "done"
