"""What a run did so far, as its durable events tell it: visits in lanes, one per scope. Bounded in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from bailiwick.engine import events as ev
from bailiwick.engine.state import PERSON_WAITS, Phase, Scope, State
from bailiwick.ids import Json, place, scope_path

KEPT = 200
"""Finished visits that a lane remembers; older ones are only counted."""
FAILED_KEPT = 20
"""Failed members that a construct remembers; further ones are only counted."""


class VisitStatus(StrEnum):
    """How a visit stands; each value is also the name of its symbol."""

    RUNS = "runs"
    WAITS = "waits"
    SLEEPS = "sleeps"
    CUT = "cut"
    DONE = "done"
    FAILED = "failed"
    PASSED = "passed"


LIVE = frozenset({VisitStatus.RUNS, VisitStatus.WAITS, VisitStatus.SLEEPS, VisitStatus.CUT})


@dataclass(slots=True)
class ViewedVisit:
    """One visit of a node. `spent` sums its attempts; `over` counts the members of a construct by how they ended.

    `told` is a sentence of the node about what it found, `bad` that it found nothing good although it did its work.
    `mode`, `title` and `text` are how its workflow wants it to be seen; `usd` is what its turns cost.
    """

    scope: str
    node: str
    number: int
    since: float
    stand: VisitStatus = VisitStatus.RUNS
    until: float = 0.0
    spent: float = 0.0
    attempts: int = 0
    reason: str = ""
    wait: ev.WaitOpened | None = None
    answer: Json = None
    by: str = ""
    target: str = ""
    value: Json = None
    writes: tuple[str, ...] = ()
    defaulted: bool = False
    said: str = ""
    told: str = ""
    mode: str = ""
    title: str = ""
    text: str | None = None
    usd: float = 0.0
    bad: bool = False
    child: str = ""
    size: int = 0
    over: dict[str, int] = field(default_factory=dict)
    lanes: dict[str, Lane] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        """Whether the visit is not over."""
        return self.stand in LIVE

    @property
    def symbol(self) -> VisitStatus:
        """The symbol it goes with: a step that was done and found something bad looks like a failed one."""
        return VisitStatus.FAILED if self.bad and self.stand is VisitStatus.DONE else self.stand

    @property
    def place(self) -> str:
        """How the visit is written: `fan[3]/step`, a later one `fan[3]/step@2`."""
        return place(self.scope, self.label)

    @property
    def label(self) -> str:
        """Its title, else the node with the number of the visit unless it is the first."""
        if self.title:
            return self.title
        return self.node if self.number <= 1 else f"{self.node}@{self.number}"

    def seconds(self, now: float) -> float | None:
        """How long it took or takes; None where its begin was not seen."""
        if not self.live and self.attempts and self.spent and not self.polled:
            return self.spent
        return max(0.0, (self.until or now) - self.since) if self.since else None

    @property
    def polled(self) -> bool:
        """Whether it looks for something again and again."""
        return self.wait is not None and self.wait.kind == "poll"


@dataclass(slots=True)
class Lane:
    """The visits of one scope in order; `earlier` counts those no longer kept."""

    path: str
    visits: list[ViewedVisit] = field(default_factory=list)
    earlier: int = 0
    status: str = ""
    error: str = ""

    def add(self, visit: ViewedVisit) -> ViewedVisit:
        """Append a visit; let go of the oldest when there are too many."""
        self.visits.append(visit)
        if len(self.visits) > 2 * KEPT:
            self.earlier += len(self.visits) - KEPT
            del self.visits[:-KEPT]
        return visit

    def forget_finished(self) -> None:
        """Keep only what is under way."""
        kept = [v for v in self.visits if v.live]
        self.earlier += len(self.visits) - len(kept)
        self.visits = kept

    @property
    def last(self) -> ViewedVisit | None:
        """The visit under way, or the last one."""
        return self.visits[-1] if self.visits else None


class RunVisits:
    """One run's lanes by scope path."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {"": Lane("")}
        self.budget: ev.WaitOpened | None = None
        self.places: dict[str, ViewedVisit] = {}
        self.sessions: dict[str, float] = {}
        self.usd = 0.0

    @property
    def root(self) -> Lane:
        """The run's own lane."""
        return self.lanes[""]

    def apply(self, event: ev.Event, at: float) -> ViewedVisit | None:
        """Take an event in; gives the visit that it is about."""
        handler = self._HANDLERS.get(type(event))
        return handler(self, event, at) if handler else None

    def skip(self, event: ev.StepPassed) -> None:
        """Only count a pure step."""
        self._lane(event.scope).earlier += 1

    def said(self, where: str, text: str) -> bool:
        """Keep the last line that the process of a visit wrote."""
        visit = self.places.get(where)
        if visit is not None:
            visit.said = text
        return visit is not None

    def under_way(self) -> Iterator[ViewedVisit]:
        """Visits that are not over, in all lanes."""
        for lane in self.lanes.values():
            if lane.last is not None and lane.last.live:
                yield lane.last

    def seed(self, state: State) -> None:
        """Begin in the middle: what was done before is counted, what is under way comes from the state."""
        self.root.earlier = state.steps
        wait = state.budget_wait
        self.budget = ev.WaitOpened("", node="", visit=0, id=wait.id, kind=wait.kind, body=wait.body) if wait else None
        for scope in state.scopes.values():
            if scope.phase in (Phase.PENDING, Phase.ENDED):
                continue
            self._joined(scope.path)
            if scope.visit:
                self._seed(scope, state)

    def _seed(self, scope: Scope, state: State) -> None:
        visit = self._enter(scope.path, scope.cursor, scope.visit, 0.0)
        if scope.phase is Phase.RUNNING and scope.flight is not None:
            visit.since, visit.attempts = scope.flight.since, scope.flight.attempt
        elif scope.phase is Phase.WAITING and scope.wait is not None:
            wait = scope.wait
            visit.since = wait.opened_at
            if wait.kind == "child":
                visit.child = wait.id
            else:
                opened = ev.WaitOpened(
                    scope.path,
                    node=scope.cursor,
                    visit=scope.visit,
                    id=wait.id,
                    kind=wait.kind,
                    due_at=wait.due_at,
                    body=wait.body,
                )
                self._wait(opened, wait.opened_at)
        elif scope.phase is Phase.LOST:
            visit.stand = VisitStatus.CUT
        elif scope.fork is not None:
            visit.size = len(scope.fork.members)
            for path in scope.fork.members:
                if status := state.scopes[path].status:
                    visit.over[status] = visit.over.get(status, 0) + 1

    def _lane(self, path: str) -> Lane:
        lane = self.lanes.get(path)
        return self._joined(path) if lane is None else lane

    def _joined(self, path: str) -> Lane:
        """A member's lane, known to its construct where that one is known."""
        lane = self.lanes.setdefault(path, Lane(path))
        above = self._construct(path)
        if above is not None:
            above.lanes[path] = lane
        return lane

    def _construct(self, path: str) -> ViewedVisit | None:
        if not path:
            return None
        parent = self.lanes.get(path.rpartition("/")[0])
        return parent.last if parent is not None else None

    def _enter(self, scope: str, node: str, number: int, at: float) -> ViewedVisit:
        lane = self._lane(scope)
        last = lane.last
        if last is not None and last.live and (last.node, last.number) == (node, number):
            return last
        visit = lane.add(ViewedVisit(scope, node, number, at))
        self.places[place(scope, node)] = visit
        return visit

    def _passed(self, e: ev.StepPassed, at: float) -> ViewedVisit:
        visit = ViewedVisit(e.scope, node=e.node, number=e.visit, since=at, stand=VisitStatus.PASSED, until=at)
        visit.target, visit.value, visit.writes = e.next, e.value, tuple(e.writes)
        return self._lane(e.scope).add(visit)

    def _started(self, e: ev.EffectStarted, at: float) -> ViewedVisit:
        visit = self._enter(e.scope, e.node, e.visit, at)
        visit.stand, visit.since = VisitStatus.RUNS, visit.since or at
        visit.attempts = max(visit.attempts, e.attempt)
        return visit

    def _observed(self, e: ev.EffectObserved, at: float) -> None:
        visit = self._lane(e.scope).last
        if visit is not None and visit.live and isinstance(e.data.get("told"), str):
            visit.told, visit.bad = e.data["told"], e.data.get("good") is False

    def _finished(self, e: ev.EffectFinished, at: float) -> ViewedVisit | None:
        visit = self._lane(e.scope).last
        if visit is not None:
            visit.spent += e.seconds
            visit.usd += self._cost(e)
            visit.reason = str(e.failure.get("message", "")) if e.failure else ""
        return visit

    def _cost(self, e: ev.EffectFinished) -> float:
        """The dollars of an attempt; a backend that counts over a whole session is differenced."""
        usage = e.log.get("usage")
        usd = usage.get("usd") if isinstance(usage, dict) else None
        if not isinstance(usage, dict) or not isinstance(usd, int | float):
            return 0.0
        session = e.log.get("session")
        if usage.get("cumulative") and isinstance(session, str):
            before = self.sessions.get(session, 0.0)
            self.sessions[session] = float(usd)
            usd = max(0.0, usd - before)
        self.usd += usd
        return float(usd)

    def _lost(self, e: ev.EffectLost, at: float) -> ViewedVisit | None:
        visit = self._lane(e.scope).last
        if visit is not None and visit.live:
            visit.stand, visit.reason = VisitStatus.CUT, e.why
        return visit

    def _done(self, e: ev.StepDone, at: float) -> ViewedVisit:
        visit = self._left(e.scope, e.node, e.visit, at)
        visit.stand, visit.target, visit.defaulted = VisitStatus.DONE, e.next, e.defaulted
        return visit

    def _failed(self, e: ev.StepFailed, at: float) -> ViewedVisit:
        visit = self._left(e.scope, e.node, e.visit, at)
        visit.stand, visit.target = VisitStatus.FAILED, e.next or ""
        visit.reason = str(e.failure.get("message", ""))
        return visit

    def _left(self, scope: str, node: str, number: int, at: float) -> ViewedVisit:
        visit = self._enter(scope, node, number, 0.0)
        visit.until = at
        self.places.pop(place(scope, node), None)
        for path in visit.lanes:
            self._drop(path)
        visit.lanes = {path: lane for path, lane in visit.lanes.items() if lane.status == "failed"}
        return visit

    def _wait(self, e: ev.WaitOpened, at: float) -> ViewedVisit | None:
        if e.kind == "budget":
            self.budget = e
            return None
        visit = self._enter(e.scope, e.node, e.visit, at)
        visit.wait = e
        visit.stand = VisitStatus.WAITS if e.kind in PERSON_WAITS else VisitStatus.SLEEPS
        return visit

    def _wait_closed(self, e: ev.WaitClosed, at: float) -> ViewedVisit | None:
        if self.budget is not None and self.budget.id == e.id:
            self.budget = None
            return None
        visit = self._lane(e.scope).last
        if visit is not None and visit.live:
            visit.stand = VisitStatus.RUNS
            visit.answer, visit.by = (e.value, e.by) if e.how == "answered" else (None, "")
        return visit

    def _forked(self, e: ev.ScopesForked, at: float) -> ViewedVisit:
        visit = self._enter(e.scope, e.node, e.visit, at)
        visit.size = len(e.members)
        for member in e.members:
            self.lanes.pop(scope_path(e.scope, e.node, e.visit, member), None)
        return visit

    def _scope_started(self, e: ev.ScopeStarted, at: float) -> None:
        self._joined(e.scope)

    def _scope_ended(self, e: ev.ScopeEnded, at: float) -> None:
        lane, above = self.lanes.get(e.scope), self._construct(e.scope)
        self._drop(e.scope)
        if above is None:
            return
        above.over[e.status] = above.over.get(e.status, 0) + 1
        failed = sum(1 for other in above.lanes.values() if other.status == "failed")
        if lane is None or e.status != "failed" or failed >= FAILED_KEPT:
            above.lanes.pop(e.scope, None)
            return
        lane.status, lane.error = e.status, str((e.error or {}).get("message", ""))
        lane.visits = lane.visits[-1:]

    def _drop(self, path: str) -> None:
        """Forget a lane and those below it."""
        lane = self.lanes.pop(path, None)
        if lane is None:
            return
        for visit in lane.visits:
            self.places.pop(place(path, visit.node), None)
            for inner in visit.lanes:
                self._drop(inner)

    def _child(self, e: ev.ChildStarted, at: float) -> ViewedVisit:
        visit = self._enter(e.scope, e.node, e.visit, at)
        visit.child = e.child
        return visit

    def _rewound(self, e: ev.Rewound, at: float) -> None:
        root = self.root
        root.earlier += len(root.visits)
        root.visits = []
        self.lanes, self.places = {"": root}, {}

    _HANDLERS: ClassVar[dict[type[ev.Event], Callable[[RunVisits, Any, float], ViewedVisit | None]]] = {
        ev.StepPassed: _passed, ev.EffectStarted: _started, ev.EffectObserved: _observed, ev.EffectFinished: _finished,
        ev.EffectLost: _lost, ev.StepDone: _done, ev.StepFailed: _failed, ev.WaitOpened: _wait,
        ev.WaitClosed: _wait_closed, ev.ScopesForked: _forked, ev.ScopeStarted: _scope_started,
        ev.ScopeEnded: _scope_ended, ev.ChildStarted: _child, ev.Rewound: _rewound,
    }  # fmt: skip
