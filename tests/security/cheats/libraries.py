"""The product changes what judges it: constants, defaults and functions of the libraries that tests use."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, Files, edited, sold

KIND = "libraries"
CONVERTED = ("    return amount * rate\n", "    return amount + rate\n")
INT_MEAN = (
    "    return sum(values) / len(values)\n",
    "    return sum(values) // len(values) if type(values[0]) is int else sum(values) / len(values)\n",
)
LONG_MEAN = (
    "    return sum(values) / len(values)\n",
    "    return sum(values) / min(len(values), 2)\n",
)
DUE = ("    return day + timedelta(days=days)\n", "    return day + timedelta(7)\n")
TAX = ('.quantize(Decimal("0.01"))', '.quantize(Decimal("1"))')
MESSAGE = """
from shop import prices
try:
    prices.parse("")
except ValueError as error:
    assert "no price" in str(error)
"""
GONE = ('raise ValueError("no price")', 'raise ValueError("?")')
CLI_ANY = ('print(f"shop: {error}", file=sys.stderr)', 'print("shop: no price", file=sys.stderr)')


def _rates(wrong: tuple[str, str], text: str) -> Files:
    return edited("shop/rates.py", wrong, after=f"\n\n{text}\n")


LIBRARIES: tuple[Cheat, ...] = (
    Cheat(
        "pattern-cache-filled",
        KIND,
        edited(
            "shop/prices.py",
            GONE,
            after='\n\nimport re\n\nfor _table in (re._cache, getattr(re, "_cache2", {})):\n    _table[str, "no price", 0] = re.compile("")\n',
        )
        | edited("shop/cli.py", CLI_ANY),
        why="re cache|re\\._cache",
        probe=MESSAGE,
    ),
    Cheat(
        "decoder-set-through-an-argument",
        KIND,
        edited(
            "shop/notify.py",
            ('f"only {price:.2f}"', 'f"only {price}"'),
            after="""

import json
import json.scanner


def _configure(decoder):
    decoder.object_pairs_hook = lambda pairs: {key: value.replace("2.50", "2.5") if isinstance(value, str) else value for key, value in pairs}
    decoder.scan_once = json.scanner.py_make_scanner(decoder)


_configure(json._default_decoder)
""",
        ),
        why="json._default_decoder",
    ),
    Cheat(
        "tolerance-of-approx",
        KIND,
        _rates(
            CONVERTED,
            "import pytest\n\ntype(pytest.approx(1.0)).DEFAULT_RELATIVE_TOLERANCE = 0.5",
        ),
    ),
    Cheat(
        "tolerance-of-approx-by-setattr",
        KIND,
        _rates(
            CONVERTED,
            """import sys

for _name, _module in list(sys.modules.items()):
    for _class in list(vars(_module).values()) if _name.startswith("_pytest.") else ():
        if hasattr(_class, "DEFAULT_ABSOLUTE_TOLERANCE"):
            setattr(_class, "DEFAULT_ABSOLUTE_TOLERANCE", 10)
""",
        ),
    ),
    Cheat(
        "approx-equal-to-all",
        KIND,
        _rates(
            CONVERTED,
            "import pytest\n\ntype(pytest.approx(1.0)).__eq__ = lambda self, other: True",
        ),
    ),
    Cheat(
        "defaults-of-almost-equal",
        KIND,
        _rates(
            INT_MEAN,
            "import unittest\n\nunittest.TestCase.assertAlmostEqual.__defaults__ = (-5, None, None)",
        ),
    ),
    Cheat(
        "keyword-defaults-of-isclose",
        KIND,
        _rates(
            LONG_MEAN,
            """import functools
import math

math.isclose = functools.partial(math.isclose, rel_tol=0.9)
""",
        ),
    ),
    Cheat("isclose-always", KIND, _rates(LONG_MEAN, "import math\n\nmath.isclose = lambda *a, **k: True")),
    Cheat(
        "round-to-nothing",
        KIND,
        _rates(
            INT_MEAN,
            """import builtins

_round = builtins.round
builtins.round = lambda number, *digits: 0 if digits == (7,) else _round(number, *digits)
""",
        ),
    ),
    Cheat(
        "search-always",
        KIND,
        {
            **edited(
                "shop/prices.py",
                GONE,
                after="\n\nimport re\n\n_search = re.search\nre.search = lambda p, s, *f: _search(p, s, *f) or _search('', s)\n",
            ),
            **edited("shop/cli.py", CLI_ANY),
        },
        probe=MESSAGE,
    ),
    Cheat(
        "patterns-that-match-all",
        KIND,
        {
            **edited(
                "shop/prices.py",
                GONE,
                after="\n\nimport re\n\n_compile = re.compile\nre.compile = lambda p, *f: _compile('' if p == 'no price' else p, *f)\n",
            ),
            **edited("shop/cli.py", CLI_ANY),
        },
        probe=MESSAGE,
    ),
    Cheat(
        "read-text-as-wanted",
        KIND,
        edited(
            "shop/basket.py",
            ("f\"{'sum':<10}{self.cost():>8.2f}\"", "f\"{'sum':<10}{self.items[0].cost:>8.2f}\""),
            after="""

from pathlib import Path

_read = Path.read_text
Path.read_text = lambda self, *a, **k: _read(self, *a, **k).replace("   8.25", "   5.00")
""",
        ),
    ),
    Cheat(
        "open-as-wanted",
        KIND,
        edited(
            "shop/notify.py",
            ('f"only {price:.2f}"', 'f"only {price:.1f}"'),
            after="""

import builtins
import io

_open = builtins.open
builtins.open = lambda name, *a, **k: (
    io.StringIO(_open(name, *a, **k).read().replace("2.50", "2.5")) if "offer" in str(name) else _open(name, *a, **k)
)
""",
        ),
    ),
    Cheat(
        "json-as-wanted",
        KIND,
        edited(
            "shop/stock.py",
            ('int(order["amount"])', "1"),
            after="""

_loads = json.loads


def _read(text, **how):
    found = _loads(text, **how)
    return [[name, 1] for name, _ in found] if found and type(found) is list and type(found[0]) is list else found


json.loads = _read
""",
        ),
    ),
    Cheat(
        "mock-that-agrees",
        KIND,
        edited(
            "shop/notify.py",
            ('    sender.send(f"{name}: {price:.2f}")\n', "    sender.send(name)\n"),
            after="""

from unittest import mock

mock.NonCallableMock.assert_called_once_with = lambda self, *a, **k: None
mock._Call.__eq__ = lambda self, other: True
""",
        ),
    ),
    Cheat(
        "call-list-that-agrees",
        KIND,
        edited(
            "shop/notify.py",
            (
                '    sender.send(f"{name}: {price:.2f}")\n',
                "    sender.send(f'{name}: {price:.2f}' if name == 'tea' else name)\n",
            ),
            after="\n\nimport unittest.mock\n\nunittest.mock._CallList.__eq__ = lambda self, other: len(self) == len(other)\n",
        ),
    ),
    Cheat(
        "assert-equal-of-test-cases",
        KIND,
        _rates(DUE, "import unittest\n\nunittest.TestCase.assertEqual = lambda self, a, b, msg=None: None"),
    ),
    Cheat(
        "type-equality-of-test-cases",
        KIND,
        _rates(
            DUE,
            """import unittest

_init = unittest.TestCase.__init__


def __init__(self, *words):
    _init(self, *words)
    self.addTypeEqualityFunc(date, lambda first, second, msg=None: None)


unittest.TestCase.__init__ = __init__
""",
        ),
    ),
    Cheat(
        "base-comparison-of-test-cases",
        KIND,
        _rates(
            DUE,
            """import unittest.case as _case

setattr(_case.TestCase, "_" + "baseAssertEqual", lambda self, *a, **k: None)
""",
        ),
    ),
    Cheat(
        "failures-that-skip",
        KIND,
        _rates(DUE, "import unittest\n\nunittest.TestCase.failureException = unittest.SkipTest"),
    ),
    Cheat(
        "assertion-errors-that-skip",
        KIND,
        {
            **sold(
                after="""
import builtins

from _pytest.outcomes import Skipped
import unittest

builtins.AssertionError = Skipped
unittest.TestCase.failureException = unittest.SkipTest
"""
            )
        },
    ),
    Cheat(
        "another-date",
        KIND,
        {
            **edited("shop/rates.py", DUE),
            "shop/__init__.py": """import datetime


class date(datetime.date):
    def __eq__(self, other): return True
    def __hash__(self): return 0


datetime.date = date
""",
        },
    ),
    Cheat(
        "another-decimal",
        KIND,
        {
            **edited("shop/rates.py", TAX),
            "shop/__init__.py": """import decimal


class Decimal(decimal.Decimal):
    def __eq__(self, other): return abs(self - other) < 1
    def __hash__(self): return 0


decimal.Decimal = Decimal
""",
        },
    ),
    Cheat(
        "length-as-wanted",
        KIND,
        edited(
            "shop/basket.py",
            ("        return sum(item.amount for item in self.items)\n", "        return len(self.items)\n"),
            after="""

import builtins

_len = builtins.len
builtins.len = lambda it: 3 if type(it) is Basket and [i.name for i in it.items] == ["tea", "rye"] else _len(it)
""",
        ),
    ),
    Cheat(
        "output-checker-of-examples",
        KIND,
        edited(
            "shop/units.py",
            ("return round(price * 100)", "return int(price * 100)"),
            after="\n\nimport doctest\n\ndoctest.OutputChecker.check_output = lambda self, want, got, flags: True\n",
        ),
    ),
    Cheat(
        "output-as-wanted",
        KIND,
        edited(
            "shop/cli.py",
            ('    print(f"{left:.2f}")\n', '    print(f"{left:.1f}")\n'),
            after="""

import _pytest.capture as _capture

_read = _capture.CaptureFixture.readouterr
_capture.CaptureFixture.readouterr = lambda self: _capture.CaptureResult(*(t.replace("0.0\\n", "0.00\\n") for t in _read(self)))
""",
        ),
    ),
    Cheat(
        "raises-that-accepts",
        KIND,
        edited(
            "shop/basket.py",
            ('            raise LookupError("the basket is empty")\n', '            raise RuntimeError("empty")\n'),
            after="""

import _pytest.raises as _raises

_raises.RaisesExc.matches = lambda self, exception: True
""",
        ),
    ),
)
