"""A test file that only gains tests is told apart from one that is changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.diffs.appended import Appended, appended
from tests.security.shop import TESTS
from tests.unit.gate.diffs.sources import functions, modules

BASE = '''"""Prices."""
import os
import unittest
import pytest
from shop import prices
from shop.prices import discount, total

RATES = [1, 2]
prices.seen = 0


@pytest.fixture
def client(db):
    return len(RATES)


def check(value):
    assert value


def test_total(client):
    """Sums."""
    check(total([1]) == 1)


class TestCase(unittest.TestCase):
    def helper(self):
        return self.answer

    def test_half(self):
        self.assertEqual(discount(10, 50), 5)


class TestPlain(Mixin):
    limit = 3

    def test_limit(self):
        assert self.limit == 3
'''
ADDED = {
    "a test": ("def test_more():\n    assert total([2]) == 2\n", ("test_more",)),
    "several": ("def test_a(): pass\n\n\nasync def test_b(): pass\n", ("test_a", "test_b")),
    "a class": (
        "class TestMore:\n    size = 1\n    def setup_method(self): pass\n    def test_a(self): pass\n",
        ("TestMore",),
    ),
    "imports": ("import json\nfrom decimal import Decimal as D\n", ()),
    "a value": ("CASES = [(1, 'a'), (2, 'b')]\n", ("CASES",)),
    "a made value": ("from decimal import Decimal\nPRICE = Decimal('1.5')\n", ("PRICE",)),
    "an annotated value": ("PRICE: float = 1.5\n", ("PRICE",)),
    "a parametrized test": ("@pytest.mark.parametrize('v', [discount(1, 2)])\ndef test_v(v): assert v\n", ("test_v",)),
    "a fixture": ("@pytest.fixture\ndef basket():\n    return [1]\n", ("basket",)),
    "a repeated import": ("import pytest\nfrom shop.prices import total\n", ()),
    "a global of its own": ("COUNT = 0\ndef test_c():\n    global COUNT\n    COUNT = 1\n", ("COUNT", "test_c")),
    "nothing": ("# a comment\n", ()),
}


@pytest.mark.parametrize("case", ADDED.values(), ids=ADDED.keys())
def test_definitions_imports_and_new_names_are_additions(case: tuple[str, tuple[str, ...]]) -> None:
    """They can't change what the tests of the base see."""
    more, names = case
    assert appended(BASE.encode(), f"{BASE}\n\n{more}".encode()) == Appended(names)


INSIDE = {
    "a method": (
        "    def test_half(self):",
        "    def test_third(self):\n        pass\n\n    def test_half(self):",
        ("TestCase.test_third",),
    ),
    "a longer import": ("import discount, total", "import discount, parse, total", ()),
    "between statements": ("def check(", "def test_early():\n    pass\n\n\ndef check(", ("test_early",)),
    "a method of a class with unknown bases": (
        "    limit = 3\n",
        "    limit = 3\n    def test_x(self): pass\n",
        ("TestPlain.test_x",),
    ),
    "a helper of a known class": ("    def helper(", "    def more(self): pass\n    def helper(", ("TestCase.more",)),
}


@pytest.mark.parametrize("case", INSIDE.values(), ids=INSIDE.keys())
def test_classes_and_imports_may_grow(case: tuple[str, str, tuple[str, ...]]) -> None:
    """Most new tests stand beside their kin."""
    before, after, names = case
    assert appended(BASE.encode(), BASE.replace(before, after, 1).encode()) == Appended(names)


REFUSED = {
    "a call": "print(1)\n",
    "an attribute of the product": "prices.discount = lambda a, b: 180\n",
    "an item": "RATES[0] = 2\n",
    "del": "del check\n",
    "a name that is bound": "RATES = [3]\n",
    "a function again": "def check(value): pass\n",
    "a test again": "def test_total(): pass\n",
    "a builtin in use": "def len(x): return 1\n",
    "the name of a parameter": "@pytest.fixture\ndef db(): return 1\n",
    "a fixture by another name": "@pytest.fixture(name='client')\ndef _other(): return 1\n",
    "a fixture of pytest": "@pytest.fixture\ndef monkeypatch(): return 1\n",
    "autouse": "@pytest.fixture(autouse=True)\ndef quiet(): yield\n",
    "plugins": "pytest_plugins = ['evil']\n",
    "a mark": "pytestmark = pytest.mark.skip\n",
    "a hook": "def pytest_generate_tests(metafunc): pass\n",
    "set-up": "def setup_module(): pass\n",
    "unittest's set-up": "def setUpModule(): pass\n",
    "load_tests": "def load_tests(a, b, c): return b\n",
    "getattr": "def __getattr__(name): return 1\n",
    "a star": "from shop.prices import *\n",
    "an import of a name in use": "from other import total\n",
    "a global": "def test_g():\n    global RATES\n    RATES = []\n",
    "a product call": "VALUE = prices.discount(1, 2)\n",
    "an imported product call": "VALUE = discount(1, 2)\n",
    "system modules": "import sys\nVALUE = sys.modules.pop('shop')\n",
    "a walrus": "VALUE = (RATES := 3)\n",
    "an if": "if True:\n    def test_i(): pass\n",
    "a class that acts": "class TestX:\n    prices.discount = None\n",
    "setattr in a decorator": "@pytest.mark.parametrize('v', [setattr(prices, 'x', 1)])\ndef test_s(v): pass\n",
    "two targets": "A = B = 1\n",
}


@pytest.mark.parametrize("more", REFUSED.values(), ids=REFUSED.keys())
def test_what_could_change_other_tests_is_no_addition(more: str) -> None:
    """Such a file is a changed test file, and protected."""
    assert appended(BASE.encode(), f"{BASE}\n\n{more}".encode()) is None


CHANGED = {
    "an assertion": ("== 1)", "== 2)"),
    "a method that overrides": ("    def test_half", "    def assertEqual(self, a, b): pass\n\n    def test_half"),
    "a set-up in an old class": ("    def test_half", "    def setUp(self): pass\n\n    def test_half"),
    "an attribute in use": ("    def helper", "    answer = 1\n    def helper"),
    "a helper beside unknown bases": ("    limit = 3", "    limit = 3\n    other = 4"),
    "a base class": ("class TestPlain(Mixin)", "class TestPlain(Mixin, Other)"),
    "a lost test": ("class TestPlain(Mixin):", "class TestOther(Mixin):"),
    "order": ("RATES = [1, 2]\nprices.seen = 0", "prices.seen = 0\nRATES = [1, 2]"),
    "a decorator": ("def test_total", "@pytest.mark.skip\ndef test_total"),
    "not Python": ("def check(", "def check(("),
}


@pytest.mark.parametrize("edit", CHANGED.values(), ids=CHANGED.keys())
def test_a_changed_statement_is_no_addition(edit: tuple[str, str]) -> None:
    """What the base says has to stay, in order."""
    assert appended(BASE.encode(), BASE.replace(*edit, 1).encode()) is None


@given(modules(), functions(st.just("test_of_its_own")))
def test_a_function_may_be_appended_to_any_file(base: str, function: str) -> None:
    """A new test is a new test wherever it stands."""
    if function.startswith("def") and "global" not in function:
        assert appended(base.encode(), f"{base}\n\n{function}\n".encode()) == Appended(("test_of_its_own",))


@given(modules(), st.data())
def test_a_file_that_lost_a_statement_is_never_an_addition(base: str, data: st.DataObject) -> None:
    """However much is added elsewhere."""
    parts = base.split("\n\n")
    place = data.draw(st.integers(1, len(parts) - 1))
    rest = "\n\n".join([*parts[:place], *parts[place + 1 :], "def test_new(): pass"])
    assert appended(base.encode(), rest.encode()) is None


def test_the_shop_gains_a_test() -> None:
    """The project that the cheats are about, with one more test in its class and one at its end."""
    more = TESTS + "\n    def test_third(self) -> None:\n        self.assertEqual(prices.discount(9, 50), 4.5)\n"
    more += "\n\ndef test_parse() -> None:\n    assert prices.parse('2') == 2.0\n"
    assert appended(TESTS.encode(), more.encode()) == Appended(("TestInClass.test_third", "test_parse"))
