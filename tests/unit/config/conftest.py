"""The fixtures of the configuration tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.config.places import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty machine."""
    return World(tmp_path)
