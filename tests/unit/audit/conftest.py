"""The fixtures of the audit tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from tests.unit.audit.chains import Chain


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    """An empty state directory."""
    return Chain(tmp_path / "state", ManualClock())
