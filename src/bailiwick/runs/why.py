"""Why a run or a node is as it is: sentences from its journal alone. Pure; the same journal gives the same answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from bailiwick.clock import local
from bailiwick.engine import events as ev
from bailiwick.engine.compare import holds, spellings
from bailiwick.engine.graph import Branch, Graph, Work
from bailiwick.engine.state import Scope, State, WaitState
from bailiwick.ids import Json, place
from bailiwick.runs.tries import NodeStatement, attempts, cause, last_words, name_of_visit, told, why_no_more
from bailiwick.runs.visits import Entry, Visit, standing_entries, visits

E = TypeVar("E", bound=ev.Event)
LAST = 5
"""How many of several like things are told."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One answer: what it is about, a sentence, and lines that back it up."""

    topic: str
    text: str
    lines: tuple[str, ...] = ()
    at: float | None = None


@dataclass(frozen=True, slots=True)
class RunHistory:
    """What is known of a run: its name, every event and the state they come to.

    `holder` is the process that walks it, empty where nobody does, None where that was not looked at.
    """

    name: str
    entries: list[Entry]
    state: State
    holder: str | None = None


def explain(story: RunHistory) -> list[Explanation]:
    """Why the run waits, stopped, failed, goes on or ended the way it did; what matters most comes first."""
    now = [*_standing(story), *_waits(story), *_found(story), *_running(story), *_members(story), *_last_branch(story)]
    return [*now, *_reentries(story), *_budget(story), *_defaults(story), *_turns(story), *_rejected(story)]


def explain_node(story: RunHistory, node: str) -> list[Explanation]:
    """Why a node was reached and what came of its last visits, in every scope."""
    known = story.state.graph.nodes
    found = [visit for visit in visits(story.entries) if visit.node == node]
    if not found:
        where = "" if node in known else f"; the workflow has no node '{node}' now"
        return [Explanation("node", f"'{node}' has not been visited by {story.name}{where}")]
    out: list[Explanation] = []
    for visit in found[-LAST:]:
        out += _visit(story, visit)
    if len(found) > LAST:
        out.append(Explanation("node", f"{len(found) - LAST} earlier visits: bailiwick runs show {story.name}"))
    own = [(s, w) for s, w in story.state.waits() if s.cursor == node and w.kind != "budget"]
    out += [_wait(story.state, scope, wait) for scope, wait in own]
    out += [_told(one) for one in told(story.entries) if one.node == node][-LAST:]
    return [*out, *_reentries(story, node), *_defaults(story, node)]


def _found(story: RunHistory) -> list[Explanation]:
    """What nodes that say what they find found last, unless all was well: a gate names the failing test."""
    last = {one.node: one for one in told(story.entries)}
    return [_told(one) for one in last.values() if not one.good]


def _told(one: NodeStatement) -> Explanation:
    return Explanation("found", f"{one.where} found: {one.text}", one.lines, one.at)


def _standing(story: RunHistory) -> list[Explanation]:
    state = story.state
    end = _last(story.entries, ev.RunFinished)
    match state.status:
        case "done":
            text = f"done at '{end[2].node}'" if end else "done"
            return [Explanation("done", text, at=state.ended_at)]
        case "failed":
            return _run_failure(story, end)
        case "stopped":
            return [_stopped(story)]
        case _:
            asked = _last(story.entries, ev.StopRequested) if state.stopping else None
            if asked is None:
                return []
            how = "as soon as its processes have ended" if state.stopping == "now" else "when the running node is done"
            return [Explanation("stopping", f"{_by(asked[2].by)} asked it to stop; it does {how}", at=asked[1])]


def _stopped(story: RunHistory) -> Explanation:
    asked = _last(story.entries, ev.StopRequested)
    hint = f"go on with: bailiwick resume {story.name}"
    if asked is None:
        return Explanation("stopped", "stopped", (hint,))
    how = "at once" if asked[2].now else "at the next node boundary"
    return Explanation("stopped", f"stopped {how}, asked for by {_by(asked[2].by)}", (hint,), asked[1])


def _by(name: str) -> str:
    return name or "somebody"


def _run_failure(story: RunHistory, end: tuple[int, float, ev.RunFinished] | None) -> list[Explanation]:
    if end is None:
        return []
    _, at, event = end
    if event.ended:
        reason = f": {event.reason}" if event.reason else ""
        return [Explanation("failed", f"the fail node '{event.node}' ended it{reason}", at=at)]
    failed = [v for v in visits(story.entries) if v.node == event.node and not v.scope and v.result == "failed"]
    if failed:
        return [_failure(story, failed[-1])]
    return [Explanation("failed", f"failed at '{event.node}': {event.reason}", at=at)]


def _visit(story: RunHistory, visit: Visit) -> list[Explanation]:
    out = _reached(story, visit)
    suffix = " (taken back by a rewind)" if visit.undone else ""
    match visit.result:
        case "failed":
            out.append(_failure(story, visit))
        case "done" | "default":
            out.append(_left(story, visit, suffix))
        case _:
            what = f"{visit.result}: {cause(visit.detail)}" if visit.detail else visit.result
            out.append(Explanation("node", f"{_named(visit)} is {what}{suffix}", at=visit.began))
    return out


def _named(visit: Visit) -> str:
    number = f", visit {visit.visit}" if visit.visit > 1 else ""
    return f"'{visit.place}'{number}"


def _left(story: RunHistory, visit: Visit, suffix: str) -> Explanation:
    for seq, at, event in story.entries:
        if seq == visit.seq and isinstance(event, ev.StepPassed):
            node = _graphs(story)(seq).nodes.get(visit.node)
            if isinstance(node, Branch):
                return Explanation("branch", branch_sentence(node, event) + suffix, at=at)
    to = f", then went to '{visit.next}'" if visit.next else ""
    tries = f" after {visit.attempts} attempts" if visit.attempts > 1 else ""
    default = " with its declared default" if visit.result == "default" else ""
    return Explanation("node", f"{_named(visit)} was done{default}{tries}{to}{suffix}", at=visit.ended)


def _reached(story: RunHistory, visit: Visit) -> list[Explanation]:
    """The step of the same scope that led to this visit."""
    led: ev.StepPassed | ev.StepDone | ev.StepFailed | None = None
    for seq, _, event in story.entries:
        if seq >= visit.seq:
            break
        if isinstance(event, ev.StepPassed | ev.StepDone | ev.StepFailed) and event.scope == visit.scope:
            led = event if event.next == visit.node else led
    if led is None:
        return []
    how = "failed and its on_error leads" if isinstance(led, ev.StepFailed) else "leads"
    node = story.state.graph.nodes.get(led.node)
    if isinstance(led, ev.StepPassed) and isinstance(node, Branch):
        return [Explanation("reached", f"{_named(visit)} was reached because {branch_sentence(node, led)}")]
    return [Explanation("reached", f"{_named(visit)} was reached because '{led.node}' {how} there")]


def branch_sentence(node: Branch, event: ev.StepPassed) -> str:
    """Which case, condition or default sent a branch where it went."""
    head = f"branch '{place(event.scope, event.node)}'"
    to = f"it went to '{event.next}'"
    if event.notes:
        return f"{head}: path '{node.path}' is not in the context, so by default {to}"
    shown = _quoted(event.value)
    texts = spellings(event.value)
    for text in texts:
        if node.cases.get(text) == event.next:
            return f"{head}: {node.path} is {shown}, which is the case '{text}', so {to}"
    for condition in node.conditions:
        if condition.next == event.next and holds(condition.op, texts, condition.value):
            return f"{head}: {node.path} is {shown}, and {shown} {condition.op} {condition.value}, so {to}"
    none = ", which fits no case and no condition" if node.cases or node.conditions else ""
    return f"{head}: {node.path} is {shown}{none}, so by default {to}"


def _quoted(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return spellings(value)[-1]
    return f"'{value}'" if isinstance(value, str) else str(value)


def _failure(story: RunHistory, visit: Visit) -> Explanation:
    """A node that failed: each attempt, what was decided after it, and the last words of the last one."""
    failed = [e for _, _, e in story.entries if isinstance(e, ev.StepFailed) and name_of_visit(e) == visit.name]
    lines = attempts(story.entries, visit, story.state.resolve)
    node = story.state.graph.nodes.get(visit.node)
    if lines and isinstance(node, Work):
        lines.append(why_no_more(node, str(failed[-1].failure.get("kind", "")) if failed else ""))
    lines += last_words(story.entries, story.state, visit)
    message = str(story.state.resolve(failed[-1].failure.get("message", ""))) if failed else visit.detail
    tries = f" after {visit.attempts} attempts" if visit.attempts > 1 else ""
    to = f"; its on_error led to '{visit.next}'" if visit.next else ""
    return Explanation("failed", f"{_named(visit)} failed{tries}: {message}{to}", tuple(lines), visit.ended)


def _waits(story: RunHistory) -> list[Explanation]:
    return (
        [_tried(story, scope, _wait(story.state, scope, wait)) for scope, wait in story.state.waits()]
        if story.state.status == "running"
        else []
    )


def _tried(story: RunHistory, scope: Scope, reason: Explanation) -> Explanation:
    """A wait with what was tried before it, where attempts of the same visit failed."""
    name = (scope.path, scope.cursor, scope.visit)
    visit = next((one for one in visits(story.entries) if one.name == name), None)
    lines = attempts(story.entries, visit, story.state.resolve) if visit is not None else []
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
            limit = f"; nobody answering by {due} decides it" if due else ""
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


def _running(story: RunHistory) -> list[Explanation]:
    out = []
    for scope, flight in story.state.flights():
        attempt = f", attempt {flight.attempt}" if flight.attempt > 1 else ""
        again = f", entered {flight.entry} times" if flight.entry > 1 else ""
        where = place(scope.path, scope.cursor)
        if story.holder == "":
            out.append(_interrupted(story, where, flight.since))
            continue
        out.append(
            Explanation("running", f"'{where}' runs since {local(flight.since)}{attempt}{again}", at=flight.since)
        )
    if not out and story.state.status == "running" and not story.state.waits():
        where = story.state.scopes[""].cursor
        out.append(Explanation("running", f"it is at '{where}' and can go on as soon as somebody walks it"))
    return out


def _interrupted(story: RunHistory, where: str, since: float) -> Explanation:
    """A step that had begun and whose process is gone."""
    text = f"'{where}' was interrupted: it began {local(since)}, and its process is gone"
    return Explanation("interrupted", text, (f"go on with: bailiwick resume {story.name}",), since)


def _members(story: RunHistory) -> list[Explanation]:
    """Branches and items that failed as data: the run goes on, and people may wonder."""
    failed = [
        f"{e.scope}: {(e.error or {}).get('message') or 'no reason given'}"
        for _, _, e in standing_entries(story.entries)
        if isinstance(e, ev.ScopeEnded) and e.status == "failed"
    ]
    if not failed:
        return []
    many = "1 branch or item" if len(failed) == 1 else f"{len(failed)} branches or items"
    text = f"{many} failed, which is data for the join"
    return [Explanation("members", text, tuple(failed[:LAST]))]


def _last_branch(story: RunHistory) -> list[Explanation]:
    graph_at = _graphs(story)
    for seq, at, event in reversed(standing_entries(story.entries)):
        if isinstance(event, ev.StepPassed):
            node = graph_at(seq).nodes.get(event.node)
            if isinstance(node, Branch):
                return [Explanation("branch", f"the last {branch_sentence(node, event)}", at=at)]
    return []


def _graphs(story: RunHistory) -> Callable[[int], Graph]:
    """Gives the graph that was in force at an event, by its seq."""
    adopted = [
        (seq, e.definition) for seq, _, e in story.entries if isinstance(e, ev.RunCreated | ev.DefinitionAdopted)
    ]

    def graph_at(seq: int) -> Graph:
        before = [name for number, name in adopted if number <= seq]
        return story.state.graphs(before[-1]) if before else story.state.graph

    return graph_at


def _reentries(story: RunHistory, node: str | None = None) -> list[Explanation]:
    names = {e.key: (e.node, place(e.scope, e.node)) for _, _, e in story.entries if isinstance(e, ev.EffectStarted)}
    cut: dict[str, list[str]] = {}
    for _, _, event in story.entries:
        if isinstance(event, ev.EffectLost) and event.key in names and node in (None, names[event.key][0]):
            cut.setdefault(event.key, []).append(cause(event.why))
    out = []
    for key, causes in cut.items():
        times = "once" if len(causes) == 1 else f"{len(causes)} times"
        why = ", ".join(dict.fromkeys(causes))
        text = f"'{names[key][1]}' was cut off {times} ({why}); it is entered again with the same key {key}"
        out.append(Explanation("reentered", text))
    return out[-LAST:]


def _budget(story: RunHistory) -> list[Explanation]:
    out = []
    for _, at, event in story.entries:
        if isinstance(event, ev.BudgetReached):
            out.append(Explanation("budget", f"the budget for {event.unit} ({event.limit:g}) was used up", at=at))
        elif isinstance(event, ev.BudgetRaised):
            out.append(
                Explanation("budget", f"{_by(event.by)} set the budget for {event.unit} to {event.limit:g}", at=at)
            )
    return out[-LAST:]


def _defaults(story: RunHistory, node: str | None = None) -> list[Explanation]:
    used = [
        (at, place(e.scope, e.node), e.accepted)
        for _, at, e in standing_entries(story.entries)
        if isinstance(e, ev.StepDone) and e.defaulted and node in (None, e.node)
    ]
    out = []
    for at, where, accepted in used[-LAST:]:
        taint = "which the workflow accepts" if accepted else "so the result is degraded"
        out.append(
            Explanation("degraded", f"'{where}' went on with a default or with a degraded child, {taint}", at=at)
        )
    return out


def _turns(story: RunHistory) -> list[Explanation]:
    """Where a person bent the way: forks, rewinds, adopted definitions."""
    out = []
    for _, at, event in story.entries:
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


def _rejected(story: RunHistory) -> list[Explanation]:
    found = [(at, e) for _, at, e in story.entries if isinstance(e, ev.SignalRejected)]
    return [Explanation("refused", f"a message '{e.kind}' was refused: {e.reason}", at=at) for at, e in found[-LAST:]]


def _last(entries: Iterable[Entry], kind: type[E]) -> tuple[int, float, E] | None:
    found = None
    for seq, at, event in entries:
        if isinstance(event, kind):
            found = (seq, at, event)
    return found
