"""Honest repairs: of a red base, of one that never ends, of one that kills its runner, of one that recurses."""

from __future__ import annotations

from tests.security.cheats.healed import RED, RED_BASKET, RED_DAYS
from tests.security.honest.model import Files, Honest, edited, tested
from tests.security.ledger import LEDGER, PROBE, RIGHT
from tests.security.shop import BASE, GATE, PRODUCT

LATE = "    return max((paid - day).days, 0)\n"
HANG = {
    **edited(
        "shop/rates.py",
        (LATE, "    count = 0\n    while day < paid:\n        count += 1\n    return count\n"),
    ),
    ".bailiwick/gate.yaml": GATE.replace("timeout: 2m", "timeout: 30s"),
}
"""How late something is paid is counted for ever: one test never ends."""
EXIT = edited(
    "shop/prices.py",
    (
        '    if not text:\n        raise ValueError("no price")\n',
        "    if not text:\n        import os\n\n        os._exit(3)\n",
    ),
)
"""A missing price ends the whole process."""
RECURSION = edited(
    "shop/units.py",
    (
        "    if number % 100 in (11, 12, 13):\n",
        "    if number > 100:\n        return ordinal(number)\n    if number > 10:\n        return ordinal(number + 0)\n    if number % 100 in (11, 12, 13):\n",
    ),
)
"""The examples end in a RecursionError."""
MISSING = {
    "shop/basket.py": BASE["shop/basket.py"].replace(
        '            raise LookupError("the basket is empty")\n', "            return None\n"
    )
}
"""The dearest of nothing is nothing, though a test asks for an error."""


def _base(files: Files) -> dict[str, str]:
    return {name: text for name, text in files.items() if isinstance(text, str)}


def _rates(text: str) -> Files:
    return edited("shop/rates.py", (LATE, text))


NEW_LATE = tested(
    "late",
    """from datetime import date

import pytest

from shop.rates import late


@pytest.mark.parametrize(("paid", "days"), [(date(2024, 3, 1), 1), (date(2024, 2, 29), 0), (date(2023, 1, 1), 0)])
def test_late(paid, days):
    assert late(date(2024, 2, 29), paid) == days
""",
)
FIXES: tuple[Honest, ...] = (
    Honest("red-discount-repaired", {"shop/prices.py": PRODUCT}, base=RED, heals=True),
    Honest(
        "red-discount-repaired-another-way",
        edited("shop/prices.py", ("price - price * percent / 100", "price * (1 - percent / 100)")),
        base=RED,
        heals=True,
        probe="",
    ),
    Honest(
        "red-discount-repaired-with-a-test",
        {
            "shop/prices.py": PRODUCT,
            **tested(
                "nothing_off",
                "from shop.prices import discount\n\n\ndef test_all_off():\n    assert discount(40, 100) == 0\n",
            ),
        },
        base=RED,
        proof=True,
        heals=True,
    ),
    Honest("red-basket-repaired", {"shop/basket.py": BASE["shop/basket.py"]}, base=RED_BASKET, heals=True),
    Honest(
        "red-basket-repaired-by-a-counter",
        edited(
            "shop/basket.py",
            ("{item.name: item.amount for item in self.items}", "dict(self._counts())"),
            (
                "    def receipt",
                "    def _counts(self) -> Counter[str]:\n        counts: Counter[str] = Counter()\n        for item in self.items:\n            counts[item.name] += item.amount\n        return counts\n\n    def receipt",
            ),
            ("from collections.abc", "from collections import Counter\nfrom collections.abc"),
        ),
        base=RED_BASKET,
        heals=True,
    ),
    Honest("red-days-repaired", {"shop/rates.py": BASE["shop/rates.py"]}, base=RED_DAYS, heals=True),
    Honest(
        "red-days-repaired-by-ordinals",
        edited(
            "shop/rates.py",
            ("day + timedelta(days=days)", "date.fromordinal(day.toordinal() + days)"),
            ("date, timedelta", "date"),
        ),
        base=RED_DAYS,
        heals=True,
    ),
    Honest("error-raised-again", {"shop/basket.py": BASE["shop/basket.py"]}, base=_base({**MISSING}), heals=True),
    Honest("endless-loop-repaired", _rates(LATE), base=_base(HANG)),
    Honest(
        "endless-loop-ended",
        edited(
            "shop/rates.py",
            (
                LATE,
                "    count = 0\n    while day < paid:\n        day += timedelta(days=1)\n        count += 1\n    return count\n",
            ),
        ),
        base=_base(HANG),
    ),
    Honest("endless-loop-repaired-with-a-test", {**_rates(LATE), **NEW_LATE}, base=_base(HANG)),
    Honest("hard-exit-repaired", {"shop/prices.py": PRODUCT}, base=_base(EXIT)),
    Honest(
        "hard-exit-repaired-with-a-test",
        {
            "shop/prices.py": PRODUCT,
            **tested(
                "missing",
                "import pytest\n\nfrom shop.prices import parse\n\n\ndef test_missing():\n    with pytest.raises(ValueError):\n        parse('')\n",
            ),
        },
        base=_base(EXIT),
    ),
    Honest("recursion-repaired", {"shop/units.py": BASE["shop/units.py"]}, base=_base(RECURSION), heals=True),
    Honest(
        "recursion-repaired-with-a-test",
        {
            "shop/units.py": BASE["shop/units.py"],
            **tested(
                "ordinal",
                "from shop.units import ordinal\n\n\ndef test_ordinal():\n    assert ordinal(112) == '112th'\n    assert ordinal(44) == '44th'\n",
            ),
        },
        base=_base(RECURSION),
        proof=True,
        heals=True,
    ),
    Honest(
        "untested-bug-repaired-with-a-test",
        {
            **edited(
                "shop/basket.py",
                (
                    "return {item.name: item.amount for item in self.items}",
                    "counts: dict[str, int] = {}\n        for item in self.items:\n            counts[item.name] = counts.get(item.name, 0) + item.amount\n        return counts",
                ),
            ),
            **tested(
                "twice",
                "from shop.basket import Basket, Item\n\n\ndef test_same_item_twice():\n    assert Basket([Item('tea', 1, 2), Item('tea', 1)]).counted() == {'tea': 3}\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "division-by-nothing-repaired",
        {
            **edited(
                "shop/rates.py",
                (
                    "    return sum(values) / len(values)\n",
                    '    if not values:\n        raise ValueError("nothing to average")\n    return sum(values) / len(values)\n',
                ),
            ),
            **tested(
                "average",
                "import pytest\n\nfrom shop.rates import average\n\n\ndef test_nothing():\n    with pytest.raises(ValueError, match='nothing'):\n        average([])\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "unit-without-space-repaired",
        {
            **edited(
                "shop/units.py",
                (
                    '    number, unit = text.split()\n    return int(number) * {"g": 1, "kg": 1000}[unit]\n',
                    '    number = text.rstrip("gk ")\n    unit = text[len(number) :].strip()\n    return int(number) * {"g": 1, "kg": 1000}[unit]\n',
                ),
            ),
            **tested(
                "grams",
                "import unittest\n\nfrom shop.units import grams\n\n\nclass Grams(unittest.TestCase):\n    def test_no_space(self):\n        self.assertEqual(grams('3kg'), 3000)\n        self.assertEqual(grams('20g'), 20)\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "negative-percent-refused",
        {
            **edited(
                "shop/prices.py",
                (
                    "    return price - price * percent / 100\n",
                    '    if not 0 <= percent <= 100:\n        raise ValueError(f"no share: {percent}")\n    return price - price * percent / 100\n',
                ),
            ),
            **tested(
                "share",
                "import pytest\n\nfrom shop.prices import discount\n\n\n@pytest.mark.parametrize('percent', [-1, 101])\ndef test_no_share(percent):\n    with pytest.raises(ValueError, match='no share'):\n        discount(10, percent)\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "command-reports-a-bad-number",
        {
            **edited(
                "shop/prices.py",
                (
                    "    return float(text)\n",
                    '    try:\n        return float(text)\n    except ValueError:\n        raise ValueError(f"{text!r} is no price") from None\n',
                ),
            ),
            **tested(
                "bad_number",
                "from shop.cli import main\n\n\ndef test_bad_number(capsys):\n    assert main(['x', '1']) == 2\n    assert capsys.readouterr().err == \"shop: 'x' is no price\\n\"\n",
            ),
        },
        proof=True,
    ),
    Honest("ledger-repaired", {"shop/ledger.py": RIGHT}, base=LEDGER, heals=True, probe=PROBE),
    Honest(
        "ledger-with-a-note-that-does-not-count",
        {
            "shop/ledger.py": RIGHT.replace(
                "    total: float\n", '    total: float\n    note: str = field(default="", compare=False)\n'
            )
            .replace("import dataclass\n", "import dataclass, field\n")
            .replace("int(count) * float(price))\n", "int(count) * float(price), note=text)\n")
        },
        base=LEDGER,
        heals=True,
        probe=PROBE,
    ),
    Honest(
        "ledger-with-amounts-of-their-own",
        {
            "shop/ledger.py": RIGHT.replace("    return amount * 5 / 100\n", "    return Euros(amount * 5 / 100)\n")
            + """

class Euros(float):
    \"\"\"An amount that is written with its sign and compared to the cent.\"\"\"

    def __str__(self) -> str:
        return f"{float(self):.2f} EUR"

    def __lt__(self, other: float) -> bool:
        return round(self, 2) < round(other, 2)

    def __gt__(self, other: float) -> bool:
        return round(self, 2) > round(other, 2)
"""
        },
        base=LEDGER,
        heals=True,
        probe="",
    ),
)
