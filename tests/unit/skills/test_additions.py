"""What was there stays: tests in a file that gains one, names in a module that is refactored."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.skills.additions import lost_names, only_adds, public_names

TESTS = b"import pytest\n\n\ndef test_a():\n    assert 1\n\n\ndef test_b():\n    assert 2\n"
SCRIPT = b"describe('cart', () => {\n  it('is empty', () => {\n    expect(1)\n  })\n})\n"
NAMES = st.from_regex(r"[a-z]{1,6}", fullmatch=True).filter(lambda name: not keyword.iskeyword(name))


@pytest.mark.parametrize(
    ("new", "adds"),
    [
        (TESTS + b"\n\ndef test_c():\n    assert 3\n", True),
        (b"from calc import sub\n" + TESTS + b"\n\ndef test_c():\n    assert sub(1, 1) == 0\n", True),
        (b"def test_c():\n    assert 3\n", False),
        (TESTS.replace(b"assert 2", b"assert 1"), False),
        (TESTS.replace(b"def test_a", b"@pytest.mark.skip\ndef test_a"), False),
        (TESTS + b"\n\ndef test_a():\n    assert 3\n", False),
        (TESTS + b"\n\npytestmark = pytest.mark.skip\n", False),
        (b"", False),
        (b"def (", False),
    ],
)
def test_a_python_test_file_only_grows(new: bytes, adds: bool) -> None:
    """Replaced, shadowed and switched off tests are lost tests."""
    assert only_adds(TESTS, new, "tests/test_x.py") is adds


@pytest.mark.parametrize(
    ("new", "adds"),
    [
        (SCRIPT.replace(b"\n})", b"\n  it('adds only one', () => {\n    expect(2)\n  })\n})"), True),
        (b"it('is new', () => {})\n", False),
        (SCRIPT.replace(b"  it(", b"/*\n  it(").replace(b"\n})", b"\n*/\n})"), False),
        (b"describe.skip('all', () => {\n" + SCRIPT + b"})\n", False),
        (SCRIPT.replace(b"is empty", b"was empty"), False),
        (SCRIPT.replace(b"\n", b"\r\n"), True),
    ],
)
def test_another_language_keeps_every_line_in_order(new: bytes, adds: bool) -> None:
    """And no added line switches off what was there."""
    assert only_adds(SCRIPT, new, "web/cart.test.ts") is adds


@given(st.lists(NAMES, min_size=1, unique=True), st.data())
def test_a_file_that_loses_a_test_never_passes_as_grown(names: list[str], data: st.DataObject) -> None:
    """Whatever is left out, and whatever comes in its place."""
    parts = [f"def test_{name}():\n    assert {name!r}\n" for name in names]
    gone = data.draw(st.integers(0, len(parts) - 1))
    kept = [part for number, part in enumerate(parts) if number != gone]
    new = "\n".join([*kept, "def test_new_one():\n    assert 1\n"])
    assert not only_adds("\n".join(parts).encode(), new.encode(), "test_x.py")
    assert only_adds("\n".join(parts).encode(), "\n".join([*parts, "def test_new_one(): pass\n"]).encode(), "test_x.py")


MODULE = b"""
import os
from a import thing
LIMIT = 3
first, second = 1, 2
_private = 1
def parse(text): ...
class Cart:
    def add(self): ...
    def _inner(self): ...
if os.name:
    def here(): ...
"""


def test_the_public_names_of_a_module_are_what_it_defines() -> None:
    """Imports are its own business, private names too."""
    assert public_names(MODULE, "shop.py") == {"LIMIT", "first", "second", "parse", "Cart", "Cart.add", "here"}
    assert "thing" in public_names(MODULE, "shop/__init__.py")
    assert public_names(b"__all__ = ['_x']\ny = 1\n", "a.py") == {"_x"}
    assert public_names(b"def (", "a.py") == frozenset()


@pytest.mark.parametrize(
    ("new", "lost"),
    [
        (MODULE, []),
        (MODULE.replace(b"def parse(text): ...", b"from shop.parsing import parse"), []),
        (MODULE.replace(b"def parse(text): ...", b"parse = other"), []),
        (MODULE.replace(b"def parse(text)", b"def read(text)"), ["parse"]),
        (MODULE.replace(b"    def add(self): ...\n", b""), ["Cart.add"]),
        (
            MODULE.replace(b"class Cart:\n    def add", b"class Base:\n    def add").replace(
                b"if os", b"class Cart(Base): ...\nif os"
            ),
            [],
        ),
        (MODULE.replace(b"    def add(self): ...\n", b"").replace(b"Cart:", b"Cart(Mixin):"), []),
        (b"from shop.parts import *\n", []),
        (None, ["Cart", "Cart.add", "LIMIT", "first", "here", "parse", "second"]),
    ],
)
def test_a_name_is_lost_where_nobody_can_use_it_any_more(new: bytes | None, lost: list[str]) -> None:
    """It may come from another module or from a base class now."""
    assert lost_names(MODULE, new, "shop.py") == lost


@pytest.mark.parametrize(
    ("path", "source", "names"),
    [
        ("a.ts", b"export function a() {}\nexport const b = 1\nexport { c, d as e }\nfunction f() {}\n", "a b c e"),
        ("a.js", b"module.exports.a = 1\nexports.b = 2\n", "a b"),
        ("a.go", b"func Add() {}\nfunc (c Cart) Sum() {}\ntype Cart struct {}\nfunc add() {}\n", "Add Cart Sum"),
        ("a.rs", b"pub fn add() {}\npub struct Cart;\npub const MOST: u8 = 1;\nfn inner() {}\n", "Cart MOST add"),
    ],
)
def test_other_languages_say_what_they_export(path: str, source: bytes, names: str) -> None:
    """By the words that their files begin lines with."""
    assert public_names(source, path) == set(names.split())
