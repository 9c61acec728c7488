"""A gate report in one line: what a person reads on the terminal, in `why`, in a hand-off and in a proposal."""

from __future__ import annotations

from typing import Any

import pytest

from bailiwick.gate.headline import LONGEST, advice, details, evidence, headline
from bailiwick.gate.model import CheckResult, Doubt, Finding, GateReport, RevertedChange, Verdict, read_report
from bailiwick.gate.report import failing_text

TEST = "tests/test_a.py::test_b"
WHY = f"{TEST}: tests/test_a.py:12: assert 190 == 180"
DOUBT = Doubt("shop/prices.py", "reads sys.modules", 3, "@@ -1 +1 @@\n+import sys\n")


def _report(verdict: Verdict, *checks: CheckResult, **more: Any) -> GateReport:
    return GateReport(verdict, "t", "b", "a", "p", "e", "bwrap", checks, **more)


def _check(outcome: Any = "failed", **more: Any) -> CheckResult:
    return CheckResult("tests", "pytest", "tests", outcome, **more)


@pytest.mark.parametrize(
    ("report", "line"),
    [
        (_report("green", _check("passed")), "green"),
        (
            _report("green", _check("passed"), unexercised="no test exercises this change"),
            "green, but no test exercises this change",
        ),
        (
            _report("red", _check(failing=(TEST,), reasons=(WHY,))),
            f"red: {TEST} fails: tests/test_a.py:12: assert 190 == 180",
        ),
        (
            _report(
                "red", _check(failing=(TEST, "x"), reasons=(WHY,)), taken=(RevertedChange("conftest.py", "added"),)
            ),
            f"red: {TEST} fails: tests/test_a.py:12: assert 190 == 180 (and 1 more); reverted (protected): conftest.py",
        ),
        (
            _report("red", _check("red_on_base", failing=("y",)), _check(failing=(TEST,))),
            f"red: {TEST} fails",
        ),
        (_report("red", _check("red_on_base", failing=("y",))), "red: y fails on the base too"),
        (
            _report("red", _check(findings=(Finding("x", "14 expected tests have no result"),))),
            "red: tests: 14 expected tests have no result",
        ),
        (
            _report(
                "red", CheckResult("lint", "command", "exit-code", "failed", code=1, output="a.py:1: E\nFound 1\n")
            ),
            "red: lint exits with 1: Found 1",
        ),
        (
            _report("red", _check("passed"), weakening=(Finding("w", "a test is deleted", "tests/t.py", 4),)),
            "red: tests/t.py:4: a test is deleted",
        ),
        (_report("needs_person", _check("passed"), doubts=(DOUBT,)), "needs you: shop/prices.py:3: reads sys.modules"),
        (_report("needs_person", wanted=("tests/t.py",)), "needs your approval for tests/t.py (protected)"),
        (
            _report(
                "environment",
                _check("environment", findings=(Finding("m", "module yaml is missing"),), hint="prepare: [[uv, sync]]"),
            ),
            "not run: module yaml is missing; prepare: [[uv, sync]]",
        ),
        (_report("environment"), "not run: the environment failed"),
    ],
)
def test_the_verdict_and_its_first_reason_stand_in_one_line(report: GateReport, line: str) -> None:
    """Words anybody knows, and the place to look at."""
    assert headline(report) == line


def test_a_headline_is_bounded_and_acts_on_no_terminal() -> None:
    """Ids and messages of tests are written by agents."""
    evil = "\x1b]0;x\x07" + "y" * 10_000 + "\n\u202e"
    for report in (
        _report("red", _check(failing=(evil,), reasons=(f"{evil}: {evil}",))),
        _report("needs_person", doubts=(Doubt(evil, evil, 1, evil),)),
    ):
        lines = [headline(report), *details(report)]
        assert not any(sign in line for line in lines for sign in "\x1b\x07\u202e\n")
        assert max(map(len, lines)) <= LONGEST + 1


def test_details_list_each_failing_test_finding_and_doubt_once() -> None:
    """What a person needs who has only this."""
    check = _check(failing=(TEST, "x"), reasons=(WHY,), findings=(Finding("f", "found", "a.py", 1),))
    report = _report("red", check, doubts=(DOUBT, DOUBT))
    assert details(report) == (
        f"{TEST} fails: tests/test_a.py:12: assert 190 == 180",
        "x fails",
        "a.py:1: found",
        "shop/prices.py:3: reads sys.modules",
    )
    assert details(_report("green", doubts=(DOUBT,))) == ()


def test_new_and_healed_tests_are_told_apart_in_the_evidence() -> None:
    """ "New" only for new ones."""
    report = _report("green", proof=("a", "b"), healed=("c", "d", "e", "f"), unproven="", exercised=("a",))
    assert list(evidence(report)) == [
        "1 test exercises this change: a",
        "2 new tests fail on the base and pass here: a, b",
        "4 tests that were red on the base pass now: c, d, e and 1 more",
    ]
    bare = _report("green", unexercised="no test exercises this change", unproven="no test shows this fix")
    assert list(evidence(bare)) == ["no test exercises this change", "no test shows this fix"]


def test_a_person_is_told_what_to_do_next() -> None:
    """Each verdict but green has a way on."""
    assert list(advice(_report("needs_person", wanted=("a.py",), doubts=(DOUBT,)))) == [
        "to approve:  bailiwick gate --allow a.py"
    ]
    assert "bailiwick self-heal" in next(advice(_report("red", _check())))
    assert "not tested" in next(advice(_report("environment")))
    assert list(advice(_report("green"))) == []


def test_an_agent_is_told_of_doubts_with_the_hunk_and_of_reasons() -> None:
    """It may take them back or explain before a person is asked."""
    text = failing_text(_report("needs_person", _check("passed"), doubts=(DOUBT,)))
    assert "shop/prices.py:3: reads sys.modules" in text
    assert "    +import sys" in text
    red = failing_text(
        _report("red", _check(failing=(TEST,), reasons=(WHY,)), taken=(RevertedChange("c.py", "added"),))
    )
    assert f"fails: {TEST}  (tests/test_a.py:12: assert 190 == 180)" in red
    assert "reverted (protected)" in red


def test_reasons_survive_being_kept() -> None:
    """A report is read again by `why` and by proposals."""
    report = _report("red", _check(failing=(TEST,), reasons=(WHY,)))
    assert read_report(report.to_json()) == report
