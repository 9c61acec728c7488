"""What doctor says of the sandbox."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.doctor.service import look_at_fence


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A machine where nothing is configured."""
    environment = Environment({"BAILIWICK_HOME": str(tmp_path), "PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    return load_config(tmp_path, {}, environment=environment)


def test_the_sandbox_is_tried_for_real(config: Config) -> None:
    """A line that says a sandbox works has to come from one that held."""
    report = asyncio.run(look_at_fence(config, fix=False))
    found = {finding.name: finding for finding in report.findings}
    assert "self-test" in found or not found["sandbox"].ok
    assert all(finding.ok for finding in report.findings if finding.name == "self-test")
    assert report.unprotected, "no sandbox protects from everything"


def test_what_a_crash_left_is_named_and_removed_on_request(config: Config) -> None:
    """A worktree whose run is gone takes space and confuses people."""
    orphan = config.paths.make_state() / "worktrees" / "abandoned"
    orphan.mkdir(parents=True)
    named = asyncio.run(look_at_fence(config, fix=False)).findings[-1]
    assert (named.name, named.ok, named.fix) == ("worktrees", False, "bailiwick doctor --fix")
    asyncio.run(look_at_fence(config, fix=True))
    assert not orphan.exists()
