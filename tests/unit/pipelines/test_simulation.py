"""The bundled plays: their scripts can be read, and what is staged is a repository of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bailiwick.agents.simulation import read_script
from bailiwick.errors import NotReady
from bailiwick.gate.spec import read_gate
from bailiwick.lang.source import read_yaml
from bailiwick.pipelines.model import ISSUE_TO_PR, SELF_HEAL, Pattern
from bailiwick.pipelines.simulation import PLAYS, Play, script_of, staged
from bailiwick.workflows.service import BUNDLED

PATTERNS = (ISSUE_TO_PR, SELF_HEAL)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("play", PLAYS)
def test_every_play_has_a_script_for_nodes_that_exist(pattern: Pattern, play: Play) -> None:
    """A script of a node that nobody visits would simulate nothing."""
    nodes = set(read_script(script_of(pattern, play)).nodes)
    assert nodes <= {"implement", "fix"}
    assert ("implement" in nodes) == (pattern == ISSUE_TO_PR)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("level", ["pytest", "unittest"])
def test_the_project_has_a_gate_with_and_without_pytest(pattern: Pattern, level: str) -> None:
    """Bailiwick brings no pytest along; without one the gate is weaker, and says so."""
    project = read_yaml(BUNDLED / pattern / "simulate" / "project.yaml").data
    assert isinstance(project, dict)
    spec = read_gate(project["gate"][level].encode(), "gate.yaml", "base")
    assert [check.name for check in spec.checks] == ["tests", "secrets", "size"]
    assert "**/conftest.py" in spec.protected


def test_a_stage_is_a_clean_repository_and_is_gone_afterwards() -> None:
    """Nothing of the person's own git is in it."""
    with staged(ISSUE_TO_PR, "good") as stage:
        status = subprocess.run(["git", "status", "--porcelain"], cwd=stage.repository, capture_output=True, check=True)
        assert (status.stdout, (stage.repository / stage.issue).is_file()) == (b"", True)
        assert stage.environment()["BAILIWICK_HOME"] == str(stage.home)
    assert not stage.repository.exists()


def test_a_kept_stage_needs_an_empty_directory(tmp_path: Path) -> None:
    """What is there already is not the stage's."""
    (tmp_path / "mine.txt").touch()
    with pytest.raises(NotReady, match="not empty"), staged(SELF_HEAL, "good", tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
