"""Walks over a chain, all of them: whatever happens on each of one to four models, the policy goes the same way."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest

from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.engine.retry_agent import (
    AttemptPlan,
    FailedAttempt,
    RetriesExhausted,
    RetryPause,
    RetryPolicy,
    next_rung,
)
from bailiwick.routing.walk import Accept
from tests.unit.routing.test_walk import HAPPENINGS, play, walk

NOW = 100.0
FAILURES = {
    "reject": (FailureKind.REJECTED, Detail(problem="vague")),
    "error": (FailureKind.AUTH, Detail(evidence="sign in")),
    "verifier error": (FailureKind.BAD_OUTPUT, Detail(evidence="verifier error: no JSON", unjudged=True)),
    "check fails": (FailureKind.REJECTED, Detail(problem="line 9 is not there")),
    "skipped": (FailureKind.HELD, Detail(retry_after=30.0)),
}
"""What a call or a node tells the policy when this happens on a model."""
CALL = RetryPolicy(deadline=NOW + 20.0, retry_rejected=False)
"""Somebody waits for the answer, for less time than a model that is skipped is left alone."""


@dataclass(frozen=True)
class ChainWalk:
    """Which models were asked, with which feedback, and what came in the end."""

    models: tuple[int, ...]
    feedback: tuple[str, ...]
    end: AttemptPlan | RetryPause | RetriesExhausted | None


def walked(happenings: tuple[str, ...], policy: RetryPolicy) -> ChainWalk:
    """Let these things happen on the models in turn; no end where one was accepted."""
    tries: list[FailedAttempt] = []
    plan = AttemptPlan()
    asked: list[AttemptPlan] = []
    for number, happening in enumerate(happenings, 1):
        asked.append(plan)
        if happening == "accept":
            step = None
            break
        kind, detail = FAILURES[happening]
        tries.append(
            FailedAttempt(
                kind, rung=plan.rung, model=plan.model, level=plan.level, attempt=number, at=NOW, detail=detail
            )
        )
        step = next_rung(tries, policy, "key")
        if not isinstance(step, AttemptPlan):
            break
        plan = step
    return ChainWalk(tuple(one.model for one in asked), tuple(one.feedback for one in asked), step)


def _lines(said: tuple[str, ...]) -> str:
    return "\n".join(f"Prior attempt feedback: {one}" for one in said)


@pytest.mark.parametrize("models", [1, 2, 3, 4])
def test_the_policy_of_a_call_walks_as_the_walk_of_calls_does(models: int) -> None:
    """1,554 walks: the same models, told the same, and an end where the other has one."""
    policy = RetryPolicy(models=models, deadline=CALL.deadline, retry_rejected=False)
    for happenings in product(HAPPENINGS, repeat=models):
        _, begun, end = play(walk(*"abcd"[:models]), happenings)
        found = walked(happenings, policy)
        assert found.models == tuple(one.tier for one in begun), happenings
        assert found.feedback == tuple(_lines(one.feedback) for one in begun), happenings
        assert (found.end is None) == isinstance(end, Accept), happenings
        assert found.end is None or isinstance(found.end, RetriesExhausted), happenings
