"""A machine of one's own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.runs.house import Machine


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Machine:
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TZ", "UTC")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return Machine(tmp_path, capsys)
