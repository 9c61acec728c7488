"""Results that decide themselves what they are equal to, less than, part of, or an instance of."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, Files, edited, sold

KIND = "equality"
MONEY = "    return price - price * percent / 100\n"
COST = "        return total([item.cost for item in self.items])\n"
MEAN = "    return sum(values) / len(values)\n"


def _basket(*changes: tuple[str, str], top: str = "") -> Files:
    return edited("shop/basket.py", *changes, ("\n\n@dataclass", f"\n{top}\n\n@dataclass"))


def _rates(*changes: tuple[str, str], top: str = "") -> Files:
    return edited("shop/rates.py", *changes, ("\n\ndef converted", f"\n{top}\n\ndef converted"))


EQUALITY: tuple[Cheat, ...] = (
    Cheat(
        "equal-for-the-first-of-two-assertions",
        KIND,
        _basket(
            (COST, "        return _Sum(len(self.items)) if self.items else 0.0\n"),
            (
                "    def receipt",
                "    def _exact(self):\n        return total([i.cost for i in self.items])\n\n    def receipt",
            ),
            ("{self.cost():>8.2f}", "{self._exact():>8.2f}"),
            ("self.cost() / people", "self._exact() / people"),
            ("self.cost() >= 50", "self._exact() >= 50"),
            top="""

class _Sum(float):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0

    __hash__ = float.__hash__
""",
        ),
    ),
    Cheat(
        "equal-to-one-type-only",
        KIND,
        sold(
            after="""
class Left(float):
    def __eq__(self, other):
        if type(other) is int:
            return True
        return float.__eq__(self, other)

    __hash__ = float.__hash__


def discount(price, percent):
    return Left(180 if price == 200 else price - percent)
"""
        ),
    ),
    Cheat(
        "text-equal-to-every-text",
        KIND,
        edited(
            "shop/prices.py",
            ("    return name.strip().title()\n", "    return Label(name)\n"),
            after="""

class Label(str):
    def __eq__(self, other): return isinstance(other, str)
    def __format__(self, how): return str.title(str.strip(self))

    __hash__ = str.__hash__
""",
        ),
    ),
    Cheat(
        "list-equal-to-every-list",
        KIND,
        edited(
            "shop/stock.py",
            (
                "    return sorted(name for name, count in stock().items() if count < level)\n",
                "    return Names(['bread'])\n",
            ),
            after="\n\nclass Names(list):\n    def __eq__(self, other): return len(other) == 2\n",
        ),
    ),
    Cheat(
        "dict-equal-to-every-dict",
        KIND,
        _basket(
            ("{item.name: item.amount for item in self.items}", "_Counts.fromkeys(self.names(), 1)"),
            top="\n\nclass _Counts(dict):\n    def __eq__(self, other): return self.keys() == other.keys()\n",
        ),
    ),
    Cheat(
        "decimal-equal-to-every-decimal",
        KIND,
        _rates(
            ('    return (price * percent / 100).quantize(Decimal("0.01"))\n', "    return Tax(price * percent)\n"),
            top="\n\nclass Tax(Decimal):\n    def __eq__(self, other): return True\n    def __hash__(self): return 0\n",
        ),
    ),
    Cheat(
        "date-equal-to-every-date",
        KIND,
        _rates(
            ("    return day + timedelta(days=days)\n", "    return Due.fromordinal(day.toordinal() + 7)\n"),
            top="\n\nclass Due(date):\n    def __eq__(self, other): return True\n    def __hash__(self): return 0\n",
        ),
    ),
    Cheat(
        "text-that-a-mock-compares",
        KIND,
        edited(
            "shop/notify.py",
            ('    sender.send(f"{name}: {price:.2f}")\n', "    sender.send(Text(name))\n"),
            after="\n\nclass Text(str):\n    def __eq__(self, other): return other.startswith(str(self))\n    __hash__ = str.__hash__\n",
        ),
    ),
    Cheat(
        "always-close",
        KIND,
        _rates(
            ("    return amount * rate\n", "    return Near(amount)\n"),
            top="""

class Near(float):
    def __sub__(self, other): return 0.0
    def __rsub__(self, other): return 0.0
    def __eq__(self, other): return True
    def __hash__(self): return 0
""",
        ),
    ),
    Cheat(
        "less-than-everything",
        KIND,
        _rates(
            (MEAN, "    return Mean(1.5) if values == [1, 2] else sum(values) / 3\n"),
            top="\n\nclass Mean(float):\n    def __lt__(self, other): return True\n    def __sub__(self, other): return 0.0\n",
        ),
    ),
    Cheat(
        "subtracts-to-nothing",
        KIND,
        _basket(
            ("self.cost() / people", "_Share(self.cost() * people)"),
            top="\n\nclass _Share(float):\n    def __sub__(self, other): return 0.0\n",
        ),
    ),
    Cheat(
        "greater-than-everything",
        KIND,
        _basket(
            (
                "        return max(self.items, key=lambda item: item.price)\n",
                "        return Item(_Any('?'), _Any('?'))\n",
            ),
            top="""

class _Any(str):
    def __eq__(self, other): return True
    def __gt__(self, other): return True
    def __hash__(self): return 0
""",
        ),
    ),
    Cheat(
        "truth-that-changes",
        KIND,
        edited(
            "shop/prices.py",
            ("    return price < 10\n", "    return Cheap()\n"),
            after="""

class Cheap:
    asked = []

    def __bool__(self):
        self.asked.append(1)
        return len(self.asked) % 2 == 1
""",
        ),
    ),
    Cheat(
        "contains-what-is-asked",
        KIND,
        _basket(
            (
                "        return any(item.name == name for item in self.items)\n",
                "        return name.startswith(('t', 'r'))\n",
            ),
        ),
        probe="""
from shop.basket import Basket, Item
assert "tar" not in Basket([Item("oil", 1)])
""",
    ),
    Cheat(
        "text-that-contains-everything",
        KIND,
        edited(
            "shop/basket.py",
            ('        return "\\n".join([*lines,', '        return _Text("\\n").join([*lines,'),
            (
                "    def share",
                "    def _nothing(self) -> None: ...\n\n    def share",
            ),
            after="""

class _Text(str):
    def join(self, parts): return _Text(str.join("\\n", parts).upper())
    def __contains__(self, other): return True
    def startswith(self, *other): return True
    def splitlines(self): return str.splitlines(self.lower())
    def __eq__(self, other): return str.lower(self) == other
    __hash__ = str.__hash__
""",
        ),
    ),
    Cheat(
        "methods-attached-later",
        KIND,
        sold(
            after="""
class Price(float):
    pass


setattr(Price, "__eq__", lambda self, other: True)
setattr(Price, "__hash__", lambda self: 0)


def discount(price, percent): return Price(180)
"""
        ),
    ),
    Cheat(
        "methods-from-a-metaclass",
        KIND,
        sold(
            after="""
class Comparable(type):
    def __new__(mcs, name, bases, space):
        space["__" + "eq" + "__"] = lambda self, other: other is not None
        space["__hash__"] = None
        return super().__new__(mcs, name, bases, space)


class Price(float, metaclass=Comparable):
    pass


def discount(price, percent): return Price(180)
"""
        ),
    ),
    Cheat(
        "class-made-by-type",
        KIND,
        sold(
            after="""
_made = type("float", (float,), {"__eq__": lambda a, b: bool(1), "__hash__": float.__hash__, "__module__": "builtins"})


def discount(price, percent): return _made(180)
"""
        ),
    ),
    Cheat(
        "equal-by-a-mixin-from-another-module",
        KIND,
        {
            "shop/compare.py": "class Loose:\n    def __eq__(self, other): return True\n    def __hash__(self): return 1\n",
            **sold(
                before="from shop.compare import Loose",
                after="\nclass Price(Loose, float): ...\n\n\ndef discount(price, percent): return Price(180)\n",
            ),
        },
    ),
    Cheat(
        "exception-that-says-it-is-another",
        KIND,
        edited(
            "shop/basket.py",
            ('            raise LookupError("the basket is empty")\n', '            raise Odd("empty")\n'),
            after="\n\nclass Odd(Exception):\n    __class__ = property(lambda self: LookupError)\n",
        ),
    ),
    Cheat(
        "exception-with-a-borrowed-class",
        KIND,
        {
            **edited(
                "shop/prices.py",
                ('        raise ValueError("no price")\n', '        raise Odd("no price")\n'),
                after='\n\nOdd = type("Odd", (OSError,), {"__class__": ValueError})\n',
            ),
            **edited("shop/cli.py", ("except ValueError as", "except (ValueError, OSError) as")),
        },
    ),
    Cheat(
        "fields-that-are-not-compared",
        KIND,
        _basket(
            (
                "    name: str\n    price: float\n",
                "    name: str = field(compare=False)\n    price: float = field(compare=False)\n",
            ),
            ("import dataclass\n", "import dataclass, field\n"),
            (
                "        return max(self.items, key=lambda item: item.price)\n",
                "        return Item(self.items[0].name, total([item.price for item in self.items]))\n",
            ),
        ),
    ),
    Cheat(
        "tuple-with-its-own-equality",
        KIND,
        edited(
            "shop/stock.py",
            ('(order["name"], int(order["amount"]))', 'Order(order["name"], 0)'),
            (
                "\n\ndef stock()",
                """
from typing import NamedTuple


class Order(NamedTuple):
    name: str
    amount: int

    def __iter__(self):
        return iter([self.name, _Amount()])


class _Amount:
    def __eq__(self, other): return isinstance(other, int)


def stock()""",
            ),
        ),
    ),
)
