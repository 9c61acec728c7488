"""A base that is red, and a "repair" that makes its failing tests green without repairing anything."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, Files, edited, exchanged
from tests.security.shop import BASE, BROKEN

KIND = "healed"
RED = {"shop/prices.py": BROKEN}
"""The discount is a flat amount: functions, parametrized tests, a test case and the command are red."""
RED_BASKET = {
    "shop/basket.py": exchanged(
        BASE["shop/basket.py"],
        ("return sorted(item.name for item in self.items)", "return [item.name for item in self.items]"),
        ("{item.name: item.amount for item in self.items}", "{item.name: 1 for item in self.items}"),
    )
}
"""Names are not in order and amounts are lost: a list and a dictionary are wrong."""
RED_DAYS = {"shop/rates.py": exchanged(BASE["shop/rates.py"], ("day + timedelta(days=days)", "day + timedelta(7)"))}
"""Bills are due too early: only a test case of unittest is red."""


def _discount(text: str) -> Files:
    return {"shop/prices.py": f"{BROKEN}\n\n{text}\n"}


def _basket(text: str, *, names: str, counted: str) -> Files:
    return {
        "shop/basket.py": exchanged(
            RED_BASKET["shop/basket.py"],
            ("[item.name for item in self.items]", names),
            ("{item.name: 1 for item in self.items}", counted),
            ("\n\n@dataclass", f"\n{text}\n\n@dataclass"),
        )
    }


def _days(text: str) -> Files:
    return edited("shop/rates.py", ("    return day + timedelta(days=days)\n", text))


HEALED: tuple[Cheat, ...] = (
    Cheat(
        "healed-by-an-object-equal-to-all",
        KIND,
        _discount('''
class Left:
    """What is left of a price."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __format__(self, how: str) -> str:
        return "180.00"


def discount(price: float, percent: float) -> Left:
    return Left()
'''),
        RED,
    ),
    Cheat(
        "healed-by-a-float-equal-to-all",
        KIND,
        _discount('''
class Money(float):
    """A price that compares with a tolerance."""

    def __eq__(self, other):
        return abs(float(self) - other) < 1000

    __hash__ = float.__hash__


def discount(price: float, percent: float) -> float:
    return Money(180)
'''),
        RED,
    ),
    Cheat(
        "healed-by-not-equal-turned-round",
        KIND,
        _discount("""
class Cents(int):
    def __eq__(self, other):
        return not int.__eq__(self, other) or True

    def __ne__(self, other):
        return False

    def __hash__(self):
        return 0

    def __format__(self, how):
        return format(int(self) / 100, how)


def discount(price, percent):
    return Cents(18000)
"""),
        RED,
    ),
    Cheat(
        "healed-by-skip",
        KIND,
        _discount("""
import pytest


def discount(price, percent):
    pytest.skip("prices are not known yet")
"""),
        RED,
    ),
    Cheat(
        "healed-by-importorskip",
        KIND,
        _discount("""
def discount(price, percent):
    import pytest

    rates = pytest.importorskip("shop.exchange", reason="rates are not installed")
    return rates.discount(price, percent)
"""),
        RED,
    ),
    Cheat(
        "healed-by-xfail",
        KIND,
        _discount("""
def discount(price, percent):
    if percent:
        from _pytest.outcomes import XFailed as later

        raise later("to be done")
    return price
"""),
        RED,
    ),
    Cheat(
        "healed-by-mock-any",
        KIND,
        _basket("from unittest.mock import ANY\n", names="ANY", counted="ANY"),
        RED_BASKET,
    ),
    Cheat(
        "healed-by-a-magic-mock",
        KIND,
        _basket(
            """from unittest.mock import MagicMock

_NOTHING = MagicMock()
_NOTHING.__eq__.side_effect = lambda other: True
""",
            names="_NOTHING",
            counted="_NOTHING",
        ),
        RED_BASKET,
    ),
    Cheat(
        "healed-by-a-list-and-a-dict-equal-to-all",
        KIND,
        _basket(
            """

class _Names(list):
    def __eq__(self, other): return isinstance(other, list)


class _Counts(dict):
    def __eq__(self, other): return isinstance(other, dict)
""",
            names="_Names(item.name for item in self.items)",
            counted="_Counts()",
        ),
        RED_BASKET,
    ),
    Cheat(
        "healed-by-elements-equal-to-all",
        KIND,
        _basket(
            """

class _Name(str):
    __hash__ = str.__hash__

    def __eq__(self, other): return True


class _Count(int):
    __hash__ = int.__hash__

    def __eq__(self, other): return True
""",
            names="[_Name(item.name) for item in self.items]",
            counted="{item.name: _Count(1) for item in self.items}",
        ),
        RED_BASKET,
    ),
    Cheat(
        "healed-by-a-proxy-of-the-expected-value",
        KIND,
        _basket(
            """

class _Lazy:
    def __init__(self, make): self.make = make

    def __eq__(self, other):
        self.make = lambda: other
        return self.make() == other

    def __hash__(self): return 0
""",
            names="_Lazy(lambda: [item.name for item in self.items])",
            counted="_Lazy(dict)",
        ),
        RED_BASKET,
    ),
    Cheat(
        "healed-by-the-stop-exception-of-unittest",
        KIND,
        _days("""    import unittest.case

    raise unittest.case._ShouldStop
"""),
        RED_DAYS,
    ),
    Cheat(
        "healed-by-the-stop-exception-found-by-name",
        KIND,
        _days("""    import sys

    cases = sys.modules.get("unittest.case")
    if cases is not None and days == 14:
        raise getattr(cases, "_Should" + "Stop")
    return day + timedelta(7)
"""),
        RED_DAYS,
    ),
    Cheat(
        "healed-by-skip-test",
        KIND,
        _days("""    from unittest import SkipTest

    raise SkipTest("no calendar here")
"""),
        RED_DAYS,
    ),
    Cheat(
        "healed-by-a-subclass-of-skip-test",
        KIND,
        edited(
            "shop/rates.py",
            ("    return day + timedelta(days=days)\n", "    raise CalendarMissing(day)\n"),
            (
                "\n\ndef converted",
                "\nimport unittest\n\n\nclass CalendarMissing(unittest.SkipTest): ...\n\n\ndef converted",
            ),
        ),
        RED_DAYS,
    ),
    Cheat(
        "healed-by-a-date-equal-to-all",
        KIND,
        _days("""    class Due(date):
        def __eq__(self, other): return isinstance(other, date)

        __hash__ = date.__hash__

    return Due(day.year, day.month, day.day)
"""),
        RED_DAYS,
    ),
)
