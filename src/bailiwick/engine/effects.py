"""What follows an effect: its start, its end, its loss, the pause before it is tried again. Pure."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import assert_never

from bailiwick.engine import attempts as turns
from bailiwick.engine import events as ev
from bailiwick.engine.commands import OpenWait, StartEffect
from bailiwick.engine.graph import Wait, Work
from bailiwick.engine.render import RenderFailed
from bailiwick.engine.retry_agent import AttemptPlan
from bailiwick.engine.retry_script import Again, after_failure, after_poll
from bailiwick.engine.rules import Action, Rules, at_visit, fail, held_back
from bailiwick.engine.state import Scope, State
from bailiwick.ids import Json, effect_key, wait_id
from bailiwick.ids import place as written


def begin(state: State, rules: Rules, scope: Scope, node: Work | Wait, visit: int, ordinal: int) -> list[Action]:
    """Start an effect for the first time, unless a ceiling that it counts against was met. Raises `RenderFailed`."""
    key = effect_key(state.run, scope.path, node=node.id, visit=visit, ordinal=ordinal)
    plan = AttemptPlan() if rules.climbs(node) else None
    return _start(
        state,
        rules,
        scope=scope,
        node=node,
        start=StartEffect(scope.path, node=node.id, visit=visit, ordinal=ordinal, attempt=1, key=key, plan=plan),
    )


def again(
    state: State, rules: Rules, scope: Scope, attempt: int, entry: int, plan: AttemptPlan | None = None
) -> list[Action]:
    """The same effect with the same key: a further attempt, or a re-entry of the last one."""
    node, flight = state.graph.nodes[scope.cursor], scope.flight
    if flight is None or not isinstance(node, Work | Wait):
        return [fail(scope, node, visit=scope.visit, kind="lost", message="nothing to go on with")]
    start = StartEffect(
        scope.path,
        node=node.id,
        visit=scope.visit,
        ordinal=flight.ordinal,
        attempt=attempt,
        key=flight.key,
        entry=entry,
        plan=plan,
    )
    try:
        return _start(state, rules, scope=scope, node=node, start=start)
    except RenderFailed as error:
        return [fail(scope, node, visit=scope.visit, kind="template", message=str(error))]


def _start(state: State, rules: Rules, scope: Scope, node: Work | Wait, start: StartEffect) -> list[Action]:
    """What a visit asks for is made with its first effect; every further one asks for the same."""
    units = rules.units(scope, node)
    if held_back(state, units):
        return []
    if scope.asked is not None:
        return [replace(start, request=state.resolve(scope.asked.request), units=units, fixes=False)]
    made = rules.prepare(node, at_visit(state, scope, node, start.visit))
    policy = rules.policy(node).to_json() if isinstance(node, Work) and rules.climbs(node) else {}
    return [replace(start, request=made.value, notes=made.missing, units=units, policy=policy)]


def lost(state: State, rules: Rules, scope: Scope) -> list[Action]:
    """An effect that may or may not have happened: again with the same key, ask, or fail, as the node says."""
    node, flight = state.graph.nodes[scope.cursor], scope.flight
    if flight is None:
        return []
    policy = node.on_unknown if isinstance(node, Work) else "again"
    if policy == "fail":
        return [
            fail(
                scope,
                node,
                visit=scope.visit,
                kind="unknown",
                message="cut off by a crash; it is not known whether it happened",
            )
        ]
    if policy == "ask":
        name = wait_id(scope.path, node.id, scope.visit, 1000 + flight.entry)
        where = written(scope.path, node.id)
        question = f"'{where}' was cut off; it may or may not have happened. Run it again?"
        body: dict[str, Json] = {"question": question, "choices": ["again", "fail"]}
        return [OpenWait(scope.path, node=node.id, visit=scope.visit, id=name, kind="unknown", body=body)]
    return reenter(state, rules, scope)


def reenter(state: State, rules: Rules, scope: Scope) -> list[Action]:
    """The attempt that was cut off, once more; a turn goes on in its own session where that is known."""
    flight = scope.flight
    if flight is None:
        return []
    plan = turns.resumed(scope, flight) if flight.rung else None
    return again(state, rules, scope=scope, attempt=flight.attempt, entry=flight.entry + 1, plan=plan)


def finished(state: State, rules: Rules, scope: Scope) -> list[Action]:
    """Leave the node, try again after a pause, or fail."""
    node, flight = state.graph.nodes[scope.cursor], scope.flight
    if flight is None:
        return []
    if flight.failure is None:
        return [ev.StepDone(scope.path, node.id, scope.visit, node.next or "")]
    if isinstance(node, Work) and rules.climbs(node):
        return _climb(state, rules, scope, node)
    if isinstance(node, Wait) and node.poll is not None:
        verdict = after_poll(flight, node.poll, scope.first_effect_at)
    else:
        verdict = after_failure(flight, node.retry if isinstance(node, Work) else None)
    match verdict:
        case Again():
            body: dict[str, Json] = {"after": flight.attempt, "failure": flight.failure.message}
            return [
                OpenWait(
                    scope.path,
                    node=node.id,
                    visit=scope.visit,
                    id=turns.pause_id(scope, flight),
                    kind=verdict.kind,
                    ordinal=flight.ordinal,
                    seconds=verdict.seconds,
                    latest=verdict.latest,
                    body=body,
                )
            ]
        case ev.Failure() as failure:
            return [
                ev.StepFailed(scope.path, node=node.id, visit=scope.visit, failure=asdict(failure), next=node.on_error)
            ]
        case never:
            assert_never(never)


def _climb(state: State, rules: Rules, scope: Scope, node: Work) -> list[Action]:
    """The rung after a failed turn: another attempt at once, or what `turns` says."""
    flight = scope.flight
    verdict = turns.verdict(state, scope, node, rules.knobs(scope, node))
    if isinstance(verdict, AttemptPlan) and flight is not None:
        return again(state, rules, scope=scope, attempt=flight.attempt + 1, entry=1, plan=verdict)
    return [verdict] if not isinstance(verdict, AttemptPlan) else []


def resumed(state: State, rules: Rules, scope: Scope) -> list[Action]:
    """After a pause of a script (retry) or of a turn (retry, cap, outage): the next attempt."""
    node, flight = state.graph.nodes[scope.cursor], scope.flight
    if flight is None:
        return []
    plan = turns.planned(scope, rules.knobs(scope, node)) if isinstance(node, Work) and rules.climbs(node) else None
    return again(state, rules, scope=scope, attempt=flight.attempt + 1, entry=1, plan=plan)


def answered(state: State, rules: Rules, scope: Scope) -> list[Action]:
    """After a question about an effect: again, its default, or its failure."""
    node, wait, flight = state.graph.nodes[scope.cursor], scope.wait, scope.flight
    if wait is None or flight is None:
        return []
    if wait.value == "again":
        return reenter(state, rules, scope)
    if wait.how == "due" or wait.value == "retry":
        return resumed(state, rules, scope)
    if wait.value == "default" and isinstance(node, Work):
        return [turns.default(scope, node)]
    if flight.failure is not None:
        return [
            ev.StepFailed(
                scope.path, node=node.id, visit=scope.visit, failure=asdict(flight.failure), next=node.on_error
            )
        ]
    return [
        fail(
            scope,
            node,
            visit=scope.visit,
            kind="unknown",
            message="cut off by a crash; a person chose not to run it again",
        )
    ]
