"""A fresh person for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.command import Person


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """Somebody with an empty home and an empty directory."""
    (tmp_path / "work").mkdir()
    return Person(tmp_path / "home", tmp_path / "work")
