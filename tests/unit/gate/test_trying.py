"""What is tried next after a plan that was not green. Pure: reports in, wishes out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bailiwick.gate.detection.draft import PlanAdditions
from bailiwick.gate.detection.missing import MissingPart
from bailiwick.gate.model import CheckResult, Finding, GateReport, Outcome
from bailiwick.gate.optional import excuse, is_left_out
from bailiwick.gate.spec import CheckSpec, GateSpec
from bailiwick.gate.trying import Tried, next_additions

PIP = (".venv/bin/python", "-m", "pip", "install")
SPEC = GateSpec(prepare=((*PIP, "pytest"), (*PIP, "odd>1"), (*PIP, "-r", "req.txt"), (*PIP, "-e", ".[a,b]")))


def _tried(*checks: CheckResult, missing: MissingPart | None = None, steps: tuple[str, ...] = ()) -> Tried:
    report = GateReport(
        verdict="red", tree="t", base="b", asked="t", policy="p", environment="e", sandbox="none", checks=checks
    )
    return Tried(SPEC, SPEC, report, steps, missing)


def _check(name: str, outcome: Outcome, what: str = "", passed: int = 0) -> CheckResult:
    kind = "pytest" if name == "tests" else "environment"
    found = (Finding("x", what),) if what else ()
    return CheckResult(name, kind, "tests", outcome, findings=found, counts=(("passed", passed),) if passed else ())


def _failed(*command: str) -> CheckResult:
    return _check("prepare", "environment", f"`{' '.join(command)}` exits with 1")


def test_a_missing_module_first_widens_the_plan_and_then_is_added_by_name() -> None:
    """The project's own runners know best; a table of ours is the second guess."""
    missing = MissingPart("yaml", "module", "pyyaml", known=True, command=(*PIP, "pyyaml"))
    tried = _tried(_check("tests", "red_on_base"), missing=missing)
    assert next_additions(PlanAdditions(), tried)[0] == PlanAdditions(level=1)
    assert next_additions(PlanAdditions(level=1), tried)[0] == PlanAdditions(level=1, add=("pyyaml",))
    assert next_additions(PlanAdditions(level=1, add=("pyyaml",)), tried)[0] is None


def test_a_plugin_is_added_at_once() -> None:
    """Nothing but the plugin brings its option."""
    missing = MissingPart("--cov", "option", "pytest-cov", known=True)
    assert next_additions(PlanAdditions(), _tried(_check("tests", "red_on_base"), missing=missing))[0] == PlanAdditions(
        add=("pytest-cov",)
    )


@pytest.mark.parametrize(
    "missing",
    [
        MissingPart("tests.util", "file"),
        MissingPart("strange", "module", "strange", known=False, command=(*PIP, "strange")),
    ],
)
def test_what_nobody_named_is_never_installed(missing: MissingPart) -> None:
    """Not even with the widest plan: a stranger may have the name on the index."""
    assert next_additions(PlanAdditions(level=1), _tried(_check("tests", "red_on_base"), missing=missing))[0] is None


@pytest.mark.parametrize(
    ("failed", "dropped"),
    [
        ((*PIP, "odd>1"), ("odd>1",)),
        ((*PIP, "-r", "req.txt"), ("req.txt",)),
        ((*PIP, "-e", ".[a,b]"), ("extra a", "extra b")),
    ],
)
def test_an_install_that_fails_is_made_piece_by_piece_and_then_without_the_piece(
    failed: tuple[str, ...], dropped: tuple[str, ...]
) -> None:
    """One stale pin must not keep the whole project from being tested; what was dropped is named."""
    tried = _tried(_failed(*failed))
    assert next_additions(PlanAdditions(), tried)[0] == PlanAdditions(split=True)
    wanted, why = next_additions(PlanAdditions(split=True), tried)
    assert wanted == PlanAdditions(split=True, without=dropped)
    assert all(name in why for name in dropped)
    assert next_additions(replace(PlanAdditions(split=True), without=dropped), tried)[0] is None


def test_a_wider_plan_that_can_t_be_installed_is_given_up() -> None:
    """Then at least the narrow one is kept."""
    wanted, _ = next_additions(PlanAdditions(level=1, add=("x",)), _tried(_failed(*PIP, "x"), steps=("wider",)))
    assert wanted == PlanAdditions(add=("x",))


def test_unittest_is_tried_only_where_pytest_ran_nothing() -> None:
    """Tests that ran and are red are red."""
    assert next_additions(PlanAdditions(), _tried(_check("tests", "failed")))[0] == PlanAdditions(unittest=True)
    assert next_additions(PlanAdditions(), _tried(_check("tests", "failed", passed=3)))[0] is None
    assert next_additions(PlanAdditions(unittest=True), _tried(_check("tests", "failed")))[0] is None


def test_only_an_optional_linter_that_is_red_on_the_base_is_excused() -> None:
    """A linter that the change made red is red; one that a gate file lists is never left out."""
    lint = CheckSpec("lint", "command", ("ruff", "check", "."), optional=True)
    red = _check("lint", "red_on_base", "style")
    left = excuse(lint, red)
    assert (left.outcome, is_left_out(left)) == ("passed", True)
    missing = replace(red, outcome="failed", findings=(Finding("missing-tool", "no ruff"),))
    assert is_left_out(excuse(lint, missing))
    assert excuse(lint, _check("lint", "failed", "style")).outcome == "failed"
    assert excuse(replace(lint, optional=False), missing).outcome == "failed"
