"""Spans by the time that really passes: a wall clock that is set back makes no wait longer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.clock import ManualClock, SystemClock
from bailiwick.engine import events as ev
from bailiwick.engine import graph as g
from bailiwick.engine.state import State
from bailiwick.journal.rows import RunRow
from bailiwick.runs.foreground import DONE
from bailiwick.runtime import walker
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.deadlines import Deadlines
from tests.unit.runtime.stage import RuntimeSetup, Scripted, at_once, chain, work


class Jumping(SystemClock):
    """The machine's clock, whose wall time somebody sets."""

    step = 0.0

    def now(self) -> float:
        """The wall time as it was set."""
        return time.time() + self.step


@pytest.mark.parametrize("in_place", [5.0, 0.0])
def test_a_span_is_over_in_its_time_although_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_place: float
) -> None:
    """Slept in place, or with the run let go: an hour more on the clock is not an hour more to wait."""
    monkeypatch.setattr(walker, "IN_PLACE", in_place)
    clock = Jumping()
    stage = RuntimeSetup(tmp_path, Scripted(at_once), clock)

    async def scene(runtime: Runtime) -> None:
        def durable(_row: RunRow, _state: State, entries: list[ev.Entry]) -> None:
            if any(isinstance(event, ev.WaitOpened) for _, _, event in entries):
                clock.step = -3600.0

        runtime.watch.durable = durable
        verdict = await stage.walk(runtime, chain(work("a"), g.Wait(id="w", seconds="1"), work("b")))
        assert clock.step
        assert verdict.code == DONE
        assert [request.node.id for request in stage.kind.seen] == ["a", "b"]

    stage.play(scene)


def test_a_date_is_meant_by_the_wall_clock() -> None:
    """A wait for nine o'clock is not over an hour early because the clock was wrong before."""
    clock = ManualClock()
    deadlines = Deadlines(clock)
    nine = clock.now() + 100
    clock.set_by(-3600)
    clock.advance(200)
    assert deadlines.left("r", "w", nine) == 3500
    assert deadlines.overdue() == []
    assert deadlines.set_back() is None


def test_a_clock_that_is_set_forward_ends_a_span_by_the_wall_clock() -> None:
    """A laptop that slept through the wait: it is over when the lid opens."""
    clock = ManualClock()
    deadlines = Deadlines(clock)
    due = clock.now() + 40
    deadlines.note("r", "w", due)
    clock.set_by(60)
    assert deadlines.left("r", "w", due) == 0.0
    assert deadlines.overdue() == []


def test_a_span_is_told_once() -> None:
    """Its run is made due by one message, however long it takes to be claimed."""
    clock = ManualClock()
    deadlines = Deadlines(clock)
    deadlines.note("r", "w", clock.now() + 40)
    clock.set_by(-3600)
    assert deadlines.set_back() == 40
    clock.advance(40)
    assert deadlines.overdue() == ["r"]
    assert deadlines.overdue() == []
    assert deadlines.set_back() is None
    deadlines.drop("r", "w")


@given(st.floats(0, 1e6), st.lists(st.tuples(st.sampled_from(["pass", "set"]), st.floats(-1e5, 1e5)), max_size=20))
def test_no_setting_of_the_clock_makes_a_span_longer(seconds: float, steps: list[tuple[str, float]]) -> None:
    """However the wall clock jumps: once the seconds have passed, the span is over."""
    clock = ManualClock()
    deadlines = Deadlines(clock)
    due = clock.now() + seconds
    deadlines.note("r", "w", due)
    for word, value in steps:
        if word == "set":
            clock.set_by(value)
        else:
            clock.advance(abs(value))
    real = clock.monotonic() - 1_700_000_000.0
    if real >= seconds + 0.001:
        assert deadlines.left("r", "w", due) == 0.0
    assert deadlines.left("r", "w", due) <= max(0.0, seconds - real) + 0.001
