"""Which models an agent node goes through, and when its models are all of one backend."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.agents.settings import AgentSettings
from bailiwick.engine.graph import Work
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.routing.leads import NodeChains, SkillRoute, chain_of
from bailiwick.routing.models_file import Models, SkillModels

MODELS = Models(
    verifier="claude-sonnet-4-6",
    default_chain=("ollama/phi4", "claude-opus-4-6"),
    skills={"review": SkillModels(("ollama/devstral", "claude-sonnet-4-6"), line=3)},
    path=Path("/p/models.yaml"),
    default_line=2,
)


DISCIPLINES = {
    "secret": SkillRoute("Keep it here.", local_only=True),
    "own": SkillRoute("Ask these.", chain=("ollama/own", "opus")),
    "review": SkillRoute("Look.", chain=("ollama/never",)),
}


def _node(**spec: Json) -> Work:
    return Work(id="look", next="done", type="agent", spec=spec)


def _chain(
    node: Work, settings: AgentSettings, models: Models = MODELS, asked: str | None = None
) -> list[tuple[str, str]] | None:
    leads = NodeChains(models=lambda: models, discipline=lambda name: DISCIPLINES.get(name, SkillRoute(name)))
    chain = leads.chain(node, settings, asked)
    return None if chain is None else [(one.model, one.backend) for one in chain.candidates]


def test_a_skill_goes_through_its_chain_and_a_node_s_own_models_come_first() -> None:
    """The name of a model tells who is asked."""
    assert _chain(_node(skill="review"), AgentSettings()) == [
        ("ollama/devstral", "openai"),
        ("claude-sonnet-4-6", "claude"),
    ]
    own = _node(skill="review", models=["ollama/phi4", "opus"])
    assert _chain(own, AgentSettings()) == [("ollama/phi4", "openai"), ("opus", "claude")]
    assert _chain(_node(skill="other"), AgentSettings()) == [
        ("ollama/phi4", "openai"),
        ("claude-opus-4-6", "claude"),
    ]


def test_a_model_that_is_named_is_a_chain_of_one() -> None:
    """By the node or by the person who starts the run: nothing is escalated then."""
    assert _chain(_node(skill="review", model="haiku"), AgentSettings()) == [("haiku", "claude")]
    assert _chain(_node(skill="review"), AgentSettings(), asked="ollama/x") == [("ollama/x", "openai")]


def test_a_node_s_own_models_go_before_the_run_s() -> None:
    """The most specific word wins; what is only a preference of the person does not undo a skill's chain."""
    own = _node(models=["ollama/a", "opus"])
    assert _chain(own, AgentSettings(), asked="haiku") == [("ollama/a", "openai"), ("opus", "claude")]
    assert len(_chain(_node(skill="review"), AgentSettings(model="haiku")) or ()) == 2


def test_what_a_skill_says_of_its_models_holds_for_nodes_too() -> None:
    """`local_only` above all: a node must not carry out what the skill keeps in the house."""
    assert _chain(_node(skill="secret"), AgentSettings(), replace(MODELS, verifier="")) == [("ollama/phi4", "openai")]
    with pytest.raises(UsageError, match="local_only"):
        _chain(_node(skill="secret"), AgentSettings())
    assert _chain(_node(skill="own"), AgentSettings()) == [("ollama/own", "openai"), ("opus", "claude")]


@pytest.mark.parametrize("settings", [AgentSettings(backend="command"), AgentSettings(backend="of-a-plug-in")])
def test_a_way_to_agents_with_names_of_its_own_keeps_its_models(settings: AgentSettings) -> None:
    """`ollama/phi4` means something to us; what it means to somebody's own program is theirs to know."""
    assert _chain(_node(models=["a", "b"]), settings) is None
    assert _chain(_node(models=["a", "b"], skill="review"), settings) == [
        ("a", settings.backend),
        ("b", settings.backend),
    ]


def test_a_backend_that_the_node_pins_is_kept() -> None:
    """The most specific word wins; with a skill its discipline still stands above the task."""
    assert _chain(_node(models=["a", "b"], backend="codex"), AgentSettings()) is None
    assert _chain(_node(skill="review", backend="codex"), AgentSettings()) == [("codex", "codex")]


def test_simulated_agents_are_simulated_whatever_is_named() -> None:
    """No real model is asked where somebody said that none is."""
    found = _chain(_node(skill="review", backend="claude"), AgentSettings(backend="simulate"))
    assert {backend for _, backend in found or ()} == {"simulate"}


def test_a_skill_whose_models_nobody_names_is_an_error_with_a_remedy() -> None:
    """Before the run starts, and not in its third hour."""
    with pytest.raises(UsageError) as caught:
        _chain(_node(skill="other"), AgentSettings(), Models())
    assert "default_chain" in caught.value.hint


def test_a_chain_survives_being_written_into_a_request() -> None:
    """A request is journaled; after a crash the same models are asked."""
    one = {"model": "ollama/phi4", "tier": "local", "backend": "openai", "cloud": False}
    chain, verifier = chain_of({"chain": [one], "verifier": None})
    assert ([c.model for c in chain], verifier) == (["ollama/phi4"], None)
