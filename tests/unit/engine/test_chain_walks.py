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

HAPPENINGS = ("accept", "reject", "error", "verifier error", "check fails", "skipped")
NOW = 100.0
FAILURES = {
    "reject": (FailureKind.REJECTED, Detail(problem="vague")),
    "error": (FailureKind.AUTH, Detail(evidence="sign in")),
    "verifier error": (FailureKind.BAD_OUTPUT, Detail(evidence="verifier error: no JSON", unjudged=True)),
    "check fails": (FailureKind.REJECTED, Detail(problem="line 9 is not there")),
    "skipped": (FailureKind.HELD, Detail(retry_after=30.0)),
}
"""What a call or a node tells the policy when this happens on a model."""
DEADLINE = NOW + 20.0
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


def reached(happenings: tuple[str, ...]) -> tuple[str, ...]:
    """What happens before nobody is asked any more."""
    return happenings[: happenings.index("accept") + 1] if "accept" in happenings else happenings


@pytest.mark.parametrize("models", [1, 2, 3, 4])
def test_every_walk_of_a_call_ends_as_the_contract_says(models: int) -> None:
    """1,554 walks: who is asked, what they are told and the end follow from the list alone."""
    policy = RetryPolicy(models=models, deadline=DEADLINE, retry_rejected=False)
    for happenings in product(HAPPENINGS, repeat=models):
        found, there = walked(happenings, policy), reached(happenings)
        assert found.models == tuple(range(len(there))), happenings
        for number, told in enumerate(found.feedback):
            heard = [FAILURES[before][1].problem for before in there[:number]]
            assert told == "\n".join(f"Prior attempt feedback: {one}" for one in heard if one), happenings
        if "accept" in happenings:
            assert found.end is None, happenings
        else:
            assert isinstance(found.end, RetriesExhausted), happenings
            assert found.end.late == (happenings[-1] == "skipped"), happenings


def test_a_visit_walks_the_same_way_and_goes_on_where_a_call_ends() -> None:
    """Nobody waits for a run: on its last model it asks again, or waits. Until there both are the same."""
    ends = {"asked again": 0, "waits": 0}
    for models in (1, 2, 3, 4):
        call, visit = RetryPolicy(models=models, deadline=DEADLINE, retry_rejected=False), RetryPolicy(models=models)
        for happenings in product(HAPPENINGS, repeat=models):
            ended, goes_on = walked(happenings, call), walked(happenings, visit)
            assert (ended.models, ended.feedback) == (goes_on.models, goes_on.feedback), happenings
            match goes_on.end:
                case AttemptPlan() as plan:
                    assert (plan.model, plan.rung) == (models - 1, "reframe"), happenings
                    ends["asked again"] += 1
                case RetryPause() as pause:
                    assert pause.kind == ("auth" if happenings[-1] == "error" else "retry"), happenings
                    ends["waits"] += 1
                case _:
                    assert "accept" in happenings
    assert ends == {"asked again": 468, "waits": 312}
