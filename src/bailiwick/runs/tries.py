"""The attempts of a visit: how each ended, what was decided after it, and its last words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bailiwick.engine import events as ev
from bailiwick.engine.graph import Work
from bailiwick.engine.retry_script import FINAL
from bailiwick.engine.state import State
from bailiwick.ids import Json, place
from bailiwick.runs.visits import Entry, Visit

LAST_LINES = 5
Resolve = Callable[[Json], Json]
"""Fetches a value that is kept as a blob."""
_CAUSES = {
    "crash": "its process died",
    "stopped": "it was stopped at once",
    "lease": "the lease could not be renewed",
    "upgrade": "the installed version changed",
}


def cause(why: str) -> str:
    """What cut an effect off, in words."""
    return _CAUSES.get(why, why)


def why_no_more(node: Work, kind: str) -> str:
    """Why the last attempt of a failed visit was the last."""
    if kind in FINAL:
        return f"not tried again: '{kind}' is not helped by trying again"
    if node.retry is None:
        return "not tried again: the node has no retry"
    return f"not tried again: retry allows {node.retry.max} more after the first"


def name_of_visit(event: ev.StepFailed | ev.EffectStarted | ev.WaitOpened) -> tuple[str, str, int]:
    """Which visit an event belongs to."""
    return event.scope, event.node, event.visit


def attempts(entries: Sequence[Entry], visit: Visit, resolve: Resolve = lambda value: value) -> list[str]:
    """A line per attempt of a visit: how it ended, how long it took, and the pause that was decided after it."""
    lines: list[str] = []
    numbers: dict[str, int] = {}
    for _, at, event in entries:
        match event:
            case ev.EffectStarted() if name_of_visit(event) == visit.name:
                numbers[event.key] = event.attempt
            case ev.EffectFinished() if event.key in numbers:
                how = str(resolve((event.failure or {}).get("message")) or "ok")
                lines.append(f"attempt {numbers[event.key]}: {how} ({event.seconds:g} s)")
            case ev.EffectLost() if event.key in numbers:
                lines.append(f"attempt {numbers[event.key]}: cut off, {cause(event.why)}")
            case ev.WaitOpened(kind="retry") if name_of_visit(event) == visit.name and lines:
                pause = f" after {event.due_at - at:.3g} s" if event.due_at is not None else ""
                lines[-1] += f" → tried again{pause}"
            case _:
                pass
    return lines


@dataclass(frozen=True, slots=True)
class NodeStatement:
    """What a node said about what it found: in one sentence, with lines that back it up; `good` if all is well."""

    node: str
    where: str
    text: str
    good: bool
    lines: tuple[str, ...]
    at: float


def told(entries: Sequence[Entry]) -> list[NodeStatement]:
    """What the nodes of a run said they found, in order; visits that a rewind took back are among it."""
    starts: dict[str, ev.EffectStarted] = {}
    found: list[NodeStatement] = []
    for _, at, event in entries:
        if isinstance(event, ev.EffectStarted):
            starts[event.key] = event
        elif isinstance(event, ev.EffectObserved) and event.key in starts and isinstance(event.data.get("told"), str):
            start, listed = starts[event.key], event.data.get("lines")
            visit = f", visit {start.visit}" if start.visit > 1 else ""
            lines = tuple(str(line) for line in listed) if isinstance(listed, list) else ()
            where = f"'{place(start.scope, start.node)}'{visit}"
            good = event.data.get("good") is not False
            found.append(NodeStatement(start.node, where=where, text=event.data["told"], good=good, lines=lines, at=at))
    return found


def last_words(entries: Sequence[Entry], state: State, visit: Visit) -> list[str]:
    """The last lines of standard error of the last attempt."""
    key = ""
    text = ""
    for _, _, event in entries:
        if isinstance(event, ev.EffectStarted) and name_of_visit(event) == visit.name:
            key = event.key
        elif isinstance(event, ev.EffectFinished) and event.key == key:
            text = str(state.resolve(event.log.get("stderr")) or "")
    return [f"stderr: {line}" for line in text.splitlines()[-LAST_LINES:] if line.strip()]
