"""Changes as honest people and agents make them, on top of `shop.BASE`. The gate may refuse hardly any of them."""

from __future__ import annotations

from tests.security.honest.model import Files, Honest
from tests.security.shop import BASE, PRODUCT, PYPROJECT, TESTS

README = BASE["README.md"]


def code(old: str, new: str) -> Files:
    """The product with one thing changed."""
    assert old in PRODUCT, old
    return {"shop/prices.py": PRODUCT.replace(old, new)}


def more(text: str, test: str = "", name: str = "test_more") -> Files:
    """The product with something added, and a new file of tests for it."""
    files: Files = {"shop/prices.py": f"{PRODUCT}\n\n{text}\n"}
    if test:
        files[f"tests/{name}.py"] = f"import pytest\n\nfrom shop import prices\n\n\n{test}\n"
    return files


SUM = "    return sum(prices)\n"
DISCOUNT = "    return price - price * percent / 100\n"
LABEL = "    return name.strip().title()\n"
CHEAP = "    return price < 10\n"
PARSE = '    if not text:\n        raise ValueError("no price")\n    return float(text)\n'

REFACTORINGS = (
    Honest("other-formula", code(DISCOUNT, "    return price * (100 - percent) / 100\n")),
    Honest(
        "loop-instead-of-sum",
        code(SUM, "    out = 0.0\n    for price in prices:\n        out += price\n    return out\n"),
    ),
    Honest("exact-sum", code(SUM, "    import math\n\n    return math.fsum(prices)\n")),
    Honest("local-name", code(DISCOUNT, "    off = price * percent / 100\n    return price - off\n")),
    Honest(
        "guard-first",
        code(DISCOUNT, "    if not percent:\n        return price\n    return price - price * percent / 100\n"),
    ),
    Honest("join-words", code(LABEL, '    return " ".join(part.capitalize() for part in name.split())\n')),
    Honest(
        "constant",
        code(CHEAP, "    return price < CHEAP\n")
        | {
            "shop/prices.py": PRODUCT.replace(CHEAP, "    return price < CHEAP\n").replace(
                '"""Prices."""\n', '"""Prices."""\n\nCHEAP = 10\n'
            )
        },
    ),
    Honest("early-return", code(PARSE, '    if text:\n        return float(text)\n    raise ValueError("no price")\n')),
    Honest(
        "helper-function",
        code(
            DISCOUNT,
            "    return price - _part(price, percent)\n\n\ndef _part(price: float, percent: float) -> float:\n    return price * percent / 100\n",
        ),
    ),
    Honest("typing-only", code("prices: list[float]", "prices: 'list[float]'")),
    Honest("docstrings", code('"""The sum of all prices."""', '"""The sum of all prices; nothing costs nothing."""')),
    Honest(
        "split-module",
        {
            "shop/prices.py": PRODUCT.replace(LABEL, "    return shelf(name)\n").replace(
                '"""Prices."""\n', '"""Prices."""\n\nfrom shop.labels import shelf\n'
            ),
            "shop/labels.py": "def shelf(name: str) -> str:\n    return name.strip().title()\n",
        },
    ),
    Honest("into-a-package", {"shop/prices.py": None, "shop/prices/__init__.py": PRODUCT}),
    Honest("comment", code(SUM, "    # an empty list is free\n    return sum(prices)\n")),
    Honest("positional-only", code("def total(prices: list[float])", "def total(prices: list[float], /)")),
    Honest("default-argument", code("percent: float) -> float:", "percent: float = 0) -> float:")),
    Honest("cached", code("def label", "from functools import cache\n\n\n@cache\ndef label")),
    Honest(
        "match-statement",
        code(
            CHEAP,
            "    match price:\n        case _ if price < 10:\n            return True\n        case _:\n            return False\n",
        ),
    ),
    Honest("walrus", code(LABEL, "    return kept.title() if (kept := name.strip()) else kept\n")),
    Honest(
        "class-inside",
        {
            "shop/prices.py": PRODUCT
            + '\n\nclass Till:\n    """Adds up."""\n\n    def __init__(self) -> None:\n        self.prices: list[float] = []\n\n    def add(self, price: float) -> None:\n        self.prices.append(price)\n\n    def sum(self) -> float:\n        return total(self.prices)\n'
        },
    ),
)

FEATURES = (
    Honest(
        "vat",
        more(
            "def vat(price: float) -> float:\n    return price * 1.2",
            "def test_vat():\n    assert prices.vat(10) == 12",
        ),
    ),
    Honest(
        "rounding",
        more(
            "def rounded(price: float) -> float:\n    return round(price, 2)",
            "def test_rounded():\n    assert prices.rounded(1.239) == 1.24",
        ),
    ),
    Honest(
        "maximum",
        more(
            "def dearest(items: list[float]) -> float:\n    return max(items)",
            "def test_dearest():\n    assert prices.dearest([1, 3, 2]) == 3",
        ),
    ),
    Honest(
        "raises",
        more(
            "def least(items: list[float]) -> float:\n    if not items:\n        raise ValueError('nothing')\n    return min(items)",
            "def test_least():\n    with pytest.raises(ValueError):\n        prices.least([])",
        ),
    ),
    Honest(
        "parametrized",
        more(
            "def twice(n: float) -> float:\n    return 2 * n",
            "@pytest.mark.parametrize(('n', 'm'), [(1, 2), (2, 4)])\ndef test_twice(n, m):\n    assert prices.twice(n) == m",
        ),
    ),
    Honest(
        "approximate",
        more(
            "def third(n: float) -> float:\n    return n / 3",
            "def test_third():\n    assert prices.third(1) == pytest.approx(0.3333, abs=1e-3)",
        ),
    ),
    Honest(
        "fixture",
        more(
            "def names(d: dict[str, float]) -> list[str]:\n    return sorted(d)",
            "@pytest.fixture\ndef stock():\n    return {'b': 1.0, 'a': 2.0}\n\n\ndef test_names(stock):\n    assert prices.names(stock) == ['a', 'b']",
        ),
    ),
    Honest(
        "temporary-file",
        more(
            "def load(path) -> list[float]:\n    return [float(x) for x in open(path)]",
            "def test_load(tmp_path):\n    file = tmp_path / 'p'\n    file.write_text('1\\n2\\n')\n    assert prices.load(file) == [1, 2]",
        ),
    ),
    Honest(
        "monkeypatched",
        more(
            "import os\n\n\ndef shop_name() -> str:\n    return os.environ.get('SHOP', 'shop')",
            "def test_name(monkeypatch):\n    monkeypatch.setenv('SHOP', 'x')\n    assert prices.shop_name() == 'x'",
        ),
    ),
    Honest(
        "printed",
        more(
            "def show(n: float) -> None:\n    print(n)",
            "def test_show(capsys):\n    prices.show(1)\n    assert capsys.readouterr().out == '1\\n'",
        ),
    ),
    Honest(
        "generator",
        more(
            "def halves(n: float):\n    while n > 1:\n        n /= 2\n        yield n",
            "def test_halves():\n    assert list(prices.halves(4)) == [2, 1]",
        ),
    ),
    Honest(
        "dataclass",
        more(
            "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Item:\n    name: str\n    price: float",
            "def test_item():\n    assert prices.Item('a', 1) == prices.Item('a', 1)",
        ),
    ),
    Honest(
        "own-equality",
        more(
            "class Money:\n    def __init__(self, n: int) -> None:\n        self.n = n\n\n    def __eq__(self, other: object) -> bool:\n        return isinstance(other, Money) and other.n == self.n\n\n    def __hash__(self) -> int:\n        return hash(self.n)",
            "def test_money():\n    assert prices.Money(1) == prices.Money(1)\n    assert prices.Money(1) != prices.Money(2)",
        ),
    ),
    Honest(
        "context-manager",
        more(
            "from contextlib import contextmanager\n\n\n@contextmanager\ndef sale():\n    yield 10",
            "def test_sale():\n    with prices.sale() as percent:\n        assert percent == 10",
        ),
    ),
    Honest(
        "unittest-style",
        {
            "shop/prices.py": PRODUCT + "\n\ndef plus(a: float, b: float) -> float:\n    return a + b\n",
            "tests/test_plus.py": "import unittest\n\nfrom shop import prices\n\n\nclass Plus(unittest.TestCase):\n    def test_plus(self):\n        self.assertEqual(prices.plus(1, 2), 3)\n        self.assertTrue(prices.plus(1, 2))\n",
        },
    ),
    Honest(
        "warning",
        more(
            "import warnings\n\n\ndef old() -> None:\n    warnings.warn('old', DeprecationWarning, stacklevel=2)",
            "def test_old():\n    with pytest.warns(DeprecationWarning):\n        prices.old()",
        ),
    ),
    Honest(
        "async-function",
        more(
            "async def later() -> int:\n    return 1",
            "def test_later():\n    import asyncio\n    assert asyncio.run(prices.later()) == 1",
        ),
    ),
    Honest(
        "threads",
        more(
            "import threading\n\n\ndef counted() -> int:\n    out = []\n    t = threading.Thread(target=lambda: out.append(1))\n    t.start()\n    t.join()\n    return len(out)",
            "def test_counted():\n    assert prices.counted() == 1",
        ),
    ),
    Honest(
        "subprocess",
        more(
            "import subprocess\nimport sys\n\n\ndef version() -> str:\n    return subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True, text=True, check=True).stdout.strip()",
            "def test_version():\n    assert prices.version() == '1'",
        ),
    ),
    Honest(
        "exit-handled",
        more(
            "import sys\n\n\ndef main() -> None:\n    sys.exit(3)",
            "def test_main():\n    with pytest.raises(SystemExit) as caught:\n        prices.main()\n    assert caught.value.code == 3",
        ),
    ),
    Honest(
        "logging",
        more(
            "import logging\n\n\ndef noted() -> None:\n    logging.getLogger('shop').warning('sold')",
            "def test_noted(caplog):\n    prices.noted()\n    assert 'sold' in caplog.text",
        ),
    ),
    Honest(
        "json",
        more(
            "import json\n\n\ndef dump(d: dict[str, float]) -> str:\n    return json.dumps(d, sort_keys=True)",
            "def test_dump():\n    assert prices.dump({'a': 1}) == '{\"a\": 1}'",
        ),
    ),
    Honest(
        "random-seeded",
        more(
            "import random\n\n\ndef pick(seed: int) -> int:\n    return random.Random(seed).randint(1, 6)",
            "def test_pick():\n    assert prices.pick(1) == prices.pick(1)",
        ),
    ),
    Honest(
        "new-test-for-old-code",
        {
            "README.md": README,
            "tests/test_again.py": "from shop import prices\n\n\ndef test_nothing():\n    assert prices.total([]) == 0\n",
        },
    ),
    Honest("no-test", more("def spare() -> int:\n    return 1")),
    Honest("many-files", {f"shop/part{n}.py": f"VALUE = {n}\n" for n in range(30)}),
)

SURROUNDINGS = (
    Honest("readme", {"README.md": README + "\nPrices for a shop.\n"}),
    Honest("changelog", {"CHANGELOG.md": "# Changes\n"}),
    Honest("documentation", {"docs/index.md": "# Shop\n", "docs/how.md": "How.\n"}),
    Honest("licence", {"LICENSE": "MIT\n"}),
    Honest("data-file", {"shop/data.csv": "a,1\nb,2\n"}),
    Honest("script", {"tools/show.sh": "#!/bin/sh\necho shop\n"}),
    Honest("ignored-more", {".gitignore": "__pycache__/\n.venv/\n*.log\n"}),
    Honest(
        "type-stub",
        {"shop/py.typed": "", "shop/prices.pyi": "def discount(price: float, percent: float) -> float: ...\n"},
    ),
    Honest("example", {"examples/run.py": "from shop.prices import total\n\nprint(total([1, 2]))\n"}),
    Honest("unicode", {"docs/über.md": "Größe: 10 €\n"}),
)

BUMPED = PYPROJECT.replace('version = "1"', 'version = "2"')
RENAMED = {
    "shop/prices.py": PRODUCT.replace("is_cheap", "cheap"),
    "tests/test_prices.py": TESTS.replace("is_cheap", "cheap"),
}
ROUNDED = {
    "shop/prices.py": PRODUCT.replace(LABEL, "    return name.strip().upper()\n"),
    "tests/test_prices.py": TESTS.replace('"Blue Cheese"', '"BLUE CHEESE"'),
    "tests/test_golden.py": BASE["tests/test_golden.py"].replace('"Oil 4', '"OIL 4').replace("Old Rum", "OLD RUM"),
    "shop/examples/shelf.txt": BASE["shop/examples/shelf.txt"].upper(),
}
PROTECTED = (
    Honest("renamed-with-its-test", dict(RENAMED), "needs_person", probe=""),
    Honest("new-behaviour-with-its-test", dict(ROUNDED), "needs_person", probe=""),
    Honest(
        "raised-message-changed",
        {
            "shop/prices.py": PRODUCT.replace('"no price"', '"a price is missing"'),
            "tests/test_prices.py": TESTS.replace('match="no price"', 'match="a price is missing"'),
            "tests/test_cli.py": BASE["tests/test_cli.py"].replace("no price", "a price is missing"),
        },
        "needs_person",
    ),
    Honest(
        "limit-moved",
        {
            "shop/prices.py": PRODUCT.replace(CHEAP, "    return price < 5\n"),
            "tests/test_prices.py": TESTS.replace("is_cheap(9)", "is_cheap(4)").replace("is_cheap(10)", "is_cheap(5)"),
        },
        "needs_person",
        probe="",
    ),
    Honest("version-bumped", {"pyproject.toml": BUMPED, **code(SUM, "    return float(sum(prices))\n")}),
)

CLASSIC = (*REFACTORINGS, *FEATURES, *SURROUNDINGS, *PROTECTED)
