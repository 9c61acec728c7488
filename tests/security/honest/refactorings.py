"""The same behaviour in other words: what people call refactoring."""

from __future__ import annotations

from tests.security.honest.model import Honest, edited
from tests.security.shop import BASE, PRODUCT

BASKET = BASE["shop/basket.py"]
NAMED = """class Item(NamedTuple):
    \"\"\"Something with a price.\"\"\"
"""
RECEIPT = '        lines = [f"{item.name:<10}{item.cost:>8.2f}" for item in self.items]\n'
STOCK_CACHE = (
    "def stock() -> dict[str, int]:",
    '@cache\ndef _table() -> dict[str, int]:\n    return json.loads(TABLE.read_text("utf-8"))\n\n\ndef stock() -> dict[str, int]:',
)

REFACTORED: tuple[Honest, ...] = (
    Honest(
        "function-extracted",
        edited(
            "shop/basket.py",
            (RECEIPT, "        lines = [_line(item.name, item.cost) for item in self.items]\n"),
            ("f\"{'sum':<10}{self.cost():>8.2f}\"", "_line('sum', self.cost())"),
            after='\n\ndef _line(name: str, cost: float) -> str:\n    return f"{name:<10}{cost:>8.2f}"\n',
        ),
    ),
    Honest(
        "locals-renamed",
        edited(
            "shop/notify.py",
            ("    count = 0\n", "    said = 0\n"),
            ("count += 1", "said += 1"),
            ("return count", "return said"),
        ),
    ),
    Honest(
        "generator-to-list",
        edited(
            "shop/basket.py",
            ("any(item.name == name for item in self.items)", "name in [item.name for item in self.items]"),
        ),
    ),
    Honest(
        "enumerate-instead-of-counting",
        edited(
            "shop/notify.py",
            (
                "    for name, price in offers:\n        announce(sender, name, price)\n        count += 1\n",
                "    for count, (name, price) in enumerate(offers, 1):\n        announce(sender, name, price)\n",
            ),
        ),
    ),
    Honest(
        "comprehension-instead-of-loop",
        edited(
            "shop/notify.py",
            (
                "    count = 0\n    for name, price in offers:\n        announce(sender, name, price)\n        count += 1\n    return count\n",
                "    return len([announce(sender, name, price) for name, price in offers])\n",
            ),
        ),
    ),
    Honest(
        "cached-table",
        edited(
            "shop/stock.py",
            STOCK_CACHE,
            (
                '    return json.loads(TABLE.read_text("utf-8"))\n\n\ndef amount',
                "    return dict(_table())\n\n\ndef amount",
            ),
            ("import json\n", "import json\nfrom functools import cache\n"),
        ),
    ),
    Honest(
        "cached-with-a-size",
        edited(
            "shop/units.py",
            ("def ordinal", "@lru_cache(maxsize=64)\ndef ordinal"),
            ("\n\ndef cents", "\nfrom functools import lru_cache\n\n\ndef cents"),
        ),
    ),
    Honest(
        "cached-property",
        edited(
            "shop/basket.py",
            ("@dataclass(frozen=True)\n", "@dataclass(frozen=True, eq=True)\n"),
            ("    @property\n    def cost", "    @cached_property\n    def cost"),
            ("from dataclasses", "from functools import cached_property\nfrom dataclasses"),
        ),
    ),
    Honest(
        "item-as-a-named-tuple",
        {
            "shop/basket.py": BASKET.replace(
                '@dataclass(frozen=True)\nclass Item:\n    """Something with a price."""\n', NAMED
            ).replace("from dataclasses import dataclass\n", "from typing import NamedTuple\n")
        },
    ),
    Honest("slots", edited("shop/basket.py", ("@dataclass(frozen=True)", "@dataclass(frozen=True, slots=True)"))),
    Honest(
        "basket-as-a-dataclass",
        edited(
            "shop/basket.py",
            ("class Basket:\n", "@dataclass\nclass Basket:\n"),
            (
                "    def __init__(self, items: Iterable[Item] = ()) -> None:\n        self.items = list(items)\n",
                "    items: list[Item] = field(default_factory=list)\n",
            ),
            ("import dataclass\n", "import dataclass, field\n"),
            ("from collections.abc import Iterable\n", ""),
        ),
    ),
    Honest(
        "functions-moved-and-re-exported",
        {
            "shop/prices.py": 'from shop.money import discount, total\nfrom shop.words import is_cheap, label, parse\n\n__all__ = ["discount", "is_cheap", "label", "parse", "total"]\n',
            "shop/money.py": PRODUCT[: PRODUCT.index("def label")].rstrip() + "\n",
            "shop/words.py": '"""Words."""\n\n\n' + PRODUCT[PRODUCT.index("def label") :],
        },
    ),
    Honest(
        "module-moved-with-a-shim",
        {
            "shop/units.py": '"""Units."""\n\nfrom shop.measures import cents, grams, ordinal\n\n__all__ = ["cents", "grams", "ordinal"]\n',
            "shop/measures.py": BASE["shop/units.py"],
        },
        "needs_person",
    ),
    Honest(
        "pathlib-to-resources",
        edited(
            "shop/stock.py",
            ('TABLE = Path(__file__).with_name("stock.json")\n', 'TABLE = files("shop") / "stock.json"\n'),
            ("from pathlib import Path\n", "from importlib.resources import files\n"),
        ),
    ),
    Honest(
        "operator-instead-of-lambda",
        edited(
            "shop/basket.py",
            ("key=lambda item: item.price", 'key=attrgetter("price")'),
            ("from dataclasses", "from operator import attrgetter\nfrom dataclasses"),
        ),
    ),
    Honest(
        "table-of-endings",
        edited(
            "shop/units.py",
            (
                "    return f\"{number}{({1: 'st', 2: 'nd', 3: 'rd'}).get(number % 10, 'th')}\"\n",
                "    return f\"{number}{ENDINGS.get(number % 10, 'th')}\"\n",
            ),
            ("\n\ndef cents", '\nENDINGS = {1: "st", 2: "nd", 3: "rd"}\n\n\ndef cents'),
        ),
    ),
    Honest(
        "enum-of-units",
        edited(
            "shop/units.py",
            ('    return int(number) * {"g": 1, "kg": 1000}[unit]\n', "    return int(number) * Unit[unit].value\n"),
            (
                "\n\ndef cents",
                '\nfrom enum import Enum\n\n\nclass Unit(Enum):\n    """So many grams."""\n\n    g = 1\n    kg = 1000\n\n\ndef cents',
            ),
        ),
    ),
    Honest(
        "divmod-and-abs",
        edited(
            "shop/units.py",
            (
                "    if number % 100 in (11, 12, 13):\n",
                "    _, last = divmod(number, 100)\n    if abs(last - 12) <= 1:\n",
            ),
        ),
    ),
    Honest(
        "recursion-instead-of-sum",
        edited(
            "shop/prices.py",
            ("    return sum(prices)\n", "    return prices[0] + total(prices[1:]) if prices else 0\n"),
        ),
    ),
    Honest(
        "reduce-instead-of-sum",
        edited(
            "shop/prices.py",
            ("    return sum(prices)\n", "    return reduce(add, prices, 0)\n"),
            ('"""Prices."""\n', '"""Prices."""\n\nfrom functools import reduce\nfrom operator import add\n'),
        ),
    ),
    Honest(
        "fraction-inside",
        edited(
            "shop/prices.py",
            (
                "    return price - price * percent / 100\n",
                "    return float(Fraction(price) * (100 - Fraction(percent)) / 100)\n",
            ),
            ('"""Prices."""\n', '"""Prices."""\n\nfrom fractions import Fraction\n'),
        ),
    ),
    Honest(
        "dead-code-removed",
        {"shop/prices.py": PRODUCT},
        base={"shop/prices.py": PRODUCT + "\n\ndef _unused() -> int:\n    return 1\n"},
    ),
    Honest(
        "type-alias",
        edited(
            "shop/stock.py", ("def stock() -> dict[str, int]:", "Table = dict[str, int]\n\n\ndef stock() -> Table:")
        ),
    ),
    Honest(
        "overloads-and-casts",
        edited(
            "shop/stock.py",
            (
                '    return json.loads(TABLE.read_text("utf-8"))\n',
                '    return cast("dict[str, int]", json.loads(TABLE.read_text("utf-8")))\n',
            ),
            ("from pathlib import Path\n", "from pathlib import Path\nfrom typing import cast\n"),
        ),
    ),
    Honest(
        "validation-by-a-decorator",
        edited(
            "shop/prices.py",
            ("def is_cheap", "@_number\ndef is_cheap"),
            (
                "def discount",
                'def _number(function):\n    @wraps(function)\n    def asked(price):\n        if price != price:\n            raise ValueError("not a number")\n        return function(price)\n\n    return asked\n\n\ndef discount',
            ),
            ('"""Prices."""\n', '"""Prices."""\n\nfrom functools import wraps\n'),
        ),
    ),
    Honest(
        "parser-in-a-function",
        edited(
            "shop/cli.py",
            (
                '    parser = argparse.ArgumentParser(prog="shop")\n    parser.add_argument("price")\n    parser.add_argument("percent")\n    asked = parser.parse_args(words)\n',
                "    asked = _parser().parse_args(words)\n",
            ),
            (
                "def main",
                'def _parser() -> argparse.ArgumentParser:\n    parser = argparse.ArgumentParser(prog="shop")\n    parser.add_argument("price")\n    parser.add_argument("percent")\n    return parser\n\n\ndef main',
            ),
        ),
    ),
    Honest(
        "prints-by-write",
        edited("shop/cli.py", ('    print(f"{left:.2f}")\n', '    sys.stdout.write(f"{left:.2f}\\n")\n')),
    ),
    Honest(
        "examples-added",
        edited(
            "shop/units.py", ("    >>> cents(0.29)\n    29\n", "    >>> cents(0.29)\n    29\n    >>> cents(0)\n    0\n")
        ),
    ),
    Honest(
        "example-in-another-function",
        edited(
            "shop/prices.py",
            (
                '    """The sum of all prices."""\n',
                '    """The sum of all prices.\n\n    >>> total([1, 2])\n    3\n    """\n',
            ),
        ),
    ),
)
