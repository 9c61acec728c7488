"""A journal told line by line in plain words, with the output that scripts left. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bailiwick.clock import local
from bailiwick.engine import events as ev
from bailiwick.engine.state import Deferred, Fetch
from bailiwick.engine.visits import Visit, Visits
from bailiwick.ids import Json
from bailiwick.terminal.output import budget_limit, clip, duration

OK, BAD, WAIT, STEP = "ok", "bad", "wait", ""
LONGEST = 200
_READ = ("value", "body", "failure", "error")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One thing that happened: when, where (empty: the run itself), in a few words, with the lines a script printed."""

    seq: int
    at: float
    place: str
    mark: str
    text: str
    output: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class LogFormatter:
    """Tells events in order; the visits say which node an effect or a wait belongs to."""

    fetch: Fetch
    _visits: Visits[Visit] = field(default_factory=lambda: Visits(Visit, keep=1))

    def tell(self, entry: ev.Entry) -> LogLine | None:
        """The line of an event; None for one that says nothing to people."""
        seq, at, event = entry
        visit = self._visits.apply(seq, at, event)
        event = self._whole(event)
        handler = _TELLERS.get(type(event))
        told = handler(event) if handler else None
        if told is None:
            return None
        mark, text = told
        return LogLine(seq, at=at, place=_place(event, visit), mark=mark, text=text, output=self._output(event))

    def _whole(self, event: ev.Event) -> ev.Event:
        """The event with the texts that people read fetched, where they are kept as blobs."""
        changes: dict[str, Json] = {}
        for name in _READ:
            value = getattr(event, name, None)
            parts = value.values() if isinstance(value, dict) else (value,)
            if any(isinstance(part, Deferred) for part in parts):
                whole = {key: self._resolved(part) for key, part in value.items()} if isinstance(value, dict) else None
                changes[name] = self._resolved(value) if whole is None else whole
        return replace(event, **changes) if changes else event

    def _output(self, event: ev.Event) -> tuple[tuple[str, str], ...]:
        if not isinstance(event, ev.EffectFinished):
            return ()
        out: list[tuple[str, str]] = []
        for stream in ("stdout", "stderr"):
            text = self._resolved(event.log.get(stream))
            if isinstance(text, str):
                out += [(stream, line) for line in text.splitlines()]
        return tuple(out)

    def _resolved(self, value: Json) -> Json:
        return self.fetch(value.digest) if isinstance(value, Deferred) else value


def _place(event: ev.Event, visit: Visit | None) -> str:
    return getattr(event, "scope", "") if visit is None else visit.place


Told = tuple[str, str] | None


def _short(value: Json) -> str:
    return clip(repr(value), LONGEST + 1)


def _created(e: ev.RunCreated) -> Told:
    params = f" with {', '.join(sorted(e.params))}" if e.params else ""
    return STEP, f"started: workflow {e.workflow}{params}"


def _passed(e: ev.StepPassed) -> Told:
    notes = f" ({'; '.join(map(str, e.notes))})" if e.notes else ""
    if e.writes:
        return OK, f"sets {', '.join(e.writes)} → {e.next}{notes}"
    value = "" if e.value is None and e.notes else f"{_short(e.value)} "
    return OK, f"{value}→ {e.next}{notes}"


def _started(e: ev.EffectStarted) -> Told:
    more = [f"visit {e.visit}"] * (e.visit > 1) + [f"attempt {e.attempt}"] * (e.attempt > 1)
    more += [f"look {e.ordinal}"] * (e.ordinal > 1) + ["entered again"] * (e.entry > 1)
    missing = f"; not in the context: {', '.join(map(str, e.notes))}" if e.notes else ""
    return STEP, "begins" + (f" ({', '.join(more)})" if more else "") + missing


def _finished(e: ev.EffectFinished) -> Told:
    if e.failure is None:
        return OK, f"succeeded in {duration(e.seconds)}"
    if e.failure.get("kind") == "not_yet":
        return WAIT, "not yet"
    return BAD, f"failed after {duration(e.seconds)}: {e.failure.get('message', '')}"


def _failed(e: ev.StepFailed) -> Told:
    return BAD, f"failed for good: {e.failure.get('message', '')}" + (f" → {e.next}" if e.next else "")


def _opened(e: ev.WaitOpened) -> Told:
    due = f" until {local(e.due_at)}" if e.due_at is not None else ""
    question = e.body.get("question")
    if question:
        choices = ", ".join(map(str, e.body.get("choices") or ()))
        return WAIT, f"waits for a person{due}: {question}" + (f" ({choices})" if choices else "")
    words = {"retry": "is tried again after a pause", "poll": "looks again later", "timer": "sleeps"}
    return WAIT, f"{words.get(e.kind, f'waits ({e.kind})')}{due}"


def _closed(e: ev.WaitClosed) -> Told:
    match e.how:
        case "answered":
            return OK, f"answered{f' by {e.by}' if e.by else ''}: {_short(e.value)}"
        case "child":
            status = e.value.get("status", "over") if isinstance(e.value, dict) else "over"
            return STEP, f"the called run is {status}"
        case "due":
            return None
        case _:
            return STEP, f"the wait is over ({e.how})"


def _scope_ended(e: ev.ScopeEnded) -> Told:
    message = (e.error or {}).get("message", "")
    return (OK if e.status == "done" else BAD), f"is {e.status}" + (f": {message}" if message else "")


def _over(e: ev.RunFinished) -> Told:
    reason = f": {e.reason}" if e.reason else ""
    degraded = f", degraded by {', '.join(e.degraded)}" if e.degraded else ""
    where = "" if e.node == e.status else f" at {e.node}"
    word = "finished" if e.status == "done" else e.status
    return (OK if e.status == "done" else BAD), f"{word}{where}{reason}{degraded}"


def _raised(e: ev.BudgetRaised) -> Told:
    return STEP, f"{e.by or 'someone'} sets the budget for {e.unit} to {budget_limit(e.unit, e.limit)}"


_TELLERS: dict[type[ev.Event], Callable[[Any], Told]] = {
    ev.RunCreated: _created,
    ev.Forked: lambda e: (STEP, f"forked from run {e.run} after its event {e.upto}"),
    ev.OwnerChanged: lambda e: (STEP, f"held by {e.owner}"),
    ev.StepPassed: _passed,
    ev.EffectStarted: _started,
    ev.EffectFinished: _finished,
    ev.EffectLost: lambda e: (BAD, f"was cut off ({e.why})"),
    ev.StepDone: lambda e: (OK, f"{'default used ' if e.defaulted else ''}→ {e.next}"),
    ev.StepFailed: _failed,
    ev.WaitOpened: _opened,
    ev.WaitClosed: _closed,
    ev.ScopesForked: lambda e: (STEP, f"forks into {len(e.members)}"),
    ev.ScopeEnded: _scope_ended,
    ev.ChildStarted: lambda e: (STEP, f"calls run {e.child}"),
    ev.StopRequested: lambda e: (STEP, f"{e.by or 'someone'} asks to stop{' now' if e.now else ''}"),
    ev.RunStopped: lambda _: (WAIT, "stopped"),
    ev.RunResumed: lambda e: (STEP, f"resumed{f' by {e.by}' if e.by else ''}"),
    ev.RunFinished: _over,
    ev.SignalRejected: lambda e: (STEP, f"refused '{e.kind}': {e.reason}"),
    ev.BudgetReached: lambda e: (WAIT, f"the budget for {e.unit} ({budget_limit(e.unit, e.limit)}) is used up"),
    ev.BudgetRaised: _raised,
    ev.DefinitionAdopted: lambda e: (STEP, f"goes on under the definition {e.definition[:12]}"),
    ev.Rewound: lambda e: (STEP, f"{e.by or 'someone'} goes back to {e.node}, visit {e.visit}"),
}
"""What each event says to people, with its mark; an event that is not here says nothing."""
