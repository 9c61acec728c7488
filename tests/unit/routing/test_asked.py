"""One shape for everything that was asked: routed calls and agent nodes, each once, unknown as unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.engine.failures import FailureKind
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.routing.asked import ModelAttempt, asked_since
from tests.unit.routing.records import NOW, agent_log, attempt, call, routed, walked, with_store


def test_attempts_of_calls_and_of_agent_nodes_stand_side_by_side(tmp_path: Path) -> None:
    """A model is as good as all that it did, whoever asked it."""

    async def look(store: Store) -> list[ModelAttempt]:
        await routed(store, call(), [attempt(input_tokens=7, cost=0.25, warm_start=False)])
        await walked(store, "r1", [agent_log()], workflow="fix")
        return await asked_since(store, None)

    assert with_store(tmp_path, look) == [
        ModelAttempt("review", "small", "local", "escalate", NOW + 1, 900, True, 7, None, 0.25, "c-1"),
        ModelAttempt("workflow fix", "claude-sonnet", "subagent", "accept_unverified", NOW, 2500, False, 10, 5, 0.5),
    ]


def test_a_session_that_counts_up_is_counted_once(tmp_path: Path) -> None:
    """Some agents tell the total of a session each time; what came before a date still has to be taken off."""
    logs = [
        agent_log(session="s", usage={"input": 100, "output": 10, "usd": 1.0, "cumulative": True}),
        agent_log(session="s", usage={"input": 150, "output": 30, "usd": 1.5, "cumulative": True}),
        agent_log(session="t", usage={"input": 8, "output": 1, "usd": 0.25, "cumulative": True}),
    ]

    async def look(store: Store) -> tuple[list[ModelAttempt], list[ModelAttempt]]:
        await walked(store, "r1", logs)
        return await asked_since(store, None), await asked_since(store, NOW + 1)

    everything, later = with_store(tmp_path, look)
    assert [(one.input_tokens, one.output_tokens, one.cost) for one in everything] == [
        (100, 10, 1.0),
        (50, 20, 0.5),
        (8, 1, 0.25),
    ]
    assert later == everything[1:]


def test_a_node_with_a_chain_tells_its_skill_tier_and_verdict(tmp_path: Path) -> None:
    """What a local model gave and a verifier rejected is no error of the model's server, and no acceptance."""
    log = agent_log(skill="review", candidate="small/a", tier="local", verdict="escalate", warm_start=False)

    async def look(store: Store) -> list[ModelAttempt]:
        await walked(store, "r1", [log, {"stderr": "a script is no model"}])
        return await asked_since(store, None)

    (found,) = with_store(tmp_path, look)
    assert (found.subject, found.model, found.tier, found.verdict, found.cold) == (
        "review",
        "small/a",
        "local",
        "escalate",
        True,
    )


@pytest.mark.parametrize(
    ("usage", "failure", "cost"),
    [
        ({}, None, None),
        ({"input": 3, "output": 4}, None, None),
        ({"usd": 0.0}, None, 0.0),
        (None, {"kind": str(FailureKind.RATE_LIMIT), "message": "m"}, 0.0),
        ({}, {"kind": str(FailureKind.BAD_OUTPUT), "message": "m"}, None),
    ],
)
def test_an_unknown_cost_is_none_unless_no_model_answered(
    tmp_path: Path, usage: Json, failure: Json, cost: float | None
) -> None:
    """Unknown is not zero; a request that was turned away at the door is."""

    async def look(store: Store) -> list[ModelAttempt]:
        await walked(store, "r1", [agent_log(usage=usage, model=None)], failure)
        return await asked_since(store, None)

    (found,) = with_store(tmp_path, look)
    assert (found.cost, found.model) == (cost, "(claude)")
    assert found.verdict == ("error" if failure else "accept_unverified")
