"""The ceilings of a run as its walker sees them: what is left of its time, and what a unit may come to."""

from __future__ import annotations

from dataclasses import dataclass

from bailiwick.clock import Clock
from bailiwick.engine.events import BudgetReached
from bailiwick.engine.state import State
from bailiwick.engine.worktime import uncovered


def limit(state: State, unit: str) -> float | None:
    """The run's own ceiling: raised by a person, set at the start, or the workflow's."""
    value: float | None = getattr(state.graph.budget, unit)
    return state.limits.get(unit, value)


@dataclass(slots=True)
class WorkClock:
    """Counts the work of a run that is being walked. Time that the machine slept, or its clock was moved, is none."""

    clock: Clock
    _now: float = 0.0
    _monotonic: float = 0.0
    _slept: float = 0.0

    def used(self, state: State) -> float:
        """Seconds in which some effect of the run was in flight, up to now. Waits of every kind are free."""
        now, monotonic = self.clock.now(), self.clock.monotonic()
        passed = (now - self._now) - (monotonic - self._monotonic) if self._now else 0.0
        self._now, self._monotonic = now, monotonic
        since = min((flight.since for _, flight in state.flights()), default=None)
        self._slept = 0.0 if since is None else self._slept + passed
        if since is None:
            return state.work
        return state.work + uncovered(state.worked, since, max(since, now - self._slept))

    def reached(self, state: State, most: float | None) -> BudgetReached | None:
        """The event when the run's time is used up and that was not said yet."""
        if most is None or "wall" in state.reached or state.status != "running":
            return None
        return BudgetReached("wall", most) if self.used(state) >= most else None

    def due(self, state: State, most: float | None) -> float | None:
        """When the run's time will be used up if it goes on like this; None while nothing is in flight."""
        if most is None or "wall" in state.reached or not state.running:
            return None
        return self.clock.now() + most - self.used(state)
