"""A module of the small project whose functions are all wrong on the base, with tests that compare in many ways."""

from __future__ import annotations

RIGHT = '''"""Lines of a ledger."""

from __future__ import annotations

from dataclasses import dataclass


class EmptyLedger(ValueError):
    """There is no line."""


@dataclass
class Line:
    """So many of something for a total."""

    name: str
    count: int
    total: float


class Mark:
    """A place in the ledger."""

    def __init__(self, page: int, row: int) -> None:
        self.page = page
        self.row = row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mark) and (self.page, self.row) == (other.page, other.row)

    def __hash__(self) -> int:
        return hash((self.page, self.row))


def read_line(text: str) -> Line:
    """A line from its name, count and price."""
    name, count, price = text.split(";")
    return Line(name, int(count), int(count) * float(price))


def read_all(text: str) -> list[Line]:
    """All lines of a text."""
    return [read_line(line) for line in text.splitlines()]


def negative(rows: list[tuple[str, int]]) -> list[tuple[int, str]]:
    """The number and the name of each row that is below zero."""
    return [(number, name) for number, (name, count) in enumerate(rows, 1) if count < 0]


def average(totals: list[float]) -> float:
    """The mean of some totals."""
    if not totals:
        raise EmptyLedger("no line")
    return sum(totals) / len(totals)


def heading(names: list[str]) -> str:
    """How many lines, and which."""
    return f"{len(names)} lines: {', '.join(names)}"


def fee(amount: float) -> float:
    """Five percent."""
    return amount * 5 / 100


def mark(number: int) -> Mark:
    """The place of a line; ten to a page."""
    return Mark(number // 10, number % 10)
'''
WRONG = (
    (
        "    return Line(name, int(count), int(count) * float(price))\n",
        "    return Line(name, int(count), float(price))\n",
    ),
    ("enumerate(rows, 1)", "enumerate(rows, 0)"),
    ('    if not totals:\n        raise EmptyLedger("no line")\n', ""),
    ('f"{len(names)} lines: {', 'f"lines: {'),
    ("amount * 5 / 100", "amount * 5"),
    (
        "        return isinstance(other, Mark) and (self.page, self.row) == (other.page, other.row)\n",
        "        return False\n",
    ),
)
TESTS = """import pytest

from shop.ledger import EmptyLedger, Line, Mark, average, fee, heading, mark, negative, read_all, read_line


def test_line():
    assert read_line("tea;3;1.50") == Line("tea", 3, 4.5)


def test_all():
    assert read_all("tea;3;1.50\\nmilk;2;1.00") == [Line("tea", 3, 4.5), Line("milk", 2, 2.0)]


def test_negative():
    for number, name in negative([("tea", 1), ("milk", -1)]):
        assert number == 2
        assert name == "milk"


def test_average():
    assert average([1, 3]) == 2
    with pytest.raises(EmptyLedger):
        average([])


def test_heading():
    assert heading(["tea", "milk"]).startswith("2 lines")


def test_fee():
    assert 4 < fee(100) < 6
    assert fee(200) <= 10


def test_mark():
    assert mark(34) == Mark(3, 4)
"""
PROBE = """
from shop import ledger
line = ledger.read_line("tea;3;1.50")
assert (line.name, line.count, line.total) == ("tea", 3, 4.5)
assert [one.total for one in ledger.read_all("tea;3;1.50\\nmilk;2;1.00")] == [4.5, 2.0]
assert list(ledger.negative([("tea", 1), ("milk", -1)])) == [(2, "milk")]
try:
    ledger.average([])
except ledger.EmptyLedger as error:
    assert type(error) is not ZeroDivisionError
assert ledger.heading(["a"])[:7] == "1 lines"
assert float.__mul__(ledger.fee(100) + 0.0, 1.0) == 5.0 and type(ledger.fee(100)) is float
place = ledger.mark(34)
assert (place.page, place.row) == (3, 4)
"""


def _wrong() -> str:
    text = RIGHT
    for right, wrong in WRONG:
        assert right in text, right
        text = text.replace(right, wrong)
    return text


LEDGER = {"shop/ledger.py": _wrong(), "tests/test_ledger.py": TESTS}
"""What the base has of it: every test but none of the results."""
