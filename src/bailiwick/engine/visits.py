"""What a journal says of each visit of a node, event by event: the one read model of visits. Pure.

Everything that shows visits reads it: the live view, the run directory, `why`, `logs` and the JSON documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Generic, Self, TypeVar

from bailiwick.engine import events as ev
from bailiwick.engine.state import PERSON_WAITS, Deferred, Phase, Scope, State
from bailiwick.ids import Json, place

FAILED_KEPT = 20
"""Failed members that a construct remembers where old visits are let go; further ones are only counted."""
V = TypeVar("V", bound="Visit")
Closing = ev.StepDone | ev.StepFailed | ev.ScopeEnded


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
_RESULTS = {VisitStatus.CUT: "cut off", VisitStatus.PASSED: "done", VisitStatus.FAILED: "failed"}


@dataclass(slots=True)
class VisitAttempt:
    """One start of an effect: `end`, with its `end_seq`, is None while it runs; `pause` are seconds to a retry."""

    start: ev.EffectStarted
    at: float
    end: ev.EffectFinished | ev.EffectLost | None = None
    end_seq: int = 0
    retried: bool = False
    pause: float | None = None


@dataclass(frozen=True, slots=True)
class NodeStatement:
    """What a node said about what it found: in one sentence, with lines that back it up; `good` if all is well."""

    seq: int
    at: float
    text: str
    good: bool
    lines: tuple[str, ...]


@dataclass(slots=True)
class Visit:
    """One visit of a node, from its first event `seq` to the event `left` that ended it.

    `attempts` counts starts and `reentries` those after a crash; `attempt` is the number of the last one.
    `worked` sums what they took, `usd` what they cost. `over` counts members of a construct by how they ended.
    """

    scope: str
    node: str
    number: int
    seq: int = 0
    began: float = 0.0
    status: VisitStatus = VisitStatus.RUNS
    left: int | None = None
    ended: float | None = None
    next: str = ""
    reason: Json = ""
    failure: dict[str, Json] | None = None
    attempts: int = 0
    reentries: int = 0
    attempt: int = 0
    worked: float = 0.0
    usd: float = 0.0
    tries: list[VisitAttempt] = field(default_factory=list)
    statements: list[NodeStatement] = field(default_factory=list)
    wait: ev.WaitOpened | None = None
    waits_for: str = ""
    cancelled: bool = False
    answer: Json = None
    by: str = ""
    value: Json = None
    writes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    defaulted: bool = False
    accepted: bool = False
    child: str = ""
    size: int = 0
    over: dict[str, int] = field(default_factory=dict)
    lanes: dict[str, Lane[Self]] = field(default_factory=dict)
    undone: bool = False

    @property
    def name(self) -> tuple[str, str, int]:
        """What tells it from other visits of the run."""
        return self.scope, self.node, self.number

    @property
    def place(self) -> str:
        """The node with its scope, as people write it."""
        return place(self.scope, self.node)

    @property
    def live(self) -> bool:
        """Whether the visit is not over."""
        return self.status in LIVE

    @property
    def terminal(self) -> bool:
        """Whether the run ended here: nothing is done at such a node."""
        return not (self.live or self.next or self.failure)

    @property
    def result(self) -> str:
        """How it stands or ended, in the word that tables and documents use."""
        match self.status:
            case VisitStatus.DONE:
                return "default" if self.defaulted else "done"
            case VisitStatus.RUNS | VisitStatus.WAITS | VisitStatus.SLEEPS:
                return "waiting" if self.waits_for else "cancelled" if self.cancelled else "running"
            case ended:
                return _RESULTS[ended]

    @property
    def detail(self) -> str:
        """Why it failed or was cut off, where it was."""
        return "a long message, told by the logs" if isinstance(self.reason, Deferred) else str(self.reason)

    @property
    def seconds(self) -> float | None:
        """What its attempts took; without any, the time from entering to leaving, None while it is not over."""
        if self.attempts:
            return round(self.worked, 3)
        return None if self.ended is None else round(self.ended - self.began, 3)


@dataclass(slots=True)
class Lane(Generic[V]):
    """The visits of one scope in order; `earlier` counts those no longer kept. A member ends with event `end_seq`."""

    path: str
    visits: list[V] = field(default_factory=list)
    earlier: int = 0
    status: str = ""
    error: str = ""
    end_seq: int = 0

    def forget_finished(self) -> None:
        """Keep only what is under way."""
        kept = [v for v in self.visits if v.live]
        self.earlier += len(self.visits) - len(kept)
        self.visits = kept

    @property
    def last(self) -> V | None:
        """The visit under way, or the last one."""
        return self.visits[-1] if self.visits else None


class Visits(Generic[V]):
    """The visits of one run: all of them in `made`, those of scopes that are not over in lanes by scope path.

    With `keep` nothing is `made`: a lane remembers about so many visits, a visit its last attempt.
    `closed` hears of each visit that is over, with the event that ended it; pure steps begin and end with one event.
    """

    def __init__(
        self, make: type[V], *, keep: int | None = None, closed: Callable[[V, Closing], None] | None = None
    ) -> None:
        self.made: list[V] = []
        self.lanes: dict[str, Lane[V]] = {"": Lane("")}
        self.budget: ev.WaitOpened | None = None
        self.usd = 0.0
        self._make = make
        self._keep = keep
        self._closed = closed
        self._sessions: dict[str, float] = {}

    @property
    def root(self) -> Lane[V]:
        """The run's own lane."""
        return self.lanes[""]

    def apply(self, seq: int, at: float, event: ev.Event) -> V | None:
        """Take an event in; gives the visit that it is about."""
        handler = self._HANDLERS.get(type(event))
        visit: V | None = handler(self, seq, at, event) if handler else None
        return visit

    def skip(self, event: ev.StepPassed) -> None:
        """Only count a pure step."""
        self._lane(event.scope).earlier += 1

    def at(self, where: str) -> V | None:
        """The visit under way at a place."""
        scope, _, node = where.rpartition("/")
        last = self._last(scope)
        return last if last is not None and last.live and last.node == node else None

    def under_way(self) -> Iterator[V]:
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
                self._seed(scope, self._add(self._make(scope.path, scope.cursor, scope.visit)), state)

    def _seed(self, scope: Scope, visit: V, state: State) -> None:
        wait = scope.wait
        if scope.phase is Phase.RUNNING and scope.flight is not None:
            visit.began, visit.attempt = scope.flight.since, scope.flight.attempt
        elif scope.phase is Phase.WAITING and wait is not None:
            visit.began = wait.opened_at
            if wait.kind == "child":
                visit.child = visit.waits_for = wait.id
            else:
                event = ev.WaitOpened(
                    scope.path,
                    node=scope.cursor,
                    visit=scope.visit,
                    id=wait.id,
                    kind=wait.kind,
                    due_at=wait.due_at,
                    body=wait.body,
                )
                self._wait(0, wait.opened_at, event)
        elif scope.phase is Phase.LOST:
            visit.status = VisitStatus.CUT
        elif scope.fork is not None:
            visit.size = len(scope.fork.members)
            for path in scope.fork.members:
                if status := state.scopes[path].status:
                    visit.over[status] = visit.over.get(status, 0) + 1

    def _last(self, path: str) -> V | None:
        lane = self.lanes.get(path)
        return None if lane is None else lane.last

    def _lane(self, path: str) -> Lane[V]:
        lane = self.lanes.get(path)
        return self._joined(path) if lane is None else lane

    def _joined(self, path: str) -> Lane[V]:
        """A member's lane, known to its construct where that one is known."""
        lane = self.lanes.setdefault(path, Lane(path))
        above = self._construct(path)
        if above is not None:
            above.lanes[path] = lane
        return lane

    def _construct(self, path: str) -> V | None:
        return self._last(path.rpartition("/")[0]) if path else None

    def _add(self, visit: V) -> V:
        """Append a visit to its lane; let go of the oldest when there are too many."""
        lane = self._lane(visit.scope)
        lane.visits.append(visit)
        if self._keep is None:
            self.made.append(visit)
        elif len(lane.visits) > 2 * self._keep:
            lane.earlier += len(lane.visits) - self._keep
            del lane.visits[: -self._keep]
        return visit

    def _enter(self, seq: int, at: float, e: Any) -> V:
        """The visit an event belongs to, made on its first one."""
        last = self._last(e.scope)
        if last is not None and last.live and (last.node, last.number) == (e.node, e.visit):
            return last
        return self._add(self._make(e.scope, e.node, number=e.visit, seq=seq, began=at))

    def _passed(self, seq: int, at: float, e: ev.StepPassed) -> V:
        visit = self._enter(seq, at, e)
        visit.status, visit.left, visit.ended, visit.next = VisitStatus.PASSED, seq, at, e.next
        visit.value, visit.writes, visit.notes = e.value, tuple(e.writes), tuple(e.notes)
        return visit

    def _started(self, seq: int, at: float, e: ev.EffectStarted) -> V:
        visit = self._enter(seq, at, e)
        visit.status, visit.began = VisitStatus.RUNS, visit.began or at
        visit.waits_for, visit.cancelled = "", False
        visit.attempts += e.entry == 1
        visit.reentries += e.entry > 1
        visit.attempt = max(visit.attempt, e.attempt)
        if self._keep is not None:
            visit.tries.clear()
        visit.tries.append(VisitAttempt(e, at))
        return visit

    def _observed(self, seq: int, at: float, e: ev.EffectObserved) -> None:
        visit, text = self._last(e.scope), e.data.get("told")
        if visit is not None and visit.live and isinstance(text, str):
            if self._keep is not None:
                visit.statements.clear()
            listed = e.data.get("lines")
            lines = tuple(str(line) for line in listed) if isinstance(listed, list) else ()
            visit.statements.append(NodeStatement(seq, at, text, good=e.data.get("good") is not False, lines=lines))

    def _finished(self, seq: int, at: float, e: ev.EffectFinished) -> V | None:
        visit = self._over(seq, e)
        if visit is not None:
            visit.worked += e.seconds
            visit.usd += self._cost(e)
            visit.reason = (e.failure or {}).get("message", "")
        return visit

    def _lost(self, seq: int, at: float, e: ev.EffectLost) -> V | None:
        visit = self._over(seq, e)
        if visit is not None and visit.live:
            visit.status, visit.reason = VisitStatus.CUT, e.why
        return visit

    def _over(self, seq: int, e: ev.EffectFinished | ev.EffectLost) -> V | None:
        visit = self._last(e.scope)
        if visit is not None and visit.tries:
            visit.tries[-1].end, visit.tries[-1].end_seq = e, seq
        return visit

    def _cost(self, e: ev.EffectFinished) -> float:
        """The dollars of an attempt; a backend that counts over a whole session is differenced."""
        usage = e.log.get("usage")
        usd = usage.get("usd") if isinstance(usage, dict) else None
        if not isinstance(usage, dict) or not isinstance(usd, int | float):
            return 0.0
        session = e.log.get("session")
        if usage.get("cumulative") and isinstance(session, str):
            before = self._sessions.get(session, 0.0)
            self._sessions[session] = float(usd)
            usd = max(0.0, usd - before)
        self.usd += usd
        return float(usd)

    def _done(self, seq: int, at: float, e: ev.StepDone) -> V:
        visit = self._leave(seq, at, e)
        visit.status, visit.next, visit.reason = VisitStatus.DONE, e.next, ""
        visit.defaulted, visit.accepted = e.defaulted, e.accepted
        return self._close(visit, e)

    def _failed(self, seq: int, at: float, e: ev.StepFailed) -> V:
        visit = self._leave(seq, at, e)
        visit.status, visit.next, visit.failure = VisitStatus.FAILED, e.next or "", e.failure
        visit.reason = e.failure.get("message", "")
        return self._close(visit, e)

    def _leave(self, seq: int, at: float, e: ev.StepDone | ev.StepFailed) -> V:
        visit = self._enter(seq, at, e)
        visit.left, visit.ended = seq, at
        for path in visit.lanes:
            self._drop(path)
        visit.lanes = {path: lane for path, lane in visit.lanes.items() if lane.status == "failed"}
        return visit

    def _close(self, visit: V, e: Closing) -> V:
        if self._closed is not None:
            self._closed(visit, e)
        return visit

    def _wait(self, seq: int, at: float, e: ev.WaitOpened) -> V | None:
        if e.kind == "budget":
            self.budget = e
            return None
        visit = self._enter(seq, at, e)
        visit.wait, visit.waits_for, visit.cancelled = e, e.id, False
        visit.status = VisitStatus.WAITS if e.kind in PERSON_WAITS else VisitStatus.SLEEPS
        if e.kind == "retry" and visit.tries:
            tried = visit.tries[-1]
            tried.retried, tried.pause = True, e.due_at - at if e.due_at is not None else None
        return visit

    def _wait_closed(self, seq: int, at: float, e: ev.WaitClosed) -> V | None:
        if self.budget is not None and self.budget.id == e.id:
            self.budget = None
            return None
        visit = self._last(e.scope)
        if visit is not None and visit.live:
            visit.status, visit.waits_for, visit.cancelled = VisitStatus.RUNS, "", e.how == "cancelled"
            visit.answer, visit.by = (e.value, e.by) if e.how == "answered" else (None, "")
        return visit

    def _child(self, seq: int, at: float, e: ev.ChildStarted) -> V:
        visit = self._enter(seq, at, e)
        visit.child = visit.waits_for = e.child
        return visit

    def _forked(self, seq: int, at: float, e: ev.ScopesForked) -> V:
        visit = self._enter(seq, at, e)
        visit.size = len(e.members)
        return visit

    def _scope_started(self, seq: int, at: float, e: ev.ScopeStarted) -> None:
        self._joined(e.scope)

    def _scope_ended(self, seq: int, at: float, e: ev.ScopeEnded) -> None:
        lane, above = self.lanes.get(e.scope), self._construct(e.scope)
        if lane is not None and lane.last is not None and lane.last.live:
            self._close(lane.last, e)
        self._drop(e.scope)
        if above is None:
            return
        above.over[e.status] = above.over.get(e.status, 0) + 1
        failed = 0 if self._keep is None else sum(1 for other in above.lanes.values() if other.status == "failed")
        if lane is None or e.status != "failed" or failed >= FAILED_KEPT:
            above.lanes.pop(e.scope, None)
            return
        lane.status, lane.error, lane.end_seq = e.status, str((e.error or {}).get("message", "")), seq
        lane.visits = lane.visits[-1:]

    def _drop(self, path: str) -> None:
        """Forget a lane and those below it."""
        lane = self.lanes.pop(path, None)
        for visit in lane.visits if lane is not None else ():
            for inner in visit.lanes:
                self._drop(inner)

    def _run_over(self, seq: int, at: float, e: ev.RunFinished) -> None:
        """The node that ended the run is its last visit; it is in no lane, since nothing was done there."""
        if e.ended and e.node and self._keep is None:
            number = 1 + max((v.number for v in self.made if v.node == e.node and not v.scope), default=0)
            status = VisitStatus(e.status)
            visit = self._make("", e.node, number=number, seq=seq, began=at, status=status)
            visit.left, visit.ended, visit.reason = seq, at, e.reason
            self.made.append(visit)

    def _rewound(self, seq: int, at: float, e: ev.Rewound) -> None:
        for visit in self.made:
            visit.undone = visit.undone or visit.seq > e.upto
        root = self.root
        root.earlier += len(root.visits)
        root.visits = []
        self.lanes = {"": root}

    _HANDLERS: ClassVar[dict[type[ev.Event], Callable[[Any, int, float, Any], Any]]] = {
        ev.StepPassed: _passed, ev.EffectStarted: _started, ev.EffectObserved: _observed, ev.EffectFinished: _finished,
        ev.EffectLost: _lost, ev.StepDone: _done, ev.StepFailed: _failed, ev.WaitOpened: _wait,
        ev.WaitClosed: _wait_closed, ev.ScopesForked: _forked, ev.ScopeStarted: _scope_started,
        ev.ScopeEnded: _scope_ended, ev.ChildStarted: _child, ev.RunFinished: _run_over, ev.Rewound: _rewound,
    }  # fmt: skip


def visits(entries: Iterable[ev.Entry]) -> list[Visit]:
    """Every visit in the order of its first event; those that a rewind took back are marked."""
    fold = Visits(Visit)
    for entry in entries:
        fold.apply(*entry)
    return fold.made


def ended_attempts(made: Iterable[Visit]) -> list[tuple[Visit, VisitAttempt]]:
    """The attempts of these visits in the order in which they ended."""
    ended = [(visit, tried) for visit in made for tried in visit.tries if tried.end is not None]
    return sorted(ended, key=lambda one: one[1].end_seq)
