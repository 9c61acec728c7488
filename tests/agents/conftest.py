"""Desks with real agent CLIs; without them a test is skipped with a word, and fails where a change is judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.desk import AGENTS, Desk
from tests.needs import lack


def need(cli: str) -> None:
    """Go on only with this CLI."""
    if not (AGENTS / "bin" / cli).exists():
        lack(f"the real {cli} is not installed (make agents)")


@pytest.fixture
def desk(tmp_path: Path) -> Callable[[str], Desk]:
    """Makes the desk of a CLI, by its name."""

    def make(cli: str) -> Desk:
        need(cli)
        return Desk(cli, tmp_path / "desk")

    return make


@pytest.fixture
def claude(desk: Callable[[str], Desk]) -> Desk:
    """The real claude."""
    return desk("claude")


@pytest.fixture
def codex(desk: Callable[[str], Desk]) -> Desk:
    """The real codex."""
    return desk("codex")


@pytest.fixture
def copilot(desk: Callable[[str], Desk]) -> Desk:
    """The real copilot."""
    return desk("copilot")
