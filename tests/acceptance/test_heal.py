"""Small programs with a bug, healed by a scripted agent: each ends as its `expected.yaml` says."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from bailiwick.pipelines.simulation import write_repository
from tests.acceptance.command import EXAMPLES, Person
from tests.acceptance.toolbox import python_with_pytest

__all__ = ["python_with_pytest"]
pytestmark = [pytest.mark.needs("sandbox"), pytest.mark.slow]
HEAL = EXAMPLES / "heal"
PROGRAMS = sorted(path.parent.name for path in HEAL.glob("*/expected.yaml"))
PLAYS = ("good", "bad", "stuck", "cheat")
SAMPLE = (("intervals", "cheat"),)
"""What every change is judged by; the rest runs at night."""
LONG = 280.0


def _expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((HEAL / name / "expected.yaml").read_text())
    return found


def _files(name: str) -> dict[str, str]:
    top = HEAL / name
    there = [path for path in top.rglob("*") if path.is_file() and path.suffix in (".py", ".md")]
    files = {path.relative_to(top).as_posix(): path.read_text() for path in there if "__pycache__" not in path.parts}
    return {**files, ".bailiwick/gate.yaml": (HEAL / "gate.yaml").read_text()}


def _script(name: str, play: str, expected: dict[str, Any]) -> str:
    """What the agent does in each fix call: the right line, a wrong one and then the right one, wrong ones, a cheat."""
    text = (HEAL / name / expected["file"]).read_text()
    lines = {
        "good": [expected["good"]],
        "bad": [expected["bad"], expected["good"]],
        "stuck": expected["stuck"],
        "cheat": [],
    }[play]
    visits: list[list[dict[str, Any]]] = [
        [{"edit": {expected["file"]: text.replace(expected["line"] + "\n", line + "\n")}}] for line in lines
    ]
    if play == "cheat":
        visits = [[{"cheat": expected["cheat"]}], [{"cheat": "claim"}]]
    return yaml.safe_dump({"nodes": {"fix": visits}})


def _cases() -> list[Any]:
    night = pytest.mark.nightly
    cases = [(name, play) for name in PROGRAMS for play in PLAYS]
    return [pytest.param(*case, marks=() if case in SAMPLE else night, id="-".join(case)) for case in cases]


def test_there_are_enough_programs_and_each_has_one_bug_in_one_line() -> None:
    """The script replaces exactly that line; every outcome is promised."""
    assert len(PROGRAMS) >= 12
    for name in PROGRAMS:
        expected = _expected(name)
        assert (HEAL / name / expected["file"]).read_text().count(expected["line"] + "\n") == 1, name
        assert set(expected["outcomes"]) == set(PLAYS), name
        assert len((HEAL / name / "README.md").read_text().splitlines()) == 1, name


@pytest.mark.parametrize(("name", "play"), _cases())
def test_a_program_ends_as_expected(person: Person, tmp_path: Path, name: str, play: str) -> None:
    """Healed and proposed, handed to a person, or found out: with the real gate, and never merged."""
    expected = _expected(name)
    person.extra["BAILIWICK_RETENTION_MIN_FREE"] = "100MB"
    person.cwd = write_repository(person.cwd / name, _files(name))
    script = tmp_path / "script.yaml"
    script.write_text(_script(name, play, expected))
    result = person.runs("self-heal", "--simulate", script, "--json", timeout=LONG)
    assert result.code == expected["outcomes"][play], result.out + result.err
    show = ["git", "for-each-ref", "--format=%(refname:short)", "refs/heads/agent/"]
    branches = subprocess.run(show, cwd=person.cwd, capture_output=True, text=True, check=True).stdout.split()
    document = result.json()
    if result.code == 0:
        fixed = ["git", "show", f"{branches[0]}:{expected['file']}"]
        text = subprocess.run(fixed, cwd=person.cwd, capture_output=True, text=True, check=True).stdout
        assert expected["good"] in text.splitlines()
        assert document["context"]["calls"] == (1 if play == "good" else 2)
    else:
        assert document["context"].get("proposal") is None
    if play == "cheat":
        asked = [wait["question"] for wait in document["waits"]]
        assert "reverted (protected): " in document["reason"] or "needs your approval for tests/" in asked[0], document
