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
def desk(tmp_path: Path) -> Callable[[str], CliUnderTest]:
    """Makes the desk of a CLI, by its name."""

    def make(cli: str) -> CliUnderTest:
        need(cli)
        return CliUnderTest(cli, tmp_path / "desk")

    return make


@pytest.fixture
def claude(desk: Callable[[str], CliUnderTest]) -> CliUnderTest:
    """The real claude."""
    return desk("claude")


@pytest.fixture
def codex(desk: Callable[[str], CliUnderTest]) -> CliUnderTest:
    """The real codex."""
    return desk("codex")


@pytest.fixture
def copilot(desk: Callable[[str], CliUnderTest]) -> CliUnderTest:
    """The real copilot."""
    return desk("copilot")
