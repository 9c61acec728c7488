"""Which functions a change touches, and the statement that is put at their start."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.diffs.functions import ChangedFunction, changed_code, functions_of, insert_at_start
from tests.unit.gate.diffs.sources import modules

BASE = '''"""Prices."""
import math
from os import path

LIMIT = 3


def discount(price: float, percent=10):
    """The price after a discount."""
    return price - price * percent / 100


class Shelf:
    """Holds things."""
    size = 4

    class Row:
        def length(self):
            return 1

    @property
    def label(self):
        return "a"

    @label.setter
    def label(self, value):
        self.value = value


if LIMIT:
    def late():
        return 1
'''


def _changed(old: str, new: str) -> tuple[list[str], bool]:
    found = changed_code(old.encode(), new.encode())
    assert not found.unreadable
    return [function.qualname for function in found.functions], found.module_level


UNTOUCHED = {
    "nothing": ("x", "x"),
    "a comment": ("    return price", "    # why\n    return price"),
    "a docstring": ("The price after a discount.", "What is left."),
    "the module's docstring": ('"""Prices."""', '"""Costs."""'),
    "a class's docstring": ("Holds things.", "Shelves."),
    "an annotation": ("price: float", "price: int"),
    "layout": ("price - price * percent / 100", "(\n        price - (price * percent) / 100\n    )"),
    "an added import": ("import math\n", "import math\nimport json\n"),
    "a longer import": ("from os import path\n", "from os import path, sep\n"),
}


@pytest.mark.parametrize("edit", UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_what_does_not_change_behaviour_is_no_change(edit: tuple[str, str]) -> None:
    """Else every reformatting would have to be exercised by tests."""
    assert _changed(BASE, BASE.replace(*edit)) == ([], False)


TOUCHED = {
    "a body": (("percent / 100", "percent / 10"), ["discount"], False),
    "a default": (("percent=10", "percent=11"), ["discount"], True),
    "a decorator": (("    @property\n", "    @property\n    @staticmethod\n"), ["Shelf.label"], True),
    "a nested method": (("return 1\n\n    @", "return 2\n\n    @"), ["Shelf.Row.length"], False),
    "one of two of a name": (("self.value = value", "self.value = 1"), ["Shelf.label"], False),
    "below an if": (("        return 1\n", "        return 2\n"), ["Shelf.Row.length", "late"], False),
    "a class attribute": (("size = 4", "size = 5"), [], True),
    "a base class": (("class Shelf:", "class Shelf(dict):"), [], True),
    "a module statement": (("LIMIT = 3", "LIMIT = 4"), [], True),
    "a star import": (("import math\n", "import math\nfrom os import *\n"), [], True),
    "an import of a builtin's name": (("import math\n", "import math\nfrom os import open\n"), [], True),
    "an import of a name in use": (("import math\n", "import math\nfrom os import discount\n"), [], True),
    "a lost import": (("import math\n", ""), [], True),
    "a lost function": (("if LIMIT:\n    def late():\n        return 1\n", ""), [], True),
    "a new function": (("LIMIT = 3\n", "LIMIT = 3\ndef new(): pass\n"), ["new"], False),
    "a new class": (("LIMIT = 3\n", "LIMIT = 3\nclass New:\n    def run(self): pass\n"), ["New.run"], False),
    "a new empty class": (("LIMIT = 3\n", "LIMIT = 3\nclass New: pass\n"), [], True),
}


@pytest.mark.parametrize("case", TOUCHED.values(), ids=TOUCHED.keys())
def test_what_changes_behaviour_is_named(case: tuple[tuple[str, str], list[str], bool]) -> None:
    """What runs at import is told apart from what runs when called: it can't be exercised in the same way."""
    edit, names, module_level = case
    assert _changed(BASE, BASE.replace(*edit)) == (names, module_level)


def test_a_new_file_has_only_new_functions() -> None:
    """Nothing of it was there before."""
    found = changed_code(None, b"import os\n\n\n@cache\ndef a():\n    pass\n")
    assert found.functions == (ChangedFunction("a", 4, "a"),)
    assert not found.module_level


@pytest.mark.parametrize("source", [b"def f(:\n", b"\0", b"# coding: nonsense\n", b"x = " + b"-" * 20_000 + b"1\n"])
def test_what_can_not_be_read_says_so(source: bytes) -> None:
    """Whoever asks has to know that nothing is known."""
    found = changed_code(b"def f(): pass\n", source)
    assert found.unreadable
    assert found.module_level
    assert functions_of(source) == ()


@given(modules())
def test_a_source_is_not_changed_against_itself(source: str) -> None:
    """The same tree is no change, whatever is in it."""
    found = changed_code(source.encode(), source.encode())
    assert (found.functions, found.module_level) == ((), False)


def _put(source: bytes, statement: str = "NOTE(1)") -> bytes:
    return insert_at_start(source, functions_of(source), lambda _: statement)


STARTS = {
    "simple": ("def f():\n    return 1\n", "def f():\n    S; return 1\n"),
    "on the line of def": ("def f(): return 1\n", "def f(): S; return 1\n"),
    "behind a docstring": ('def f():\n    "d"\n    return 1\n', 'def f():\n    "d"; S\n    return 1\n'),
    "only a docstring": ('def f():\n    """d\n    e"""\n', 'def f():\n    """d\n    e"""; S\n'),
    "a block": ("def f():\n    if x:\n        pass\n", "def f():\n    S\n    if x:\n        pass\n"),
    "a block behind a docstring": ('def f():\n    "d"\n    if x: pass\n', 'def f():\n    "d"; S\n    if x: pass\n'),
    "a decorated function": ("def f():\n    @d\n    def g(): pass\n", "def f():\n    S\n    @d\n    def g(): pass\n"),
    "tabs": (
        "class A:\n\tdef f(self):\n\t\tfor x in y:\n\t\t\tpass\n",
        "class A:\n\tdef f(self):\n\t\tS\n\t\tfor x in y:\n\t\t\tpass\n",
    ),
    "async": ("async def f():\n    await x\n", "async def f():\n    S; await x\n"),
    "line ends": ("def f():\r\n    if x:\r\n        pass\r\n", "def f():\r\n    S\r\n    if x:\r\n        pass\r\n"),
    "a form feed": ("x = 1\n\x0c\ndef f():\n    return 1\n", "x = 1\n\x0c\ndef f():\n    S; return 1\n"),
    "continued": ("def f(): \\\n  return 1\n", "def f(): \\\n  S; return 1\n"),
}


@pytest.mark.parametrize("case", STARTS.values(), ids=STARTS.keys())
def test_the_statement_stands_first_behind_the_docstring(case: tuple[str, str]) -> None:
    """A function that raises there has done nothing yet, and lines stay where they are wherever they can."""
    before, after = case
    assert _put(before.encode(), "S") == after.encode()


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode("utf-8-sig"),
        lambda text: f"# coding: latin-1\n{text}".encode("latin-1"),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.rstrip("\n").encode(),
    ],
)
def test_the_encoding_of_a_file_is_kept(encode: Callable[[str], bytes]) -> None:
    """Columns count in bytes of UTF-8, whatever the file is written in."""
    source = encode("def f():\n    'é'; return 'é'\n")
    changed = _put(source)
    space: dict[str, object] = {"NOTE": lambda _: None}
    exec(compile(changed, "<test>", "exec"), space)
    function = space["f"]
    assert callable(function)
    assert function() == "é"
    assert b"NOTE(1)" in changed


def test_a_function_that_can_not_take_the_statement_is_left_alone() -> None:
    """The rest of the file is still changed."""
    source = b"def f():\n    global seen; seen = 1\n\n\ndef g():\n    return 1\n"
    changed = insert_at_start(source, functions_of(source), lambda f: "seen = 2" if f.name == "f" else "NOTE(1)")
    assert changed == source.replace(b"return 1", b"NOTE(1); return 1")


def test_a_statement_that_the_encoding_has_no_letters_for_is_left_out() -> None:
    """Nothing is written that can't be read back."""
    source = b"# coding: ascii\ndef f():\n    return 1\n"
    assert _put(source, "NOTE('\N{RIGHTWARDS ARROW}')") == source


def _results(source: bytes) -> list[object]:
    space: dict[str, object] = {"NOTE": lambda _: None, "__file__": __file__}
    exec(compile(source, "<test>", "exec"), space)
    found: list[object] = []
    holders = [space, *(vars(value) for name, value in space.items() if name.startswith("Holder"))]
    for holder in holders:
        for name, value in list(holder.items()):
            if callable(value) and name.split("_")[0] in {"alpha", "beta", "gamma", "delta"}:
                found += [(name, value(n)) for n in (0, 1, 7)]
    return found


@given(modules(), st.sampled_from(["\n", "\r\n"]))
def test_a_statement_that_does_nothing_changes_nothing(source: str, newline: str) -> None:
    """The program with it parses, has the same functions, and gives the same results."""
    raw = source.replace("\n", newline).encode()
    changed = _put(raw)
    assert _results(changed) == _results(raw)
    names = [function.qualname for function in functions_of(raw)]
    assert [function.qualname for function in functions_of(changed)] == names
    assert changed.count(b"NOTE(1)") == len(names)
    ast.parse(changed)
