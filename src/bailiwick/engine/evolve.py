"""How an event changes the state. Same events, same state: the only way a run's state is ever made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bailiwick.engine import events as ev
from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.engine.graph import Map, Parallel
from bailiwick.engine.retry_agent import FailedAttempt
from bailiwick.engine.state import (
    PER_DAY,
    Construct,
    EffectInFlight,
    Fetch,
    Graphs,
    Phase,
    Scope,
    State,
    VisitRequest,
    WaitState,
    resolve_path,
)
from bailiwick.engine.worktime import add_span
from bailiwick.errors import JournalCorrupt
from bailiwick.ids import Json, scope_path

_KINDS = {str(kind): kind for kind in FailureKind}
_OVER = frozenset({Phase.ENDED, Phase.PENDING, Phase.FAILED})
_TODO = frozenset({Phase.READY, Phase.LOST, Phase.FINISHED, Phase.CLOSED, Phase.FAILED})


def evolve(state: State, event: ev.Event, at: float) -> None:
    """Apply one event that happened at `at`. Raises `JournalCorrupt` when it can't follow what was before."""
    _count_wall(state, event, at)
    handler = _HANDLERS.get(type(event))
    if handler is None:
        raise JournalCorrupt(f"event {type(event).__name__} cannot be applied")
    try:
        handler(state, event, at)
    except (KeyError, AttributeError, TypeError) as error:
        raise JournalCorrupt(f"event {type(event).__name__} does not follow what was before: {error!r}") from error


def replay(history: Iterable[ev.Entry], graphs: Graphs, fetch: Fetch | None = None) -> State:
    """Fold a whole journal. A `Rewound` goes back to a prefix, keeping visit numbers and time spent."""
    state = State(graphs=graphs, fetch=fetch)
    seen: list[ev.Entry] = []
    for item in history:
        _, at, event = item
        if isinstance(event, ev.Rewound):
            state = rewound(state, [x for x in seen if x[0] <= event.upto], event, at)
        else:
            evolve(state, event, at)
        seen.append(item)
    return state


def rewound(state: State, prefix: list[ev.Entry], event: ev.Rewound, at: float) -> State:
    """The state after a rewind: the context of the prefix, the visit numbers and the spending of now."""
    earlier = replay(prefix, state.graphs, state.fetch)
    root, old = earlier.scopes[""], state.scopes[""]
    root.visits = dict(old.visits)
    root.cursor, root.visit, root.flight, root.wait, root.fork = event.node, 0, None, None, None
    root.asked = None
    earlier.scopes = {"": root}
    earlier.todo, earlier.active, earlier.running, earlier.pure_steps = {}, {}, 0, 0
    earlier.wall, earlier.last_at, earlier.steps, earlier.lost = state.wall, at, state.steps, state.lost
    earlier.work, earlier.worked = state.work, state.worked
    earlier.limits, earlier.reached, earlier.budget_wait = state.limits, state.reached, state.budget_wait
    earlier.definition, earlier.graph = state.definition, state.graph
    earlier.status, earlier.stopping, earlier.ended, earlier.reason = "running", "", False, ""
    _phase(earlier, root, Phase.READY)
    return earlier


def _count_wall(state: State, event: ev.Event, at: float) -> None:
    """Add the time since the last event, unless nobody worked: a person was waited for, or the owner was gone."""
    gone = isinstance(event, ev.OwnerChanged | ev.EffectLost) and state.running > 0
    if state.status == "running" and not gone and at > state.last_at and not state.waits_for_person():
        state.wall += at - state.last_at
    state.last_at = max(at, state.last_at)


def _phase(state: State, scope: Scope, phase: Phase) -> None:
    if (scope.phase is Phase.RUNNING) != (phase is Phase.RUNNING):
        state.running += 1 if phase is Phase.RUNNING else -1
    scope.phase = phase
    if phase in _OVER:
        state.active.pop(scope.path, None)
    else:
        state.active[scope.path] = None
    if phase in _TODO:
        state.todo[scope.path] = None
    else:
        state.todo.pop(scope.path, None)


def _enter(scope: Scope, node: str, visit: int) -> None:
    if scope.cursor != node:
        raise KeyError(f"{node} is not where the scope stands ({scope.cursor})")
    if scope.visit != visit:
        scope.visit = scope.visits[node] = visit
        scope.first_effect_at = 0.0
        scope.tries, scope.asked = [], None


def _leave(state: State, scope: Scope, target: str) -> None:
    scope.cursor, scope.visit, scope.flight, scope.wait, scope.fork = target, 0, None, None, None
    scope.asked = None
    _phase(state, scope, Phase.READY)


def _on_created(state: State, e: ev.RunCreated, at: float) -> None:
    state.run, state.root, state.key, state.workflow = e.run, e.root, e.key, e.workflow
    state.definition, state.workspace, state.parent, state.depth = e.definition, e.workspace, e.parent, e.depth
    state.params, state.sources = e.params, e.sources
    state.graph = state.graphs(e.definition)
    state.limits, state.agents = dict(e.limits), e.agents
    root = Scope("", writes=dict(e.context), cursor=state.graph.start)
    state.scopes[""] = root
    state.status, state.created_at = "running", at
    _phase(state, root, Phase.READY)


def _on_forked(state: State, e: ev.Forked, at: float) -> None:
    state.run = state.root = e.as_run
    state.key, state.workspace, state.parent, state.depth = e.key, e.workspace, None, 0
    state.scopes[""].writes.update(e.values)
    state.created_at, state.wall, state.steps, state.lost = at, 0.0, 0, 0
    state.work, state.worked = 0.0, []
    state.status, state.stopping = "running", ""
    if e.limits:
        state.limits, state.reached, state.budget_wait = dict(e.limits), {}, None


def _on_owner(state: State, e: ev.OwnerChanged, at: float) -> None:
    """Nothing changes but who walks; the journal keeps it for people."""


def _on_passed(state: State, e: ev.StepPassed, at: float) -> None:
    scope = state.scopes[e.scope]
    _enter(scope, e.node, e.visit)
    scope.writes.update(e.writes)
    state.pure_steps += 1
    state.steps += 1
    scope.cursor, scope.visit = e.next, 0
    del state.todo[e.scope]
    state.todo[e.scope] = None


def _on_started(state: State, e: ev.EffectStarted, at: float) -> None:
    scope = state.scopes[e.scope]
    _enter(scope, e.node, e.visit)
    scope.wait = None
    if scope.asked is None:
        scope.asked = VisitRequest(e.request, e.policy)
    scope.flight = EffectInFlight(
        e.key, ordinal=e.ordinal, attempt=e.attempt, entry=e.entry, since=at, rung=e.rung, model=e.model, level=e.level
    )
    scope.first_effect_at = scope.first_effect_at or at
    state.pure_steps = 0
    _phase(state, scope, Phase.RUNNING)


def _on_observed(state: State, e: ev.EffectObserved, at: float) -> None:
    """A session is remembered, so that an interrupted turn is resumed in it; the rest is for people."""
    scope = state.scopes.get(e.scope)
    if scope is not None and scope.flight is not None and scope.flight.key == e.key and "session" in e.data:
        scope.flight.session = e.data["session"]


def _flight(state: State, path: str, key: str) -> tuple[Scope, EffectInFlight]:
    scope = state.scopes[path]
    if scope.flight is None or scope.flight.key != key or scope.phase is not Phase.RUNNING:
        raise KeyError(f"effect {key} is not in flight")
    return scope, scope.flight


def _on_finished(state: State, e: ev.EffectFinished, at: float) -> None:
    scope, flight = _flight(state, e.scope, e.key)
    flight.outputs, flight.finished_at = e.outputs, at
    state.work += add_span(state.worked, at - (e.seconds or max(0.0, at - flight.since)), at)
    flight.failure = ev.Failure(**e.failure) if e.failure else None
    if flight.failure is not None and flight.rung:
        scope.tries.append(_try(flight, flight.failure, at))
    _phase(state, scope, Phase.FINISHED)


def _try(flight: EffectInFlight, failure: ev.Failure, at: float) -> FailedAttempt:
    """A failed turn as the ladder counts it; a class this version does not know is a crash."""
    kind = _KINDS.get(failure.kind, FailureKind.CRASH)
    return FailedAttempt(
        kind,
        rung=flight.rung,
        model=flight.model,
        level=flight.level,
        attempt=flight.attempt,
        at=at,
        detail=Detail.from_json(failure.detail),
    )


def _on_lost(state: State, e: ev.EffectLost, at: float) -> None:
    scope, _ = _flight(state, e.scope, e.key)
    state.lost += 1
    _phase(state, scope, Phase.LOST)


def _on_cancel(state: State, e: ev.CancelRequested, at: float) -> None:
    keys = set(e.keys)
    for _scope, flight in state.flights():
        flight.cancelled = flight.cancelled or flight.key in keys


def _on_done(state: State, e: ev.StepDone, at: float) -> None:
    scope = state.scopes[e.scope]
    _enter(scope, e.node, e.visit)
    if scope.flight is not None:
        scope.writes.update(scope.flight.outputs)
    if scope.fork is not None:
        _join(state, scope, scope.fork)
    scope.writes.update(e.writes)
    if e.defaulted and not e.accepted:
        scope.defaulted.append(f"{e.scope}/{e.node}" if e.scope else e.node)
    state.steps += 1
    _leave(state, scope, e.next)


def _join(state: State, scope: Scope, fork: Construct) -> None:
    """Give the parent what its members came to, in their order, and drop the members."""
    node = state.graph.nodes[fork.node]
    results: dict[str, Json] = {}
    for path in fork.members:
        member = state.scopes[path]
        if member.status == "done":
            outputs = {k: state.resolve(v) for k, v in member.writes.items()}
            results[member.name] = {"status": "done", "outputs": outputs}
        else:
            results[member.name] = {"status": member.status, "error": member.error}
        scope.defaulted += [d for d in member.defaulted if d not in scope.defaulted]
        if isinstance(node, Parallel):
            scope.writes.update({k: member.writes[k] for k in node.export if k in member.writes})
    _drop(state, fork)
    scope.writes[fork.node] = list(results.values()) if isinstance(node, Map) else results


def _drop(state: State, fork: Construct) -> None:
    for path in fork.members:
        state.todo.pop(path, None)
        state.active.pop(path, None)
        del state.scopes[path]


def _on_failed(state: State, e: ev.StepFailed, at: float) -> None:
    scope = state.scopes[e.scope]
    _enter(scope, e.node, e.visit)
    if scope.fork is not None:
        _drop(state, scope.fork)
    scope.error = {"node": e.node, **e.failure}
    state.steps += 1
    if e.next is not None:
        scope.writes["error"] = scope.error
        _leave(state, scope, e.next)
        return
    scope.flight, scope.wait, scope.fork, scope.asked = None, None, None, None
    _phase(state, scope, Phase.FAILED)


def _on_wait(state: State, e: ev.WaitOpened, at: float) -> None:
    wait = WaitState(e.id, kind=e.kind, due_at=e.due_at, body=e.body, opened_at=at)
    if e.kind == "budget":
        state.budget_wait = wait
        return
    scope = state.scopes[e.scope]
    _enter(scope, e.node, e.visit)
    scope.wait = wait
    state.pure_steps = 0
    _phase(state, scope, Phase.WAITING)


def _on_wait_closed(state: State, e: ev.WaitClosed, at: float) -> None:
    if state.budget_wait is not None and state.budget_wait.id == e.id:
        state.budget_wait = None
        if e.how == "due":  # a new day
            state.reached = {unit: limit for unit, limit in state.reached.items() if not unit.startswith(PER_DAY)}
        return
    scope = state.scopes[e.scope]
    if scope.wait is None or scope.wait.id != e.id:
        raise KeyError(f"wait {e.id} is not open")
    scope.wait.how, scope.wait.value = e.how, e.value
    for start, end in e.worked:
        state.work += add_span(state.worked, start, end)
    _phase(state, scope, Phase.CLOSED)


def _on_scopes(state: State, e: ev.ScopesForked, at: float) -> None:
    scope = state.scopes[e.scope]
    _enter(scope, e.node, e.visit)
    node = state.graph.nodes[e.node]
    paths = [scope_path(e.scope, e.node, e.visit, m) for m in e.members]
    items: list[Json] = []
    first = state.created
    state.created += len(paths)
    if isinstance(node, Map):
        items = resolve_path(lambda name: state.lookup(e.scope, name), node.over)
    for i, (path, member) in enumerate(zip(paths, e.members, strict=True)):
        inputs: dict[str, Json] = {}
        entry = ""
        if isinstance(node, Map):
            inputs, entry = {node.as_: items[i], "index": i}, node.body
        elif isinstance(node, Parallel):
            entry = node.branches[member]
        state.scopes[path] = Scope(
            path, name=member, parent=scope, number=first + i, inputs=inputs, cursor=entry, phase=Phase.PENDING
        )
    scope.fork = Construct(e.node, e.visit, paths, list(reversed(paths)))
    state.pure_steps = 0
    _phase(state, scope, Phase.FORKED)
    state.todo[e.scope] = None


def _parent_fork(state: State, path: str) -> tuple[Scope, Scope, Construct]:
    scope = state.scopes[path]
    if scope.parent is None or scope.parent.fork is None:
        raise KeyError(f"scope {path} has no construct")
    return scope, scope.parent, scope.parent.fork


def _take(waiting: list[str], path: str) -> None:
    if waiting[-1] == path:
        waiting.pop()
    else:
        waiting.remove(path)


def _on_scope_started(state: State, e: ev.ScopeStarted, at: float) -> None:
    scope, _parent, fork = _parent_fork(state, e.scope)
    _take(fork.waiting, e.scope)
    fork.live += 1
    _phase(state, scope, Phase.READY)


def _on_scope_ended(state: State, e: ev.ScopeEnded, at: float) -> None:
    scope, parent, fork = _parent_fork(state, e.scope)
    if scope.phase is Phase.PENDING:
        _take(fork.waiting, e.scope)
    else:
        fork.live -= 1
    fork.ended += 1
    scope.status, scope.error = e.status, e.error
    if e.status == "failed" and fork.failed is None:
        fork.failed = e.scope
    if scope.fork is not None:
        _drop(state, scope.fork)
    scope.flight, scope.wait, scope.fork = None, None, None
    _phase(state, scope, Phase.ENDED)
    state.todo[parent.path] = None


def _on_child(state: State, e: ev.ChildStarted, at: float) -> None:
    scope = state.scopes[e.scope]
    _enter(scope, e.node, e.visit)
    scope.wait = WaitState(e.child, kind="child", due_at=None, body={"key": e.key}, opened_at=at)
    state.pure_steps = 0
    _phase(state, scope, Phase.WAITING)


def _on_stop(state: State, e: ev.StopRequested, at: float) -> None:
    state.stopping = "now" if e.now else (state.stopping or "boundary")


def _on_stopped(state: State, e: ev.RunStopped, at: float) -> None:
    state.status, state.stopping = "stopped", ""


def _on_resumed(state: State, e: ev.RunResumed, at: float) -> None:
    state.stopping, state.reason, state.ended, state.handoff = "", "", False, False
    if state.status == "failed":
        root = state.scopes[""]
        root.visit, root.error, root.asked = 0, None, None
        _phase(state, root, Phase.READY)
    state.status = "running"


def _on_run_finished(state: State, e: ev.RunFinished, at: float) -> None:
    state.status, state.reason, state.ended = e.status, e.reason, e.ended
    state.degraded, state.ended_at, state.handoff = e.degraded, at, e.handoff
    _phase(state, state.scopes[""], Phase.ENDED)


def _on_rejected(state: State, e: ev.SignalRejected, at: float) -> None:
    """Kept for people."""


def _on_reached(state: State, e: ev.BudgetReached, at: float) -> None:
    state.reached[e.unit] = e.limit


def _on_raised(state: State, e: ev.BudgetRaised, at: float) -> None:
    state.limits[e.unit] = e.limit
    state.reached.pop(e.unit, None)


def _on_adopted(state: State, e: ev.DefinitionAdopted, at: float) -> None:
    """Running attempts finish under the old definition; what a visit asks for is made again with its next attempt."""
    state.definition = e.definition
    state.graph = state.graphs(e.definition)
    for scope in state.scopes.values():
        scope.asked = None


_HANDLERS: dict[type[ev.Event], Callable[[State, Any, float], None]] = {
    ev.RunCreated: _on_created, ev.Forked: _on_forked, ev.OwnerChanged: _on_owner, ev.StepPassed: _on_passed,
    ev.EffectStarted: _on_started, ev.EffectObserved: _on_observed, ev.EffectFinished: _on_finished,
    ev.EffectLost: _on_lost, ev.CancelRequested: _on_cancel, ev.StepDone: _on_done, ev.StepFailed: _on_failed,
    ev.WaitOpened: _on_wait, ev.WaitClosed: _on_wait_closed, ev.ScopesForked: _on_scopes,
    ev.ScopeStarted: _on_scope_started, ev.ScopeEnded: _on_scope_ended, ev.ChildStarted: _on_child,
    ev.StopRequested: _on_stop, ev.RunStopped: _on_stopped, ev.RunResumed: _on_resumed,
    ev.RunFinished: _on_run_finished, ev.SignalRejected: _on_rejected, ev.BudgetReached: _on_reached,
    ev.BudgetRaised: _on_raised, ev.DefinitionAdopted: _on_adopted,
}  # fmt: skip
