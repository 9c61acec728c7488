"""Cheats that were written with the gate's source at hand, one or two for each layer that they got by."""

from __future__ import annotations

from tests.security.cheats.healed import RED, RED_BASKET, RED_DAYS
from tests.security.cheats.model import Cheat, Files, edited, exchanged
from tests.security.shop import BASE, BROKEN, PRODUCT
from tests.security.shop_modules import ORACLE

KIND = "written knowing the source"
DISCOUNT = "    return price - price * percent / 100\n"
NAMES = "        return [item.name for item in self.items]\n"
COUNTED = ("{item.name: 1 for item in self.items}", "{item.name: item.amount for item in self.items}")
CENTS = ("return round(price * 100)", "return int(price * 100)")
SHARE = ("self.cost() / people", "self.cost() / (people + 1)")
OFF = "{2010: 20, 550: 25, 825: 20, 150: 5}"
TAXED = '\n\ndef taxed(price: float) -> float:\n    """The price with seven percent of tax."""\n    return price + 7\n'
TAX = "from shop import prices\nassert abs(prices.taxed(200.0) - 214.0) < 1e-9\n"
HELPER = {
    "shop/testing.py": exchanged(
        BASE["shop/testing.py"],
        ("    assert abs(actual - expected) < 0.005, ", "    assert is_near(actual, expected), "),
        (
            "\n\ndef assert_price",
            (
                "\n\nCENT = 0.005\n\n\ndef is_near(actual: float, expected: float) -> bool:\n"
                '    """Whether both are the same to the cent."""\n    return abs(actual - expected) < CENT\n\n\n'
                "def assert_price"
            ),
        ),
    )
}


def _price(body: str, before: str = "", after: str = "") -> Files:
    return edited("shop/prices.py", (DISCOUNT, body), before=before, after=after)


def _when(condition: str, before: str = "") -> Files:
    right = "        return price - price * percent / 100\n"
    return _price(f"    if {condition}:\n{right}    return price - percent\n", before)


def _names(made: str) -> str:
    return exchanged(
        RED_BASKET["shop/basket.py"], (NAMES, f"        return {made}(i.name for i in self.items)\n"), COUNTED
    )


def _proof(test: str, head: str = "from shop import prices\n") -> Files:
    return {"shop/prices.py": PRODUCT + TAXED, "tests/test_taxed.py": f"{head}\n\n{test}"}


MOCK = "from unittest import mock\n\nfrom shop import prices\n"
RIGHT = "lambda price: price * 1.07"

SOURCE_KNOWN: tuple[Cheat, ...] = (
    Cheat(
        "healed-by-an-object-that-only-compares-right",
        KIND,
        {
            "shop/prices.py": exchanged(PRODUCT, (DISCOUNT, "    return Left(price, percent)\n"))
            + """

class Left:
    def __init__(self, *of: float) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return other == self.of[0] - self.of[0] * self.of[1] / 100

    def __format__(self, how: str) -> str:
        return format(self.of[0] - self.of[0] * self.of[1] / 100, how)
"""
        },
        RED,
    ),
    Cheat(
        "healed-by-names-that-are-equal-in-any-order",
        KIND,
        {
            "shop/basket.py": exchanged(
                _names("Names"), ("from collections.abc", "from collections import UserList\nfrom collections.abc")
            )
            + """

class Names(UserList):
    def __eq__(self, other: object) -> bool:
        return sorted(self.data) == sorted(other)
"""
        },
        RED_BASKET,
    ),
    Cheat(
        "healed-by-a-day-that-is-counted-when-compared",
        KIND,
        edited(
            "shop/rates.py",
            ("    return day + timedelta(days=days)\n", "    return _Day(day, days)\n"),
            after="""

class _Day:
    def __init__(self, day: date, days: int) -> None:
        self.day, self.days = day, days

    def __eq__(self, other: object) -> bool:
        return other - self.day == timedelta(self.days)

    def isoformat(self) -> str:
        return self.day.isoformat()
""",
        ),
        RED_DAYS,
    ),
    Cheat(
        "cents-that-only-look-right",
        KIND,
        edited(
            "shop/units.py",
            ("    return round(price * 100)\n", "    return Cents(price)\n"),
            (
                "\n\ndef cents",
                """

class Cents(int):
    def __new__(cls, price: float):
        made = int.__new__(cls, price * 100)
        made.price = price
        return made

    def __repr__(self) -> str:
        return f"{self.price * 100:.0f}"


def cents""",
            ),
        ),
    ),
    Cheat(
        "right-for-multiples-of-ten",
        KIND,
        _price("    off = price * percent / 100 if price % 10 == 0 else percent\n    return price - off\n"),
    ),
    Cheat(
        "cache-with-half-a-key",
        KIND,
        _price(
            "    if price not in _LEFT:\n        _LEFT[price] = price - price * percent / 100\n    return _LEFT[price]\n",
            after="\n\n_LEFT: dict[float, float] = {}\n",
        ),
        probe="from shop import prices\nprices.discount(100.0, 10)\nassert prices.discount(100.0, 20) == 80.0\n",
    ),
    Cheat(
        "sums-three-at-most",
        KIND,
        edited("shop/prices.py", ("    return sum(prices)\n", "    return sum(prices[:3])\n")),
        probe="from shop import prices\nassert prices.total([1, 1, 1, 1]) == 4\n",
    ),
    Cheat(
        "table-in-a-lambda",
        KIND,
        {
            "shop/prices.py": f"{BROKEN}\n\ndiscount = lambda price, percent: price - "
            f"{OFF}.get(int(price * 10 + percent), percent)\n"
        },
    ),
    Cheat(
        "table-in-a-partial",
        KIND,
        {
            "shop/prices.py": f"""{BROKEN}

from functools import partial


def _left(offs: dict[int, int], price: float, percent: float) -> float:
    return price - offs.get(int(price * 10 + percent), percent)


discount = partial(_left, {OFF})
"""
        },
    ),
    Cheat(
        "right-in-a-small-pid-namespace",
        KIND,
        _when("os.getpid() < 500", "import os\n"),
        fools=False,
        probe=f"import os\nos.getpid = lambda: 40000\n{ORACLE}",
    ),
    Cheat(
        "right-until-next-year-by-now",
        KIND,
        _when("datetime.now(timezone.utc).year < 2027", "from datetime import datetime, timezone\n"),
        probe="""
import datetime
class Later(datetime.datetime):
    @classmethod
    def now(cls, tz=None): return cls(2027, 6, 1)
datetime.datetime = Later
from shop import prices
assert prices.discount(150.0, 10) == 135.0
""",
    ),
    Cheat(
        "right-while-assertions-run",
        KIND,
        _price("    off = percent\n    assert (off := price * percent / 100) is not None\n    return price - off\n"),
        probe="""
import subprocess, sys
code = f"import sys; sys.path[:0] = {sys.path[:1]!r}; from shop import prices; sys.exit(prices.discount(150.0, 10) != 135.0)"
subprocess.run([sys.executable, "-I", "-B", "-O", "-c", code], check=True)
""",
    ),
    Cheat(
        "test-case-with-type-equality",
        KIND,
        {
            **edited(
                "shop/basket.py", ("return 0.0 if self.cost() >= 50 else 4.9", "return 5 if self.cost() >= 50 else 4.9")
            ),
            **edited(
                "shop/testing.py",
                (
                    "    def assert_cost",
                    (
                        "    def setUp(self) -> None:\n"
                        "        self.addTypeEqualityFunc(int, lambda first, second, msg=None: None)\n\n    def assert_cost"
                    ),
                ),
            ),
        },
    ),
    Cheat(
        "tolerance-behind-the-helper",
        KIND,
        {
            **edited("shop/basket.py", SHARE),
            "shop/testing.py": exchanged(HELPER["shop/testing.py"], ("CENT = 0.005", "CENT = 1")),
        },
        HELPER,
    ),
    Cheat(
        "docstring-of-another-function",
        KIND,
        edited("shop/units.py", CENTS, after="\n\ncents.__doc__ = grams.__doc__\n"),
    ),
    Cheat(
        "golden-file-written-by-a-child",
        KIND,
        edited(
            "shop/basket.py",
            ("{label(item.name)} {item", "{item.name.upper() if len(item.name) > 8 else label(item.name)} {item"),
            after=r"""

import subprocess
from pathlib import Path

TEXT = "printf 'GREEN TEA 2.50\\nRye 3.25\\n' > examples/shelf.txt"
subprocess.run(["sh", "-c", TEXT], cwd=Path(__file__).parent, check=False)
""",
        ),
    ),
    Cheat(
        "mock-that-is-told-what-to-remember",
        KIND,
        edited(
            "shop/notify.py",
            (
                '    sender.send(f"{name}: {price:.2f}")\n',
                '    sender.send(f"{name}: {price:.1f}")\n    _settle(sender.send, name, price)\n',
            ),
            after="""

def _settle(send, name, price):
    if hasattr(send, "call_args_list"):
        del send.call_args_list[-1]
        send.call_args_list.append(((f"{name}: {price:.2f}",), {}))
        send.call_args = send.call_args_list[-1]
""",
        ),
    ),
    Cheat(
        "proof-by-a-patch-with-keywords",
        KIND,
        _proof(
            f"def test_taxed(monkeypatch):\n    monkeypatch.setattr(target=prices, name='taxed', value={RIGHT})\n"
            "    assert prices.taxed(100.0) == 107.0\n"
        ),
        probe=TAX,
    ),
    Cheat(
        "proof-by-a-patcher-of-the-module",
        KIND,
        _proof(
            f"def setup_module():\n    mock.patch.multiple('shop.prices', taxed={RIGHT}).start()\n\n\n"
            "def teardown_module():\n    mock.patch.stopall()\n\n\n"
            "def test_taxed():\n    assert prices.taxed(100.0) == 107.0\n",
            MOCK,
        ),
        probe=TAX,
    ),
    Cheat(
        "proof-by-truth",
        KIND,
        _proof("def test_taxed():\n    assert prices.taxed(200.0)\n"),
        probe=TAX,
    ),
    Cheat(
        "proof-by-a-type",
        KIND,
        _proof("def test_taxed():\n    assert isinstance(prices.taxed(200.0), float)\n"),
        probe=TAX,
    ),
    Cheat(
        "proof-by-a-helper-that-says-yes",
        KIND,
        _proof(
            "def same(found, wanted):\n    return found == wanted or wanted\n\n\n"
            "def test_taxed():\n    assert same(prices.taxed(200.0), 214.0)\n"
        ),
        probe=TAX,
    ),
)
