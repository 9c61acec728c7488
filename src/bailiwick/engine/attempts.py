"""What follows a failed turn of an agent: the ladder's rung as an action, defaults, questions. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import assert_never

from bailiwick.engine import events as ev
from bailiwick.engine.commands import OpenWait
from bailiwick.engine.graph import Work
from bailiwick.engine.retry_agent import (
    PERSON,
    AttemptPlan,
    RetriesExhausted,
    RetryPause,
    RetryPolicy,
    feedback_of,
    next_rung,
)
from bailiwick.engine.rules import Action
from bailiwick.engine.state import EffectInFlight, Scope, State
from bailiwick.ids import Json, wait_id
from bailiwick.ids import place as written


def pause_id(scope: Scope, flight: EffectInFlight) -> str:
    """The name of the wait after an attempt."""
    return wait_id(scope.path, scope.cursor, scope.visit, 10_000 + flight.ordinal * 1000 + flight.attempt)


def verdict(state: State, scope: Scope, node: Work, policy: RetryPolicy) -> AttemptPlan | Action:
    """The next attempt at once, a wait, or the end of the ladder."""
    flight = scope.flight
    if flight is None or not scope.tries:
        return ev.StepFailed(scope.path, node.id, scope.visit, asdict(ev.Failure("lost", "nothing to go on with")))
    if flight.failure is not None and flight.failure.kind in ("cancelled", "no_backend", "crashed"):
        return ev.StepFailed(
            scope.path, node=node.id, visit=scope.visit, failure=asdict(flight.failure), next=node.on_error
        )
    rung = next_rung(scope.tries, policy, flight.key)
    match rung:
        case AttemptPlan():
            return rung
        case RetryPause():
            return _pause(scope, node, flight, rung)
        case RetriesExhausted():
            return _exhausted(state, scope, node=node, policy=policy, why=rung.why)
        case never:
            assert_never(never)


def planned(scope: Scope, policy: RetryPolicy) -> AttemptPlan:
    """How the attempt after a pause is made: from the same failures the same plan."""
    key = scope.flight.key if scope.flight else ""
    rung = next_rung(scope.tries, policy, key) if scope.tries else AttemptPlan()
    match rung:
        case AttemptPlan():
            return rung
        case RetryPause():
            return rung.plan
        case RetriesExhausted():
            last = scope.tries[-1]
            return AttemptPlan("again", last.model, last.level)
        case never:
            assert_never(never)


def resumed(scope: Scope, flight: EffectInFlight) -> AttemptPlan:
    """The plan of an attempt that was cut off: the same, in its own session where that is known."""
    last = scope.tries[-1].detail if scope.tries else None
    session = flight.session or (last.session if last and flight.rung in ("reask", "compact") else None)
    problem = last.problem if last and flight.rung in ("reask", "reframe") else ""
    return AttemptPlan(
        flight.rung,
        model=flight.model,
        level=flight.level,
        session=session,
        problem=problem,
        feedback=feedback_of(scope.tries),
    )


def _pause(scope: Scope, node: Work, flight: EffectInFlight, pause: RetryPause) -> Action:
    body: dict[str, Json] = {"after": flight.attempt, "failure": pause.why, "class": str(scope.tries[-1].kind)}
    if pause.kind == PERSON:
        where = written(scope.path, node.id)
        body |= {"question": f"'{where}' can't go on: {pause.why}. Try again?", "choices": ["retry", "fail"]}
    return OpenWait(
        scope.path,
        node=node.id,
        visit=scope.visit,
        id=pause_id(scope, flight),
        kind=pause.kind,
        ordinal=flight.ordinal,
        seconds=pause.seconds,
        at=pause.until,
        body=body,
    )


def _exhausted(state: State, scope: Scope, node: Work, policy: RetryPolicy, why: str) -> Action:
    """`default` carries the run on, degraded; `ask` parks; `fail` goes the node's `on_error` way."""
    flight = scope.flight
    otherwise = "ask" if state.graph.version else "fail"
    choice = node.on_exhausted or ("default" if policy.use_defaults else otherwise)
    if choice == "default" and not _may_default(state, node):
        choice = "ask"
    match choice:
        case "default":
            return default(scope, node)
        case "fail":
            failure = flight.failure if flight and flight.failure else ev.Failure("exhausted", why)
            return ev.StepFailed(
                scope.path, node=node.id, visit=scope.visit, failure=asdict(failure), next=node.on_error
            )
        case _:
            where = written(scope.path, node.id)
            choices = ["retry", "default", "fail"] if _may_default(state, node) else ["retry", "fail"]
            body: dict[str, Json] = {"question": f"'{where}' has no answer: {why}. What now?", "choices": choices}
            name = pause_id(scope, flight) if flight else ""
            return OpenWait(scope.path, node=node.id, visit=scope.visit, id=name, kind="exhausted", body=body)


def _may_default(state: State, node: Work) -> bool:
    """Files with a version default only what declares a default; without one, null stands in."""
    return not state.graph.version or (bool(node.outputs) and all(o.declared for o in node.outputs))


def default(scope: Scope, node: Work) -> ev.StepDone:
    """The declared outputs instead of an answer; the scope is degraded from here on."""
    writes = {output.key: output.default for output in node.outputs}
    return ev.StepDone(
        scope.path,
        node=node.id,
        visit=scope.visit,
        next=node.next or "",
        writes=writes,
        defaulted=True,
        accepted=node.accept_defaulted,
    )
