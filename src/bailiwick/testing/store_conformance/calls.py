# ruff: noqa: S101 - a conformance suite asserts
"""Promises about routed calls: nothing is asked before it is on record, nothing is forgotten when it ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bailiwick.errors import BudgetExceeded, NotFound
from bailiwick.journal.port import Store
from bailiwick.journal.rows import AttemptRow, CallRow, Reservation, SpendRow
from bailiwick.testing.store_conformance.stage import LAPTOP, NOW, StoreFixture, new_run, on_store, on_two_handles

DAY = "day:2023-11-14"


def call(name: str = "c-1", **changes: Any) -> CallRow:
    """A call that has just begun."""
    facts: dict[str, Any] = {
        "session_id": "s1",
        "skill": "review",
        "phase": "review",
        "project": "/p",
        "model": "",
        "by": "ann",
        "origin": "cli",
        "run": "",
        "node": "",
        "started_at": NOW,
        "why": "the chain of review",
        "size": 120,
        "until": NOW + 600,
        "chain": ("small", "big"),
        "owner": LAPTOP,
    }
    return CallRow(id=name, **{**facts, **changes})


def ended(row: CallRow, **changes: Any) -> CallRow:
    """The same call when it is over."""
    facts: dict[str, Any] = {
        "finished_at": row.started_at + 5,
        "status": "pass",
        "model_used": "big",
        "message": "done",
        "duration_ms": 5000,
        "owner": None,
    }
    return replace(row, **{**facts, **changes})


def attempt(name: str = "c-1", number: int = 1, **changes: Any) -> AttemptRow:
    """One model's try."""
    facts: dict[str, Any] = {
        "at": NOW + number,
        "skill": "review",
        "model": "small",
        "tier": "local",
        "verdict": "escalate",
        "verified": None,
        "warm_start": True,
        "duration_ms": 900,
    }
    return AttemptRow(call=name, attempt=number, **{**facts, **changes})


def usd(amount: float, limit: float | None = 10.0) -> tuple[Reservation, ...]:
    """A day's money set aside."""
    return (Reservation(DAY, key="", unit="usd", amount=amount, limit=limit),)


class CallPromises(StoreFixture):
    """What is promised about calls, their attempts, and endpoints that are left alone."""

    def test_a_call_is_on_record_before_its_model_is_asked(self, tmp_path: Path) -> None:
        """A process that is killed leaves an open call with its reservation, not a hole in the books."""
        row = call(reserved_usd=2.0)

        async def began(store: Store) -> None:
            await store.begin_call(row, usd(2.0))

        async def found(store: Store) -> None:
            assert await store.calls() == [row]
            assert await store.spend(DAY) == [
                SpendRow(DAY, key="c-1", unit="usd", reserved=2.0, settled=None, known=True)
            ]
            assert [line.run_id for line in await store.spend(DAY)] == ["c-1"]
            assert await store.attempts() == []

        self.play(tmp_path, began, found)

    def test_an_ended_call_keeps_every_fact_of_it_and_of_its_attempts(self, tmp_path: Path) -> None:
        """Statistics and explanations come from here alone; what nobody knew stays unknown."""
        over = ended(call(), file_path="/p/a.py", why="review's chain; small rejected")
        tries = [
            attempt(feedback="no line", output_summary="looks fine", runner_output="1 failed", size=120),
            attempt(
                number=2,
                model="big",
                tier="subagent",
                verdict="accept",
                verified=True,
                warm_start=False,
                input_tokens=10,
                output_tokens=0,
                cost=0.25,
            ),
        ]

        async def scene(store: Store) -> None:
            await store.begin_call(call())
            await store.end_call(over, tries)

        async def found(store: Store) -> None:
            assert await store.calls(id="c-1") == [over]
            assert await store.attempts(call="c-1") == tries
            assert [one.cost for one in tries] == [None, 0.25]

        self.play(tmp_path, scene, found)

    @on_store
    async def test_what_a_call_spent_replaces_what_was_set_aside(self, store: Store) -> None:
        """The rest of the day's money is free again for the next call."""
        await store.begin_call(call(), usd(9.0))
        with pytest.raises(BudgetExceeded, match="day:"):
            await store.begin_call(call("c-2"), usd(2.0))
        await store.end_call(ended(call()), [], {"usd": 1.0})
        await store.begin_call(call("c-2"), usd(9.0))
        spent = [(row.key, row.reserved, row.settled, row.known) for row in await store.spend(DAY)]
        assert spent == [("c-1", 0, 1.0, True), ("c-2", 9.0, None, True)]

    @on_store
    async def test_a_call_that_does_not_fit_leaves_no_trace(self, store: Store) -> None:
        """Nothing was asked, so nothing may be counted, in any unit."""
        both = (Reservation(DAY, key="", unit="agent_calls", amount=1, limit=5), *usd(10.5))
        with pytest.raises(BudgetExceeded):
            await store.begin_call(call(), both)
        assert await store.calls() == []
        assert await store.spend(DAY) == []

    @pytest.mark.parametrize("spent", [{"usd": None}, {}])
    def test_an_unknown_cost_counts_as_much_as_was_set_aside(
        self, tmp_path: Path, spent: dict[str, float | None]
    ) -> None:
        """Unknown is not zero: a backend that names no price would else pass every ceiling."""

        async def scene(store: Store) -> None:
            await store.begin_call(call(), usd(6.0))
            await store.end_call(ended(call()), [attempt(cost=None)], spent)
            assert await store.spend(DAY) == [
                SpendRow(DAY, key="c-1", unit="usd", reserved=0, settled=6.0, known=False)
            ]
            with pytest.raises(BudgetExceeded):
                await store.begin_call(call("c-2"), usd(5.0))

        self.play(tmp_path, scene)

    @on_store
    async def test_a_call_is_settled_in_the_scopes_where_it_was_set_aside(self, store: Store) -> None:
        """It may begin before midnight and end after it; a unit that nobody set aside is still a bill."""
        purse = Reservation("credential:x", key="", unit="usd", amount=3.0, limit=3.0)
        await store.begin_call(call(), (*usd(2.0), purse))
        await store.end_call(ended(call()), [], {"usd": 1.0, "tokens": 40})
        assert [(r.unit, r.settled) for r in await store.spend(DAY)] == [("tokens", 40), ("usd", 1.0)]
        assert [(r.unit, r.settled) for r in await store.spend("credential:x")] == [("tokens", 40), ("usd", 1.0)]

    @on_store
    async def test_a_call_that_set_nothing_aside_settles_nothing(self, store: Store) -> None:
        """A node's attempt has paid for the calls within it; they must not be paid for twice."""
        await store.create(new_run())
        await store.begin_call(call(run="r1", node="n", origin="node"))
        await store.end_call(ended(call()), [], {"usd": 4.0})
        assert await store.spend(DAY) == []

    @on_store
    async def test_beginning_and_ending_twice_is_once(self, store: Store) -> None:
        """A caller that does not know whether it was written may say it again; the first word stands."""
        for _ in range(2):
            await store.begin_call(call(), usd(2.0))
        await store.end_call(ended(call()), [attempt()], {"usd": 1.0})
        await store.end_call(ended(call(), status="error"), [attempt()], {"usd": 7.0})
        assert [row.status for row in await store.calls()] == ["pass"]
        assert [(row.reserved, row.settled) for row in await store.spend(DAY)] == [(0, 1.0)]

    @on_store
    async def test_the_end_of_a_call_that_never_began_is_refused(self, store: Store) -> None:
        """It would be a call that nobody could have stopped for its price."""
        with pytest.raises(NotFound, match="c-1"):
            await store.end_call(ended(call()), [attempt()])
        assert await store.attempts() == []

    @on_store
    async def test_an_end_that_can_not_be_written_whole_is_not_written(self, store: Store) -> None:
        """A call without its attempts, or paid for but open, would be believed."""
        await store.begin_call(call(), usd(2.0))
        with pytest.raises(Exception, match=r"(?i)unique|constraint|attempt"):
            await store.end_call(ended(call()), [attempt(), attempt()], {"usd": 1.0})
        assert [row.status for row in await store.calls()] == ["open"]
        assert await store.attempts() == []
        assert [(row.reserved, row.settled) for row in await store.spend(DAY)] == [(2.0, None)]

    @on_store
    async def test_calls_are_found_by_time_and_session_newest_first(self, store: Store) -> None:
        """Lists and statistics ask for a span of time; a retrospective asks for its session."""
        for number in range(4):
            session = "s2" if number == 2 else "s1"
            await store.begin_call(call(f"c-{number}", started_at=NOW + number // 2, session_id=session))
        assert [row.id for row in await store.calls()] == ["c-3", "c-2", "c-1", "c-0"]
        assert [row.id for row in await store.calls(limit=1)] == ["c-3"]
        assert len(await store.calls(limit=-1)) == 4
        assert [row.id for row in await store.calls(since=NOW + 1)] == ["c-3", "c-2"]
        assert [row.id for row in await store.calls(session="s2")] == ["c-2"]
        assert await store.calls(session="") == []
        assert await store.calls(id="c-9") == []
        assert [row.id for row in await store.calls(id="c-", limit=2)] == ["c-3", "c-2"]
        assert [row.id for row in await store.calls(id="c-1", since=NOW)] == ["c-1"]

    @on_store
    async def test_attempts_are_found_by_time_in_order(self, store: Store) -> None:
        """Rates over the last week leave out what is older."""
        for name, at in (("c-b", NOW), ("c-a", NOW + 50)):
            await store.begin_call(call(name))
            await store.end_call(ended(call(name)), [attempt(name, 1, at=at), attempt(name, 2, at=at + 1)])
        found = [(row.call, row.attempt) for row in await store.attempts()]
        assert found == [("c-b", 1), ("c-b", 2), ("c-a", 1), ("c-a", 2)]
        assert [row.call for row in await store.attempts(since=NOW + 50)] == ["c-a", "c-a"]
        assert await store.attempts(since=NOW + 50, call="c-b") == []

    @on_two_handles
    async def test_the_day_holds_against_everybody_at_once(self, first: Store, second: Store) -> None:
        """An editor's server and a script in a terminal share one ceiling."""
        asks = [store.begin_call(call(f"c-{number}"), usd(3.0)) for number, store in enumerate([first, second] * 10)]
        answers = await asyncio.gather(*asks, return_exceptions=True)
        assert sum(isinstance(one, BudgetExceeded) for one in answers) == 17
        assert len(await second.calls()) == 3
        assert [row.reserved for row in await first.spend(DAY)] == [3, 3, 3]

    @on_two_handles
    async def test_what_one_learned_about_an_endpoint_holds_for_all(self, first: Store, second: Store) -> None:
        """Each worker would else have to run into the same dead server."""
        assert await second.cooldown("http://gpu:8080") == (0, 0.0)
        await first.cooldown_report("http://gpu:8080", 3, NOW + 60)
        assert await second.cooldown("http://gpu:8080") == (3, NOW + 60)
        assert await second.cooldown("http://other") == (0, 0.0)
        await second.cooldown_report("http://gpu:8080", 0, 0.0)
        assert await first.cooldown("http://gpu:8080") == (0, 0.0)
