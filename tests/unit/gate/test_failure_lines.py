"""Why a test fails, read from what pytest says of it; recorded with pytest 9 in four styles of traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bailiwick.gate.failure_lines import MOST, failure_line, failure_lines, reason_of, reasons_of
from bailiwick.gate.model import CheckResult

RECORDINGS = Path(__file__).parent / "recordings"
TEXTS: dict[str, str] = json.loads((RECORDINGS / "pytest-failures.json").read_text("utf-8"))
LINES = {
    "long tests/test_c.py": "tests/test_c.py:1: ModuleNotFoundError: No module named 'yaml_is_missing'",
    "long tests/test_s.py": "tests/test_s.py:1: SyntaxError: invalid syntax",
    "long test_assert": "tests/test_a.py:6: assert 190 == 180",
    "long test_message": "tests/test_a.py:10: ten percent (assert 190 == 180)",
    "long test_product": "shop/prices.py:9: ZeroDivisionError: division by zero",
    "long test_fixture": "tests/test_a.py:19: RuntimeError: the till is shut",
    "long test_missing": "tests/test_a.py:26: fixture 'nope' not found",
    "long test_raises": "tests/test_a.py:31: Failed: DID NOT RAISE KeyError",
    "long test_fail": "tests/test_a.py:36: Failed: not yet",
    "long test_xpass": "[XPASS(strict)] known",
    "long test_chain": "tests/test_a.py:48: ValueError: no price",
    "long test_multi": r"tests/test_a.py:52: assert 'a\nb\n' == 'a\nc\n'",
    "long test_dict": "tests/test_a.py:56: assert {'a': 1, 'b': 2} == {'a': 1, 'b': 3}",
    "long test_raise": "tests/test_u.py:11: AssertionError: KeyError not raised",
    "long test_sub": "tests/test_u.py:17: AssertionError: False is not true : too small",
    "long test_ten": "tests/test_u.py:8: AssertionError: 190 != 180",
    "short test_assert": "tests/test_a.py:6: assert 190 == 180",
    "short test_product": "shop/prices.py:9: ZeroDivisionError: division by zero",
    "short test_chain": "tests/test_a.py:48: ValueError: no price",
    "short test_ten": "tests/test_u.py:8: AssertionError: 190 != 180",
    "line test_assert": "assert 190 == 180",
    "line test_product": "ZeroDivisionError: division by zero",
    "line test_chain": "ValueError: no price",
    "line test_ten": "AssertionError: 190 != 180",
    "native test_assert": "tests/test_a.py:6: assert 190 == 180",
    "native test_product": "shop/prices.py:9: ZeroDivisionError: division by zero",
    "native test_chain": "tests/test_a.py:48: ValueError: no price",
    "native test_ten": "tests/test_u.py:8: AssertionError: 190 != 180",
}


def _check(failing: tuple[str, ...], output: str = "", reasons: tuple[str, ...] = ()) -> CheckResult:
    return CheckResult("tests", "pytest", "tests", "failed", output=output, failing=failing, reasons=reasons)


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_each_recorded_failure_becomes_its_place_and_its_words(name: str) -> None:
    """A person reads one line and knows where to look."""
    assert failure_line(TEXTS[name]) == LINES[name]


def test_a_failure_inside_an_installed_package_is_placed_where_the_tree_called_it() -> None:
    """Nobody can repair the package: the line of the test is what helps."""
    text = (
        "tests/test_a.py:3: in test_close\n    check(1, 2)\n"
        "/env/lib/python3.11/site-packages/lib/check.py:97: in check\n    raise\n"
        "E   AssertionError: 1, 2\n"
    )
    assert failure_line(text) == "tests/test_a.py:3: AssertionError: 1, 2"


@pytest.mark.parametrize("text", ["", "\n\n", "E", "E   ", "_ _ _", "x" * 10_000, "\x00\x1b[31m", "a:b:1: in c"])
def test_any_text_gives_one_bounded_line(text: str) -> None:
    """Code under test can print what it likes."""
    made = failure_line(text)
    assert "\n" not in made
    assert len(made) <= max(400, len(text))


def test_lines_name_their_test_and_are_bounded_in_number() -> None:
    """The form that a report keeps."""
    made = failure_lines([(f"t.py::test_{n}", "E   assert 1 == 2\n\nt.py:3: AssertionError") for n in range(99)])
    assert made[0] == "t.py::test_0: t.py:3: assert 1 == 2"
    assert len(made) == MOST


def test_what_a_check_knows_comes_before_what_its_runner_printed() -> None:
    """Outcomes come over a pipe from outside the test process; output can be forged."""
    known = _check(("t.py::test_a",), "FAILED t.py::test_a - all is well", ("t.py::test_a: t.py:3: assert 1 == 2",))
    assert reason_of(known, "t.py::test_a") == "t.py:3: assert 1 == 2"
    assert reason_of(known, "t.py::test_b") == ""


def test_reasons_are_read_from_the_terminal_s_text_where_nothing_else_is_known() -> None:
    """Also a check with only an exit code can run pytest."""
    output = (RECORDINGS / "pytest-output.txt").read_text("utf-8")
    failing = (
        "tests/test_a.py::test_assert",
        "tests/test_a.py::test_fixture",
        "tests/test_c.py",
        "tests/test_u.py::DiscountTest::test_ten",
        "tests/test_a.py::test_nonesuch",
    )
    assert reasons_of(_check(failing, output)) == (
        "tests/test_a.py::test_assert: tests/test_a.py:6: assert 190 == 180",
        "tests/test_a.py::test_fixture: tests/test_a.py:19: RuntimeError: the till is shut",
        "tests/test_c.py: tests/test_c.py:1: ModuleNotFoundError: No module named 'yaml_is_missing'",
        "tests/test_u.py::DiscountTest::test_ten: tests/test_u.py:8: AssertionError: 190 != 180",
        "tests/test_a.py::test_nonesuch",
    )


def test_the_summary_is_used_where_only_its_end_is_left() -> None:
    """Long output is cut at its beginning."""
    output = "…\nFAILED t.py::test_a - assert 190 == 180\n1 failed in 0.1s\n"
    assert reasons_of(_check(("t.py::test_a",), output)) == ("t.py::test_a: assert 190 == 180",)
