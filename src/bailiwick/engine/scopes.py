"""Parallel and map: giving members a place, ending them, joining. Pure."""

from __future__ import annotations

from dataclasses import asdict

from bailiwick.engine import events as ev
from bailiwick.engine.commands import CancelEffects, Command, StopChild
from bailiwick.engine.graph import Map, Parallel
from bailiwick.engine.state import Construct, Phase, Scope, State
from bailiwick.ids import Json

Action = ev.Event | Command


def step_fork(state: State, scope: Scope) -> list[Action]:
    """Start members while there are places; end all when one failed under `fail_fast`; join when all are over."""
    node, fork = state.graph.nodes[scope.cursor], scope.fork
    if fork is None or not isinstance(node, Parallel | Map):
        return []
    if fork.failed is not None and node.fail_fast:
        return _end_members(state, scope, node, fork)
    if fork.ended == len(fork.members):
        return [ev.StepDone(scope.path, node.id, scope.visit, node.join)]
    if fork.waiting and fork.live < node.max:
        return [ev.ScopeStarted(fork.waiting[-1])]
    return []


def _end_members(state: State, scope: Scope, node: Parallel | Map, fork: Construct) -> list[Action]:
    for path in fork.members:
        member = state.scopes[path]
        actions = cancel(state, member)
        if actions:
            return actions
    if fork.ended < len(fork.members):
        return []
    error: dict[str, Json] = (state.scopes[fork.failed].error if fork.failed else None) or {}
    failure = ev.Failure("member_failed", f"'{fork.failed}' failed: {error.get('message', '')}", error)
    return [ev.StepFailed(scope.path, node=node.id, visit=scope.visit, failure=asdict(failure), next=node.on_error)]


def cancel(state: State, scope: Scope) -> list[Action]:
    """The next actions that end a member and all below it; none while a process of it still has to die."""
    if scope.phase is Phase.ENDED:
        return []
    if scope.fork is not None:
        for path in scope.fork.members:
            actions = cancel(state, state.scopes[path])
            if actions:
                return actions
        if scope.fork.ended < len(scope.fork.members):
            return []
    if scope.phase is Phase.RUNNING and scope.flight is not None:
        if scope.flight.cancelled:
            return []
        keys = [scope.flight.key]
        return [ev.CancelRequested(keys), CancelEffects(tuple(keys))]
    out: list[Action] = []
    if scope.phase is Phase.WAITING and scope.wait is not None:
        if scope.wait.kind == "child":
            out.append(StopChild(scope.wait.id))
        out.append(ev.WaitClosed(scope.path, scope.wait.id, "cancelled"))
    out.append(ev.ScopeEnded(scope.path, "cancelled", {"kind": "cancelled", "message": "a sibling failed"}))
    return out
