"""How large a change may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.gate.gate_stage import Stage, make_stage, spec_of


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = make_stage(tmp_path)
    made.scene.commit({"app.py": "x\n" * 10, "data.bin": b"\0\1"})
    return made


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ("max_lines: 13", "green"),
        ("max_lines: 12", "red"),
        ("max_files: 2", "green"),
        ("max_files: 1", "red"),
        ("max_lines: 3, ignore: [app.py]", "green"),
        ("max_lines: 100", "green"),
    ],
)
def test_lines_and_files_are_counted_both_ways(stage: Stage, options: str, verdict: str) -> None:
    """A deleted line has to be read as well as an added one; generated files may be left out by the gate's author."""
    spec = spec_of(f"checks: [{{name: size, kind: diff-size, {options}}}]")
    report = stage.check({"app.py": "y\n", "new.py": "a\nb\n"}, spec)
    assert report.verdict == verdict
    if verdict == "red":
        assert report.checks[0].findings[0].code == "too-large"


def test_only_the_proposed_tree_is_counted(stage: Stage) -> None:
    """What was taken out is not proposed, so nobody has to read it."""
    spec = spec_of("checks: [{name: size, kind: diff-size, max_lines: 5}]")
    report = stage.check({"new.py": "a\n", "uv.lock": "x\n" * 1000}, spec)
    assert (report.verdict, dict(report.checks[0].counts)) == ("green", {"lines": 1, "files": 1})
