"""`init` in a repository without a gate: the plan is tried on the base, and written where it is green."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bailiwick.cli.commands.init import init
from bailiwick.cli.gate_setup.proving import failing_of
from bailiwick.cli.root import run
from bailiwick.gate.model import CheckResult, GateReport
from tests.unit.git.repository_setup import RepositorySetup

NO_SANDBOX = "sandbox: {profile: none, unattended_none: true}\n"
FILE = ".bailiwick/gate.yaml"


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RepositorySetup:
    """A repository right after `git init`, with a Makefile that has tests."""
    made = RepositorySetup(tmp_path)
    made.repo.mkdir()
    made.home.mkdir()
    made.git("init", "-q")
    made.put({"Makefile": "test:\n\tgrep -q good app.txt\n", "app.txt": "good\n"})
    made.put({"config/config.yaml": NO_SANDBOX}, tmp_path / "bw")
    monkeypatch.setenv("BAILIWICK_HOME", str(tmp_path / "bw"))
    monkeypatch.chdir(made.repo)
    return made


def _init(*words: str) -> Result:
    return CliRunner().invoke(init, list(words), standalone_mode=False, catch_exceptions=False)


def test_before_the_first_commit_the_plan_is_proved_written_and_used(scene: RepositorySetup) -> None:
    """`git init`, `bailiwick init --yes`, `bailiwick gate`: nothing is committed for anybody."""
    told = _init("--yes")
    assert told.return_value == 0
    assert "gate: green" in told.stdout
    assert "  … tests: make test" in told.stderr
    assert "run: [make, test]" in (scene.repo / FILE).read_text()
    assert run(["gate"]) == 0
    assert scene.git("status", "--porcelain").count("??") > 0


def test_after_a_commit_the_same_plan_is_green_although_its_file_is_not_committed(
    scene: RepositorySetup, capfd: pytest.CaptureFixture[str]
) -> None:
    """The committed gate counts; with none, what is detected, which is what was written."""
    scene.git("add", "--all")
    scene.git("commit", "-q", "-m", "first")
    assert _init("--yes").return_value == 0
    assert run(["gate"]) == 0
    told = capfd.readouterr().out
    assert "detected (no gate.yaml)" in told
    assert "BW440" in told


def test_a_red_base_is_tried_again_and_nothing_is_written(scene: RepositorySetup) -> None:
    """A gate that is red from the start would park every run."""
    scene.put({"app.txt": "bad\n"})
    told = _init("--yes")
    assert told.return_value == 1
    assert not (scene.repo / FILE).exists()
    assert "no green plan was found" in told.stdout


def test_the_json_document_says_what_was_tried_and_written(scene: RepositorySetup) -> None:
    """Scripts read it."""
    told = _init("--yes", "--json")
    data = json.loads(told.stdout)
    assert (data["verdict"], data["written"], data["repaired"]) == ("green", [FILE], [])
    assert data["gate"]["checks"][0]["run"] == ["make", "test"]
    assert told.stderr == ""


def test_without_running_the_plan_is_only_shown(scene: RepositorySetup) -> None:
    """Somebody may want to look before anything is installed."""
    told = _init("--no-run")
    assert told.return_value == 1
    assert "check    tests: make test" in told.stdout
    assert "✓" not in told.stdout


def test_only_tests_that_are_red_on_the_base_by_name_can_be_known_red() -> None:
    """A check without ids, or one that fails for another reason, can't be excused test by test."""

    def report(*checks: CheckResult) -> GateReport:
        return GateReport(
            verdict="red", tree="t", base="b", asked="t", policy="p", environment="e", sandbox="f", checks=checks
        )

    red = CheckResult("tests", "pytest", "tests", "red_on_base", failing=("b::t", "a::t"))
    assert failing_of(report(red)) == ("a::t", "b::t")
    assert failing_of(report(red, CheckResult("x", "command", "exit-code", "failed"))) == ()
    assert failing_of(report(CheckResult("tests", "pytest", "tests", "red_on_base"))) == ()


AGENT = """
nodes:
  plan:
    - answer: {prepare: [], test: [%s], reason: the tests are run by a script}
"""


@pytest.mark.parametrize(
    ("test", "code"), [("sh, checks.sh", 0), ("sh, other.sh", 1), ("'true'", 1), ("sh, flaky.sh", 1)]
)
def test_an_agent_s_plan_is_kept_only_if_it_is_green_twice(scene: RepositorySetup, test: str, code: int) -> None:
    """What an agent says is no proof; a command that runs no tests is not even tried."""
    scene.put({"Makefile": "test:\n\tfalse\n", "checks.sh": "grep -q good app.txt\n", "other.sh": "exit 1\n"})
    seen = scene.top / "seen"
    scene.put({"flaky.sh": f"test ! -e {seen} && touch {seen}\n"})
    script = scene.top / "script.yaml"
    script.write_text(AGENT % test)
    told = _init("--yes", "--agent", "--simulate", str(script))
    assert told.return_value == code, told.output
    assert (scene.repo / FILE).exists() is (code == 0)
    if code == 0:
        assert "green twice on the base: the tests are run by a script" in (scene.repo / FILE).read_text()
        assert run(["gate"]) == 0
