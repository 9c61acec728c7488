"""The rewriting of tests: what held no longer holds, and nothing else changes."""

from __future__ import annotations

import ast
import asyncio
import inspect
import unittest
from collections.abc import Callable
from contextlib import nullcontext, suppress
from textwrap import dedent, indent

import pytest

from bailiwick.gate.inversion import Target, invert


class Agreeable:
    """Claims to equal, contain and exceed everything, as a product that cheats would."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return True

    __hash__ = object.__hash__

    def __contains__(self, item: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return True

    __gt__ = __le__ = __ge__ = __lt__


def _turned(body: str, head: str = "def test_it(x=None):") -> str:
    source = f"{head}\n{indent(dedent(body).strip(chr(10)), '    ')}\n"
    found = invert(source.encode(), [Target(1, "test_it")], "t0")
    assert found is not None
    assert found.done == {Target(1, "test_it")}
    return found.source.decode()


def _fails(source: str, *args: object) -> BaseException | None:
    """What the function raises, or None where it returns."""
    space: dict[str, object] = {"pytest": pytest, "suppress": suppress, "nullcontext": nullcontext}
    exec(compile(source, "<test>", "exec"), space)
    function = space["test_it"]
    assert callable(function)
    try:
        result = function(*args)
        if inspect.iscoroutine(result):
            asyncio.run(result)
    except BaseException as error:  # noqa: BLE001 - whatever a test fails with
        return error
    return None


HOLDING = {
    "equal": "assert 2 + 2 == 4",
    "the expected first": "assert 4 == 2 + 2",
    "not equal": "assert 2 + 2 != 5",
    "identity": "assert x is None",
    "no identity": "assert [] is not None",
    "in a text": "assert 'a' in 'abc'",
    "in a display": "assert 2 in (1, 2)",
    "not in": "assert 'z' not in 'abc'",
    "order": "assert 1 < 2",
    "chain": "assert 1 < 2 < 3",
    "chain that ends in a member": "assert 1 < 2 in [2]",
    "truth": "assert [1]",
    "no truth": "assert not []",
    "call": "assert isinstance(1, int)",
    "and": "assert 1 == 1 and 2 == 2",
    "or": "assert 1 == 1 or 2 == 3",
    "condition": "assert (1 if x is None else 0) == 1",
    "with a message": "assert 1 == 1, 'never'",
    "bound on the way": "assert (y := 3) == 3\nassert y != 4",
    "approximately": "assert 0.1 + 0.2 == pytest.approx(0.3)",
    "approximately, first": "assert pytest.approx(0.3) == 0.1 + 0.2",
    "over lines": "assert {\n    'a': 1,  # one\n    'b': 2,\n} == dict(\n    a=1,\n    b=2,\n)",
    "continued": "assert 1 \\\n    == 1",
    "raises": "with pytest.raises(ValueError):\n    int('x')",
    "raises, with more": "with pytest.raises((ValueError, KeyError), match='x') as caught:\n    int('x')",
    "raises, called": "pytest.raises(ValueError, int, 'x')",
    "in a block": "with nullcontext():\n    assert 1 == 1",
    "in a loop": "for i in (1, 2):\n    assert i\n",
    "in a branch": "if x is None:\n    assert 1 == 1\nelse:\n    assert 2 == 2",
    "in a try": "try:\n    assert 1 == 1\nexcept KeyError:\n    pass",
    "at last": "try:\n    pass\nfinally:\n    assert 1 == 1",
    "in a match": "match x:\n    case None:\n        assert 1 == 1",
    "nothing": "pass",
    "a call only": "print  # comment",
    "a return": "return None",
    "a block only": "with nullcontext():\n    pass  # comment",
    "an import": "import os",
    "only swallowed": "try:\n    assert 1 == 1\nexcept AssertionError:\n    pass",
    "suppressed": "with suppress(AssertionError):\n    assert 1 == 1\nx = 1",
    "inside a function of its own": "def inner():\n    assert 1 == 1\ninner",
    "not ASCII": "assert 'ä→' + 'ö' == 'ä→ö', 'ü'",
    "semicolons": "a = 1; assert a == 1; b = 2",
    "lambda": "assert (lambda: 1)() == (lambda: 1)()",
    "generator": "assert sum(i for i in (1, 2)) == 3",
}


@pytest.mark.parametrize("body", HOLDING.values(), ids=HOLDING.keys())
def test_a_test_that_passes_fails_when_inverted(body: str) -> None:
    """Otherwise a test that says nothing could not be told from one whose runner lies."""
    head = "def test_it(x=None):"
    plain = f"{head}\n{indent(dedent(body), '    ')}\n"
    assert _fails(plain) is None
    assert _fails(_turned(body)) is not None


def test_an_async_test_is_inverted_where_it_awaits() -> None:
    """An operand may be awaited; it still is."""
    source = _turned("assert await give(1) == 1", "async def test_it():")
    source += "\nasync def give(value): return value\n"
    assert isinstance(_fails(source), AssertionError)


@pytest.mark.parametrize("body", [
    "assert x == 5", "assert 5 == x", "assert x < 5", "assert 'a' in x", "assert x in [1, 2]", "assert x != 5",
    "assert x == pytest.approx(5)", "assert x == 5 and x == 6", "assert 1 < x < 3",
])  # fmt: skip
def test_an_object_that_equals_everything_still_passes(body: str) -> None:
    """The product's own object is asked, so that one that says yes to everything shows."""
    assert _fails(_turned(body), Agreeable()) is None


METHODS = {
    "assertEqual": "1, 1", "assertNotEqual": "1, 2", "assertTrue": "[1]", "assertFalse": "[]", "assertIs": "x, None",
    "assertIsNot": "x, 1", "assertIsNone": "x", "assertIsNotNone": "1", "assertIn": "1, [1]", "assertNotIn": "2, [1]",
    "assertIsInstance": "1, int", "assertNotIsInstance": "1, str", "assertAlmostEqual": "0.1 + 0.2, 0.3",
    "assertNotAlmostEqual": "1, 2", "assertGreater": "2, 1", "assertLessEqual": "1, 1", "assertRegex": "'ab', 'a'",
    "assertCountEqual": "[1, 2], [2, 1]", "assertListEqual": "[1], [1]", "assertDictEqual": "{1: 1}, {1: 1}",
    "assertRaises": "ValueError, int, 'x'", "assertMultiLineEqual": "'a', 'a'",
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_unittest_fail_when_inverted(method: str) -> None:
    """Half of all suites are written that way."""
    body = f"self.{method}({METHODS[method]})"
    case = unittest.TestCase()
    plain = f"def test_it(self, x=None):\n    {body}\n"
    assert _fails(plain, case) is None
    assert _fails(_turned(body, "def test_it(self, x=None):"), case) is not None


def test_the_block_of_assert_raises_fails_when_inverted() -> None:
    """The error that is expected is one that nobody raises, so the real one comes through."""
    body = "with self.assertRaises(ValueError):\n    int('x')"
    assert isinstance(_fails(_turned(body, "def test_it(self):"), unittest.TestCase()), ValueError)


def test_the_last_sure_assertion_is_the_one() -> None:
    """Up to there the test does all that it did, so that a product which acts late shows too."""
    done: list[int] = []
    body = "x.append(1)\nassert len(x) == 1\nx.append(2)\nassert len(x) == 2"
    assert isinstance(_fails(_turned(body), done), AssertionError)
    assert done == [1, 2]


def test_operands_are_evaluated_as_often_as_before() -> None:
    """What an operand does may be what the test is about."""
    for body in ("assert x.pop() == x.pop()", "assert x.pop() != 7", "assert x.pop() not in [x.pop()]"):
        values = [1, 2, 3]
        assert _fails(_turned(body), values) is not None
        assert len(values) == 3 - body.count("pop")


def test_lines_stay_where_they_are() -> None:
    """A traceback, a snapshot and a person find the line that they look for."""
    source = (
        "import os\n\n\ndef test_a():\n    assert (\n        1\n        == 1\n    )\n\n\ndef test_b():\n    print(1)\n"
    )
    found = invert(source.encode(), [Target(4, "test_a"), Target(11, "test_b")], "t0")
    assert found is not None
    lines = {node.name: node.lineno for node in ast.walk(ast.parse(found.source)) if isinstance(node, ast.FunctionDef)}
    assert lines == {"test_a": 4, "test_b": 11}


def test_only_the_wanted_functions_are_touched() -> None:
    """A helper with the same name elsewhere in the file is not the test; a decorator is where a function begins."""
    source = dedent("""
        def check(): assert 1 == 1
        class TestA:
            @staticmethod
            def test_a(): assert 2 == 2
            def test_b(self): assert 3 == 3
    """).lstrip()
    found = invert(source.encode(), [Target(3, "test_a"), Target(5, "test_c"), Target(99, "test_b")], "t0")
    assert found is not None
    assert found.done == {Target(3, "test_a")}
    text = found.source.decode()
    assert "1 == 1" in text
    assert "3 == 3" in text
    assert "2 == 2" not in text


@pytest.mark.parametrize("encode", [
    lambda text: text.encode("utf-8-sig"), lambda text: f"# coding: latin-1\n{text}".encode("latin-1"),
    lambda text: text.replace("\n", "\r\n").encode(), lambda text: text.rstrip("\n").encode(),
])  # fmt: skip
def test_every_way_to_write_a_file_is_kept(encode: Callable[[str], bytes]) -> None:
    """A byte order mark, another encoding, other line ends, no line end at the last line."""
    source = encode("def test_it():\n    assert 'é' == 'é'\n")
    line = 2 if b"coding" in source else 1
    found = invert(source, [Target(line, "test_it")], "t0")
    assert found is not None
    space: dict[str, object] = {}
    exec(compile(found.source, "<test>", "exec"), space)
    function = space["test_it"]
    assert callable(function)
    with pytest.raises(AssertionError):
        function()


@pytest.mark.parametrize(
    "source", [b"def test_it(:\n", b"\0", b"# coding: nonsense\n", "x = " + "(" * 5000, b"\xff\xfe"]
)
def test_what_is_no_python_is_left_alone(source: bytes | str) -> None:
    """A file that can't be read proves nothing, and nothing breaks."""
    raw = source if isinstance(source, bytes) else source.encode()
    assert invert(raw, [Target(1, "test_it")], "t0") is None
