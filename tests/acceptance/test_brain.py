"""The brain from the command line: between projects, through kill -9, and in the brief of a real run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bailiwick.lang.source import read_yaml
from bailiwick.pipelines.simulation import write_repository
from bailiwick.workflows.service import BUNDLED
from tests.acceptance.command import Person, end
from tests.acceptance.toolbox import python_with_pytest

__all__ = ["python_with_pytest"]
KILLER = """#!/bin/sh
case " $* " in *" {verb} "*)
    caller=$PPID
    until tr '\\0' ' ' </proc/$caller/cmdline | grep -q 'brain write'; do
        caller=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$caller/status)
    done
    kill -9 "$caller"
    exit 1;;
esac
exec {git} "$@"
"""


def _folder(person: Person) -> Path:
    return Path(person.runs("brain", "path").out.strip())


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("verb", "there"),
    [
        ("commit", True),
        pytest.param("add", True, marks=pytest.mark.nightly),
        pytest.param("init", False, marks=pytest.mark.nightly),
    ],
)
def test_a_writer_that_is_killed_leaves_a_brain_that_works(
    person: Person, tmp_path: Path, verb: str, there: bool
) -> None:
    """SIGKILL when git is about to do its part: the note is whole or not there, and the next write commits all."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "git").write_text(KILLER.format(verb=verb, git=shutil.which("git")))
    (tools / "git").chmod(0o755)
    person.extra["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"
    assert person.runs("brain", "write", "The first.").code == -9
    del person.extra["PATH"]
    assert [note["text"] for note in person.runs("brain", "list", "--json").json()["notes"]] == ["The first."] * there
    assert person.runs("brain", "write", "The second.").code == 0
    found = person.runs("brain", "query", "first", "second", "--json").json()["notes"]
    assert sorted(note["text"] for note in found) == ["The first."] * there + ["The second."]
    assert all(note["commit"] for note in found)
    root = _folder(person)
    assert _git(root, "status", "--porcelain") == ""
    _git(root, "fsck", "--strict")


@pytest.mark.nightly
def test_a_run_is_told_what_was_learned_here_and_nothing_else(person: Person) -> None:
    """Through issue-to-pr: the approved note of this project is in the brief, a pending one and another's are not."""
    person.extra["BAILIWICK_RETENTION_MIN_FREE"] = "100MB"
    other = person.cwd / "other"
    other.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=other, check=True)
    base = person.cwd
    project = read_yaml(BUNDLED / "issue-to-pr" / "simulate" / "project.yaml").data
    assert isinstance(project, dict)
    shop = write_repository(base / "shop", {**project["files"], ".bailiwick/gate.yaml": project["gate"]["pytest"]})
    person.cwd = other
    person.runs("brain", "write", "--approve", "Discounted prices of the other project.")
    person.cwd = shop
    person.runs("brain", "write", "--approve", "Discounted prices are decimals here.")
    person.runs("brain", "write", "Discounted prices that nobody has looked at.")
    script = str(BUNDLED / "issue-to-pr" / "simulate" / "good.yaml")
    result = person.runs("issue-to-pr", "issues/round-to-cents.md", "--simulate", script, timeout=600)
    assert result.code == 0, result.out + result.err
    assert "with notes n-" in result.out
    runs = person.home / "state" / "runs"
    briefs = [file.read_text("utf-8", "replace") for file in runs.rglob("*") if file.is_file()]
    assert any("Discounted prices are decimals here." in brief for brief in briefs)
    assert not any("that nobody has looked at" in brief or "the other project" in brief for brief in briefs)


def test_twenty_that_write_into_a_fresh_brain_at_once_all_succeed(person: Person) -> None:
    """Nobody was there before: no folder, no repository, no index."""
    writers = [person.starts("brain", "write", f"note number {number}") for number in range(20)]
    try:
        ends = [(one.communicate(timeout=600), one.returncode) for one in writers]
    finally:
        for one in writers:
            end(one)
    assert [said for said, code in ends if code != 0] == []
    assert len(person.runs("brain", "list", "--json", timeout=600).json()["notes"]) == 20
    assert _git(_folder(person), "status", "--porcelain") == ""
