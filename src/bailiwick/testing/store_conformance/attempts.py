# ruff: noqa: S101 - a conformance suite asserts
"""Promises about the index of model attempts: written with what it is about, and gone with it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bailiwick.errors import BudgetExceeded, LeaseLost
from bailiwick.journal.port import Store
from bailiwick.journal.rows import AttemptRow, Batch, Reservation
from bailiwick.testing.store_conformance.calls import attempt, call, ended
from bailiwick.testing.store_conformance.stage import (
    ANY,
    NOW,
    TOWER,
    StoreFixture,
    event,
    held_run,
    on_store,
    on_two_handles,
)


def of_node(run: str = "r1", seq: int = 1, **changes: Any) -> AttemptRow:
    """A model was asked by a node, and its answer is the event with this seq."""
    return replace(attempt("", seq), **{"run": run, "skill": "", "verdict": "accept_unverified", **changes})


class AttemptPromises(StoreFixture):
    """What is promised about the index of attempts."""

    def test_an_attempt_of_a_node_is_indexed_with_its_event(self, tmp_path: Path) -> None:
        """Statistics ask the index alone; what nobody knew stays unknown in it."""
        rows = (
            of_node(seq=1, input_tokens=7, output_tokens=0, cost=0.25, feedback="no", verified=False, warm_start=False),
            of_node(seq=2),
        )

        async def written(store: Store) -> None:
            held = await held_run(store, workflow="fix")
            await store.append("r1", held.epoch, Batch(after=0, events=(event("1"), event("2")), attempts=rows))

        async def found(store: Store) -> None:
            assert await store.attempts() == [replace(row, workflow="fix") for row in rows]
            assert [row.attempt for row in await store.attempts(since=NOW + 2)] == [2]

        self.play(tmp_path, written, found)

    @on_store
    async def test_a_batch_that_is_refused_leaves_no_attempt(self, store: Store) -> None:
        """The event is not there either: it was a former holder's, or there was no money for what follows it."""
        held = await held_run(store)
        whole = Batch(after=0, events=(event(),), attempts=(of_node(),))
        dear = Reservation("day:d", key="k", unit="usd", amount=2.0, limit=1.0)
        with pytest.raises(BudgetExceeded):
            await store.append("r1", held.epoch, replace(whole, reserve=(dear,)))
        with pytest.raises(LeaseLost):
            await store.append("r1", held.epoch - 1, whole)
        assert await store.attempts() == []
        await store.append("r1", held.epoch, whole)
        assert len(await store.attempts()) == 1

    @on_store
    async def test_an_attempt_that_can_not_be_indexed_takes_its_event_back(self, store: Store) -> None:
        """An answer that is paid for and in no statistics would never be found."""
        held = await held_run(store)
        with pytest.raises(Exception, match=r"(?i)unique|constraint|attempt"):
            await store.append("r1", held.epoch, Batch(after=0, events=(event(),), attempts=(of_node(), of_node())))
        assert await store.read("r1") == []
        assert await store.attempts() == []

    @on_store
    async def test_half_a_character_keeps_no_attempt_out(self, store: Store) -> None:
        """Programs say what they like: an event must not be lost over a text beside it."""
        held = await held_run(store)
        rows = (of_node(feedback="odd \ud800!"),)
        await store.append("r1", held.epoch, Batch(after=0, events=(event(),), attempts=rows))
        assert [row.feedback for row in await store.attempts()] == ["odd ?!"]

    @on_store
    async def test_calls_and_nodes_stand_in_the_order_of_time(self, store: Store) -> None:
        """Both are told apart by what they name: a call, or a run."""
        held = await held_run(store)
        await store.append("r1", held.epoch, Batch(after=0, events=(event(),), attempts=(of_node(at=NOW + 2),)))
        await store.begin_call(call())
        await store.end_call(ended(call()), [attempt(at=NOW + 1), attempt(number=2, at=NOW + 3)])
        assert [(row.call, row.run, row.attempt) for row in await store.attempts()] == [
            ("c-1", "", 1),
            ("", "r1", 1),
            ("c-1", "", 2),
        ]
        assert [row.attempt for row in await store.attempts(call="c-1")] == [1, 2]

    @on_store
    async def test_long_texts_are_given_for_one_call_only(self, store: Store) -> None:
        """Ten thousand outputs of test runners would be read for a line of statistics."""
        wordy = attempt(output_summary="fine", runner_output="1 passed", feedback="no", size=9)
        await store.begin_call(call())
        await store.end_call(ended(call()), [wordy])
        assert await store.attempts(call="c-1") == [wordy]
        assert await store.attempts() == [replace(wordy, output_summary="", runner_output="")]

    @on_store
    async def test_an_attempt_goes_by_the_name_of_what_was_started(self, store: Store) -> None:
        """People know the workflow they started, not the parts it calls."""
        tree: dict[str, dict[str, Any]] = {
            "top": {"workflow": "night"},
            "part": {"workflow": "step", "root_id": "top", "parent": "top"},
            "orphan": {"workflow": "lone", "root_id": "gone"},
        }
        for name, facts in tree.items():
            held = await held_run(store, name, **facts)
            await store.append(name, held.epoch, Batch(after=0, events=(event(),), attempts=(of_node(name),)))
        found = {row.run: row.workflow for row in await store.attempts()}
        assert found == {"top": "night", "part": "night", "orphan": "lone"}

    @on_store
    async def test_attempts_go_with_their_run(self, store: Store) -> None:
        """What is removed is in no statistics; what others did stays."""
        await store.begin_call(call())
        await store.end_call(ended(call()), [attempt()])
        for name, parent in (("r1", None), ("kid", "r1"), ("r2", None)):
            held = await held_run(store, name, parent=parent)
            batch = Batch(after=0, events=(event(),), attempts=(of_node(name),), status="done", release=True)
            await store.append(name, held.epoch, batch)
        await store.archive("r1")
        assert len(await store.attempts()) == 4
        await store.delete("r1")
        assert [(row.call, row.run) for row in await store.attempts()] == [("", "r2"), ("c-1", "")]

    @on_two_handles
    async def test_two_writers_index_what_each_of_them_asked(self, first: Store, second: Store) -> None:
        """Two workers at once: every attempt once, none lost."""

        async def walk(store: Store, name: str) -> None:
            held = await held_run(store, name)
            for seq in range(1, 9):
                batch = Batch(after=seq - 1, events=(event(),), attempts=(of_node(name, seq),))
                await store.append(name, held.epoch, batch)

        await asyncio.gather(walk(first, "r1"), walk(second, "r2"))
        found = sorted((row.run, row.attempt) for row in await first.attempts())
        assert found == [(name, seq) for name in ("r1", "r2") for seq in range(1, 9)]

    @on_two_handles
    async def test_of_two_holders_only_one_indexes_an_attempt(self, first: Store, second: Store) -> None:
        """A process that slept through its lease must not be counted beside its successor."""
        held = await held_run(first)
        taken = await second.claim(TOWER, NOW + 60, lease_until=NOW + 120, reader=1, which=ANY)
        assert taken is not None
        batch = Batch(after=0, events=(event(),), attempts=(of_node(),))
        told = await asyncio.gather(
            first.append("r1", held.epoch, batch), second.append("r1", taken.epoch, batch), return_exceptions=True
        )
        assert isinstance(told[0], LeaseLost)
        assert told[1] == 1
        assert len(await first.attempts()) == 1
