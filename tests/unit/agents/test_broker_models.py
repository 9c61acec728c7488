"""Which models a turn may ask."""

from __future__ import annotations

import pytest

from bailiwick.agents.broker.models import models_for


@pytest.mark.parametrize(
    ("given", "asked", "is_allowed"),
    [
        ("sonnet", "claude-sonnet-4-5-20250929", True),
        ("sonnet", "claude-sonnet-5-5", True),
        ("sonnet[1m]", "claude-sonnet-4-5", True),
        ("sonnet", "claude-3-7-sonnet-latest", True),
        ("sonnet", "claude-haiku-4-5-20251001", True),
        ("sonnet", "claude-3-5-haiku-20241022", True),
        ("sonnet", "claude-opus-4-5", False),
        ("sonnet", "claude-opus-sonnet-4-5", False),
        ("sonnet", "sonnet-but-not-really", False),
        ("opusplan", "claude-opus-4-5", True),
        ("opusplan", "claude-sonnet-4-5", True),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", True),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", True),
        ("claude-sonnet-4-5", "claude-sonnet-4-6", False),
        ("claude-sonnet-4-5", "claude-opus-4-5", False),
        ("gateway/x", "gateway/x", True),
        ("gateway/x", "gateway/y", False),
    ],
)
def test_a_claude_turn_asks_its_model_and_the_small_one_beside_it(given: str, asked: str, is_allowed: bool) -> None:
    """The program chooses the newest of a family, and has a small model write titles; no dearer one is among them."""
    assert models_for("claude", given, {}).allows(asked) is is_allowed


def test_a_program_that_chooses_its_model_itself_stays_with_its_first() -> None:
    """Without a name from us the first model that is asked for is the turn's, and no other."""
    models = models_for("codex", None, {})
    assert [models.allows(name) for name in ("gpt-5-codex", "gpt-5-pro", "gpt-5-codex-2025-09-15")] == [
        True,
        False,
        True,
    ]
    assert models.words == "gpt-5-codex"
    profile = models_for("codex", "local", {})
    assert profile.allows("qwen")
    named = models_for("codex", "local@gpt-5", {})
    assert [named.allows(name) for name in ("gpt-5", "gpt-5-pro")] == [True, False]


def test_the_operator_names_more_by_variable_or_by_configuration() -> None:
    """A gateway has names of its own for the small model."""
    env = {"ANTHROPIC_SMALL_FAST_MODEL": "house/small", "OTHER": "house/large"}
    models = models_for("claude", "sonnet", env, ("house/extra",))
    assert [models.allows(name) for name in ("house/small", "house/extra", "house/large")] == [True, True, False]
    assert models.words == "house/small, house/extra, claude-*sonnet*, claude-*haiku*"
