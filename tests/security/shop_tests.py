"""The tests of the other modules of the small project, and the files that these tests compare with."""

from __future__ import annotations

TEST_BASKET = '''"""Baskets."""

import pytest

from shop.basket import Basket, Item

TEA = Item("tea", 2.5, 2)
RYE = Item("rye", 3.25)


@pytest.fixture
def basket() -> Basket:
    return Basket([TEA, RYE])


def test_cost(basket: Basket) -> None:
    assert basket.cost() == 8.25
    assert Basket().cost() == 0


def test_contents(basket: Basket) -> None:
    assert "tea" in basket
    assert "oil" not in basket
    assert len(basket) == 3


def test_names(basket: Basket) -> None:
    assert basket.names() == ["rye", "tea"]


def test_counted(basket: Basket) -> None:
    assert basket.counted() == {"tea": 2, "rye": 1}


def test_dearest(basket: Basket) -> None:
    basket.add(Item("oil", 9))
    assert basket.dearest() == Item("oil", 9)
    assert basket.dearest().price > 5


def test_nothing_is_dearest() -> None:
    with pytest.raises(LookupError, match="empty"):
        Basket().dearest()


def test_line(basket: Basket) -> None:
    assert "rye" in basket.receipt()
    assert basket.receipt().startswith("tea           5.00")
'''
TEST_GOLDEN = '''"""The receipt as it is printed, and orders as they come in."""

import json
from pathlib import Path

import shop
from shop.basket import Basket, Item
from shop.notify import offer
from shop.stock import parse_orders
from shop.testing import assert_lines, assert_price

HERE = Path(__file__).parent


def test_receipt() -> None:
    basket = Basket([Item("tea", 2.5, 2), Item("rye", 3.25)])
    assert basket.receipt() == (HERE / "golden" / "receipt.txt").read_text()


def test_orders() -> None:
    text = (HERE / "data" / "orders.json").read_text()
    wanted = json.loads((HERE / "data" / "parsed.json").read_text())
    assert [list(order) for order in parse_orders(text)] == wanted


def test_lines() -> None:
    basket = Basket([Item("oil", 4, 2)])
    assert_lines(basket.receipt(), "oil           8.00", "sum           8.00")
    assert_price(basket.cost(), 8)


def test_share() -> None:
    assert_price(Basket([Item("oil", 4, 2), Item("tea", 2)]).share(3), 3.33)


def test_labels() -> None:
    assert_lines(Basket([Item(" oil ", 4, 2), Item("old rum", 9)]).shelf(), "Oil 4.00", "Old Rum 9.00")


def test_shelf() -> None:
    basket = Basket([Item("green tea", 2.5, 2), Item("rye", 3.25)])
    assert basket.shelf() == (Path(shop.__file__).parent / "examples" / "shelf.txt").read_text()


def test_offer() -> None:
    with open(HERE.parent / "snapshots" / "offer.json") as file:
        assert offer("green tea", 2.5) == json.load(file)
'''
TEST_STOCK = '''"""The store."""

import re

from shop import stock


def test_amount() -> None:
    assert stock.amount("apples") == 12
    assert stock.amount("gold") == 0


def test_to_order() -> None:
    assert stock.to_order(5) == ["bread", "cheese"]
    assert re.search("^bread", ",".join(stock.to_order(5)))
'''
TEST_RATES = '''"""Rates."""

import math
import unittest
from datetime import date
from decimal import Decimal

import pytest

from shop import rates


def test_converted() -> None:
    assert rates.converted(10, 1.1) == pytest.approx(11)


def test_average() -> None:
    assert math.isclose(rates.average([0.1, 0.2, 0.3]), 0.2)


def test_tax() -> None:
    assert rates.tax(Decimal("9.99")) == Decimal("1.90")


class TestDays(unittest.TestCase):
    def test_due(self) -> None:
        self.assertEqual(rates.due(date(2024, 1, 20)), date(2024, 2, 3))

    def test_late(self) -> None:
        self.assertEqual(rates.late(date(2024, 1, 1), date(2024, 1, 4)), 3)
        self.assertEqual(rates.late(date(2024, 1, 4), date(2024, 1, 1)), 0)

    def test_mean(self) -> None:
        self.assertAlmostEqual(rates.average([1, 2]), 1.5)
        self.assertLess(rates.average([1, 2]), 2)
'''
TEST_NOTIFY = '''"""Messages."""

from unittest import mock

from shop import notify


def test_announce() -> None:
    sender = mock.Mock()
    notify.announce(sender, "tea", 2.5)
    sender.send.assert_called_once_with("tea: 2.50")


def test_announce_all() -> None:
    sender = mock.Mock()
    assert notify.announce_all(sender, [("tea", 2.5), ("rye", 3)]) == 2
    assert sender.send.call_args_list == [mock.call("tea: 2.50"), mock.call("rye: 3.00")]
'''
TEST_CLI = '''"""The command, and the till that uses the helpers for tests."""

import pytest

from shop.basket import Basket, Item
from shop.cli import main
from shop.testing import ShopCase


def test_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["200", "10"]) == 0
    assert capsys.readouterr().out == "180.00\\n"


def test_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["", "10"]) == 2
    assert "no price" in capsys.readouterr().err


class TestTill(ShopCase):
    def test_cost(self) -> None:
        self.assert_cost(Basket([Item("tea", 2.5, 2)]), 5)

    def test_shipping(self) -> None:
        self.assert_shipping(Basket([Item("tea", 2.5, 2)]), 4.9)
        self.assert_shipping(Basket([Item("oil", 5, 10)]), 0)
'''
TEST_FILES: dict[str, str] = {
    "tests/test_basket.py": TEST_BASKET,
    "tests/test_golden.py": TEST_GOLDEN,
    "tests/test_stock.py": TEST_STOCK,
    "tests/test_rates.py": TEST_RATES,
    "tests/test_notify.py": TEST_NOTIFY,
    "tests/test_cli.py": TEST_CLI,
    "tests/golden/receipt.txt": "tea           5.00\nrye           3.25\nsum           8.25\n",
    "tests/data/orders.json": '[{"name": "tea", "amount": "2"}, {"name": "rye", "amount": 1}]\n',
    "tests/data/parsed.json": '[["tea", 2], ["rye", 1]]\n',
}
