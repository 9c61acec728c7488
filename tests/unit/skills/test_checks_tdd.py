"""Red, green and refactor are what the runner and the files show, never what a model says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from bailiwick.errors import UsageError
from bailiwick.gate.outcomes import Fault, PytestItem, PytestSession, TestOutcome
from bailiwick.routing.model import CheckOutcome, FileOut
from bailiwick.skills.checks_tdd import check_green, check_red, check_refactor, declared, expect_green, expect_test
from bailiwick.skills.site import Check, CheckArguments
from bailiwick.skills.trials import CheckRun
from tests.unit.skills.skill_stage import DONE, FakeSite, judged

BASE = {"calc.py": "def add(a, b):\n    return a + b\n", "tests/test_add.py": "old\n", "pyproject.toml": "[tool.x]\n"}
NEW = "tests/test_sub.py"
ASKED = CheckArguments("pytest", NEW, "calc.py")
MISSING = "E   ImportError: cannot import name 'sub' from 'calc'"


def ran(outcomes: Mapping[str, TestOutcome], code: int, **more: object) -> CheckRun:
    """A run of pytest."""
    items = tuple(PytestItem(test, test.partition("::")[0]) for test in outcomes)
    return CheckRun(code, f"[exit code {code}]", replace(PytestSession(outcomes, items, exit=code), **more))  # type: ignore[arg-type]


GREEN = ran({"tests/test_add.py::test": "passed", f"{NEW}::test": "passed"}, 0)
RED = ran({"tests/test_add.py::test": "passed"}, 1, uncollected=(NEW,), texts={NEW: MISSING})


BEFORE = ran({"tests/test_add.py::test": "passed"}, 0)


def check(with_: Check, site: FakeSite, asked: CheckArguments = ASKED) -> CheckOutcome:
    return judged(with_, DONE, site, asked)


def red(files: Mapping[str, str], tried: CheckRun = RED, before: CheckRun = BEFORE) -> CheckOutcome:
    return check(check_red, FakeSite(BASE, {**BASE, **files}, {"after": tried, "before": before}))


def test_a_test_that_misses_a_symbol_is_red() -> None:
    """The reason is told, and the file is named."""
    checked = red({NEW: "from calc import sub\n"})
    assert checked.ok
    assert checked.file_path == f"/project/{NEW}"
    assert checked.details["reason"] == "missing"


def test_the_empty_package_file_of_a_folder_of_tests_may_come_along() -> None:
    """Some layouts need it; one with code in it is product code."""
    new = {"tests/new/test_sub.py": "x\n", "tests/new/__init__.py": ""}
    lost = "tests/new/test_sub.py"
    tried = ran({}, 1, uncollected=(lost,), texts={lost: MISSING})
    assert red(new, tried).ok
    assert not red({**new, "tests/new/__init__.py": "import os\n"}, tried).ok


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "nothing was written"),
        ({NEW: "x\n", "calc.py": "changed\n"}, "calc.py"),
        ({NEW: "x\n", "tests/test_two.py": "y\n"}, "exactly one"),
        ({"tests/conftest.py": "x\n"}, "tests/conftest.py"),
        ({"notes.md": "x\n"}, "notes.md"),
    ],
)
def test_red_writes_one_test_file_and_nothing_else(files: dict[str, str], why: str) -> None:
    """Product code is untouched."""
    checked = red(files)
    assert not checked.ok
    assert why in checked.feedback


def test_a_deleted_test_is_no_red() -> None:
    """It would only look like a change to one test file."""
    site = FakeSite(BASE, {path: text for path, text in BASE.items() if path != "tests/test_add.py"}, {"after": RED})
    assert "deleted" in check(check_red, site).feedback


def test_an_accepted_red_loses_no_test_of_the_file_it_writes_to() -> None:
    """The file may grow; whatever it had stays, and the next attempt hears that."""
    site = {**BASE, "tests/test_add.py": "def test():\n    assert add(1, 1) == 2\n"}
    more = site["tests/test_add.py"] + "\n\ndef test_sub():\n    assert sub(1, 1) == 0\n"
    failed = {"tests/test_add.py::test_sub": "E   NameError: name 'sub' is not defined"}
    outcomes: dict[str, TestOutcome] = {"tests/test_add.py::test": "passed", "tests/test_add.py::test_sub": "failed"}
    asserted = {"tests/test_add.py::test_sub": "E   assert 1 == 0\n\ntests/test_add.py:6: AssertionError"}

    def tried(text: str, run: CheckRun) -> CheckOutcome:
        return check(check_red, FakeSite(site, {**site, "tests/test_add.py": text}, {"after": run, "before": BEFORE}))

    assert tried(more, ran(outcomes, 1, texts=asserted)).ok
    alone = {"tests/test_add.py::test_sub": outcomes["tests/test_add.py::test_sub"]}
    replaced = tried("def test_sub():\n    assert sub(1, 1) == 0\n", ran(alone, 1, texts=failed))
    assert not replaced.ok
    assert "tests/test_add.py was there before" in replaced.feedback


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (ran({"tests/test_add.py::test": "failed", f"{NEW}::test": "failed"}, 1), "1 tests that were there before"),
        (ran({f"{NEW}::test": "failed"}, 1), "1 tests that were there before"),
        (
            replace(RED, session=PytestSession(uncollected=(NEW, "tests/test_add.py"), exit=2)),
            "can't be loaded any more",
        ),
    ],
)
def test_a_new_test_file_keeps_no_other_test_from_counting(after: CheckRun, why: str) -> None:
    """A second file of one name, or a module that is changed while tests are collected, costs others their place."""
    texts = {f"{NEW}::test": f"E   assert 1 == 0\n\n{NEW}:2: AssertionError", NEW: MISSING}
    tried = replace(after, session=replace(after.session or PytestSession(), texts=texts))
    checked = red({NEW: "def test():\n    assert sub(1, 1) == 0\n"}, tried)
    assert not checked.ok
    assert why in checked.feedback


@pytest.mark.parametrize(
    ("tried", "why"),
    [
        (GREEN, "the tests pass"),
        (ran({"tests/test_add.py::test": "failed"}, 1), "no test of tests/test_sub.py fails"),
        (ran({}, 5), "no test of tests/test_sub.py fails"),
        (ran({f"{NEW}::test": "skipped"}, 0), "the tests pass"),
        (replace(RED, code=None, timed_out=True), "out of time"),
        (replace(RED, missing="pytest"), "pytest is not there"),
        (ran({}, 1, faults=(Fault("forged-record", "somebody else wrote"),)), "can't be trusted"),
        (ran({f"{NEW}::test": "error"}, 1, texts={f"{NEW}::test": "E   fixture 'x' not found"}), "broken itself"),
        (ran({}, 1, uncollected=(NEW,), texts={NEW: "E   SyntaxError: invalid syntax"}), "broken itself"),
    ],
)
def test_red_that_is_none_is_refused_with_the_reason(tried: CheckRun, why: str) -> None:
    """A syntax error, a missing fixture, no test at all: the next attempt hears which."""
    checked = red({NEW: "x\n"}, tried)
    assert not checked.ok
    assert why in checked.feedback


def test_one_broken_test_spoils_a_file_of_good_ones() -> None:
    """It could never become green."""
    texts = {
        f"{NEW}::a": f"E   assert 1\n\n{NEW}:1: AssertionError",
        f"{NEW}::b": "E   NameError: x\n\n" + f"{NEW}:2: NameError",
    }
    tried = ran({f"{NEW}::a": "failed", f"{NEW}::b": "failed"}, 1, texts=texts)
    assert "broken itself" in red({NEW: "x\n"}, tried).feedback


def test_an_assertion_that_always_fails_is_no_red() -> None:
    """Nothing that is written could make it pass."""
    outcomes: dict[str, TestOutcome] = {"tests/test_add.py::test": "passed", f"{NEW}::test": "failed"}
    tried = ran(outcomes, 1, texts={f"{NEW}::test": f"E   assert False\n\n{NEW}:2: AssertionError"})
    assert "whatever is written" in red({NEW: "def test():\n    assert False\n"}, tried).feedback
    assert red({NEW: "def test():\n    assert add(1, 1) == 3\n"}, tried).ok


def test_a_package_that_the_project_needs_and_lacks_is_no_missing_symbol() -> None:
    """It is the environment that is not ready."""
    site = FakeSite(
        {"pyproject.toml": '[project]\ndependencies = ["Requests>=2"]\n', "requirements.txt": "numpy==2\n"}, {}
    )
    assert set(asyncio.run(declared(site))) == {"Requests", "numpy"}


def test_another_runner_is_judged_by_what_it_prints() -> None:
    """And whose failure it is: the new test is named, or all was green before."""
    failed = CheckRun(1, "AssertionError: 1 != 2\n[exit code 1]")
    assert red({NEW: "x\n"}, failed, CheckRun(0, "ok")).ok
    assert "failed before too" in red({NEW: "x\n"}, failed, failed).feedback
    named = CheckRun(1, "FAIL: test_a (test_sub.T)\nAssertionError: 1 != 2")
    assert red({NEW: "x\n"}, named, named).ok
    assert "not like this" in red({NEW: "x\n"}, CheckRun(2, "make: Error 2")).feedback
    assert "no test ran" in red({NEW: "x\n"}, CheckRun(0, "Ran 0 tests")).feedback


def test_parts_of_pytest_that_only_the_change_exchanges_are_noticed() -> None:
    """What the project exchanges anyway is its own business."""
    odd = replace(RED, session=replace(RED.session or PytestSession(), changed=frozenset({"_pytest.runner.x"})))
    own = frozenset({"_pytest.config.Config.rootdir"})
    assert "_pytest.runner.x" in red({NEW: "x\n"}, odd).feedback
    changed = replace(RED, session=replace(RED.session or PytestSession(), changed=own))
    assert check(check_red, FakeSite(BASE, {**BASE, NEW: "x\n"}, {"after": changed, "before": BEFORE})).ok
    assert red({NEW: "x\n"}, odd, odd).ok


WRITTEN = {**BASE, NEW: "the test\n"}


def green(files: Mapping[str, str], tried: CheckRun = GREEN, asked: CheckArguments = ASKED) -> CheckOutcome:
    return check(check_green, FakeSite(WRITTEN, {**WRITTEN, **files}, {"after": tried, "before": RED}), asked)


def test_green_is_an_exit_code_and_the_named_test_among_those_that_passed() -> None:
    """The file that was written is named."""
    checked = green({"calc.py": "better\n"})
    assert checked.ok
    assert checked.file_path == "/project/calc.py"
    assert green({"calc.py": "better\n"}, asked=replace(ASKED, test_path=f"{NEW}::test")).ok


@pytest.mark.parametrize(
    "path",
    [
        NEW,
        "tests/test_add.py",
        "tests/test_more.py",
        "conftest.py",
        "tests/conftest.py",
        "pytest.ini",
        "tox.ini",
        "setup.cfg",
        "sitecustomize.py",
        "requirements.txt",
        "pytest.py",
        "src/pytest_x.py",
        "package-lock.json",
    ],
)
def test_green_that_touches_what_decides_is_refused_without_running_it(path: str) -> None:
    """The test, another test, or what a runner loads by itself."""
    site = FakeSite(WRITTEN, {**WRITTEN, "calc.py": "better\n", path: "changed\n"}, {"after": GREEN})
    checked = check(check_green, site)
    assert not checked.ok
    assert path in checked.feedback
    assert site.ran == []


def test_the_settings_of_pytest_are_not_changed_but_others_may_be() -> None:
    """They stand in a file that also holds the product's own data."""
    settings = '[tool.x]\n[tool.pytest.ini_options]\naddopts = "--ignore=tests"\n'
    assert "settings of pytest" in green({"pyproject.toml": settings}).feedback
    assert green({"pyproject.toml": "[tool.x]\nyes = 1\n"}).ok
    assert not green({"pyproject.toml": "not toml ["}).ok


def test_data_of_the_tests_stays_as_it_is() -> None:
    """A fixture's file decides too."""
    site = FakeSite({**WRITTEN, "tests/data.json": "1"}, {**WRITTEN, "tests/data.json": "2"}, {"after": GREEN})
    assert "belongs to the tests" in check(check_green, site).feedback


@pytest.mark.parametrize(
    ("tried", "why"),
    [
        (RED, "fail with exit code 1"),
        (ran({"tests/test_add.py::test": "passed"}, 0), "was not run"),
        (ran({f"{NEW}::test": "skipped"}, 0), "not passed but skipped"),
        (ran({f"{NEW}::test": "xfailed"}, 0), "not passed but xfailed"),
        (ran({f"{NEW}::test": "passed"}, 0, contradicted=frozenset({f"{NEW}::test"})), "reported as passed"),
        (CheckRun(0, "Ran 0 tests in 0.000s"), "no test ran"),
        (CheckRun(3, "boom"), "exit code 3"),
    ],
)
def test_green_that_is_none_is_refused_with_the_reason(tried: CheckRun, why: str) -> None:
    """Exit code 0 alone is not green where more can be known."""
    assert why in green({"calc.py": "better\n"}, tried).feedback


def test_a_test_with_parameters_is_named_without_them() -> None:
    """Each of its cases has to pass."""
    named = replace(ASKED, test_path=f"{NEW}::test")
    assert green({}, ran({f"{NEW}::test[1]": "passed", f"{NEW}::test[2]": "passed"}, 0), named).ok
    assert not green({}, ran({f"{NEW}::test_other": "passed"}, 0), named).ok


def refactor(files: Mapping[str, str], after: CheckRun = GREEN, /, **result: object) -> CheckOutcome:
    site = FakeSite(WRITTEN, {**WRITTEN, **files}, {"before": GREEN, "after": after})
    return asyncio.run(check_refactor(replace(DONE, **result), site, ASKED))  # type: ignore[arg-type]


NICER = "def add(one, two):\n    return one + two\n"


def test_a_refactoring_keeps_every_public_name() -> None:
    """A name that no test uses may be somebody's."""
    assert "calc.py had add" in refactor({"calc.py": "def _plus(a, b):\n    return a + b\n"}).feedback
    moved = {"calc.py": "from sums import add\n", "sums.py": NICER}
    assert refactor(moved).ok


def test_a_refactoring_keeps_every_test_that_passed() -> None:
    """Green before and after, and none lost."""
    assert refactor({"calc.py": NICER}).ok
    assert "no longer do" in refactor({"calc.py": NICER}, ran({f"{NEW}::test": "passed"}, 0)).feedback
    assert not refactor({"calc.py": NICER}, RED).ok
    assert not refactor({"calc.py": NICER, NEW: "weaker\n"}).ok


def test_a_refactoring_changes_the_file_or_says_that_it_needs_nothing() -> None:
    """Another file alone is not what was asked for; the same file again is not a change."""
    assert refactor({}).ok
    assert "calc.py" in refactor({"other.py": "x\n"}).feedback
    assert "as they were before" in refactor({}, files=(FileOut("calc.py", "same"),)).feedback


def test_a_call_that_can_not_be_done_is_refused_before_a_model_is_asked() -> None:
    """A test that is not there, tests that are red before a refactoring."""
    site = FakeSite(BASE, BASE, {"before": RED})
    with pytest.raises(UsageError, match="test_sub"):
        asyncio.run(expect_test(site, ASKED))
    with pytest.raises(UsageError, match="not green"):
        asyncio.run(expect_green(site, ASKED))
    asyncio.run(expect_test(FakeSite(WRITTEN, WRITTEN), replace(ASKED, test_path=f"{NEW}::test[1]")))
    asyncio.run(expect_green(FakeSite(BASE, BASE, {"before": GREEN}), ASKED))
