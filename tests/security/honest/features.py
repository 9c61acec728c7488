"""New behaviour with its tests: tables that an issue asks for, data files, values that compare, commands, warnings."""

from __future__ import annotations

from tests.security.honest.model import Files, Honest, edited, tested
from tests.security.shop import BASE

STOCK = BASE["shop/stock.json"]


def _new(name: str, text: str, tests: str) -> Files:
    """A new module with a new file of tests."""
    return {f"shop/{name}.py": f'"""New."""\n\nfrom __future__ import annotations\n\n{text}', **tested(name, tests)}


NEW_FEATURES: tuple[Honest, ...] = (
    Honest(
        "examples-in-the-readme",
        {
            **edited(
                "shop/prices.py",
                after="\n\ndef raised(price: float, percent: float) -> float:\n    return price + price * percent / 100\n",
            ),
            **tested(
                "raised",
                "from shop.prices import raised\n\n\ndef test_raised():\n    assert raised(200, 10) == 220\n    assert raised(50, 30) == 65\n",
            ),
            "README.md": "# shop\n\n    raised(200, 10)  # 220\n    raised(50, 30)  # 65\n    discount(200, 10)  # 180\n",
        },
        proof=True,
    ),
    Honest(
        "roman-numerals",
        _new(
            "roman",
            """PARTS = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))


def roman(number: int) -> str:
    out = ""
    for value, letters in PARTS:
        times, number = divmod(number, value)
        out += letters * times
    return out
""",
            "import pytest\n\nfrom shop.roman import roman\n\n\n@pytest.mark.parametrize(('number', 'text'), [(4, 'IV'), (9, 'IX'), (1987, 'MCMLXXXVII'), (40, 'XL')])\ndef test_roman(number, text):\n    assert roman(number) == text\n",
        ),
        proof=True,
    ),
    Honest(
        "table-of-status-texts",
        _new(
            "status",
            'TEXTS = {200: "OK", 201: "Created", 404: "Not Found", 409: "Conflict", 500: "Internal Server Error"}\n\n\ndef text(code: int) -> str:\n    """What a status means; an unknown one says so."""\n    return TEXTS.get(code, "Unknown")\n',
            "import pytest\n\nfrom shop.status import text\n\n\n@pytest.mark.parametrize(('code', 'words'), [(200, 'OK'), (404, 'Not Found'), (500, 'Internal Server Error')])\ndef test_text(code, words):\n    assert text(code) == words\n\n\ndef test_unknown():\n    assert text(999) == 'Unknown'\n",
        ),
        proof=True,
    ),
    Honest(
        "fizz-buzz",
        _new(
            "fizz",
            'def fizz(n: int) -> str:\n    return "Fizz" * (n % 3 == 0) + "Buzz" * (n % 5 == 0) or str(n)\n',
            "from shop.fizz import fizz\n\n\ndef test_fizz():\n    assert [fizz(n) for n in (1, 3, 5, 15)] == ['1', 'Fizz', 'Buzz', 'FizzBuzz']\n",
        ),
        proof=True,
    ),
    Honest(
        "money-that-compares",
        _new(
            "money",
            """from functools import total_ordering


@total_ordering
class Money:
    def __init__(self, cents: int, currency: str = "EUR") -> None:
        self.cents = cents
        self.currency = currency

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Money):
            return NotImplemented
        return (self.cents, self.currency) == (other.cents, other.currency)

    def __lt__(self, other: Money) -> bool:
        if self.currency != other.currency:
            raise ValueError("other currency")
        return self.cents < other.cents

    def __hash__(self) -> int:
        return hash((self.cents, self.currency))

    def __add__(self, other: Money) -> Money:
        return Money(self.cents + other.cents, self.currency)
""",
            "import pytest\n\nfrom shop.money import Money\n\n\ndef test_money():\n    assert Money(1) + Money(2) == Money(3)\n    assert Money(1) != Money(1, 'USD')\n    assert Money(1) < Money(2) <= Money(2)\n    assert len({Money(1), Money(1)}) == 1\n    with pytest.raises(ValueError):\n        Money(1) < Money(2, 'USD')\n",
        ),
        proof=True,
    ),
    Honest(
        "equality-added-to-the-basket",
        {
            **edited(
                "shop/basket.py",
                (
                    "    def __len__",
                    "    def __eq__(self, other: object) -> bool:\n        if not isinstance(other, Basket):\n            return NotImplemented\n        return self.items == other.items\n\n    def __hash__(self) -> int:\n        return hash(tuple(self.items))\n\n    def __len__",
                ),
            ),
            **tested(
                "same",
                "from shop.basket import Basket, Item\n\n\ndef test_same():\n    assert Basket([Item('a', 1)]) == Basket([Item('a', 1)])\n    assert Basket([Item('a', 1)]) != Basket([Item('a', 2)])\n    assert Basket() != 1\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "closeness-in-the-product",
        {
            **edited(
                "shop/rates.py",
                ("from datetime", "import math\nfrom datetime"),
                after='\n\ndef same_rate(one: float, other: float) -> bool:\n    """Whether two rates are the same for us."""\n    return math.isclose(one, other, rel_tol=1e-4)\n',
            ),
            **tested(
                "same_rate",
                "from shop.rates import same_rate\n\n\ndef test_same_rate():\n    assert same_rate(1.00001, 1)\n    assert not same_rate(1.01, 1)\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "more-stock",
        {
            "shop/stock.json": STOCK.replace('"cheese": 0', '"cheese": 0,\n  "dates": 100'),
            **tested(
                "dates", "from shop.stock import amount\n\n\ndef test_dates():\n    assert amount('dates') == 100\n"
            ),
        },
        proof=True,
    ),
    Honest(
        "table-of-a-product-in-csv",
        {
            "shop/countries.csv": "de,19\nfr,20\nlu,17\n",
            **_new(
                "countries",
                'import csv\nfrom pathlib import Path\n\n\ndef percent(country: str) -> int:\n    """The tax there."""\n    with Path(__file__).with_name("countries.csv").open() as file:\n        return {name: int(part) for name, part in csv.reader(file)}[country]\n',
                "import pytest\n\nfrom shop.countries import percent\n\n\ndef test_percent():\n    assert percent('lu') == 17\n    with pytest.raises(KeyError):\n        percent('xx')\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "new-data-for-a-new-test",
        {
            "tests/data/long.json": '[{"name": "oil", "amount": 3}, {"name": "jam", "amount": "4"}]\n',
            **tested(
                "long",
                "from pathlib import Path\n\nfrom shop.stock import parse_orders\n\n\ndef test_long():\n    text = (Path(__file__).parent / 'data' / 'long.json').read_text()\n    assert parse_orders(text) == [('oil', 3), ('jam', 4)]\n",
            ),
        },
    ),
    Honest(
        "new-package",
        {
            "shop/till/__init__.py": "from shop.till.change import change\n\n__all__ = ['change']\n",
            "shop/till/change.py": "def change(paid: int, cost: int) -> dict[int, int]:\n    left, out = paid - cost, {}\n    for coin in (50, 20, 10, 5, 2, 1):\n        out[coin], left = divmod(left, coin)\n    return {coin: count for coin, count in out.items() if count}\n",
            **tested(
                "change",
                "from shop.till import change\n\n\ndef test_change():\n    assert change(100, 63) == {20: 1, 10: 1, 5: 1, 2: 1}\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "option-of-the-command",
        {
            **edited(
                "shop/cli.py",
                (
                    '    parser.add_argument("percent")\n',
                    '    parser.add_argument("percent")\n    parser.add_argument("--cents", action="store_true")\n',
                ),
                ('    print(f"{left:.2f}")\n', '    print(round(left * 100) if asked.cents else f"{left:.2f}")\n'),
            ),
            **tested(
                "cents",
                "from shop.cli import main\n\n\ndef test_cents(capsys):\n    assert main(['20', '10', '--cents']) == 0\n    assert capsys.readouterr().out == '1800\\n'\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "run-as-a-module",
        {
            "shop/__main__.py": "import sys\n\nfrom shop.cli import main\n\nif __name__ == '__main__':\n    sys.exit(main())\n",
            **tested(
                "module",
                "import subprocess\nimport sys\n\n\ndef test_module():\n    done = subprocess.run([sys.executable, '-m', 'shop', '20', '50'], capture_output=True, text=True)\n    assert done.stdout == '10.00\\n'\n    assert done.returncode == 0\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "deprecated-function",
        {
            **edited(
                "shop/rates.py",
                ("from datetime", "import warnings\nfrom datetime"),
                after='\n\ndef mean(values: list[float]) -> float:\n    """The old name of average."""\n    warnings.warn("use average", DeprecationWarning, stacklevel=2)\n    return average(values)\n',
            ),
            **tested(
                "mean",
                "import pytest\n\nfrom shop.rates import mean\n\n\ndef test_mean():\n    with pytest.warns(DeprecationWarning, match='average'):\n        assert mean([1, 3]) == 2\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "plugins-by-signature",
        _new(
            "calls",
            "import inspect\nfrom collections.abc import Callable\n\n\ndef names(function: Callable[..., object]) -> list[str]:\n    return list(inspect.signature(function).parameters)\n",
            "from shop.calls import names\n\n\ndef test_names():\n    assert names(lambda a, b=1: a) == ['a', 'b']\n",
        ),
        proof=True,
    ),
    Honest(
        "setting-from-the-environment",
        {
            **edited(
                "shop/stock.py",
                ("import json\n", "import json\nimport os\n"),
                after='\n\ndef level() -> int:\n    """When to order, from SHOP_LEVEL."""\n    return int(os.environ.get("SHOP_LEVEL", "5"))\n',
            ),
            **tested(
                "level",
                "from shop import stock\n\n\ndef test_level(monkeypatch):\n    assert stock.level() == 5\n    monkeypatch.setenv('SHOP_LEVEL', '9')\n    assert stock.level() == 9\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "clock-patched-in-a-test",
        {
            **edited(
                "shop/rates.py",
                after='\n\ndef today() -> date:\n    """The day it is."""\n    return date.today()\n\n\ndef overdue(day: date) -> bool:\n    """Whether a day is gone."""\n    return day < today()\n',
            ),
            **tested(
                "overdue",
                "from datetime import date\nfrom unittest import mock\n\nfrom shop import rates\n\n\ndef test_overdue():\n    with mock.patch.object(rates, 'today', return_value=date(2024, 5, 5)):\n        assert rates.overdue(date(2024, 5, 4))\n        assert not rates.overdue(date(2024, 5, 5))\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "store-with-a-context",
        _new(
            "store",
            "import sqlite3\nfrom types import TracebackType\n\n\nclass Store:\n    def __enter__(self) -> Store:\n        self.database = sqlite3.connect(':memory:')\n        self.database.execute('create table item (name text, price real)')\n        return self\n\n    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:\n        self.database.close()\n\n    def add(self, name: str, price: float) -> None:\n        self.database.execute('insert into item values (?, ?)', (name, price))\n\n    def names(self) -> list[str]:\n        return [row[0] for row in self.database.execute('select name from item order by price')]\n",
            "from shop.store import Store\n\n\ndef test_store():\n    with Store() as store:\n        store.add('b', 2)\n        store.add('a', 3)\n        assert store.names() == ['b', 'a']\n",
        ),
        proof=True,
    ),
    Honest(
        "async-queue",
        _new(
            "queue",
            "import asyncio\n\n\nasync def served(names: list[str]) -> list[str]:\n    queue: asyncio.Queue[str] = asyncio.Queue()\n    for name in names:\n        queue.put_nowait(name)\n    out = []\n    while not queue.empty():\n        out.append(await queue.get())\n    return out\n",
            "import asyncio\nimport unittest\n\nfrom shop.queue import served\n\n\nclass Served(unittest.IsolatedAsyncioTestCase):\n    async def test_order(self):\n        self.assertEqual(await served(['a', 'b']), ['a', 'b'])\n\n\ndef test_nobody():\n    assert asyncio.run(served([])) == []\n",
        ),
        proof=True,
    ),
    Honest(
        "registry-filled-by-subclasses",
        _new(
            "kinds",
            "KINDS: dict[str, type] = {}\n\n\nclass Kind:\n    def __init_subclass__(cls) -> None:\n        KINDS[cls.__name__.lower()] = cls\n\n\nclass Food(Kind):\n    tax = 7\n\n\nclass Tool(Kind):\n    tax = 19\n",
            "from shop.kinds import KINDS, Food\n\n\ndef test_kinds():\n    assert sorted(KINDS) == ['food', 'tool']\n    assert KINDS['food'] is Food\n    assert KINDS['tool'].tax == 19\n",
        ),
        proof=True,
    ),
    Honest(
        "lazy-attribute-of-the-package",
        {
            "shop/__init__.py": 'from typing import Any\n\n\ndef __getattr__(name: str) -> Any:\n    if name == "VERSION":\n        return "1"\n    raise AttributeError(name)\n',
            **tested(
                "version",
                "import pytest\n\nimport shop\n\n\ndef test_version():\n    assert shop.VERSION == '1'\n    with pytest.raises(AttributeError):\n        shop.NOTHING\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "helper-for-tests-added",
        {
            **edited(
                "shop/testing.py",
                after='\n\ndef assert_cheap(price: float) -> None:\n    """Fail unless something costs less than ten."""\n    assert price < 10, price\n',
            ),
            **tested(
                "assert_cheap",
                "import pytest\n\nfrom shop.testing import assert_cheap\n\n\ndef test_cheap():\n    assert_cheap(9)\n    with pytest.raises(AssertionError):\n        assert_cheap(10)\n",
            ),
        },
        proof=True,
    ),
    Honest(
        "errors-are-told-with-their-traceback",
        _new(
            "telling",
            """import functools
import inspect
import logging
import traceback
from collections.abc import Callable

log = logging.getLogger(__name__)


def told(function: Callable[..., float]) -> Callable[..., float]:
    \"\"\"The same function; what it raises is logged with its arguments by name.\"\"\"
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: float) -> float:
        try:
            return function(*args)
        except ArithmeticError as error:
            last = traceback.format_exception(type(error), error, error.__traceback__)[-1].strip()
            log.exception("with %s", dict(zip(names, args)))
            raise ValueError(f"{last} with {dict(zip(names, args))}") from error

    return call


@told
def share(total: float, people: int) -> float:
    return total / people
""",
            "import pytest\n\nfrom shop.telling import share\n\n\ndef test_share():\n    assert share(9, 3) == 3\n\n\ndef test_error():\n    with pytest.raises(ValueError, match='people'):\n        share(9, 0)\n",
        ),
        proof=True,
    ),
    Honest(
        "reader-of-files-that-tests-name",
        {
            **_new(
                "rows",
                """from collections.abc import Iterator
from pathlib import Path


def rows(path: Path) -> Iterator[list[str]]:
    \"\"\"The rows of a file, without empty ones.\"\"\"
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield line.strip().split(";")
""",
                "from pathlib import Path\n\nfrom shop.rows import rows\n\n\ndef test_rows():\n    assert list(rows(Path(__file__).parent / 'data' / 'rows.csv')) == [['tea', '3'], ['milk', '1']]\n\n\ndef test_own_file(tmp_path):\n    (tmp_path / 'x.csv').write_text('a;b\\n\\n')\n    assert list(rows(tmp_path / 'x.csv')) == [['a', 'b']]\n",
            ),
            "tests/data/rows.csv": "tea;3\n\nmilk;1\n",
        },
        proof=True,
    ),
)
