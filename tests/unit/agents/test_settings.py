"""Which backend and model a node gets: its own word first, then the run's, then the person's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bailiwick.agents import registry
from bailiwick.agents.settings import AgentSettings, ModelChoice
from bailiwick.engine.graph import Work
from bailiwick.errors import UsageError

if TYPE_CHECKING:
    from bailiwick.ids import Json

SETTINGS = AgentSettings(backend="claude", power={"claude": {"high": "opus", "low": "haiku"}, "codex": {"high": "big"}})


def _node(**spec: Json) -> Work:
    return Work(id="a", type="agent", spec=spec)


@pytest.mark.parametrize(
    ("spec", "choice"),
    [
        ({}, ModelChoice("claude", (None,))),
        ({"backend": "codex"}, ModelChoice("codex", (None,))),
        ({"model": "opus"}, ModelChoice("claude", ("opus",))),
        ({"models": ["a", "b"]}, ModelChoice("claude", ("a", "b"))),
        ({"power": "low"}, ModelChoice("claude", ("haiku",))),
        ({"power": "high", "backend": "codex"}, ModelChoice("codex", ("big",))),
        ({"power": "medium"}, ModelChoice("claude", (None,))),
        ({"power": "low", "model": "opus"}, ModelChoice("claude", ("opus",))),
    ],
)
def test_a_nodes_own_word_comes_first(spec: dict[str, Json], choice: ModelChoice) -> None:
    """Pin, chain, tier, default: in this order."""
    assert SETTINGS.choose(_node(**spec)) == choice


def test_a_run_keeps_the_agent_it_was_started_with() -> None:
    """Whoever goes on with it, in whatever environment, asks the same agent."""
    kept = SETTINGS.for_run({"backend": "simulate", "script": "/x/script.yaml", "version": 1})
    assert (kept.backend, kept.script) == ("simulate", Path("/x/script.yaml"))
    assert kept.choose(_node(backend="codex")).backend == "simulate", "simulated means no real agent at all"
    assert SETTINGS.for_run({}) is SETTINGS


def test_the_ladder_of_a_node_knows_its_chain_and_its_money() -> None:
    """`models`, `on_cap` and `max_usd` are the node's."""
    policy = SETTINGS.ladder(_node(models=["a", "b", "c"], on_cap="next_model", max_usd=2.5))
    assert (policy.models, policy.on_cap, policy.reserve_usd) == (3, "next_model", 2.5)


def test_a_backend_outside_the_allowed_ones_is_refused() -> None:
    """An organisation's list is a limit, not a preference."""
    with pytest.raises(UsageError, match="not among the allowed"):
        registry.find("command", AgentSettings(allowed=("claude",)))


@pytest.mark.parametrize("name", sorted(registry.TABLE))
def test_every_backend_of_the_table_can_be_made(name: str) -> None:
    """A wrong entry would show only when somebody asks for it."""
    settings = AgentSettings(command="true", endpoints={"openai": {"url": "http://127.0.0.1:9/v1"}})
    assert registry.find(name, settings).name == name
