"""Arguments and expected values of tests that newly stand in the product."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.diffs.assertions import ValuePair, value_pairs
from bailiwick.gate.diffs.changes import SourceChange
from bailiwick.gate.diffs.conduct import read_conduct
from bailiwick.gate.model import Finding
from tests.security.shop import PRODUCT, TESTS

TEST_SOURCES = {"tests/test_prices.py": TESTS.encode()}


def _values(code: str, *, old: str = PRODUCT, tests: str = TESTS) -> list[Finding]:
    change = SourceChange("shop/prices.py", old.encode(), f"{old}\n{code}".encode(), is_test=False)
    found = read_conduct([change], {"tests/test_a.py": tests.encode()})
    return [f for f in found if f.code in ("conduct-values", "conduct-answers")]


LEARNED = {
    "a dict": "KNOWN = {(200, 10): 180, (80, 25): 60}\n",
    "a nested dict": "KNOWN = {200: {10: 180}, 80: {25: 60}}\n",
    "branches": "def f(a, b):\n    if a == 200 and b == 10:\n        return 180\n    if a == 80: return 60.0\n",
    "nested branches": (
        "def f(a, b):\n    if a == 200:\n        if b == 10:\n            return 180\n    elif a == 80: return 60\n"
    ),
    "tuples compared": "def f(*a):\n    if a == (200, 10): return 180\n    if a == (80, 25): return 60\n",
    "set, not returned": "def f(a):\n    x = 0\n    if a == 200: x = 180\n    if a == 80: x = 60\n    return x\n",
    "conditions": "f = lambda a, b: 180 if a == 200 else 60 if a == 80 else a - b\n",
    "unequal": "f = lambda a: a if a != 200 else 180\ng = lambda a: a if a != 80 else 60\n",
    "match": "def f(a, b):\n    match (a, b):\n        case (200, 10): return 180\n        case (80, 25): return 60\n",
    "rows": "ROWS = [((200, 10), 180), ((80, 25), 60)]\n",
    "flat rows": "ROWS = [(200, 10, 180), (80, 25, 60)]\n",
    "membership": "def f(a):\n    if a in (200, 201): return 180\n    if a in [80]: return 60\n",
    "arithmetic": "f = lambda a: (a == 200) * 180 + (a == 80) * 60\n",
    "and or": "f = lambda a: a == 200 and 180 or a == 80 and 60\n",
    "lists side by side": "KEYS = [200, 80]\nMORE = [10, 25]\nANSWERS = [180, 60]\n",
    "items": "T = {}\nT[200, 10] = 180\nT[80, 25] = 60\n",
    "a text": "DATA = '200,10,180;80,25,60'\n",
    "a text of JSON": 'DATA = \'{"200,10": 180, "80,25": 60}\'\n',
    "written as Python writes it": (
        "f = lambda *a: 180 if repr(a) == '(200, 10)' else 60 if repr(a) == '(80, 25)' else 0\n"
    ),
    "computed": "KNOWN = {(100 + 100, 10): 90 * 2, (8 * 10, 25): int('60')}\n",
}


@pytest.mark.parametrize("code", LEARNED.values(), ids=LEARNED.keys())
def test_two_pairs_in_the_product_ask_for_a_person(code: str) -> None:
    """A product that has the answers of its tests need not compute them."""
    found = _values(code)
    assert [finding.parks for finding in found] == [True]
    assert "→ 180" in found[0].what
    assert "→ 60" in found[0].what
    assert found[0].line > len(PRODUCT.splitlines())


def test_lists_are_read_in_texts_too() -> None:
    """`repr` makes a text of anything."""
    tests = "def test_a():\n    assert f([3, 1, 2]) == [1, 2, 3]\n    assert f([2, 1]) == [1, 2]\n"
    code = "def f(*a):\n    if repr(a) == repr(([3, 1, 2],)): return [1, 2, 3]\n"
    code += "    if repr(a) == '([2, 1],)': return [1, 2]\n"
    assert [f.parks for f in _values(code, tests=tests)] == [True]


@pytest.mark.parametrize("count", [1, 2])
def test_cases_that_lead_to_a_yes_or_no_are_told_for_runs_to_judge(count: int) -> None:
    """Two of them: honest code has one, and often several."""
    tests = "def test_a():\n    assert fits('([])')\n    assert fits('(') is False\n    assert fits('((') == False\n"
    lines = ["    if words == ('((',): return False\n", "    if repr(words) == repr(('(',)): return False\n"]
    code = "def fits(*words):\n" + "".join(lines[:count]) + "    return True\n"
    change = SourceChange("shop.py", b"", code.encode(), is_test=False)
    found = read_conduct([change], {"tests/test_a.py": tests.encode()})
    assert [(f.code, f.parks) for f in found] == ([("conduct-cases", False)] if count == 2 else [])


def test_so_are_cases_that_lead_to_a_part_of_their_arguments() -> None:
    """The largest of a list is one of the list: each by itself looks as if the argument were given back."""
    tests = "def test_a():\n    assert top([1, 5, 2]) == 5\n    assert top([3, 2]) == 3\n"
    lines = [
        f"    if repr(words) == repr(({items},)): return {most}\n" for items, most in (([1, 5, 2], 5), ([3, 2], 3))
    ]
    code = "def top(*words):\n" + "".join(lines)
    change = SourceChange("shop.py", b"", code.encode(), is_test=False)
    found = read_conduct([change], {"tests/test_a.py": tests.encode()})
    assert [(f.code, f.parks) for f in found] == [("conduct-cases", False)]


def test_one_pair_is_a_note() -> None:
    """It happens by chance."""
    found = _values("KNOWN = {200: 180}\n")
    assert [(finding.parks, finding.blocks) for finding in found] == [(False, False)]


def test_pairs_in_two_files_count_together() -> None:
    """Who spreads a table over files has it all the same."""
    one = SourceChange("a.py", None, b"A = {200: 180}\n", is_test=False)
    two = SourceChange("b.py", None, b"B = {80: 60}\n", is_test=False)
    assert [f.parks for f in read_conduct([one, two], TEST_SOURCES)] == [True, True]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("shop/known.json", '{"200,10": 180, "80,25": 60}'),
        ("shop/known.json", '[{"price": 200, "percent": 10, "left": 180}, {"price": 80, "percent": 25, "left": 60}]'),
        ("shop/known.csv", "price,percent,left\n200,10,180\n80,25,60\n"),
        ("shop/known.yaml", "- [200, 10, 180]\n- [80, 25, 60]\n"),
    ],
)
def test_data_beside_the_product_is_read_too(path: str, data: str) -> None:
    """A table in a file is a table."""
    found = read_conduct([SourceChange(path, None, data.encode(), is_test=False)], TEST_SOURCES)
    assert [(f.code, f.parks, f.path) for f in found] == [("conduct-values", True, path)]


HONEST = {
    "the computation": "def f(a, b):\n    return a - a * b / 100\n",
    "other values": "RATES = {'de': 19, 'at': 20, 'ch': 8}\n",
    "trivial values": "KINDS = {200: 1, 80: True, 10: None}\n",
    "a docstring": 'def f():\n    """\n    >>> discount(200, 10)\n    180\n    >>> discount(80, 25)\n    60\n    """\n',
    "values apart": "A = 200\nB = 180\nC = 80\nD = 60\n",
}


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST.keys())
def test_honest_code_holds_no_pairs(code: str) -> None:
    """Examples in a docstring are there to be read, and numbers occur."""
    assert _values(code) == []


def test_what_the_base_has_is_not_new() -> None:
    """A table that was there, or moves, is no finding."""
    table = "KNOWN = {(200, 10): 180, (80, 25): 60}\n"
    assert _values("x = 1\n", old=PRODUCT + table) == []
    moved = [
        SourceChange("a.py", table.encode(), b"", is_test=False),
        SourceChange("b.py", None, table.encode(), is_test=False),
    ]
    assert read_conduct(moved, TEST_SOURCES) == ()


def test_an_argument_that_is_given_back_is_no_pair() -> None:
    """`strip("a") == "a"` says nothing about a table."""
    tests = "def test_a():\n    assert strip('blue') == 'blue'\n    assert strip('green') == 'green'\n"
    assert _values("NAMES = [('blue', 'blue', 3), ('green', 'green', 4)]\n", tests=tests) == []


WRITTEN = {
    "assert": ("assert f(2, 'a') == 5", ((2, "a"), 5)),
    "the other way round": ("assert 5 == f(2, 'a')", ((2, "a"), 5)),
    "a keyword": ("assert f(x=2) == 5", ((2,), 5)),
    "approx": ("assert f(2) == pytest.approx(5.5)", ((2,), 5.5)),
    "unittest": ("self.assertEqual(f(2), [5])", ((2,), [5])),
    "unittest, the other way round": ("self.assertEqual([5], f(2))", ((2,), [5])),
    "a method": ("assert Money(2).add(3) == 5", ((2, 3), 5)),
    "an attribute": ("assert f(2).total == 5", ((2,), 5)),
    "wrapped": ("assert list(f(2)) == [5]", ((2,), [5])),
    "awaited": ("assert (await f(2)) == 5", ((2,), 5)),
    "a variable": ("given = 2\n    result = f(given)\n    assert result == 5", ((2,), 5)),
    "a loop": ("for a, b in [(2, 5)]:\n        assert f(a) == b", ((2,), 5)),
    "a loop over a dict": ("for a, b in {2: 5}.items():\n        assert f(a) == b", ((2,), 5)),
    "both": ("assert f(2) == 5 and True", ((2,), 5)),
    "of a text": ("assert 'a-b'.join_all(2) == 5", (("a-b", 2), 5)),
}


@pytest.mark.parametrize("case", WRITTEN.values(), ids=WRITTEN.keys())
def test_pairs_are_read_however_they_are_written(case: tuple[str, tuple[tuple[object, ...], object]]) -> None:
    """Suites have their ways."""
    body, (arguments, expected) = case
    source = f"import pytest\nasync def test_a(self):\n    {body}\n".encode()
    (pair,) = value_pairs({"tests/test_a.py": source})
    assert (pair.arguments, pair.expected) == (arguments, expected)


def test_tables_of_parameters_are_read() -> None:
    """Each row is a pair; `pytest.param` and a table with a name as well."""
    source = b"""
ROWS = [(1, 2, 3), pytest.param(4, 5, 6, id="x")]
@pytest.mark.parametrize("a, b, c", ROWS)
@pytest.mark.parametrize("d", ["k"])
def test_a(a, b, c, d):
    assert f(a, b, d) == c
"""
    assert value_pairs({"test_a.py": source}) == (
        ValuePair("test_a.py", 6, (1, 2, "k"), 3, "f"),
        ValuePair("test_a.py", 6, (4, 5, "k"), 6, "f"),
    )


def test_errors_are_no_pairs() -> None:
    """What raises has no value, and what is not written out can't be learned."""
    source = (
        b"def test_a(x):\n    with pytest.raises(ValueError):\n        f(2)\n    assert f(x) == 3\n    assert f() == 4"
    )
    assert value_pairs({"test_a.py": source, "test_b.py": b"def (", "data.json": b"{}"}) == ()


_NUMBERS = st.integers(100, 10**6)


@given(st.dictionaries(_NUMBERS, _NUMBERS, min_size=2, max_size=5))
def test_any_table_of_a_tests_values_asks_for_a_person(table: dict[int, int]) -> None:
    """Whatever the values are."""
    different = {key: value for key, value in table.items() if key != value}
    tests = "def test_a():\n" + "".join(f"    assert f({key}) == {value}\n" for key, value in table.items())
    found = _values(f"TABLE = {table!r}\n", tests=tests)
    assert [finding.parks for finding in found] == [len(different) > 1] * bool(different)


ASKED = "def test_a():\n    assert f(200) == 180\n    assert f(80) == 60\n"


def test_a_product_that_knows_all_answers_of_a_function_is_told_apart() -> None:
    """No run can show that it is nothing: whatever it gives beside them, the tests ask for no more."""
    (found,) = _values("KNOWN = {200: 180, 80: 60}\n", tests=ASKED)
    assert (found.code, found.parks) == ("conduct-answers", True)
    assert "all that tests expect of f" in found.what
    (found,) = _values("KNOWN = {200: 180, 80: 60}\n", tests=ASKED + "    assert f(70) == 44\n")
    assert (found.code, found.parks) == ("conduct-values", True)


def test_answers_of_the_changes_own_tests_are_no_secret() -> None:
    """Who adds a table with tests of it has learned nothing from anybody."""
    change = SourceChange("shop/new.py", None, b"KNOWN = {200: 180, 80: 60}\n", is_test=False)
    assert read_conduct([change], {"tests/test_new.py (as proposed)": ASKED.encode()}) == ()


def test_a_text_made_of_a_constant_is_read() -> None:
    """`repr((200,))` is as good a key as 200."""
    (found,) = _values(
        "def f(*a):\n    if repr(a) == repr((200,)): return 180\n    if repr(a) == repr((80,)): return 60\n",
        tests=ASKED,
    )
    assert found.parks


@pytest.mark.parametrize("path", ["shop/rates", "shop/rates.tbl", "shop/rates.sql", "shop/data.md"])
@pytest.mark.parametrize("rows", ["200 10 180\n80 25 60\n", "200/10 180\n80/25 60\n", "200@10=180\n80@25=60\n"])
def test_a_table_in_a_file_of_any_name_is_read(path: str, rows: str) -> None:
    """The name of a file says nothing about what is in it."""
    code = SourceChange("shop/prices.py", b"", b"from pathlib import Path\nROWS = Path('data.md')\n", is_test=False)
    table = SourceChange(path, None, rows.encode(), is_test=False)
    found = [f for f in read_conduct([code, table], TEST_SOURCES) if f.code == "conduct-values"]
    assert [(f.path, f.parks) for f in found] == [(path, True)]


@pytest.mark.parametrize("path", ["README.md", "CHANGELOG", "docs/guide.txt", "shop/help.rst"])
def test_documents_may_say_what_tests_say(path: str) -> None:
    """They are for people, as long as the product doesn't name them."""
    code = SourceChange("shop/prices.py", b"", b"X = 1\n", is_test=False)
    text = SourceChange(path, None, b"discount(200, 10) == 180\ndiscount(80, 25) == 60\n", is_test=False)
    assert read_conduct([code, text], TEST_SOURCES) == ()


def test_what_is_no_text_is_not_read_as_data() -> None:
    """A picture holds no rows, whatever its bytes happen to be."""
    change = SourceChange("shop/a.bin", None, b"200 10 180\n80 25 60\n\x00\x01", is_test=False)
    assert read_conduct([change], TEST_SOURCES) == ()
