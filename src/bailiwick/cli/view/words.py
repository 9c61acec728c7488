"""Plain words for what happened to a visit or to a run, and the command that answers a question."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from bailiwick.cli.view.visits import ViewedVisit
from bailiwick.engine import events as ev
from bailiwick.engine.graph import Branch, Graph
from bailiwick.engine.visits import VisitStatus
from bailiwick.ids import Json
from bailiwick.terminal.output import Printer, budget_limit, clean, clip, counted, dollars, duration

LONGEST = 500
STYLE = {
    VisitStatus.DONE: "good",
    VisitStatus.FAILED: "bad",
    VisitStatus.CUT: "bad",
    VisitStatus.WAITS: "wait",
    VisitStatus.SLEEPS: "wait",
    VisitStatus.RUNS: "strong",
    VisitStatus.PASSED: "dim",
}


class RunSentence(NamedTuple):
    """Something about the run as a whole: the symbol it goes with and a sentence."""

    symbol: str
    text: str


def short(value: Json, length: int = LONGEST) -> str:
    """A value in one bounded line."""
    text = value if isinstance(value, str) else str(value)
    return clip(clean(text[: 4 * length]).strip(), length)


def answer_command(name: str, choices: Sequence[Json], wait: str = "") -> str:
    """The command that answers a question; `wait` names it where several are open."""
    which = f" --question {wait}" if wait else ""
    values = " | ".join(shlex.quote(short(c, 80)) for c in choices) or "VALUE"
    return f"bailiwick runs answer {name}{which} {values}"


def phrase(visit: ViewedVisit, printer: Printer, graph: Graph, now: float) -> str:
    """What there is to say of a visit besides its name and its time; may be empty."""
    match visit.status:
        case VisitStatus.PASSED:
            return _passed(visit, printer, graph)
        case VisitStatus.FAILED:
            return short(visit.detail or "failed") + _towards(visit, printer)
        case VisitStatus.WAITS:
            return f"waiting for you: {question_of(visit.wait)}" + _until(visit, printer, now)
        case VisitStatus.SLEEPS:
            return _sleeps(visit, printer, now)
        case VisitStatus.CUT:
            return f"cut off ({short(visit.detail)}); it is entered again" if visit.detail else "cut off"
        case VisitStatus.RUNS:
            return _runs(visit)
        case VisitStatus.DONE:
            return _done(visit)


def question_of(wait: ev.WaitOpened | None) -> str:
    """What a wait asks the person."""
    return short(wait.body.get("question", "")) if wait is not None else ""


def _towards(visit: ViewedVisit, printer: Printer) -> str:
    return f" {printer.symbol('arrow')} {visit.next}" if visit.next else ""


def _passed(visit: ViewedVisit, printer: Printer, graph: Graph) -> str:
    if visit.text is not None:
        return short(visit.text)
    node = graph.nodes.get(visit.node)
    if isinstance(node, Branch):
        value = "no value" if visit.value is None else short(visit.value, 80)
        return f"{node.path} = {value}{_towards(visit, printer)}"
    names = ", ".join(visit.writes[:6]) + (f" and {len(visit.writes) - 6} more" if len(visit.writes) > 6 else "")
    return f"sets {names}" if names else ""


def _until(visit: ViewedVisit, printer: Printer, now: float) -> str:
    due = visit.wait.due_at if visit.wait is not None else None
    return f" (until {printer.time(due, now)})" if due is not None else ""


def _sleeps(visit: ViewedVisit, printer: Printer, now: float) -> str:
    wait = visit.wait
    if wait is None or wait.due_at is None:
        return "sleeps"
    pause = duration(max(0.0, wait.due_at - now))
    arrow = printer.symbol("arrow")
    if wait.kind == "retry":
        return f"{short(wait.body.get('failure') or 'failed')} {arrow} retry in {pause}"
    if wait.kind == "poll":
        return f"not yet {arrow} looks again in {pause}"
    return f"resumes at {printer.time(wait.due_at, now)}"


def _runs(visit: ViewedVisit) -> str:
    parts = [f"attempt {visit.attempt}"] if visit.attempt > 1 and not visit.polled else []
    if visit.size:
        parts.append(members(visit))
    return ", ".join(parts)


def members(visit: ViewedVisit) -> str:
    """How far the members of a construct are."""
    over = sum(visit.over.values())
    bad = [f"{visit.over[how]} {how}" for how in ("failed", "cancelled") if visit.over.get(how)]
    return ", ".join([f"{over} of {visit.size} ended", *bad])


def _done(visit: ViewedVisit) -> str:
    parts = [short(one) for one in (visit.text, visit.told) if one]
    if visit.answer is not None:
        parts.append(f'answered "{short(visit.answer, 80)}"' + (f" by {short(visit.by, 40)}" if visit.by else ""))
    if visit.size:
        bad = [f"{visit.over[how]} {how}" for how in ("failed", "cancelled") if visit.over.get(how)]
        parts.append(", ".join([counted(visit.size, "member"), *bad]))
    if visit.attempt > 1 and not visit.polled:
        parts.append(f"on attempt {visit.attempt}")
    if visit.defaulted:
        parts.append("a default was used: the result is degraded")
    if visit.usd:
        parts.append(dollars(visit.usd))
    return "; ".join(parts)


def run_words(event: ev.Event) -> RunSentence | None:
    """What an event says of the run as a whole; None where a visit tells it, or nothing has to be told."""
    match event:
        case ev.StopRequested():
            how = "stopping now" if event.now else "stopping at the next step"
            return RunSentence("waits", how + _by(event.by))
        case ev.RunStopped():
            return RunSentence("waits", "stopped")
        case ev.RunResumed():
            return RunSentence("passed", "goes on" + _by(event.by))
        case ev.SignalRejected():
            return RunSentence("warn", f"refused: {short(event.kind, 40)}: {short(event.reason)}")
        case ev.BudgetReached():
            limit = budget_limit(event.unit, event.limit)
            return RunSentence("waits", f"the budget for {event.unit} ({limit}) is used up")
        case ev.BudgetRaised():
            limit = budget_limit(event.unit, event.limit)
            return RunSentence("passed", f"the budget for {event.unit} is now {limit}" + _by(event.by))
        case ev.DefinitionAdopted():
            return RunSentence("passed", "adopted the files as they are now" + _by(event.by))
        case ev.Rewound():
            return RunSentence("passed", f"went back to before '{event.node}', visit {event.visit}" + _by(event.by))
        case ev.CancelRequested():
            return RunSentence("passed", f"ending {counted(len(event.keys), 'step')} because a sibling failed")
        case _:
            return None


def _by(name: str) -> str:
    return f" ({short(name, 40)})" if name else ""
