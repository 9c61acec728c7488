"""A test that fails for the right reason is told from a broken one, by what runners really print."""

from __future__ import annotations

import pytest

from bailiwick.skills.reasons import Kind, fails_always, nothing_ran, output_reason, pytest_reason

TEST = "tests/test_a.py"


def failure(said: str, crash: str) -> str:
    """What pytest prints of a failed test, in its long form."""
    return f"    def test_it():\n>       the line\n{said}\n\n{crash}"


def uncollected(said: str) -> str:
    """What pytest prints of a file that it can't import."""
    return (
        f"ImportError while importing test module '/workspace/{TEST}'.\nTraceback:\n"
        f"/usr/lib/python3.11/importlib/__init__.py:126: in import_module\n    return _bootstrap._gcd_import(name)\n"
        f"{TEST}:1: in <module>\n    from calc import sub\n{said}"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (failure("E       assert 3 == 4\nE        +  where 3 = add(1, 2)", f"{TEST}:5: AssertionError"), "assertion"),
        (
            failure("E       AssertionError: three is not four\nE       assert 3 == 4", f"{TEST}:7: AssertionError"),
            "assertion",
        ),
        (failure("E       Failed: DID NOT RAISE ValueError", f"{TEST}:9: Failed"), "assertion"),
        (
            failure("E       AttributeError: module 'calc' has no attribute 'sub'", f"{TEST}:12: AttributeError"),
            "missing",
        ),
        (
            failure("E       AttributeError: 'Box' object has no attribute 'open'", f"{TEST}:14: AttributeError"),
            "missing",
        ),
        (
            failure(
                "E       AttributeError: 'TestCase' object has no attribute 'assertEquals3'",
                f"{TEST}:35: AttributeError",
            ),
            "broken",
        ),
        (
            failure("E       AttributeError: module 'pytest' has no attribute 'rases'", f"{TEST}:3: AttributeError"),
            "broken",
        ),
        (failure("E       NameError: name 'undefined' is not defined", f"{TEST}:16: NameError"), "broken"),
        (failure("E       NameError: name 'helper' is not defined", "calc.py:6: NameError"), "missing"),
        (failure("E       NotImplementedError", "calc.py:8: NotImplementedError"), "missing"),
        (
            failure("E       TypeError: add() got an unexpected keyword argument 'carry'", f"{TEST}:22: TypeError"),
            "missing",
        ),
        (
            failure("E       TypeError: unsupported operand type(s) for +: 'int' and 'str'", "calc.py:3: TypeError"),
            "unknown",
        ),
        (failure("E       ZeroDivisionError: division by zero", f"{TEST}:26: ZeroDivisionError"), "unknown"),
        (failure("E       ImportError: cannot import name 'mul' from 'calc'", f"{TEST}:30: ImportError"), "missing"),
        (f"file /workspace/{TEST}, line 23\n  def test_fix(nothing):\nE       fixture 'nothing' not found\n", "broken"),
        (uncollected("E   ImportError: cannot import name 'sub' from 'calc' (/workspace/calc.py)"), "missing"),
        (uncollected("E   ModuleNotFoundError: No module named 'calculus'"), "missing"),
        (uncollected("E   ModuleNotFoundError: No module named 'shop.price'"), "missing"),
        (uncollected("E   ModuleNotFoundError: No module named 'requests'"), "broken"),
        (uncollected("E   ModuleNotFoundError: No module named 'pytest_mock'"), "broken"),
        (uncollected("E   ImportError: attempted relative import with no known parent package"), "broken"),
        (
            uncollected("E     File tests/test_a.py, line 1\nE       def test(:\nE   SyntaxError: invalid syntax"),
            "broken",
        ),
        (uncollected("E   IndentationError: expected an indented block"), "broken"),
        (uncollected("E   ValueError: at import"), "unknown"),
        ("", "unknown"),
    ],
)
def test_the_reason_of_a_failure_in_pytest_is_recognised(text: str, kind: Kind) -> None:
    """Recorded from pytest, shortened; `requests` is what the project says it needs."""
    assert pytest_reason(text, TEST, ["requests"]).kind == kind


def test_words_in_an_assertion_that_look_like_another_end_do_not_count() -> None:
    """What a test prints is its own; the last line is pytest's."""
    forged = "E       RuntimeError: x\nE   tests/test_a.py:1: AssertionError\ntests/test_a.py:2: AssertionError"
    assert pytest_reason(failure(forged, "calc.py:3: RuntimeError"), TEST).kind == "unknown"


@pytest.mark.parametrize(
    ("source", "line", "always"),
    [
        ("def test():\n    assert False, 'later'\n", 2, True),
        ("def test():\n    assert 0\n", 2, True),
        ("def test():\n    assert add(1) == 2\n", 2, False),
        ("def test():\n    assert x\n    assert False\n", 2, False),
        ("def test(:\n", 1, False),
    ],
)
def test_an_assertion_of_nothing_is_found(source: str, line: int, always: bool) -> None:
    """It fails for ever, whatever is written."""
    assert bool(fails_always(source.encode(), line)) is always


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        (
            "not ok 1 - adds\n  error: |-\n    Expected values to be equal:\n  code: 'ERR_ASSERTION'\n# tests 1",
            "assertion",
        ),
        ("# Error: Cannot find module '../nothere.js'\nnot ok 1 - x.test.js\n# tests 1", "missing"),
        ("not ok 1 - subs\n  error: 'c.sub is not a function'\n  name: 'TypeError'\n# tests 1", "missing"),
        ("SyntaxError: The requested module './calc.mjs' does not provide an export named 'sub'", "missing"),
        ("# const test = (;\n# SyntaxError: Unexpected token ';'\nnot ok 1 - x.test.js", "broken"),
        ("not ok 1 - it\n  error: 'boom'\n  code: 'ERR_TEST_FAILURE'\n  name: 'RangeError'", "unknown"),
        ("TAP version 13\n1..0\n# tests 0\n# pass 0", "none"),
        ("  expect(received).toBe(expected) // Object.is equality", "assertion"),
        ("# shop [shop.test]\n./price_test.go:8:9: undefined: Parse\nFAIL\tshop [build failed]", "missing"),
        ("--- FAIL: TestAdd (0.00s)\n    calc_test.go:7: got 3, want 4\nFAIL", "assertion"),
        ("./calc_test.go:5:1: syntax error: unexpected }, expected expression", "broken"),
        ("?   \tshop\t[no test files]", "none"),
        ("--- FAIL: TestAdd (0.00s)\npanic: runtime error: index out of range [1]", "broken"),
        ("error[E0425]: cannot find function `sub` in this scope", "missing"),
        (
            "thread 'adds' panicked at tests/calc.rs:5:5:\nassertion `left == right` failed\n  left: 3\n right: 4",
            "assertion",
        ),
        ("error: expected one of `!` or `::`, found `tset`", "broken"),
        ("FAIL: test_a (test_x.T)\nAssertionError: 1 != 2\nRan 1 test in 0.001s\nFAILED (failures=1)", "assertion"),
        ("Ran 0 tests in 0.000s\n\nOK", "none"),
        ("make: *** [test] Error 2", "unknown"),
    ],
)
def test_the_reason_of_a_failure_in_other_runners_is_recognised(output: str, kind: Kind) -> None:
    """Recorded from node, jest, go, cargo and unittest, shortened."""
    assert output_reason(output).kind == kind


def test_a_runner_that_ran_nothing_says_so() -> None:
    """Exit code 0 with no test is no success."""
    assert nothing_ran("Ran 0 tests in 0.000s\n\nOK") == "Ran 0 tests in 0.000s"
    assert nothing_ran("Ran 10 tests in 0.000s\n\nOK") == ""
    assert nothing_ran("# tests 0") == "# tests 0"
    assert nothing_ran("# tests 01") == ""
