"""How long spans really last: a wait for 40 s is over after 40 s, even when the wall clock was set back meanwhile.

The due time in the journal is wall time. Beside it the process that opened a wait knows by its monotonic clock when the
span is over, and the earlier of the two counts. A date or a schedule means the wall clock alone and is not kept here.
"""

from __future__ import annotations

from dataclasses import dataclass

from bailiwick.clock import Clock

STEP = 0.5
"""Seconds by which the two clocks may differ before the wall clock counts as set back."""


@dataclass(slots=True)
class _Span:
    due_at: float
    deadline: float
    told: bool = False


class Deadlines:
    """The open spans of this process, by run and wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spans: dict[tuple[str, str], _Span] = {}

    def note(self, run_id: str, wait: str, due_at: float) -> None:
        """A span begins that is due then."""
        deadline = self._clock.monotonic() + due_at - self._clock.now()
        self._spans[run_id, wait] = _Span(due_at, deadline)

    def drop(self, run_id: str, wait: str) -> None:
        """The wait is closed."""
        self._spans.pop((run_id, wait), None)

    def left(self, run_id: str, wait: str, due_at: float) -> float:
        """Seconds until a wait is over, by whichever clock comes first; none below zero."""
        by_wall = due_at - self._clock.now()
        span = self._spans.get((run_id, wait))
        by_span = by_wall if span is None else span.deadline - self._clock.monotonic()
        return max(0.0, min(by_wall, by_span))

    def set_back(self) -> float | None:
        """Seconds until the first span is over that the wall clock would make longer; None where there is none."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        step = now - monotonic + STEP
        late = [span.deadline for span in self._spans.values() if not span.told and span.due_at - span.deadline > step]
        return max(0.0, min(late) - monotonic) if late else None

    def overdue(self) -> list[str]:
        """The runs with a span that is over, but not by the wall clock; each span is told once."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        found = []
        for (run_id, _), span in self._spans.items():
            if not span.told and span.deadline <= monotonic and span.due_at - now > STEP:
                span.told = True
                found.append(run_id)
        return found
