"""`bailiwick gate` as a person meets it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bailiwick.cli.commands.gate import EXITS, gate
from bailiwick.cli.gate_report import describe
from bailiwick.cli.root import run
from bailiwick.gate.model import CheckResult, Finding, GateReport, RevertedChange
from bailiwick.terminal.output import Printer
from tests.unit.git.repository_setup import RepositorySetup, make_scene

GATE = """
checks:
  - {name: tests, run: [sh, -c, "grep -q good app.txt || { echo app.txt is not good; exit 1; }"]}
protected: [tests/**]
"""
NO_SANDBOX = "sandbox: {profile: none, unattended_none: true}\n"


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RepositorySetup:
    made = make_scene(tmp_path)
    made.commit({".bailiwick/gate.yaml": GATE, "app.txt": "good\n", "tests/t.txt": "x\n"})
    made.put({"config/config.yaml": NO_SANDBOX}, tmp_path / "bw")
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "bw"))
    monkeypatch.chdir(made.repo)
    return made


def _gate(*args: str) -> Result:
    return CliRunner().invoke(gate, list(args), standalone_mode=False, catch_exceptions=False)


def test_the_work_tree_is_checked_as_it_is(scene: RepositorySetup) -> None:
    """Uncommitted and untracked files included: what a person sees is what is checked."""
    result = _gate()
    assert (result.return_value, "gate: green" in result.output) == (0, True)
    assert ".bailiwick/gate.yaml of the base commit" in result.output
    scene.put({"app.txt": "bad\n"})
    result = _gate()
    assert result.return_value == 1
    assert "✗ tests: failed" in result.output
    assert "    app.txt is not good" in result.output


def test_an_older_base_can_be_named(scene: RepositorySetup) -> None:
    """A person on a branch asks about all of it, not only about what is uncommitted."""
    scene.commit({"app.txt": "good too\n", "new.txt": "x\n"})
    data = json.loads(_gate("--base", "HEAD~1", "--json").output)
    assert data["base"] == scene.git("rev-parse", "HEAD~1")


def test_the_json_document_is_the_report_and_nothing_else(scene: RepositorySetup) -> None:
    """Scripts read standard output as one document."""
    result = _gate("--json")
    data = json.loads(result.stdout)
    assert (data["verdict"], data["origin"], data["version"]) == ("green", "base", 1)
    assert [check["name"] for check in data["gate"]["checks"]] == ["tests"]
    assert len(data["digest"]) == 64


def test_protected_changes_are_reverted_for_people_too_with_the_way_to_allow_them(scene: RepositorySetup) -> None:
    """The same rules for everybody, so that what a person sees is what an agent's proposal will meet."""
    scene.put({"tests/t.txt": "y\n", "app.txt": "bad\n"})
    result = _gate()
    assert result.return_value == 1
    assert "! reverted (protected)  tests/t.txt (changed; tests/**)" in result.output
    assert "bailiwick gate --allow tests/t.txt" in result.output
    result = _gate("--allow", "tests/**")
    assert "! allowed  tests/t.txt" in result.output
    assert "without what was allowed:" in result.output


def test_an_edited_gate_file_is_said_not_to_count(scene: RepositorySetup) -> None:
    """Who edits the gate and runs it has to be told why nothing changed."""
    scene.put({".bailiwick/gate.yaml": "checks: [{name: other, run: ['true']}]\n"})
    result = _gate()
    assert "the change is not used" in result.output
    assert "✓ tests: passed" in result.output


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--base", "nonesuch"], 2, "nonesuch"),
        (["--allow", "../x"], 2, "--allow ../x"),
        (["--allow"], 2, "requires an argument"),
    ],
)
def test_bad_input_is_told_in_one_line(
    scene: RepositorySetup, capfd: pytest.CaptureFixture[str], args: list[str], code: int, words: str
) -> None:
    """Exit 2 and what to do; nothing was run."""
    assert run(["gate", *args]) == code
    told = capfd.readouterr()
    assert words in told.err
    assert "Traceback" not in told.err


def test_outside_of_a_repository_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The gate compares with a commit: without git there is none."""
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "bw"))
    monkeypatch.chdir(tmp_path)
    assert run(["gate"]) == 8
    assert "no git work tree" in capfd.readouterr().err


def test_a_repository_without_commits_is_its_own_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Somebody who has just said `git init` wants to see the gate, and has nothing to compare with yet."""
    made = RepositorySetup(tmp_path)
    made.repo.mkdir()
    made.home.mkdir()
    made.git("init", "-q")
    made.put({".bailiwick/gate.yaml": GATE, "app.txt": "good\n"})
    made.put({"config/config.yaml": NO_SANDBOX}, tmp_path / "bw")
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "bw"))
    monkeypatch.chdir(made.repo)
    assert run(["gate"]) == 0
    assert "the work tree itself, as there is no commit yet" in capfd.readouterr().out
    made.put({"app.txt": "bad\n"})
    assert run(["gate"]) == 1
    assert "tests: red on base" in capfd.readouterr().out


def test_progress_is_said_in_plain_lines_where_nobody_looks(scene: RepositorySetup) -> None:
    """A pipe that is silent for minutes looks like a program that hangs; a document must stay one."""
    told = _gate()
    assert "  … tests: passed" in told.stderr
    assert "…" not in told.stdout
    assert _gate("--json").stderr == ""


def test_an_environment_s_fault_has_its_own_exit_code(scene: RepositorySetup) -> None:
    """A script that runs the gate must be able to tell "red" from "could not be run"."""
    scene.commit({".bailiwick/gate.yaml": "prepare: [[sh, -c, 'exit 3']]\n" + GATE})
    result = _gate()
    assert (result.return_value, EXITS["environment"]) == (8, 8)
    assert "gate: not run: " in result.output
    assert "your change was not tested" in result.output


def test_nothing_that_an_agent_wrote_acts_on_the_terminal() -> None:
    """Paths, findings and output are data."""
    evil = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\u202e"
    check = CheckResult(
        "tests",
        "command",
        "exit-code",
        "failed",
        output=evil,
        failing=(evil,),
        hint=evil,
        findings=(Finding("x", evil, evil, 3),),
    )
    report = GateReport(
        "needs_person",
        "t",
        "b",
        "a",
        "p",
        "e",
        "bwrap",
        (check,),
        (RevertedChange(evil, "added", evil, rule=evil),),
        (Finding("w", evil, evil),),
        wanted=(evil,),
        proof=(evil,),
        unprotected=(evil,),
        without=(check,),
    )
    lines = list(describe(report))
    assert not any(sign in line for line in lines for sign in "\x1b\x07\u202e")
    assert any(line.startswith("gate: needs your approval for") for line in lines)


@pytest.mark.parametrize("columns", [80, 60])
def test_a_report_fits_a_narrow_terminal(columns: int) -> None:
    """What failed, what was reverted and what to do are read at 80 columns and at 60, no word cut."""
    check = CheckResult(
        name="tests",
        kind="pytest",
        level="tests",
        outcome="failed",
        counts=(("passed", 14), ("failed", 1)),
        failing=("tests/test_prices.py::DiscountTest::test_ten_percent_off",),
        hint="look at the rounding: a price has two places behind the point, and half a cent is rounded to even",
        seconds=81.0,
    )
    reverted = RevertedChange("tests/conftest.py", "changed", "", rule="tests/**")
    report = GateReport("red", "t", "b", "a", "p", "e", "bwrap", (check,), (reverted,), unproven="no test shows it")
    lines, out = list(describe(report)), io.StringIO()
    for line in lines:
        Printer(out=out, width=columns).line(line)
    shown = out.getvalue()
    assert any(len(line) > columns for line in lines)
    assert all(len(line) <= columns or len(line.split()) == 1 for line in shown.splitlines())
    assert shown.split() == " ".join(lines).split()
    assert "1m21s" in shown
    assert "reverted (protected)  tests/conftest.py" in shown
