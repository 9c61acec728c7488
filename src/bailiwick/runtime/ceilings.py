"""The ceilings of a run as its walker sees them: what is left of its time, and what a unit may come to."""

from __future__ import annotations

from bailiwick.engine.events import BudgetReached
from bailiwick.engine.state import State


def limit(state: State, unit: str) -> float | None:
    """The run's own ceiling: raised by a person, set at the start, or the workflow's."""
    value: float | None = getattr(state.graph.budget, unit)
    return state.limits.get(unit, value)


def wall_used(state: State, now: float) -> float:
    """Seconds the run has taken; the time in which it waits for a person is free."""
    idle = state.waits_for_person()
    return state.wall + (0.0 if idle else max(0.0, now - state.last_at))


def wall_reached(state: State, now: float) -> BudgetReached | None:
    """The event when the run's time is used up and that was not said yet."""
    most = limit(state, "wall")
    if most is None or "wall" in state.reached or state.status != "running" or state.parent:
        return None
    return BudgetReached("wall", most) if wall_used(state, now) >= most else None


def wall_due(state: State, now: float) -> float | None:
    """When the run's time will be used up if it goes on like this."""
    most = limit(state, "wall")
    if most is None or "wall" in state.reached or state.parent or state.waits_for_person():
        return None
    return now + most - wall_used(state, now)
