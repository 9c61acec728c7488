"""A fresh person for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.command import Person


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """Somebody with an empty home and an empty directory."""
    (tmp_path / "work").mkdir()
    yield Person(tmp_path / "home", tmp_path / "work")
    for workspace in (tmp_path / "home" / "state" / "workspaces").glob("*"):
        (workspace / "go").touch()  # scripts that wait for it end
