"""The time budget counts work: effects in flight, those of called runs too, and no wait of any kind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.engine import graph as g
from bailiwick.engine.events import Failure
from bailiwick.ids import Json
from bailiwick.journal.rows import RunFilter
from bailiwick.lang.load import Loaded
from bailiwick.processes.owner import current_owner
from bailiwick.runs.control import Control
from bailiwick.runs.foreground import BUDGET, DONE, TIME, WAITS, Foreground
from bailiwick.runs.start import StartRequest, start
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.kinds import AttemptRequest
from tests.unit.runtime.stage import Calm, RuntimeSetup, Scripted, chain, work


class SleepyClock(ManualClock):
    """A machine that can sleep: its date goes on, its other clock stands still."""

    slept = 0.0
    asked: asyncio.Event | None = None

    def monotonic(self) -> float:
        if self.asked is not None:
            self.asked.set()
        return self.at - self.slept

    def sleep(self, seconds: float) -> None:
        """The lid is closed for so long."""
        self.advance(seconds)
        self.slept += seconds


HOURS = 3600.0


@pytest.mark.parametrize("kind", ["cap", "overloaded"])
def test_a_wait_for_a_cap_or_an_outage_is_no_work(tmp_path: Path, kind: str) -> None:
    """12 h of work, a cap of 72 h, the clock 73 h later: the run goes on."""
    clock = ManualClock()

    async def capped(request: AttemptRequest) -> dict[str, Json] | Failure:
        clock.advance(60)
        detail: dict[str, Json] = {"resets_at": clock.at + 72 * HOURS, "retry_after": 72 * HOURS, "evidence": kind}
        return Failure(kind, "later", detail) if request.attempt == 1 else {}

    stage = RuntimeSetup(tmp_path, Scripted(capped), clock)
    graph = chain(work("a", "agent"), budget=g.Budget(wall=12 * HOURS))

    async def scene(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph, no_wait=True)
        assert verdict.code == TIME
        clock.advance(73 * HOURS)
        assert (await stage.walk(runtime, graph)).code == DONE
        assert (await runtime.library.state(verdict.row.id)).work == pytest.approx(120)

    stage.play(scene)


def test_a_timer_and_the_time_before_somebody_takes_the_run_are_no_work(tmp_path: Path) -> None:
    """Neither a `wait` of days nor days without a worker use up the budget."""
    clock = ManualClock()

    async def slow(_request: AttemptRequest) -> dict[str, Json]:
        clock.advance(60)
        return {}

    stage = RuntimeSetup(tmp_path, Scripted(slow), clock)
    wait = g.Wait(id="w", seconds="3d")
    graph = chain(work("a"), wait, work("b"), budget=g.Budget(wall=12 * HOURS))

    async def scene(runtime: Runtime) -> None:
        await start(runtime, StartRequest(stage.loaded(graph)))
        clock.advance(100 * HOURS)
        assert (await stage.walk(runtime, graph, no_wait=True)).code == TIME
        clock.advance(73 * HOURS)
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == DONE
        assert (await runtime.library.state(verdict.row.id)).work == pytest.approx(120)

    stage.play(scene)


def test_time_that_the_machine_slept_is_no_work(tmp_path: Path) -> None:
    """Neither while an effect is in flight nor after it."""
    clock = SleepyClock()

    async def slow(_request: AttemptRequest) -> dict[str, Json]:
        clock.advance(60)
        clock.sleep(20 * HOURS)
        clock.asked = asyncio.Event()
        for held in (stage.signals.worker.held if stage.signals.worker else {}).values():
            held.wake.set()
        await clock.asked.wait()  # the walker has looked how much time is left
        return {}

    stage = RuntimeSetup(tmp_path, Scripted(slow), clock)
    graph = chain(work("a"), work("b"), budget=g.Budget(wall=12 * HOURS))

    async def scene(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == DONE, verdict.row.summary
        assert (await runtime.library.state(verdict.row.id)).work == pytest.approx(120)

    stage.play(scene)


def test_the_work_of_a_called_run_counts_and_its_waits_do_not(tmp_path: Path) -> None:
    """The root is charged for what its child did; a child that waits for a person for days is free."""
    clock = ManualClock()

    async def slow(_request: AttemptRequest) -> dict[str, Json]:
        clock.advance(40)
        return {}

    stage = RuntimeSetup(tmp_path, Scripted(slow), clock)
    inner = replace(chain(work("a"), g.Ask(id="ask", question="?", choices=("yes",)), work("b")), name="inner")
    outer = chain(g.Call(id="sub", workflow="inner"), work("c"), work("d"), budget=g.Budget(wall=150.0))

    async def scene(runtime: Runtime) -> None:
        (tmp_path / "inner").mkdir()
        loaded = replace(stage.loaded(outer), calls={"inner": Loaded(inner, [], tmp_path / "inner", {})})
        row = (await start(runtime, StartRequest(loaded))).row
        foreground = Foreground(runtime, current_owner("test"))
        assert (await foreground.walk(row, Calm())).code == WAITS
        clock.advance(90 * HOURS)
        child = next(r for r in await runtime.store.runs(RunFilter(root_id=row.id)) if r.parent)
        await Control(runtime, "tester").answer(child, "yes")
        verdict = await foreground.walk(row, Calm())
        state = await runtime.library.state(row.id)
        assert state.work == pytest.approx(160)
        assert [r.node.id for r in stage.kind.seen] == ["a", "b", "c", "d"]
        assert verdict.code == DONE

    stage.play(scene)


def test_a_called_run_stops_at_what_its_root_has_left(tmp_path: Path) -> None:
    """A child can't work longer than the whole tree may."""
    clock = ManualClock()

    async def slow(_request: AttemptRequest) -> dict[str, Json]:
        clock.advance(40)
        return {}

    stage = RuntimeSetup(tmp_path, Scripted(slow), clock)
    inner = replace(chain(*(work(f"n{i}") for i in range(9))), name="inner")
    outer = chain(work("first"), g.Call(id="sub", workflow="inner"), budget=g.Budget(wall=100.0))

    async def scene(runtime: Runtime) -> None:
        (tmp_path / "inner").mkdir()
        loaded = replace(stage.loaded(outer), calls={"inner": Loaded(inner, [], tmp_path / "inner", {})})
        row = (await start(runtime, StartRequest(loaded))).row
        assert (await Foreground(runtime, current_owner("test")).walk(row, Calm())).code == BUDGET
        assert [r.node.id for r in stage.kind.seen] == ["first", "n0", "n1"]

    stage.play(scene)
