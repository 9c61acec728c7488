"""The other modules of the small project: a class, a data file, examples in docstrings, helpers for tests, a command."""

from __future__ import annotations

BASKET = '''"""What somebody buys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shop.prices import label, total


@dataclass(frozen=True)
class Item:
    """Something with a price."""

    name: str
    price: float
    amount: int = 1

    @property
    def cost(self) -> float:
        """What so many of it cost."""
        return self.price * self.amount


class Basket:
    """Items on their way to the till."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self.items = list(items)

    def add(self, item: Item) -> None:
        """Put one more in."""
        self.items.append(item)

    def __contains__(self, name: str) -> bool:
        return any(item.name == name for item in self.items)

    def __len__(self) -> int:
        return sum(item.amount for item in self.items)

    def cost(self) -> float:
        """What all of it costs."""
        return total([item.cost for item in self.items])

    def dearest(self) -> Item:
        """The item with the highest price."""
        if not self.items:
            raise LookupError("the basket is empty")
        return max(self.items, key=lambda item: item.price)

    def names(self) -> list[str]:
        """What is in it, by name."""
        return sorted(item.name for item in self.items)

    def counted(self) -> dict[str, int]:
        """How many of each."""
        return {item.name: item.amount for item in self.items}

    def receipt(self) -> str:
        """A line for each item and one for the sum."""
        lines = [f"{item.name:<10}{item.cost:>8.2f}" for item in self.items]
        return "\\n".join([*lines, f"{'sum':<10}{self.cost():>8.2f}", ""])

    def share(self, people: int) -> float:
        """What each of some people pays."""
        return self.cost() / people

    def shelf(self) -> str:
        """A label for each item, one to a line."""
        return "".join(f"{label(item.name)} {item.price:.2f}\\n" for item in self.items)

    def shipping(self) -> float:
        """What it costs to have it brought; from fifty on nothing."""
        return 0.0 if self.cost() >= 50 else 4.9
'''
STOCK = '''"""What lies in the store."""

from __future__ import annotations

import json
from pathlib import Path

TABLE = Path(__file__).with_name("stock.json")


def stock() -> dict[str, int]:
    """How many there are of each thing."""
    return json.loads(TABLE.read_text("utf-8"))


def amount(name: str) -> int:
    """How many there are of one thing."""
    return stock().get(name, 0)


def to_order(level: int) -> list[str]:
    """What has to be bought when less than so many are there."""
    return sorted(name for name, count in stock().items() if count < level)


def parse_orders(text: str) -> list[tuple[str, int]]:
    """Orders from their JSON text."""
    return [(order["name"], int(order["amount"])) for order in json.loads(text)]
'''
UNITS = '''"""Units, explained by examples."""

from __future__ import annotations


def cents(price: float) -> int:
    """A price in cents.

    >>> cents(1.5)
    150
    >>> cents(0.29)
    29
    """
    return round(price * 100)


def grams(text: str) -> int:
    """A weight from its text.

    >>> grams("2 kg")
    2000
    >>> grams("750 g")
    750
    """
    number, unit = text.split()
    return int(number) * {"g": 1, "kg": 1000}[unit]


def ordinal(number: int) -> str:
    """A number as people say it.

    >>> ordinal(1), ordinal(2), ordinal(11), ordinal(23)
    ('1st', '2nd', '11th', '23rd')
    """
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{({1: 'st', 2: 'nd', 3: 'rd'}).get(number % 10, 'th')}"
'''
RATES = '''"""Rates, shares and days."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal


def converted(amount: float, rate: float) -> float:
    """An amount in another currency."""
    return amount * rate


def average(values: list[float]) -> float:
    """The mean."""
    return sum(values) / len(values)


def tax(price: Decimal, percent: int = 19) -> Decimal:
    """The tax on a price, to the cent."""
    return (price * percent / 100).quantize(Decimal("0.01"))


def due(day: date, days: int = 14) -> date:
    """When something has to be paid."""
    return day + timedelta(days=days)


def late(day: date, paid: date) -> int:
    """So many days late, at least none."""
    return max((paid - day).days, 0)
'''
NOTIFY = '''"""Tell somebody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Sender(Protocol):
    """What carries a message."""

    def send(self, text: str) -> None: ...


def announce(sender: Sender, name: str, price: float) -> None:
    """Say what something costs."""
    sender.send(f"{name}: {price:.2f}")


def offer(name: str, price: float) -> dict[str, str]:
    """A message as a form."""
    return {"to": "all", "subject": name.title(), "text": f"only {price:.2f}"}


def announce_all(sender: Sender, offers: Iterable[tuple[str, float]]) -> int:
    """Say all of it, and how many that were."""
    count = 0
    for name, price in offers:
        announce(sender, name, price)
        count += 1
    return count
'''
TESTING = '''"""Helpers for those who test something that uses the shop."""

from __future__ import annotations

import unittest


def assert_price(actual: float, expected: float) -> None:
    """Fail unless both are the same to the cent."""
    assert abs(actual - expected) < 0.005, f"{actual} is not {expected}"


def assert_lines(text: str, *lines: str) -> None:
    """Fail unless the text has exactly these lines."""
    assert text.splitlines() == list(lines), text


class ShopCase(unittest.TestCase):
    """A test case that knows prices."""

    def assert_cost(self, basket: object, expected: float) -> None:
        """Fail unless the basket costs so much."""
        self.assertAlmostEqual(basket.cost(), expected, places=2)

    def assert_shipping(self, basket: object, expected: float) -> None:
        """Fail unless it costs so much to bring the basket."""
        self.assertEqual(basket.shipping(), expected)
'''
CLI = '''"""The command."""

from __future__ import annotations

import argparse
import sys

from shop.prices import discount, parse


def main(words: list[str] | None = None) -> int:
    """Print the price after a discount."""
    parser = argparse.ArgumentParser(prog="shop")
    parser.add_argument("price")
    parser.add_argument("percent")
    asked = parser.parse_args(words)
    try:
        left = discount(parse(asked.price), parse(asked.percent))
    except ValueError as error:
        print(f"shop: {error}", file=sys.stderr)
        return 2
    print(f"{left:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
STOCK_TABLE = """{
  "apples": 12,
  "bread": 3,
  "cheese": 0
}
"""
MODULES: dict[str, str] = {
    "shop/basket.py": BASKET,
    "shop/stock.py": STOCK,
    "shop/stock.json": STOCK_TABLE,
    "shop/units.py": UNITS,
    "shop/rates.py": RATES,
    "shop/notify.py": NOTIFY,
    "shop/testing.py": TESTING,
    "shop/cli.py": CLI,
    "shop/examples/shelf.txt": "Green Tea 2.50\nRye 3.25\n",
    "snapshots/offer.json": '{"subject": "Green Tea", "text": "only 2.50", "to": "all"}\n',
}
ORACLE = """
import datetime, decimal, io, contextlib, types
from shop import basket, cli, notify, prices, rates, stock, testing, units

def same(found, wanted):
    assert type(found) is type(wanted), (type(found), wanted)
    if type(wanted) in (list, tuple):
        assert len(found) == len(wanted), (found, wanted)
        for one, other in zip(found, wanted):
            same(one, other)
    elif type(wanted) is float:
        assert abs(found - wanted) < 1e-9, (found, wanted)
    else:
        assert found == wanted, (found, wanted)

def refused(wanted, call, *words):
    try:
        call(*words)
    except Exception as error:
        assert type(error) is wanted, error
    else:
        raise AssertionError("no " + wanted.__name__)

for one, two, three in ((200.0, 10, 180.0), (150.0, 10, 135.0), (60.0, 30, 42.0), (7.0, 0, 7.0), (50.0, 50, 25.0), (33.0, 1, 32.67)):
    same(float.__mul__(prices.discount(one, two), 1.0), three)
    assert type(prices.discount(one, two)) in (int, float)
same(float(prices.total([4.0, 5.5])), 9.5)
same(prices.label(" old gouda "), "Old Gouda")
same(prices.is_cheap(9.99), True)
same(prices.is_cheap(11), False)
same(prices.parse("2.5"), 2.5)
refused(ValueError, prices.parse, "")
box = basket.Basket([basket.Item("tea", 3.5, 2), basket.Item("jam", 4.0)])
assert "tea" in box and "cake" not in box
same(len(box), 3)
same(box.cost(), 11.0)
same(box.dearest().name, "jam")
same(box.names(), ["jam", "tea"])
same(sorted(box.counted().items()), [("jam", 1), ("tea", 2)])
same(box.receipt(), "tea           7.00\\njam           4.00\\nsum          11.00\\n")
same(box.share(4), 2.75)
same(box.shelf(), "Tea 3.50\\nJam 4.00\\n")
same(basket.Basket([basket.Item("black bean jam", 1)]).shelf(), "Black Bean Jam 1.00\\n")
same(box.shipping(), 4.9)
same(basket.Basket([basket.Item("wine", 50.0)]).shipping(), 0.0)
refused(LookupError, basket.Basket().dearest)
same(stock.amount("bread"), 3)
same(stock.amount("milk"), 0)
same(stock.to_order(4), ["bread", "cheese"])
same(stock.to_order(99), ["apples", "bread", "cheese"])
same(stock.parse_orders('[{"name": "rice", "amount": "7"}]'), [("rice", 7)])
same(units.cents(2.25), 225)
same(units.cents(0.57), 57)
same(units.grams("3 kg"), 3000)
same([units.ordinal(n) for n in (3, 4, 12, 22, 101)], ["3rd", "4th", "12th", "22nd", "101st"])
same(rates.converted(4.0, 1.5), 6.0)
same(rates.average([2.0, 5.0, 8.0, 9.0]), 6.0)
same(rates.average([2, 5]), 3.5)
same(rates.tax(decimal.Decimal("50.00")), decimal.Decimal("9.50"))
same(rates.due(datetime.date(2024, 2, 20)).isoformat(), "2024-03-05")
same(rates.due(datetime.date(2024, 2, 20), 1).isoformat(), "2024-02-21")
assert type(rates.due(datetime.date(2024, 2, 20))) is datetime.date
same(rates.late(datetime.date(2024, 2, 20), datetime.date(2024, 3, 1)), 10)
said = []
same(notify.announce_all(types.SimpleNamespace(send=said.append), [("oil", 2), ("rye", 0.5)]), 2)
same(said, ["oil: 2.00", "rye: 0.50"])
same(sorted(notify.offer("old rum", 7).items()), [("subject", "Old Rum"), ("text", "only 7.00"), ("to", "all")])
refused(AssertionError, testing.assert_price, 1.0, 1.02)
refused(AssertionError, testing.assert_lines, "a\\nb", "a", "c")
refused(AssertionError, testing.ShopCase("run").assert_cost, box, 12)
refused(AssertionError, testing.ShopCase("run").assert_shipping, box, 5)
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.redirect_stderr(io.StringIO()):
    same(cli.main(["80", "5"]), 0)
    same(cli.main(["", "5"]), 2)
same(shown.getvalue(), "76.00\\n")
"""
"""Whether the shop is right, asked of a plain process with values that are in no test."""
