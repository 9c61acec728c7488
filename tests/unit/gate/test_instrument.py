"""Test files are rewritten so that comparisons are asked again: they do the same, on the same lines."""

from __future__ import annotations

import ast
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.instrument import Instrumented, Target, instrument


class Passing:
    """Stands in for what runs inside: does the real thing and notes the places."""

    def __init__(self) -> None:
        self.reached: list[int] = []

    def c(self, site: int, name: str, _side: object, left: Any, right: Any) -> Any:
        self.reached.append(site)
        made: dict[str, Any] = {
            "==": lambda: left == right,
            "!=": lambda: left != right,
            "<": lambda: left < right,
            "<=": lambda: left <= right,
            ">": lambda: left > right,
            ">=": lambda: left >= right,
            "in": lambda: left in right,
            "not in": lambda: left not in right,
        }
        return made[name]()

    def t(self, site: int, value: Any) -> Any:
        self.reached.append(site)
        return value

    def m(self, site: int, function: Any, *args: Any, **named: Any) -> Any:
        self.reached.append(site)
        return function(*args, **named)

    def k(self, site: int, _names: object, result: Any) -> Any:
        self.reached.append(site)
        return result

    def s(self, _site: int, value: Any) -> Any:
        return value

    def q(self, _site: int, name: str, value: Any, *args: Any) -> Any:
        return getattr(value, name)(*args)

    def b(self, _site: int, left: Any, right: Any) -> Any:
        return left - right

    i = r = w = m
    n = s


def _instrument(text: str) -> Instrumented:
    made = instrument("tests/test_x.py", dedent(text).encode(), "_bw")
    assert made is not None
    return made


def _run(text: str) -> tuple[Passing, dict[str, Any]]:
    inside = Passing()
    names: dict[str, Any] = {"_bw": inside}
    exec(compile(_instrument(text).source, "tests/test_x.py", "exec"), names)
    return inside, names


@pytest.mark.parametrize(
    "body",
    [
        "assert a == 1",
        "assert 1 == a, f'{a == 2}'",
        "assert (a) == (1)",
        "assert (a == # why\n        1)",
        "assert a in [1, 2] and not a not in (1,)",
        "assert 0 < a < 2",
        "assert [x for x in (1, 2) if x == a] == [1]",
        "assert (lambda y: y >= a)(3)",
        "assert isinstance(a, int), 'no'",
        "assert not a != 1 or a <= 0",
        "assert (a, a) == (1, 1) == (1, 1)",
        "assert (0) < (a) <= (2) != a - 5",
        "assert not (a - 1) and abs((a) - (-2)) == 3",
        "assert not (a -\n        1)",
        "assert str(a).startswith('1',) and not f'{a}'.endswith('2', 0)",
        "assert ('x' + str(a)).startswith('x') and str(a).join(['a', 'b']).count('1') - 1 == 0",
        "assert all(x > 0 for x in (a, a))",
        "b = a == 1; assert b",
        "if a == 1:\n        assert a\n    else:\n        assert False",
    ],
)
def test_a_rewritten_test_does_the_same_on_the_same_lines(body: str) -> None:
    """What a person wrote decides; only more is asked."""
    text = f"def test_x(a=1):\n    {body}\n    return 'done'\n"
    inside, names = _run(text)
    assert names["test_x"]() == "done"
    assert inside.reached
    made = _instrument(text)
    assert len(made.source.splitlines()) == len(text.splitlines())


def test_a_failing_test_still_fails() -> None:
    """Asking again never turns red into green."""
    _, names = _run("def test_x(a=1):\n    assert a == 2\n")
    with pytest.raises(AssertionError):
        names["test_x"]()


def test_each_place_says_its_line_and_what_surely_runs_is_known() -> None:
    """A test that passes without reaching a place it has to reach did not run to its end."""
    made = _instrument(
        """
        def test_x(self, a, cm, pytest):
            assert a
            self.assertEqual(a, 1)
            with pytest.raises(ValueError):
                a.b()
                assert False
            with cm:
                assert a
            for x in a:
                assert x
            if a:
                return
            assert a == 3
        """
    )
    sure = made.reach[Target(2, "test_x")].sure
    assert sorted(made.sites[number].line for number in sure) == [3, 4, 5, 9]


@pytest.mark.parametrize("ending", ["pytest.skip('x')", "self.skipTest('x')", "yield 1"])
def test_behind_what_may_end_a_test_nothing_is_sure(ending: str) -> None:
    """An honest test may leave early."""
    made = _instrument(f"def test_x(self, a):\n    {ending}\n    assert a\n")
    assert made.reach[Target(1, "test_x")].sure == frozenset()


@pytest.mark.parametrize("source", [b"def (", b"\xff\xfe\x00", b"x = 1\n", b"def f(): pass\n"])
def test_what_can_t_be_read_or_holds_nothing_is_left_alone(source: bytes) -> None:
    """A file in another language, or without any comparison, costs nothing."""
    made = instrument("x.py", source, "_bw")
    assert made is None or not made.sites


OPERANDS = st.sampled_from(
    [
        "a",
        "(a)",
        "[1, 2][0]",
        "f(a)",
        "a + 1",
        "(a if a else 2)",
        "'#'",
        "{'k': a}",
        "-a",
        "a.real",
        "(x := a)",
        "f(a)[:1]",
    ]
)
OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in", " not  in ", "is", "is not"])


@given(
    left=OPERANDS, right=OPERANDS, operator=OPERATORS, wrap=st.sampled_from(["{}", "({})", "not ({})", "({}) and a"])
)
def test_any_comparison_can_be_rewritten(left: str, right: str, operator: str, wrap: str) -> None:
    """Whatever stands on both sides, the file stays Python with the same functions."""
    text = f"def test_x(a, f):\n    assert {wrap.format(f'{left} {operator} {right}')}\n"
    try:
        ast.parse(text)
    except SyntaxError:
        return
    made = instrument("x.py", text.encode(), "_bw")
    assert made is not None
    assert made.sites
    assert [node.name for node in ast.parse(made.source).body if isinstance(node, ast.FunctionDef)] == ["test_x"]


def test_a_chain_keeps_what_it_does_not_need_unread() -> None:
    """The operands after one that decides are not looked at."""
    _, names = _run("def test_x(read):\n    assert not (2 < 1 < read())\n    return 'done'\n")
    assert names["test_x"](lambda: 1 / 0) == "done"


def test_assertions_in_loops_and_conditions_are_known() -> None:
    """What has another branch is left out: there one of both is reached."""
    made = _instrument(
        """
        def test_x(rows):
            for row in rows:
                assert row
                if row > 1:
                    assert row == 2
            if rows:
                assert rows
            else:
                assert not rows
            assert rows == 1
        """
    )
    (reach,) = made.reach.values()
    assert sorted(made.sites[number].line for number in reach.held) == [4, 6]
    assert [made.sites[number].line for number in reach.looped] == [4]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("EmptyOrder", "r"),
        ("orders.EmptyOrder", "r"),
        ("(ValueError, EmptyOrder)", "r"),
        ("Exception", "w"),
        ("error", "w"),
    ],
)
def test_only_imported_kinds_of_errors_may_be_wider_than_their_name(said: str, kind: str) -> None:
    """A test that itself says `Exception` means it."""
    text = f"""
        import orders, pytest
        from orders import EmptyOrder
        def test_x(error):
            with pytest.raises({said}):
                pass
        """
    assert f"_bw.{kind}(".encode() in _instrument(text).source
