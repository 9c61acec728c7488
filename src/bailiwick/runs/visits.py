"""What a journal says of each visit: how it ended, how long it took, how often it was tried. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bailiwick.engine import events as ev
from bailiwick.engine.state import Deferred
from bailiwick.ids import Json, place

Entry = tuple[int, float, ev.Event]


@dataclass(slots=True)
class Visit:
    """One visit of a node. `seconds` is what its attempts took; without any, the time from entering to leaving."""

    scope: str
    node: str
    visit: int
    seq: int
    began: float
    result: str = "running"
    next: str = ""
    detail: str = ""
    worked: float = 0.0
    attempts: int = 0
    reentries: int = 0
    ended: float | None = None
    undone: bool = False

    @property
    def name(self) -> tuple[str, str, int]:
        """What tells it from other visits of the run."""
        return self.scope, self.node, self.visit

    @property
    def place(self) -> str:
        """The node with its scope, as people write it."""
        return place(self.scope, self.node)

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it is not over."""
        if self.attempts:
            return round(self.worked, 3)
        return None if self.ended is None else round(self.ended - self.began, 3)


@dataclass(slots=True)
class _Fold:
    visits: dict[tuple[str, str, int], Visit] = field(default_factory=dict)
    keys: dict[str, Visit] = field(default_factory=dict)
    waits: dict[str, Visit] = field(default_factory=dict)

    def enter(self, seq: int, at: float, event: Any) -> Visit:
        """The visit an event belongs to, made on its first one."""
        name = (event.scope, event.node, event.visit)
        if name not in self.visits:
            self.visits[name] = Visit(*name, seq, at)
        return self.visits[name]


def visits(entries: Iterable[Entry]) -> list[Visit]:
    """Every visit in the order of its first event; those that a rewind took back are marked."""
    fold = _Fold()
    for seq, at, event in entries:
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(fold, seq, at, event)
    return list(fold.visits.values())


def _passed(fold: _Fold, seq: int, at: float, e: ev.StepPassed) -> None:
    visit = fold.enter(seq, at, e)
    visit.result, visit.next, visit.ended = "done", e.next, at


def _started(fold: _Fold, seq: int, at: float, e: ev.EffectStarted) -> None:
    visit = fold.enter(seq, at, e)
    visit.result = "running"
    visit.attempts += e.entry == 1
    visit.reentries += e.entry > 1
    fold.keys[e.key] = visit


def _finished(fold: _Fold, seq: int, at: float, e: ev.EffectFinished) -> None:
    visit = fold.keys.get(e.key)
    if visit is not None:
        visit.worked += e.seconds
        visit.detail = _message(e.failure)


def _message(failure: dict[str, Json] | None) -> str:
    message = (failure or {}).get("message", "")
    return "a long message, told by the logs" if isinstance(message, Deferred) else str(message)


def _lost(fold: _Fold, seq: int, at: float, e: ev.EffectLost) -> None:
    visit = fold.keys.get(e.key)
    if visit is not None:
        visit.result, visit.detail = "cut off", e.why


def _opened(fold: _Fold, seq: int, at: float, e: ev.WaitOpened) -> None:
    if e.kind == "budget":
        return
    visit = fold.enter(seq, at, e)
    visit.result = "waiting"
    fold.waits[e.id] = visit


def _child(fold: _Fold, seq: int, at: float, e: ev.ChildStarted) -> None:
    visit = fold.enter(seq, at, e)
    visit.result = "waiting"
    fold.waits[e.child] = visit


def _closed(fold: _Fold, seq: int, at: float, e: ev.WaitClosed) -> None:
    visit = fold.waits.pop(e.id, None)
    if visit is not None:
        visit.result = "cancelled" if e.how == "cancelled" else "running"


def _forked(fold: _Fold, seq: int, at: float, e: ev.ScopesForked) -> None:
    fold.enter(seq, at, e)


def _done(fold: _Fold, seq: int, at: float, e: ev.StepDone) -> None:
    visit = fold.enter(seq, at, e)
    visit.result, visit.next, visit.ended, visit.detail = "default" if e.defaulted else "done", e.next, at, ""


def _failed(fold: _Fold, seq: int, at: float, e: ev.StepFailed) -> None:
    visit = fold.enter(seq, at, e)
    visit.result, visit.next, visit.ended = "failed", e.next or "", at
    visit.detail = _message(e.failure)


def _over(fold: _Fold, seq: int, at: float, e: ev.RunFinished) -> None:
    if e.ended and e.node:
        number = 1 + max((v.visit for v in fold.visits.values() if v.node == e.node and not v.scope), default=0)
        fold.visits["", e.node, number] = Visit(
            "", node=e.node, visit=number, seq=seq, began=at, result=e.status, detail=e.reason, ended=at
        )


def _rewound(fold: _Fold, seq: int, at: float, e: ev.Rewound) -> None:
    for visit in fold.visits.values():
        visit.undone = visit.undone or visit.seq > e.upto


_HANDLERS: dict[type[ev.Event], Callable[[_Fold, int, float, Any], None]] = {
    ev.StepPassed: _passed, ev.EffectStarted: _started, ev.EffectFinished: _finished, ev.EffectLost: _lost,
    ev.WaitOpened: _opened, ev.WaitClosed: _closed, ev.ChildStarted: _child, ev.ScopesForked: _forked,
    ev.StepDone: _done, ev.StepFailed: _failed, ev.RunFinished: _over, ev.Rewound: _rewound,
}  # fmt: skip


def standing_entries(entries: Iterable[Entry]) -> list[Entry]:
    """The events that still count: what a rewind took back is left out."""
    kept: list[Entry] = []
    for entry in entries:
        event = entry[2]
        if isinstance(event, ev.Rewound):
            kept = [e for e in kept if e[0] <= event.upto]
        kept.append(entry)
    return kept
