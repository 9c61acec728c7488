"""Expectations that lie in the product: what changes there is told."""

from __future__ import annotations

import pytest

from bailiwick.gate.diffs.expectations import asserting_helpers, changed_doctests, own_assertions, rewritten_docstrings

PRODUCT = '''
def check_price(price):
    """A price is no less than nothing."""
    seen.append(price)
    assert price >= 0
    log(price)


def must(value):
    if not value:
        raise AssertionError("no value")


def total(prices):
    prices = list(prices)
    assert prices != [None]
    return sum(prices)


def add(item):
    assert item is not None
    ITEMS.append(item)


class Shelf:
    def verify(self):
        assert self.size > 0, "empty"
'''
TESTS = {
    "tests/test_a.py": b"""
def test_check():
    check_price(3)
    must(3)
    total([1])
    add(3)

def test_shelf():
    Shelf().verify()
"""
}


def _helpers(*edit: str, tests: dict[str, bytes] | None = None) -> list[tuple[str, bool]]:
    new = PRODUCT.replace(edit[0], edit[1])
    assert new != PRODUCT
    found = asserting_helpers(PRODUCT.encode(), new.encode(), "shop.py", TESTS if tests is None else tests)
    assert all(finding.code == "expectation-helper" and not finding.blocks for finding in found)
    return [(finding.what.split()[0], finding.parks) for finding in found]


CHANGED = {
    "weaker": (("price >= 0", "True"), "check_price"),
    "gone": (("    assert price >= 0\n", ""), "check_price"),
    "an early return": (("    seen.append(price)\n", "    return\n"), "check_price"),
    "an error that is not raised": (("if not value", "if value is ..."), "must"),
    "a method": (("self.size > 0", "self.size >= 0"), "Shelf.verify"),
    "deleted": (("def must(", "def mustnt("), "must"),
    "something around it": (("def must(", "@quietly\ndef must("), "must"),
}


@pytest.mark.parametrize("case", CHANGED.values(), ids=CHANGED.keys())
def test_a_changed_function_that_asserts_for_tests_asks_for_a_person(case: tuple[tuple[str, str], str]) -> None:
    """The test that calls it rests on it: without its assertion the test says nothing."""
    edit, name = case
    assert _helpers(*edit) == [(name, True)]


UNTOUCHED = {
    "behind the assertion": ("    log(price)\n", "    log(price, 2)\n"),
    "a docstring": ("no less than nothing", "at least nothing"),
    "a type checker's assertion": ("ITEMS.append(item)", "ITEMS.insert(0, item)"),
}


@pytest.mark.parametrize("edit", UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_what_leaves_the_assertion_alone_is_no_finding(edit: tuple[str, str]) -> None:
    """Products assert for reasons of their own."""
    assert _helpers(*edit) == []


def test_a_function_that_gives_something_back_is_a_note() -> None:
    """It may well be called for what it gives; not so where its assertion is another one."""
    assert _helpers("list(prices)", "sorted(prices)") == [("total", False)]
    assert _helpers("!= [None]", "!= []") == [("total", True)]


def test_only_what_tests_call_as_a_statement_counts() -> None:
    """An assertion that no test rests on is the product's own."""
    assert _helpers("price >= 0", "True", tests={"tests/test_a.py": b"def test_a(): x = check_price(3)\n"}) == []
    assert asserting_helpers(None, PRODUCT.encode(), "shop.py", TESTS) == ()


DOCUMENTED = '''"""Prices.

>>> discount(200, 10)
180
"""


def label(name):
    """A label.

    >>> label("a")
    'A'
    >>> label("b")  # doctest: +ELLIPSIS
    'B...'
    """
'''


def _doctests(old: str, new: str, path: str = "shop.py") -> list[str]:
    found = changed_doctests(old.encode(), new.encode(), path)
    assert all(finding.code == "expectation-doctest" and finding.parks and not finding.blocks for finding in found)
    return [finding.what for finding in found]


LOST = {
    "another value": (("\n180\n", "\n190\n"), "expects something else"),
    "another call": (("discount(200, 10)", "discount(200, 5)"), "changed or gone"),
    "skipped": (('label("a")\n', 'label("a")  # doctest: +SKIP\n'), "+SKIP"),
    "deleted": (("    >>> label(\"a\")\n    'A'\n", ""), "changed or gone"),
    "a deleted function": ((DOCUMENTED[DOCUMENTED.index("def label") :], ""), "changed or gone"),
}


@pytest.mark.parametrize("case", LOST.values(), ids=LOST.keys())
def test_a_changed_example_asks_for_a_person(case: tuple[tuple[str, str], str]) -> None:
    """An example that is run is a test, wherever it stands."""
    edit, said = case
    found = _doctests(DOCUMENTED, DOCUMENTED.replace(*edit))
    assert found
    assert all(said in what for what in found)


KEPT = {
    "more": ('    >>> label("a")\n', '    >>> label("c")\n    \'C\'\n    >>> label("a")\n'),
    "words": ("A label.", "What is written on a shelf."),
    "moved": ("def label", "def other():\n    pass\n\n\ndef label"),
}


@pytest.mark.parametrize("edit", KEPT.values(), ids=KEPT.keys())
def test_more_examples_and_other_words_are_fine(edit: tuple[str, str]) -> None:
    """Examples may be added, and move within their file."""
    assert _doctests(DOCUMENTED, DOCUMENTED.replace(*edit)) == []


@pytest.mark.parametrize("path", ["README.md", "docs/use.rst", "notes.txt"])
def test_examples_in_documents_count(path: str) -> None:
    """They are run by the same tools."""
    old = "# Use\n\n```pycon\n>>> discount(200, 10)\n180\n```\n\nMore.\n"
    assert _doctests(old, old.replace("180", "190"), path)
    assert _doctests(old, old.replace("More.", "Less.").replace("# Use", "# How"), path) == []
    assert _doctests("no examples", "none", path) == []


def test_what_can_not_be_read_has_no_examples() -> None:
    """Others tell of such a file."""
    assert _doctests("def f(:", "def g(:") == []
    assert _doctests('"""\n>>>x\n"""\n', '"""\n>>>y\n"""\n') == []


AROUND = {
    "a context manager": (
        "def sold(stock, count):\n    before = sum(stock)\n    yield\n    assert before - sum(stock) == count\n",
        "def test_a():\n    with sold(stock, 3):\n        pass\n",
    ),
    "a class around": (
        "class sold:\n  def __enter__(self):\n    self.x = 1\n  def __exit__(self, *e):\n    assert self.x == 1\n",
        "def test_a():\n    with testing.sold(stock) as s, b:\n        pass\n",
    ),
    "a decorator": (
        "def sold(n_):\n  def deco(f):\n    def g():\n      f()\n      assert n() == 1\n    return g\n  return deco\n",
        "@sold(3)\ndef test_a():\n    pass\n",
    ),
    "behind a helper": (
        "def _compare(a, b):\n    assert a == 1\ndef sold(a):\n    _compare(a, 1)\n",
        "def test_a():\n    sold(1)\n",
    ),
    "behind two helpers": (
        "def _deep(a):\n    assert a == 1\ndef _compare(a):\n    _deep(a)\ndef sold(a):\n    _compare(a)\n",
        "def test_a():\n    sold(1)\n",
    ),
}


@pytest.mark.parametrize("case", AROUND.values(), ids=AROUND.keys())
def test_a_helper_that_tests_reach_in_another_way_asks_for_a_person(case: tuple[str, str]) -> None:
    """By `with`, as a decorator, or behind a helper that does nothing but assert."""
    old, test = case
    new = old.replace("== ", "<= ")
    found = asserting_helpers(old.encode(), new.encode(), "till/testing.py", {"tests/test_a.py": test.encode()})
    assert [(finding.code, finding.parks) for finding in found] == [("expectation-helper", True)]


def test_a_product_that_checks_itself_may_change() -> None:
    """What does something and asserts on the way is no helper of tests."""
    old = b"def _valid(a):\n    assert a == 1\ndef add(self, a):\n    _valid(a)\n    self.items.append(a)\n"
    test = {"tests/test_a.py": b"def test_a():\n    add(1)\n"}
    assert asserting_helpers(old, old.replace(b"== 1", b">= 1"), "till/stock.py", test) == ()


def test_examples_that_are_set_at_run_time_ask_for_a_person() -> None:
    """They can't be read in the diff; to hand on another docstring is common."""
    old = b"def f():\n    pass\n"
    for code in (b"f.__doc__ = f.__doc__.replace('1', '2')\n", b"setattr(f, '__doc__', 'x')\n", b"__test__ = {}\n"):
        assert [f.parks for f in rewritten_docstrings(old, old + code, "a.py")] == [True]
        assert rewritten_docstrings(old + code, old + code, "a.py") == ()
    for code in (b"f.__doc__ = g.__doc__\n", b"f.__doc__ = f'the old name of {g.__name__}'\n"):
        assert rewritten_docstrings(old, old + code, "a.py") == ()
    assert rewritten_docstrings(old, old + b"f.__doc__ = '>>> f()'\n", "a.py") != ()


@pytest.mark.parametrize(
    "more", ["from till._checks import same\n", "same = print\n", "import checks as same\n", "del same\n"]
)
def test_a_helper_whose_name_means_something_else_asks_for_a_person(more: str) -> None:
    """Its own lines stay, and tests call another function."""
    old = "def same(a, b):\n    assert a == b\n"
    test = {"tests/test_a.py": b"def test_a():\n    same(1, 1)\n"}
    found = asserting_helpers(old.encode(), (old + more).encode(), "till/testing.py", test)
    assert [(finding.code, finding.parks) for finding in found] == [("expectation-helper", True)]
    assert asserting_helpers((old + more).encode(), (old + more).encode(), "till/testing.py", test) == ()


@pytest.mark.parametrize(
    ("method", "asks"),
    [
        ("assertEqual", True),
        ("fail", True),
        ("run", True),
        ("_baseAssertEqual", True),
        ("setUp", True),
        ("shortDescription", False),
        ("pay", False),
    ],
)
def test_a_class_that_brings_tests_a_judging_method_asks_for_a_person(method: str, asks: bool) -> None:
    """The tests call unittest's name and get the product's answer; a class that no test is made of is none of that."""
    old = "import unittest\n\nclass Case(unittest.TestCase):\n    def assert_cost(self): self.assertEqual(1, 1)\n"
    new = f"{old}\n    def {method}(self, *words): ...\n"
    tests = {
        "tests/test_a.py": b"from shop import testing\n\nclass TestTill(testing.Case):\n    def test_a(self): ...\n"
    }
    found = own_assertions(old.encode(), new.encode(), "shop/testing.py", tests)
    assert [(finding.code, finding.blocks, finding.parks) for finding in found] == (
        [("expectation-helper", False, True)] if asks else []
    )
    assert own_assertions(new.encode(), new.encode(), "shop/testing.py", tests) == ()
    assert own_assertions(old.encode(), new.encode(), "shop/testing.py", {}) == ()


BEHIND = """
CENT = 0.005

def is_near(one, other): return abs(one - other) < CENT

def assert_price(one, other):
    assert is_near(one, other)

def total(prices): return sum(prices)
"""


@pytest.mark.parametrize(
    ("edit", "asks"),
    [(("0.005", "1"), True), (("< CENT", "< CENT + one"), True), (("sum(prices)", "sum(prices, 0)"), False)],
)
def test_what_only_an_asserting_helper_rests_on_is_part_of_it(edit: tuple[str, str], asks: bool) -> None:
    """A tolerance, a predicate: the assertion itself is not touched, and says something else."""
    test = {"tests/test_a.py": b"def test_a():\n    assert_price(1, 1)\n"}
    found = asserting_helpers(BEHIND.encode(), BEHIND.replace(*edit).encode(), "shop.py", test)
    assert [(finding.code, finding.parks) for finding in found] == ([("expectation-helper", True)] if asks else [])
    used = BEHIND + "\ndef cheap(price): return is_near(price, 0)\n"
    shared = asserting_helpers(used.encode(), used.replace(*edit).encode(), "shop.py", test)
    assert shared == (), "the product uses it too: its tests say what it has to be"


@pytest.mark.parametrize("more", ["cents.__doc__ = grams.__doc__\n", "update_wrapper(cents, grams)\n"])
def test_examples_that_are_taken_from_elsewhere_ask_for_a_person(more: str) -> None:
    """The test is still there by its name, and another one."""
    old = 'def cents(x):\n    """Cents.\n\n    >>> cents(1)\n    100\n    """\n\ndef grams(x):\n    """Grams."""\n'
    (found,) = rewritten_docstrings(old.encode(), (old + more).encode(), "shop.py")
    assert found.parks
    other = more.replace("cents", "x").replace("grams", "cents").replace("x", "grams")
    assert rewritten_docstrings(old.encode(), (old + other).encode(), "shop.py") == ()
