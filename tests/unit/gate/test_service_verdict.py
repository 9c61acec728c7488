"""How a gate decides, as a table: the same outcomes always give the same verdict."""

from __future__ import annotations

import pytest

from bailiwick.gate.model import CheckResult, Finding, Level, Outcome, RevertedChange, Verdict
from bailiwick.gate.run import (
    CommandResult,
    Proof,
    about_wanted_tests,
    is_excused,
    judge,
    own_tools,
    proof_of,
    requested,
    settled,
    taken_findings,
    verdict_of,
)
from bailiwick.gate.spec import CheckSpec


def _check(
    outcome: Outcome, *failing: str, name: str = "tests", blocks: bool = False, level: Level = "tests"
) -> CheckResult:
    found = (Finding("x", "x", blocks=True),) if blocks else ()
    return CheckResult(name, "pytest", level, outcome, failing=failing, findings=found, code=1)


@pytest.mark.parametrize(
    ("checks", "known_red", "verdict"),
    [
        ([], [], "green"),
        ([_check("passed")], [], "green"),
        ([_check("passed"), _check("failed")], [], "red"),
        ([_check("environment")], [], "environment"),
        ([_check("environment"), _check("failed")], [], "red"),
        ([_check("environment"), _check("red_on_base", "a")], [], "environment"),
        ([_check("red_on_base", "a")], [], "red"),
        ([_check("red_on_base", "a")], ["a"], "green"),
        ([_check("red_on_base", "a", "b")], ["a"], "red"),
        ([_check("red_on_base")], ["tests"], "green"),
        ([_check("red_on_base")], ["a"], "red"),
        ([_check("failed", "a")], ["a", "tests"], "red"),
        ([_check("passed", blocks=True)], [], "red"),
        ([_check("red_on_base", "a", blocks=True)], ["a"], "red"),
        ([_check("environment", blocks=True)], [], "environment"),
    ],
)
def test_the_verdict_follows_from_the_checks(checks: list[CheckResult], known_red: list[str], verdict: Verdict) -> None:
    """Red is a fact about the change; what may stay red is exactly what a person named."""
    assert verdict_of(checks, known_red) == verdict


_OK = CommandResult(0)
_RED = CommandResult(1, ("a.py:3: bad", "1 error in 0.2 s"))


@pytest.mark.parametrize(
    ("here", "there", "outcome"),
    [
        (_OK, None, "passed"),
        (_RED, _OK, "failed"),
        (_RED, CommandResult(1, ("a.py:5: bad", "1 error in 1.7 s")), "red_on_base"),
        (_RED, CommandResult(1, ("b.py:5: bad", "1 error in 1.7 s")), "failed"),
        (_RED, CommandResult(2, _RED.lines), "failed"),
        (CommandResult(127, missing="ruff"), None, "failed"),
        (CommandResult(127, ("sh: nope: not found",)), CommandResult(127, ("sh: nope: not found",)), "environment"),
        (CommandResult(127, ("sh: nope: not found",)), _OK, "failed"),
        (CommandResult(-9), CommandResult(-9), "environment"),
        (CommandResult(-9), _OK, "failed"),
        (CommandResult(0, timed_out=True), CommandResult(0, timed_out=True), "environment"),
        (CommandResult(0, timed_out=True), _OK, "failed"),
        (CommandResult(1, ("No space left on device",)), CommandResult(1, ("No space left on device",)), "environment"),
        (CommandResult(1, ("No space left on device",)), _OK, "failed"),
    ],
)
def test_a_rerun_on_the_base_tells_whose_fault_it_is(
    here: CommandResult, there: CommandResult | None, outcome: Outcome
) -> None:
    """An agent must not be paid to repair the machine, nor be excused for what only its change breaks."""
    assert judge(here, there)[0] == outcome


def _out(*paths: str) -> list[RevertedChange]:
    return [RevertedChange(path, "changed") for path in paths]


@pytest.mark.parametrize(
    ("check", "out", "about"),
    [
        (_check("failed", "tests/test_a.py::test_x"), _out("tests/test_a.py"), True),
        (_check("failed", "tests/test_a.py::test_x[1]", "tests/test_b.py::test_y"), _out("tests/test_a.py"), False),
        (_check("failed", "tests/test_a.py::test_x"), _out("tests/test_b.py"), False),
        (_check("failed", "tests/test_a.py::test_x"), [], False),
        (_check("failed"), _out("tests/test_a.py"), False),
        (_check("failed", level="exit-code"), _out("a.test.js"), True),
        (_check("failed", level="exit-code"), _out("a.test.js", "Makefile"), False),
        (_check("passed"), _out("tests/test_a.py"), False),
    ],
)
def test_a_person_is_asked_only_about_tests_the_agent_wanted_to_change(
    check: CheckResult, out: list[RevertedChange], about: bool
) -> None:
    """Attention is scarce: a red gate that has nothing to do with what was taken out goes back to the agent."""
    assert about_wanted_tests([check], out) is about


def test_a_passed_check_with_a_finding_that_blocks_is_failed() -> None:
    """Exit code 0 alone is not green."""
    assert settled(_check("passed", blocks=True)).outcome == "failed"
    assert settled(_check("passed")).outcome == "passed"
    assert settled(_check("environment", blocks=True)).outcome == "environment"


def test_what_a_person_named_excuses_exactly_that() -> None:
    """`--known-red` is no blank cheque."""
    assert is_excused(_check("red_on_base", "a"), ["a", "b"])
    assert not is_excused(_check("red_on_base", "a", "c"), ["a", "b"])
    assert not is_excused(_check("failed", "a"), ["a"])


def test_scripts_that_a_check_runs_are_protected() -> None:
    """Whoever may rewrite the script that checks need not pass it; what the check is about stays free."""
    files = frozenset({"check.sh", "scripts/test.py", "app.py", "tools/lint"})
    checks = [
        CheckSpec("a", run=("./check.sh",)),
        CheckSpec("b", run=("python3", "-B", "scripts/test.py")),
        CheckSpec("c", run=("python3", "app.py")),
        CheckSpec("d", run=("bash", "-e", "tools/lint", "app.py")),
        CheckSpec("e", kind="secret-scan"),
    ]
    assert own_tools(checks, files) == ("check.sh", "scripts/test.py", "tools/lint")


def test_the_proof_is_gathered_over_all_checks() -> None:
    """One check that can prove the fix is enough; without any it is said."""
    proving = CheckResult("a", "pytest", "tests", "passed", proof=("t1", "t2"))
    silent = CheckResult("b", "command", "exit-code", "passed")
    unsure = CheckResult("c", "pytest", "tests", "passed", unproven="because")
    healing = CheckResult("d", "pytest", "tests", "passed", healed=("t3",))
    assert proof_of([silent, unsure, proving], changed=True) == Proof(("t1", "t2"))
    assert proof_of([silent, unsure, healing], changed=True) == Proof((), ("t3",))
    assert proof_of([silent, unsure], changed=True) == Proof(unproven="because")
    assert proof_of([silent], changed=True) == Proof(unproven="no test shows this fix")
    assert proof_of([silent], changed=False) == Proof()


def test_what_was_taken_out_blocks_nothing_but_stays_listed() -> None:
    """A cheat that had no effect is still named."""
    found = taken_findings(
        [Finding("weak", "deleted", "tests/a.py"), Finding("weak", "noqa", "b.py")], _out("tests/a.py")
    )
    assert [(f.path, f.blocks) for f in found] == [("tests/a.py", False), ("b.py", True)]
    assert found[0].what == "deleted (reverted)"


def test_only_what_was_taken_out_can_be_asked_for() -> None:
    """An agent may ask for a path; it can't make one up."""
    assert requested(_out("pyproject.toml", "tests/a.py"), ["pyproject.toml", "uv.lock"]) == ("pyproject.toml",)
