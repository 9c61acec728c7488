"""The simulated shop as a person's own repository, and what they ask for in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bailiwick.lang.source import read_yaml
from bailiwick.pipelines.simulation import write_repository
from bailiwick.workflows.service import BUNDLED
from tests.acceptance.command import Person, Result

LONG = 280.0


def git(root: Path, *words: str) -> str:
    """What git says."""
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout


def set_up_shop(person: Person, gate: str = "") -> Path:
    """The simulated project as the person's own repository, which is their working directory from then on."""
    person.extra["BAILIWICK_RETENTION_MIN_FREE"] = "100MB"
    project = read_yaml(BUNDLED / "issue-to-pr" / "simulate" / "project.yaml").data
    assert isinstance(project, dict)
    files = {**project["files"], ".bailiwick/gate.yaml": gate or project["gate"]["pytest"], ".gitignore": "*.log\n"}
    person.cwd = write_repository(person.cwd / "shop", files)
    return person.cwd


def script(pattern: str, play: str) -> str:
    """The file of a bundled play."""
    return str(BUNDLED / pattern / "simulate" / f"{play}.yaml")


def asks(person: Person, *more: str | Path) -> Result:
    """`issue-to-pr` for the shop's issue."""
    return person.runs("issue-to-pr", "issues/round-to-cents.md", *more, timeout=LONG)


def branches(root: Path) -> list[str]:
    """The agents' branches of a repository."""
    return git(root, "branch", "--list", "agent/*", "--format=%(refname:short)").split()
