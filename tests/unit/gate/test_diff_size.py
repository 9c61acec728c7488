"""How large a change may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.gate.gate_stage import GateSetup, make_stage, spec_of


@pytest.fixture
def stage(tmp_path: Path) -> GateSetup:
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
        ("max_bytes: 6", "green"),
        ("max_bytes: 5", "red"),
        ("max_statements: 3", "green"),
        ("max_statements: 2", "red"),
    ],
)
def test_lines_and_files_are_counted_both_ways(stage: GateSetup, options: str, verdict: str) -> None:
    """A deleted line has to be read as well as an added one; generated files may be left out by the gate's author."""
    spec = spec_of(f"checks: [{{name: size, kind: diff-size, {options}}}]")
    report = stage.check({"app.py": "y\n", "new.py": "a\nb\n"}, spec)
    assert report.verdict == verdict
    if verdict == "red":
        assert report.checks[0].findings[0].code == "too-large"


def test_only_the_proposed_tree_is_counted(stage: GateSetup) -> None:
    """What was taken out is not proposed, so nobody has to read it."""
    spec = spec_of("checks: [{name: size, kind: diff-size, max_lines: 5}]")
    report = stage.check({"new.py": "a\n", "uv.lock": "x\n" * 1000}, spec)
    assert (report.verdict, dict(report.checks[0].counts)) == (
        "green",
        {"lines": 1, "files": 1, "bytes": 2, "statements": 1},
    )


def test_one_long_line_is_not_small(stage: GateSetup) -> None:
    """A line of 900 KB takes as long to read as the lines it should have been."""
    spec = spec_of("checks: [{name: size, kind: diff-size}]")
    report = stage.check({"new.py": "x = 1; " * 5000 + "\n", "data.js": "y" * 900_000}, spec)
    assert report.verdict == "red"
    assert [finding.what for finding in report.checks[0].findings] == [
        "935002 bytes are added, 400000 may",
        "5001 statements are added, 4000 may",
    ]
