"""What happens next. From the state alone: the same journal decides the same after a crash."""

from __future__ import annotations

from typing import assert_never

from bailiwick.engine import effects
from bailiwick.engine import events as ev
from bailiwick.engine.commands import Command, OpenWait, StartChild
from bailiwick.engine.compare import choose
from bailiwick.engine.graph import Ask, Branch, Call, End, Map, Node, Parallel, Set, Wait, Work
from bailiwick.engine.render import Lookup, RenderFailed
from bailiwick.engine.rules import Action, Rules, at_visit, fail
from bailiwick.engine.scopes import step_fork
from bailiwick.engine.state import PER_DAY, Phase, Scope, State, resolve_path
from bailiwick.engine.state import WaitState as Opened
from bailiwick.ids import Json, effect_key, wait_id

PURE_LIMIT = 100_000
LONGEST_SHOWN = 2000
"""The most characters that are kept of a text on which a branch decided."""
DEPTH_LIMIT = 16
MIDNIGHT = "0 0 * * *"
"""When a day's budget begins again."""


def decide(state: State, rules: Rules) -> list[Action]:
    """The next actions, or none when the run has to wait. Never changes the state."""
    if state.status != "running":
        return []
    if state.stopping:
        return _stop(state, rules)
    for path in state.todo:
        actions = _decide_scope(state, rules, state.scopes[path])
        if actions:
            return actions
    if state.reached and state.budget_wait is None:
        return [_budget_wait(state)]
    return []


def _stop(state: State, rules: Rules) -> list[Action]:
    """Record what has finished; when nothing is in flight, stop."""
    for path in state.todo:
        scope = state.scopes[path]
        if scope.phase is Phase.FINISHED and not (scope.flight and scope.flight.failure):
            done = effects.finished(state, rules, scope)
            if done and isinstance(done[0], ev.StepDone):
                return done
    return [] if state.running else [ev.RunStopped()]


def _decide_scope(state: State, rules: Rules, scope: Scope) -> list[Action]:
    if _doomed(state, scope):
        return []
    match scope.phase:
        case Phase.READY:
            return _enter(state, rules, scope)
        case Phase.LOST:
            return effects.lost(state, rules, scope)
        case Phase.FINISHED:
            return effects.finished(state, rules, scope)
        case Phase.CLOSED:
            return _closed(state, rules, scope)
        case Phase.FORKED:
            return step_fork(state, scope)
        case Phase.FAILED:
            return [_give_up(state, scope)]
        case Phase.PENDING | Phase.RUNNING | Phase.WAITING | Phase.ENDED:
            return []
        case never:
            assert_never(never)


def _doomed(state: State, scope: Scope) -> bool:
    """Whether a construct above is ending its members: it does so by itself."""
    above = scope.parent
    while above is not None:
        if above.fork is not None and above.fork.failed is not None:
            construct = state.graph.nodes[above.fork.node]
            if isinstance(construct, Parallel | Map) and construct.fail_fast:
                return True
        above = above.parent
    return False


def _give_up(state: State, scope: Scope) -> ev.Event:
    """An unhandled failure ends a member as data and the run as failed."""
    if scope.parent is not None:
        return ev.ScopeEnded(scope.path, "failed", scope.error)
    message = str((scope.error or {}).get("message", ""))
    return ev.RunFinished("failed", scope.cursor, message, scope.defaulted, ended=False)


def _enter(state: State, rules: Rules, scope: Scope) -> list[Action]:
    node = state.graph.nodes[scope.cursor]
    if scope.parent is not None and scope.parent.fork is not None:
        construct = state.graph.nodes[scope.parent.fork.node]
        if isinstance(construct, Parallel | Map) and construct.join == scope.cursor:
            return [ev.ScopeEnded(scope.path, "done")]
    visit = scope.visits.get(node.id, 0) + 1
    if visit > node.max_visits:
        return [
            fail(
                scope,
                node,
                visit=visit,
                kind="max_visits",
                message=f"node '{node.id}' was visited {node.max_visits} times already",
            )
        ]
    if state.pure_steps >= PURE_LIMIT:
        return [
            fail(
                scope,
                node,
                visit=visit,
                kind="PureLoop",
                message=f"{PURE_LIMIT} steps in a row without any effect or wait",
            )
        ]
    try:
        return _step(state, rules, scope=scope, node=node, visit=visit)
    except RenderFailed as error:
        return [fail(scope, node, visit=visit, kind="template", message=str(error))]


def _step(state: State, rules: Rules, scope: Scope, node: Node, visit: int) -> list[Action]:
    lookup = at_visit(state, scope, node, visit)
    match node:
        case Branch():
            return [_branch(state, scope, node, visit)]
        case Set():
            made = rules.renderer.value(node.values, lookup)
            return [
                ev.StepPassed(
                    scope.path,
                    node=node.id,
                    visit=visit,
                    next=node.next or "",
                    writes=made.value,
                    notes=list(made.missing),
                )
            ]
        case End():
            return [_end(rules, scope, node, lookup)]
        case Work():
            return effects.begin(state, rules, scope=scope, node=node, visit=visit, ordinal=1)
        case Wait():
            return _open_wait(state, rules, scope=scope, node=node, visit=visit)
        case Ask():
            return [_ask(rules, scope, node=node, visit=visit, lookup=lookup)]
        case Call():
            return [_call(state, rules, scope=scope, node=node, visit=visit, lookup=lookup)]
        case Parallel():
            return [ev.ScopesForked(scope.path, node.id, visit, list(node.branches))]
        case Map():
            return [_fork_map(state, scope, node, visit)]
        case never:
            assert_never(never)


def _branch(state: State, scope: Scope, node: Branch, visit: int) -> ev.Event:
    try:
        value = resolve_path(lambda name: state.lookup(scope.path, name), node.path)
    except KeyError:
        if node.default is None:
            keys = ", ".join(state.names(scope.path)) or "none"
            return fail(
                scope,
                node,
                visit=visit,
                kind="unresolved",
                message=f"path '{node.path}' is not in the context; keys there are: {keys}",
            )
        return ev.StepPassed(
            scope.path, node.id, visit, node.default, notes=[f"path {node.path} is not in the context"]
        )
    target = choose(node, value)
    if target is None:
        shown = repr(value[:200] if isinstance(value, str) else value)[:202]
        return fail(
            scope,
            node,
            visit=visit,
            kind="no_case",
            message=f"no case matches {shown} at '{node.path}' and there is no default",
        )
    kept = value[:LONGEST_SHOWN] if isinstance(value, str) else value
    return ev.StepPassed(scope.path, node.id, visit, target, value=kept)


def _end(rules: Rules, scope: Scope, node: End, lookup: Lookup) -> ev.Event:
    reason = str(rules.renderer.text(node.reason, lookup).value) if node.reason else ""
    if scope.parent is not None:
        if not node.failed:
            return ev.ScopeEnded(scope.path, "done")
        error: dict[str, Json] = {"node": node.id, "kind": "fail", "message": reason}
        return ev.ScopeEnded(scope.path, "failed", error)
    status = "failed" if node.failed else "done"
    return ev.RunFinished(status, node.id, reason, scope.defaulted, handoff=node.handoff)


def _open_wait(state: State, rules: Rules, scope: Scope, node: Wait, visit: int) -> list[Action]:
    if node.poll is not None:
        return effects.begin(state, rules, scope=scope, node=node, visit=visit, ordinal=1)
    lookup = at_visit(state, scope, node, visit)
    made = rules.renderer.text(node.until or node.seconds, lookup)
    text = str(made.value).strip()
    name = wait_id(scope.path, node.id, visit, 0)
    until = text if node.until else f"+{text}"
    return [OpenWait(scope.path, node=node.id, visit=visit, id=name, kind="timer", until=until, notes=made.missing)]


def _ask(rules: Rules, scope: Scope, node: Ask, visit: int, lookup: Lookup) -> Action:
    made = rules.renderer.text(node.question, lookup)
    body: dict[str, Json] = {"question": made.value, "choices": list(node.choices)}
    name = wait_id(scope.path, node.id, visit, 0)
    return OpenWait(
        scope.path, node=node.id, visit=visit, id=name, kind="ask", seconds=node.timeout, body=body, notes=made.missing
    )


def _call(state: State, rules: Rules, scope: Scope, node: Call, visit: int, lookup: Lookup) -> Action:
    if state.depth + 1 > DEPTH_LIMIT:
        return fail(scope, node, visit=visit, kind="depth", message=f"calls are nested deeper than {DEPTH_LIMIT}")
    params = rules.renderer.value(node.params, lookup).value
    key = effect_key(state.run, scope.path, node=node.id, visit=visit, ordinal=1)
    return StartChild(scope.path, node=node.id, visit=visit, key=key, workflow=node.workflow, params=params)


def _fork_map(state: State, scope: Scope, node: Map, visit: int) -> ev.Event:
    try:
        items = resolve_path(lambda name: state.lookup(scope.path, name), node.over)
    except KeyError:
        keys = ", ".join(state.names(scope.path)) or "none"
        return fail(
            scope,
            node,
            visit=visit,
            kind="unresolved",
            message=f"path '{node.over}' is not in the context; keys there are: {keys}",
        )
    if not isinstance(items, list):
        return fail(
            scope,
            node,
            visit=visit,
            kind="not_a_list",
            message=f"'{node.over}' is {type(items).__name__}, map needs a list",
        )
    return ev.ScopesForked(scope.path, node.id, visit, [str(i) for i in range(len(items))])


def _closed(state: State, rules: Rules, scope: Scope) -> list[Action]:
    node, wait = state.graph.nodes[scope.cursor], scope.wait
    if wait is None:
        return []
    match wait.kind:
        case "retry" | "cap" | "outage":
            return effects.resumed(state, rules, scope)
        case "unknown" | "auth" | "exhausted":
            return effects.answered(state, rules, scope)
        case "poll":
            ordinal = (scope.flight.ordinal if scope.flight else 0) + 1
            return (
                effects.begin(state, rules, scope=scope, node=node, visit=scope.visit, ordinal=ordinal)
                if isinstance(node, Wait)
                else []
            )
        case "child":
            return [_child_ended(scope, node, state.resolve(wait.value))]
        case "ask":
            return [_answered(scope, node, wait)]
        case _:
            if wait.how == "refused":
                return [fail(scope, node, visit=scope.visit, kind="bad_value", message=str(wait.value))]
            return [ev.StepDone(scope.path, node.id, scope.visit, node.next or "")]


def _answered(scope: Scope, node: Node, wait: Opened) -> ev.Event:
    if wait.how == "answered":
        return ev.StepDone(
            scope.path, node=node.id, visit=scope.visit, next=node.next or "", writes={node.id: wait.value}
        )
    if isinstance(node, Ask) and node.declared:
        return ev.StepDone(
            scope.path,
            node=node.id,
            visit=scope.visit,
            next=node.next or "",
            writes={node.id: node.default},
            defaulted=True,
            accepted=node.accept_defaulted,
        )
    return fail(
        scope, node, visit=scope.visit, kind="timeout", message="no answer came in time and there is no default"
    )


def _child_ended(scope: Scope, node: Node, value: Json) -> ev.Event:
    result: dict[str, Json] = value if isinstance(value, dict) else {}
    if result.get("status") == "done":
        tainted = bool(result.get("degraded"))
        return ev.StepDone(
            scope.path,
            node=node.id,
            visit=scope.visit,
            next=node.next or "",
            writes={node.id: result.get("outputs", {})},
            defaulted=tainted,
        )
    reason = str(result.get("reason") or "it ended without a reason")
    return fail(scope, node, visit=scope.visit, kind="child_failed", message=f"the called workflow failed: {reason}")


def _budget_wait(state: State) -> Command:
    unit = next(iter(state.reached), "wall")
    limit = state.reached.get(unit, 0.0)
    body: dict[str, Json] = {
        "question": f"the budget for {unit} ({limit:g}) is used up. Raise it?",
        "choices": ["raise", "stop"],
        "unit": unit,
        "limit": limit,
    }
    name = wait_id("", f"budget:{unit}:{limit}", 0, 0)
    until = MIDNIGHT if unit.startswith(PER_DAY) else ""
    return OpenWait("", node="", visit=0, id=name, kind="budget", until=until, body=body)
