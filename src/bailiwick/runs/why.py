"""Why a run or a node is as it is: sentences from its journal alone. Pure; the same journal gives the same answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from bailiwick.clock import local
from bailiwick.engine import events as ev
from bailiwick.engine.compare import holds, spellings
from bailiwick.engine.graph import Branch, Graph, Work
from bailiwick.engine.retry_script import FINAL
from bailiwick.engine.state import Scope, State, WaitState
from bailiwick.engine.visits import NodeStatement, Visit, VisitStatus, ended_attempts, visits
from bailiwick.ids import Json, place
from bailiwick.terminal.output import budget_limit, duration

E = TypeVar("E", bound=ev.Event)
LAST = 5
"""How many of several like things are told."""
LAST_LINES = 5
_CAUSES = {
    "crash": "its process died",
    "stopped": "it was stopped at once",
    "lease": "the lease could not be renewed",
    "upgrade": "the installed version changed",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    """One answer: what it is about, a sentence, and lines that back it up."""

    topic: str
    text: str
    lines: tuple[str, ...] = ()
    at: float | None = None


@dataclass(frozen=True)
class RunHistory:
    """What is known of a run: its name, every event and the state they come to.

    `holder` is the process that walks it, empty where nobody does, None where that was not looked at.
    """

    name: str
    entries: list[ev.Entry]
    state: State
    holder: str | None = None

    @cached_property
    def visits(self) -> list[Visit]:
        """What the events say of each visit."""
        return visits(self.entries)


def explain(history: RunHistory) -> list[Explanation]:
    """Why the run waits, stopped, failed, goes on or ended the way it did; what matters most comes first."""
    now = [
        *_standing(history),
        *_waits(history),
        *_found(history),
        *_running(history),
        *_members(history),
        *_last_branch(history),
    ]
    return [*now, *_reentries(history), *_budget(history), *_defaults(history), *_turns(history), *_rejected(history)]


def explain_node(history: RunHistory, node: str) -> list[Explanation]:
    """Why a node was reached and what came of its last visits, in every scope."""
    known = history.state.graph.nodes
    found = [visit for visit in history.visits if visit.node == node]
    if not found:
        where = "" if node in known else f"; the workflow has no node '{node}' now"
        return [Explanation("node", f"'{node}' has not been visited by {history.name}{where}")]
    out: list[Explanation] = []
    for visit in found[-LAST:]:
        out += _visit(history, visit)
    if len(found) > LAST:
        out.append(Explanation("node", f"{len(found) - LAST} earlier visits: bailiwick runs show {history.name}"))
    own = [(s, w) for s, w in history.state.waits() if s.cursor == node and w.kind != "budget"]
    out += [_wait(history.state, scope, wait) for scope, wait in own]
    out += [_told(*one) for one in _statements(history) if one[0].node == node][-LAST:]
    return [*out, *_reentries(history, node), *_defaults(history, node)]


def _statements(history: RunHistory) -> list[tuple[Visit, NodeStatement]]:
    """What nodes said they found, in order; visits that a rewind took back are among it."""
    return sorted(((visit, one) for visit in history.visits for one in visit.statements), key=lambda pair: pair[1].seq)


def _found(history: RunHistory) -> list[Explanation]:
    """What nodes that say what they find found last, unless all was well: a gate names the failing test."""
    last = {visit.node: (visit, one) for visit, one in _statements(history)}
    return [_told(visit, one) for visit, one in last.values() if not one.good]


def _told(visit: Visit, one: NodeStatement) -> Explanation:
    return Explanation("found", f"{_named(visit)} found: {one.text}", one.lines, one.at)


def _standing(history: RunHistory) -> list[Explanation]:
    state = history.state
    end = _last(history.entries, ev.RunFinished)
    match state.status:
        case "done":
            text = f"done at '{end[2].node}'" if end else "done"
            return [Explanation("done", text, at=state.ended_at)]
        case "failed":
            return _run_failure(history, end)
        case "stopped":
            return [_stopped(history)]
        case _:
            asked = _last(history.entries, ev.StopRequested) if state.stopping else None
            if asked is None:
                return []
            how = "as soon as its processes have ended" if state.stopping == "now" else "when the running node is done"
            return [Explanation("stopping", f"{_by(asked[2].by)} asked it to stop; it does {how}", at=asked[1])]


def _stopped(history: RunHistory) -> Explanation:
    asked = _last(history.entries, ev.StopRequested)
    hint = f"go on with: bailiwick resume {history.name}"
    if asked is None:
        return Explanation("stopped", "stopped", (hint,))
    how = "at once" if asked[2].now else "at the next node boundary"
    return Explanation("stopped", f"stopped {how}, asked for by {_by(asked[2].by)}", (hint,), asked[1])


def _by(name: str) -> str:
    return name or "somebody"


def _run_failure(history: RunHistory, end: tuple[int, float, ev.RunFinished] | None) -> list[Explanation]:
    if end is None:
        return []
    _, at, event = end
    if event.ended:
        reason = f": {event.reason}" if event.reason else ""
        return [Explanation("failed", f"the fail node '{event.node}' ended it{reason}", at=at)]
    failed = [v for v in history.visits if v.node == event.node and not v.scope and v.result == "failed"]
    if failed:
        return [_failure(history, failed[-1])]
    return [Explanation("failed", f"failed at '{event.node}': {event.reason}", at=at)]


def _visit(history: RunHistory, visit: Visit) -> list[Explanation]:
    out = _reached(history, visit)
    suffix = " (taken back by a rewind)" if visit.undone else ""
    match visit.result:
        case "failed":
            out.append(_failure(history, visit))
        case "done" | "default":
            out.append(_left(history, visit, suffix))
        case _:
            what = f"{visit.result}: {_cause(visit.detail)}" if visit.detail else visit.result
            out.append(Explanation("node", f"{_named(visit)} is {what}{suffix}", at=visit.began))
    return out


def _named(visit: Visit) -> str:
    number = f", visit {visit.number}" if visit.number > 1 else ""
    return f"'{visit.place}'{number}"


def _left(history: RunHistory, visit: Visit, suffix: str) -> Explanation:
    if visit.status is VisitStatus.PASSED:
        node = _graphs(history)(visit.seq).nodes.get(visit.node)
        if isinstance(node, Branch):
            return Explanation("branch", branch_sentence(node, visit) + suffix, at=visit.ended)
    to = f", then went to '{visit.next}'" if visit.next else ""
    tries = f" after {visit.attempts} attempts" if visit.attempts > 1 else ""
    default = " with its declared default" if visit.result == "default" else ""
    return Explanation("node", f"{_named(visit)} was done{default}{tries}{to}{suffix}", at=visit.ended)


def _reached(history: RunHistory, visit: Visit) -> list[Explanation]:
    """The visit of the same scope that led to this one."""
    before = [v for v in history.visits if v.scope == visit.scope and v.left is not None and v.left < visit.seq]
    led = next((v for v in reversed(before) if v.next == visit.node), None)
    if led is None:
        return []
    how = "failed and its on_error leads" if led.status is VisitStatus.FAILED else "leads"
    node = history.state.graph.nodes.get(led.node)
    if led.status is VisitStatus.PASSED and isinstance(node, Branch):
        return [Explanation("reached", f"{_named(visit)} was reached because {branch_sentence(node, led)}")]
    return [Explanation("reached", f"{_named(visit)} was reached because '{led.node}' {how} there")]


def branch_sentence(node: Branch, visit: Visit) -> str:
    """Which case, condition or default sent a branch where it went."""
    head = f"branch '{visit.place}'"
    to = f"it went to '{visit.next}'"
    if visit.notes:
        return f"{head}: path '{node.path}' is not in the context, so by default {to}"
    shown = _quoted(visit.value)
    texts = spellings(visit.value)
    for text in texts:
        if node.cases.get(text) == visit.next:
            return f"{head}: {node.path} is {shown}, which is the case '{text}', so {to}"
    for condition in node.conditions:
        if condition.next == visit.next and holds(condition.op, texts, condition.value):
            return f"{head}: {node.path} is {shown}, and {shown} {condition.op} {condition.value}, so {to}"
    none = ", which matches no case and no condition" if node.cases or node.conditions else ""
    return f"{head}: {node.path} is {shown}{none}, so by default {to}"


def _quoted(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return spellings(value)[-1]
    return f"'{value}'" if isinstance(value, str) else str(value)


def _failure(history: RunHistory, visit: Visit) -> Explanation:
    """A node that failed: each attempt, what was decided after it, and the last words of the last one."""
    failure, resolve = visit.failure or {}, history.state.resolve
    lines = _attempts(history, visit)
    node = history.state.graph.nodes.get(visit.node)
    if lines and isinstance(node, Work):
        lines.append(_why_no_more(node, str(failure.get("kind", ""))))
    ends = [tried.end for tried in visit.tries if isinstance(tried.end, ev.EffectFinished)]
    words = str(resolve(ends[-1].log.get("stderr")) or "") if ends else ""
    lines += [f"stderr: {line}" for line in words.splitlines()[-LAST_LINES:] if line.strip()]
    message = str(resolve(failure.get("message", ""))) if failure else visit.detail
    tries = f" after {visit.attempts} attempts" if visit.attempts > 1 else ""
    to = f"; its on_error led to '{visit.next}'" if visit.next else ""
    return Explanation("failed", f"{_named(visit)} failed{tries}: {message}{to}", tuple(lines), visit.ended)


def _attempts(history: RunHistory, visit: Visit) -> list[str]:
    """A line per attempt of a visit: how it ended, how long it took, and the pause that was decided after it."""
    lines: list[str] = []
    for tried in visit.tries:
        match tried.end:
            case ev.EffectFinished(failure=failure, seconds=seconds):
                how = f"{history.state.resolve((failure or {}).get('message')) or 'ok'} ({duration(seconds)})"
            case ev.EffectLost(why=why):
                how = f"cut off, {_cause(why)}"
            case None:
                continue
        pause = f" after {duration(tried.pause)}" if tried.pause is not None else ""
        lines.append(f"attempt {tried.start.attempt}: {how}" + (f" → tried again{pause}" if tried.retried else ""))
    return lines


def _why_no_more(node: Work, kind: str) -> str:
    """Why the last attempt of a failed visit was the last."""
    if kind in FINAL:
        return f"not tried again: '{kind}' is not helped by trying again"
    if node.retry is None:
        return "not tried again: the node has no retry"
    return f"not tried again: retry allows {node.retry.max} more after the first"


def _cause(why: str) -> str:
    """What cut an effect off, in words."""
    return _CAUSES.get(why, why)


def _waits(history: RunHistory) -> list[Explanation]:
    return (
        [_tried(history, scope, _wait(history.state, scope, wait)) for scope, wait in history.state.waits()]
        if history.state.status == "running"
        else []
    )


def _tried(history: RunHistory, scope: Scope, reason: Explanation) -> Explanation:
    """A wait with what was tried before it, where attempts of the same visit failed."""
    name = (scope.path, scope.cursor, scope.visit)
    lines = [line for visit in history.visits if visit.name == name for line in _attempts(history, visit)]
    return replace(reason, lines=(*lines[-LAST:], *reason.lines)) if lines else reason


def _wait(state: State, scope: Scope, wait: WaitState) -> Explanation:
    where = place(scope.path, scope.cursor)
    due = local(wait.due_at) if wait.due_at is not None else ""
    since = f"since {local(wait.opened_at)}"
    asked = str(state.resolve(wait.body.get("question", "")))
    choices = ", ".join(str(choice) for choice in wait.body.get("choices") or ())
    lines = tuple(line for line in (f"choices: {choices}" if choices else "", f"wait id: {wait.id}") if line)
    match wait.kind:
        case "ask" | "unknown" | "approval" | "exhausted":
            limit = f"; without an answer by {due} the node fails or takes its default" if due else ""
            return Explanation("waits", f"'{where}' waits for a person {since}: {asked}{limit}", lines, wait.opened_at)
        case "budget":
            return Explanation("waits", f"the run waits for a person {since}: {asked}", lines, wait.opened_at)
        case "retry":
            tried, why = wait.body.get("after"), wait.body.get("failure")
            return Explanation(
                "waits", f"'{where}' is tried again at {due}: attempt {tried} failed: {why}", at=wait.opened_at
            )
        case "poll":
            return Explanation("waits", f"'{where}' looks again at {due}: its script said not yet", at=wait.opened_at)
        case "child":
            look = (f"bailiwick why {wait.id[:8]}",)
            return Explanation("waits", f"'{where}' waits {since} for the run it called", look, wait.opened_at)
        case _:
            return Explanation("waits", f"'{where}' sleeps until {due}, {since}", at=wait.opened_at)


def _running(history: RunHistory) -> list[Explanation]:
    out = []
    for scope, flight in history.state.flights():
        attempt = f", attempt {flight.attempt}" if flight.attempt > 1 else ""
        again = f", entered {flight.entry} times" if flight.entry > 1 else ""
        where = place(scope.path, scope.cursor)
        if history.holder == "":
            out.append(_interrupted(history, where, flight.since))
            continue
        out.append(
            Explanation("running", f"'{where}' runs since {local(flight.since)}{attempt}{again}", at=flight.since)
        )
    if not out and history.state.status == "running" and not history.state.waits():
        where = history.state.scopes[""].cursor
        out.append(Explanation("running", f"it is at '{where}' and goes on as soon as a worker runs it"))
    return out


def _interrupted(history: RunHistory, where: str, since: float) -> Explanation:
    """A step that had begun and whose process is gone."""
    text = f"'{where}' was interrupted: it began {local(since)}, and its process is gone"
    return Explanation("interrupted", text, (f"go on with: bailiwick resume {history.name}",), since)


def _members(history: RunHistory) -> list[Explanation]:
    """Branches and items that failed as data: the run goes on, and people may wonder."""
    lanes = [lane for visit in history.visits if not visit.undone for lane in visit.lanes.values() if lane.status]
    lanes.sort(key=lambda lane: lane.end_seq)
    failed = [f"{lane.path}: {lane.error or 'no reason given'}" for lane in lanes]
    if not failed:
        return []
    many = "1 branch or item" if len(failed) == 1 else f"{len(failed)} branches or items"
    text = f"{many} failed, which is data for the join"
    return [Explanation("members", text, tuple(failed[:LAST]))]


def _last_branch(history: RunHistory) -> list[Explanation]:
    graph_at = _graphs(history)
    for visit in reversed(history.visits):
        if visit.status is VisitStatus.PASSED and not visit.undone:
            node = graph_at(visit.seq).nodes.get(visit.node)
            if isinstance(node, Branch):
                return [Explanation("branch", f"the last {branch_sentence(node, visit)}", at=visit.ended)]
    return []


def _graphs(history: RunHistory) -> Callable[[int], Graph]:
    """Gives the graph that was in force at an event, by its seq."""
    adopted = [
        (seq, e.definition) for seq, _, e in history.entries if isinstance(e, ev.RunCreated | ev.DefinitionAdopted)
    ]

    def graph_at(seq: int) -> Graph:
        before = [name for number, name in adopted if number <= seq]
        return history.state.graphs(before[-1]) if before else history.state.graph

    return graph_at


def _reentries(history: RunHistory, node: str | None = None) -> list[Explanation]:
    cut: dict[tuple[str, str], list[str]] = {}
    for visit, tried in ended_attempts(history.visits):
        if isinstance(tried.end, ev.EffectLost) and node in (None, visit.node):
            cut.setdefault((tried.end.key, visit.place), []).append(_cause(tried.end.why))
    out = []
    for (key, where), causes in cut.items():
        times = "once" if len(causes) == 1 else f"{len(causes)} times"
        why = ", ".join(dict.fromkeys(causes))
        text = f"'{where}' was cut off {times} ({why}); it is entered again with the same key {key}"
        out.append(Explanation("reentered", text))
    return out[-LAST:]


def _budget(history: RunHistory) -> list[Explanation]:
    out = []
    for _, at, event in history.entries:
        if isinstance(event, ev.BudgetReached):
            limit = budget_limit(event.unit, event.limit)
            out.append(Explanation("budget", f"the budget for {event.unit} ({limit}) was used up", at=at))
        elif isinstance(event, ev.BudgetRaised):
            limit = budget_limit(event.unit, event.limit)
            out.append(Explanation("budget", f"{_by(event.by)} set the budget for {event.unit} to {limit}", at=at))
    return out[-LAST:]


def _defaults(history: RunHistory, node: str | None = None) -> list[Explanation]:
    used = [v for v in history.visits if v.defaulted and not v.undone and node in (None, v.node)]
    used.sort(key=lambda visit: visit.left or 0)
    out = []
    for visit in used[-LAST:]:
        taint = "which the workflow accepts" if visit.accepted else "so the result is degraded"
        text = f"'{visit.place}' went on with a default or with a degraded child, {taint}"
        out.append(Explanation("degraded", text, at=visit.ended))
    return out


def _turns(history: RunHistory) -> list[Explanation]:
    """Where a person bent the way: forks, rewinds, adopted definitions."""
    out = []
    for _, at, event in history.entries:
        match event:
            case ev.Forked():
                values = f" with {', '.join(sorted(event.values))} set again" if event.values else ""
                text = f"forked from run {event.run} after its event {event.upto}{values}"
            case ev.Rewound():
                text = f"{_by(event.by)} went back to '{event.node}', visit {event.visit}"
            case ev.DefinitionAdopted():
                text = f"{_by(event.by)} had it adopt the definition {event.definition[:12]}"
            case _:
                continue
        out.append(Explanation("turn", text, at=at))
    return out[-LAST:]


def _rejected(history: RunHistory) -> list[Explanation]:
    found = [(at, e) for _, at, e in history.entries if isinstance(e, ev.SignalRejected)]
    return [Explanation("refused", f"a message '{e.kind}' was refused: {e.reason}", at=at) for at, e in found[-LAST:]]


def _last(entries: Iterable[ev.Entry], kind: type[E]) -> tuple[int, float, E] | None:
    found = None
    for seq, at, event in entries:
        if isinstance(event, kind):
            found = (seq, at, event)
    return found
