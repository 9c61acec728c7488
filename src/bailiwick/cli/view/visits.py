"""A visit as people are shown it: what the journal says of it, and how its workflow wants it to be seen."""

from __future__ import annotations

from dataclasses import dataclass

from bailiwick.engine.state import State
from bailiwick.engine.visits import Visit, Visits, VisitStatus
from bailiwick.ids import place

KEPT = 200
"""Finished visits that a lane remembers; older ones are only counted."""


@dataclass(slots=True)
class ViewedVisit(Visit):
    """One visit of a node; `said` is the last line that its process wrote.

    `mode`, `title` and `text` are how its workflow wants it to be seen.
    """

    said: str = ""
    mode: str = ""
    title: str = ""
    text: str | None = None

    @property
    def told(self) -> str:
        """The last sentence of the node about what it found."""
        return self.statements[-1].text if self.statements else ""

    @property
    def bad(self) -> bool:
        """Whether it found nothing good although it did its work."""
        return bool(self.statements) and not self.statements[-1].good

    @property
    def symbol(self) -> VisitStatus:
        """The symbol it goes with: a step that was done and found something bad looks like a failed one."""
        return VisitStatus.FAILED if self.bad and self.status is VisitStatus.DONE else self.status

    @property
    def label(self) -> str:
        """Its title, else the node with the number of the visit unless it is the first."""
        if self.title:
            return self.title
        return self.node if self.number <= 1 else f"{self.node}@{self.number}"

    @property
    def where(self) -> str:
        """How the visit is written: `fan[3]/step`, a later one `fan[3]/step@2`."""
        return place(self.scope, self.label)

    def elapsed(self, now: float) -> float | None:
        """How long it took or takes; None where its begin was not seen."""
        if not self.live and self.attempt and self.worked and not self.polled:
            return self.worked
        if not self.began or self.left == self.seq:
            return None
        return max(0.0, (self.ended or now) - self.began)

    @property
    def polled(self) -> bool:
        """Whether it looks for something again and again."""
        return self.wait is not None and self.wait.kind == "poll"


def viewed_visits(state: State | None = None) -> Visits[ViewedVisit]:
    """A run's visits as a view follows them, bounded in memory; with `state` from the middle of the run on."""
    track = Visits(ViewedVisit, keep=KEPT)
    if state is not None:
        track.seed(state)
    return track
