"""The fixtures of the language tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lang.flows import Flow


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    """An empty workflow directory."""
    root = tmp_path / "flow"
    root.mkdir()
    return Flow(root)
