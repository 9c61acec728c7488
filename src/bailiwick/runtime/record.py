"""What a walk wants to append: events applied to the state at once, durable with the next flush."""

from __future__ import annotations

from dataclasses import dataclass, field

from bailiwick import crashpoints
from bailiwick.engine import events as ev
from bailiwick.engine.evolve import evolve
from bailiwick.engine.state import Phase, State
from bailiwick.ids import Json, place
from bailiwick.journal.codec import encode
from bailiwick.journal.rows import Batch, EncodedEvent, Message, NewRun, Reservation, Settlement, Status, WaitRow

POINTS: dict[type[ev.Event], str] = {
    ev.EffectFinished: "effect.finished_after_commit",
    ev.WaitOpened: "wait.opened",
    ev.ChildStarted: "child.created",
    ev.RunStopped: "stop.landed",
    ev.RunFinished: "run.finished",
}
"""Crash points that are reached when such an event has become durable."""


@dataclass(slots=True)
class Pending:
    """Events and rows for one append."""

    events: list[tuple[ev.Event, float]] = field(default_factory=list)
    consumed: list[int] = field(default_factory=list)
    opened: dict[str, WaitRow] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)
    children: list[NewRun] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    reserve: list[Reservation] = field(default_factory=list)
    settle: list[Settlement] = field(default_factory=list)
    definition: str | None = None

    def note(self, run_id: str, event: ev.Event, at: float) -> None:
        """Keep an event, and the index rows that follow from it."""
        self.events.append((event, at))
        match event:
            case ev.WaitOpened():
                row = WaitRow(
                    run_id,
                    id=event.id,
                    scope=event.scope,
                    node=event.node,
                    kind=event.kind,
                    due_at=event.due_at,
                    body=event.body,
                )
                self.opened[event.id] = row
            case ev.ChildStarted():
                row = WaitRow(
                    run_id,
                    id=event.child,
                    scope=event.scope,
                    node=event.node,
                    kind="child",
                    due_at=None,
                    body={"child": event.child},
                )
                self.opened[event.child] = row
            case ev.WaitClosed():
                if self.opened.pop(event.id, None) is None:
                    self.closed.append(event.id)
            case ev.DefinitionAdopted():
                self.definition = event.definition
            case _:
                pass

    def batch(self, after: int, state: State, *, release: bool, wake_at: float | None) -> Batch:
        """One transaction of all of it, with the summary and status that the state has now."""
        rows: list[EncodedEvent] = []
        blobs: dict[str, bytes] = {}
        for event, at in self.events:
            row, more = encode(event, at)
            rows.append(row)
            blobs.update(more)
        return Batch(
            after=after,
            events=tuple(rows),
            blobs=blobs,
            consumed=tuple(self.consumed),
            waits_opened=tuple(self.opened.values()),
            waits_closed=tuple(self.closed),
            children=tuple(self.children),
            messages=tuple(self.messages),
            reserve=tuple(self.reserve),
            settle=tuple(self.settle),
            summary=summary(state),
            status=row_status(state),
            wake_at=wake_at,
            definition=self.definition,
            release=release,
        )

    def reach_points(self) -> None:
        """Reach the crash points of all this once it is durable; each one only once."""
        for point in dict.fromkeys(POINTS[type(e)] for e, _ in self.events if type(e) in POINTS):
            crashpoints.reach(point)

    def __bool__(self) -> bool:
        return bool(self.events or self.consumed)


def row_status(state: State) -> Status:
    """The run row's status: `ready` for everything that is not over."""
    match state.status:
        case "done":
            return "done"
        case "failed":
            return "failed"
        case "stopped":
            return "stopped"
        case _:
            return "ready"


def shown_state(state: State) -> str:
    """The one word people see: running, waiting (for a person), sleeping (for time), stopped, failed, done."""
    if state.status != "running":
        return state.status
    if state.running or any(state.scopes[p].phase is not Phase.FORKED for p in state.todo if not state.reached):
        return "running"
    kinds = {wait.kind for _, wait in state.waits()}
    if state.waits_for_person():
        return "waiting"
    if kinds == {"child"}:
        return "running"
    return "sleeping" if kinds else "running"


def summary(state: State) -> Json:
    """What lists show of a run, without reading its journal."""
    waits = [wait for _, wait in state.waits()]
    asked = next((w for w in waits if "question" in w.body), None)
    due = min((w.due_at for w in waits if w.due_at is not None), default=None)
    current = [place(s.path, s.cursor) for s in state.live() if s.phase is not Phase.FORKED]
    return {
        "state": shown_state(state),
        "node": current[0] if current else state.scopes[""].cursor,
        "active": len(current),
        "steps": state.steps,
        "reentered": state.lost,
        "reason": state.reason,
        "degraded": state.degraded or state.scopes[""].defaulted,
        "due_at": due,
        "question": asked.body["question"] if asked else None,
        "wait": asked.id if asked else None,
        "budget": state.budget_wait is not None,
        "ended_at": state.ended_at or None,
        "limits": state.limits,
        "work": round(state.work, 3),
        **({"handoff": True} if state.handoff else {}),
    }


def record(state: State, pending: Pending, event: ev.Event, at: float) -> None:
    """Apply an event and keep it for the next append."""
    evolve(state, event, at)
    pending.note(state.run, event, at)
