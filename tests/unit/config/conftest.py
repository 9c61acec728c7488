"""The fixtures of the configuration tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.config.places import ConfigLayers


@pytest.fixture
def world(tmp_path: Path) -> ConfigLayers:
    """An empty machine."""
    return ConfigLayers(tmp_path)
