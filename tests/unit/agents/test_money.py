"""What turns cost: set aside, settled, unknown, shared by a day."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bailiwick.agents.port import (
    AgentEvent,
    Answered,
    SessionKnown,
    Used,
)
from bailiwick.clock import ManualClock
from bailiwick.engine import graph as g
from bailiwick.journal.rows import WaitFilter
from bailiwick.runs.control import Control
from bailiwick.runs.foreground import BUDGET, DONE, WAITS
from tests.unit.agents.played import GOOD, QUICK, ScriptedBackend, agent, stage_of
from tests.unit.runtime.stage import chain

if TYPE_CHECKING:
    from pathlib import Path

    from bailiwick.runtime.assemble import Runtime


def test_money_is_set_aside_before_a_turn_and_settled_after_it(tmp_path: Path) -> None:
    """A dollar a turn is reserved; what it cost is what stays; nothing starts that does not fit."""
    cheap: list[AgentEvent] = [SessionKnown("s1"), Used(100, 20, usd=0.25), Answered('{"x": 1}')]
    backend = ScriptedBackend([cheap])
    stage = stage_of(tmp_path, backend, replace(QUICK, reserve_usd=1.0))
    graph = chain(*(agent(f"a{i}") for i in range(6)), budget=g.Budget(usd=1.1))

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == BUDGET
        rows = [r for r in await runtime.store.spend(f"run:{verdict.row.id}") if r.unit == "usd"]
        assert sum(r.settled or 0 for r in rows) == pytest.approx(0.25 * len(backend.seen))
        assert sum(r.reserved for r in rows) == 0
        assert len(backend.seen) == 5, "the last one begins with what is left: over by less than one answer"
        assert [round(t.max_usd or 0, 2) for t in backend.seen] == [1.0, 0.85, 0.6, 0.35, 0.1]

    stage.play(context)


def test_an_unknown_cost_counts_as_what_was_set_aside(tmp_path: Path) -> None:
    """Unknown is not zero."""
    stage = stage_of(tmp_path, ScriptedBackend([GOOD]), replace(QUICK, reserve_usd=1.0))

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, chain(agent()))
        rows = [r for r in await runtime.store.spend(f"run:{verdict.row.id}") if r.unit == "usd"]
        assert [(r.settled, r.known) for r in rows] == [(1.0, False)]

    stage.play(context)


def test_totals_of_a_resumed_session_are_differenced(tmp_path: Path) -> None:
    """A CLI that counts over the whole session would be paid twice."""
    first: list[AgentEvent] = [SessionKnown("s1"), Used(100, 10, usd=0.5, cumulative=True), Answered("rubbish")]
    second: list[AgentEvent] = [SessionKnown("s1"), Used(150, 15, usd=0.7, cumulative=True), Answered('{"x": 1}')]
    stage = stage_of(tmp_path, ScriptedBackend([first, second]), replace(QUICK, reserve_usd=1.0))

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, chain(agent()))
        assert verdict.code == DONE
        spent = {r.unit: r.settled for r in await runtime.store.spend(f"run:{verdict.row.id}")}
        assert spent["usd"] == pytest.approx(0.7)
        assert spent["tokens"] == 165
        assert spent["agent_calls"] == 2

    stage.play(context)


def test_a_days_budget_is_shared_by_runs_and_begins_anew_at_midnight(tmp_path: Path) -> None:
    """What one run spent is not there for the next one; tomorrow it goes on by itself."""
    clock = ManualClock(1_700_000_000.0)
    backend = ScriptedBackend([[SessionKnown("s1"), Used(10, 10, usd=2.0), Answered('{"x": 1}')]])
    stage = stage_of(tmp_path, backend, replace(QUICK, reserve_usd=1.0), clock)
    first, second = chain(agent(), agent("b")), replace(chain(agent()), name="other")

    async def context(runtime: Runtime) -> None:
        runtime.daily = {"usd": 4.0}
        assert (await stage.walk(runtime, first)).code == DONE
        verdict = await stage.walk(runtime, second)
        assert verdict.code == BUDGET
        assert len(backend.seen) == 2
        waits = await runtime.store.waits(WaitFilter(run_id=verdict.row.id))
        assert waits[0].due_at is not None
        clock.advance(waits[0].due_at - clock.now() + 1)
        assert (await stage.walk(runtime, second)).code == DONE

    stage.play(context)


def test_a_person_can_raise_a_days_budget(tmp_path: Path) -> None:
    """`raise` lifts the ceiling that was met, for this run."""
    backend = ScriptedBackend([[SessionKnown("s1"), Used(10, 10, usd=2.0), Answered('{"x": 1}')]])
    stage = stage_of(tmp_path, backend, replace(QUICK, reserve_usd=1.0))
    graph = chain(agent(), agent("b"), agent("c"))

    async def context(runtime: Runtime) -> None:
        runtime.daily = {"usd": 4.0}
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == BUDGET
        assert not (await Control(runtime, "tester").answer(verdict.row, "raise")).refused
        assert (await stage.walk(runtime, graph)).code == DONE

    stage.play(context)


def test_turns_at_once_never_overshoot_by_more_than_one_answer_each(tmp_path: Path) -> None:
    """What is set aside is gone for the others before the first of them is asked."""
    backend = ScriptedBackend([[SessionKnown("s1"), Used(10, 10, usd=0.9), Answered('{"x": 1}')]])
    stage = stage_of(tmp_path, backend, replace(QUICK, reserve_usd=1.0))
    nodes: dict[str, g.Node] = {
        "each": g.Map(id="each", over="items", body="a", join="done", max=20),
        "a": replace(agent(), next="done"),
        "done": g.End(id="done"),
    }
    graph = g.Graph(name="flow", start="each", nodes=nodes, vars={"items": list(range(20))}, budget=g.Budget(usd=5.0))

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == BUDGET
        rows = [r for r in await runtime.store.spend(f"run:{verdict.row.id}") if r.unit == "usd"]
        assert sum(r.settled or 0 for r in rows) <= 5.0 + 0.9

    stage.play(context)


def test_a_credential_has_a_ceiling_of_its_own(tmp_path: Path) -> None:
    """Two runs that share a credential share what it may spend a day."""
    backend = ScriptedBackend([[SessionKnown("s1"), Used(10, 10, usd=2.0), Answered('{"x": 1}')]])
    stage = stage_of(tmp_path, backend, replace(QUICK, reserve_usd=1.0))

    async def context(runtime: Runtime) -> None:
        runtime.purse = lambda _node, _chosen: ("main", {"usd": 2.0})
        assert (await stage.walk(runtime, chain(agent()))).code == DONE
        verdict = await stage.walk(runtime, replace(chain(agent()), name="other"))
        assert verdict.code == BUDGET
        assert "credential.usd" in str((verdict.row.summary or {})["question"])

    stage.play(context)


def test_an_unknown_cost_is_free_where_that_is_allowed_and_refused_where_it_is_not(tmp_path: Path) -> None:
    """`budget.unknown_cost`: the person decides what not knowing means."""
    allowing = stage_of(tmp_path / "a", ScriptedBackend([GOOD]), replace(QUICK, reserve_usd=1.0), unknown_cost="allow")
    refusing = stage_of(tmp_path / "b", ScriptedBackend([GOOD]), replace(QUICK, reserve_usd=1.0), unknown_cost="refuse")

    async def free(runtime: Runtime) -> None:
        verdict = await allowing.walk(runtime, chain(agent()))
        rows = [r for r in await runtime.store.spend(f"run:{verdict.row.id}") if r.unit == "usd"]
        assert [(r.settled, r.known) for r in rows] == [(0.0, False)]

    async def refused(runtime: Runtime) -> None:
        assert (await refusing.walk(runtime, chain(agent()))).code == WAITS
        waits = await runtime.store.waits()
        assert "price" in waits[0].body["question"]

    allowing.play(free)
    refusing.play(refused)


def test_a_model_outside_the_allowed_ones_is_never_asked(tmp_path: Path) -> None:
    """An organisation's list is a limit: the run parks, nothing is spent."""
    backend = ScriptedBackend([GOOD])
    stage = stage_of(tmp_path, backend, allowed_models=("small",))

    async def context(runtime: Runtime) -> None:
        assert (await stage.walk(runtime, chain(agent(spec={"model": "huge"})))).code == WAITS
        assert backend.seen == []
        assert (await stage.walk(runtime, replace(chain(agent(spec={"model": "small"})), name="ok"))).code == DONE

    stage.play(context)
