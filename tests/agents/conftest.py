"""Desks with real agent CLIs; without them a test is skipped with a word, and fails where a change is judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.desk import AGENTS, CliUnderTest
from tests.needs import lack


def need(cli: str) -> None:
    """Go on only with this CLI."""
    if not (AGENTS / "bin" / cli).exists():
        lack(f"the real {cli} is not installed (make agents)")


@pytest.fixture
def turns(tmp_path: Path) -> Callable[[str], CliUnderTest]:
    """Makes the desk of a CLI, by its name."""

    def make(cli: str) -> CliUnderTest:
        need(cli)
        return CliUnderTest(cli, tmp_path / "desk")

    return make


@pytest.fixture
def claude(turns: Callable[[str], CliUnderTest]) -> CliUnderTest:
    """The real claude."""
    return turns("claude")


@pytest.fixture
def codex(turns: Callable[[str], CliUnderTest]) -> CliUnderTest:
    """The real codex."""
    return turns("codex")


@pytest.fixture
def copilot(turns: Callable[[str], CliUnderTest]) -> CliUnderTest:
    """The real copilot."""
    return turns("copilot")
