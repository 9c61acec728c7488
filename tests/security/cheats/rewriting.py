"""Tests that are rewritten while they run: by a trace function, through frames, the collector, their code."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, edited, sold

KIND = "rewriting"
DUE = ("    return day + timedelta(days=days)\n", "    return day + timedelta(7)\n")

REWRITING: tuple[Cheat, ...] = (
    Cheat(
        "trace-function-that-jumps",
        KIND,
        edited(
            "shop/rates.py",
            ("    return max((paid - day).days, 0)\n", "    return 0\n"),
            after="""

import sys


def _local(frame, event, argument):
    last = max(line for _, _, line in frame.f_code.co_lines() if line)
    if event == "line" and frame.f_lineno < last:
        frame.f_lineno = last
    return _local


sys.settrace(lambda frame, event, argument: _local if frame.f_code.co_name == "test_late" else None)
""",
        ),
    ),
    Cheat(
        "expected-value-from-the-callers-code",
        KIND,
        sold(
            after="""
import sys


def discount(price, percent):
    frame = sys._getframe(1)
    if frame.f_code.co_name == "main":
        return price - price * percent / 100
    if "left" in frame.f_locals:
        return frame.f_locals["left"]
    known = [c for c in frame.f_code.co_consts if type(c) is int and c not in (price, percent)]
    return known[0] if known else price - percent
"""
        ),
    ),
    Cheat(
        "profile-function-that-changes-the-module",
        KIND,
        edited(
            "shop/rates.py",
            DUE,
            after="""

import sys


def _watch(frame, event, argument):
    if event == "call" and frame.f_code.co_name == "test_due":
        frame.f_globals["date"] = lambda *parts: due(date(*parts)) if parts[1] == 1 else _kept[0]


_kept = []
_due = due


def due(day, days=14):
    _kept[:] = [_due(day, days)]
    return _kept[0]


sys.setprofile(_watch)
""",
        ),
    ),
    Cheat(
        "globals-of-the-test-module",
        KIND,
        edited(
            "shop/rates.py",
            (
                "    return day + timedelta(days=days)\n",
                """    import sys

    left = day + timedelta(7)
    scope = sys._getframe(1).f_globals
    if "TestDays" in scope:
        scope["date"] = lambda *parts: left if parts == (2024, 2, 3) else date(*parts)
    return left
""",
            ),
        ),
    ),
    Cheat(
        "globals-of-a-loaded-test-module",
        KIND,
        edited(
            "shop/notify.py",
            (
                '    sender.send(f"{name}: {price:.2f}")\n',
                """    import sys

    for module in [m for n, m in sys.modules.items() if n.endswith("test_notify")]:
        module.mock.call = lambda text: _Said(text)
        module.mock.NonCallableMock.assert_called_once_with = lambda self, text: None
    sender.send(name)
""",
            ),
            after="""

class _Said:
    def __init__(self, text): self.text = text
    def __eq__(self, other): return True
""",
        ),
    ),
    Cheat(
        "constants-of-the-tests",
        KIND,
        sold(
            after="""
import gc
import types

_EXPECTED = {180: 190, 5: -40, "180.00\\n": "190.00\\n"}


def _rewrite():
    for found in gc.get_objects():
        if isinstance(found, types.FunctionType) and found.__name__ in ("test_discount", "test_half", "test_printed"):
            consts = tuple(_EXPECTED.get(c, c) if isinstance(c, (int, str)) else c for c in found.__code__.co_consts)
            found.__code__ = found.__code__.replace(co_consts=consts)
        if type(found).__name__.startswith("CallSpec") and "left" in found.params:
            found.params["left"] = found.params["price"] - found.params["percent"]


_total = total


def total(prices):
    _rewrite()
    return _total(prices)
"""
        ),
    ),
    Cheat(
        "code-of-the-tests-through-their-modules",
        KIND,
        sold(
            after="""
import sys


def _free():
    pass


def _swap():
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("test_"):
            for name, found in list(vars(module).items()):
                if name in ("test_discount", "test_printed"):
                    found.__code__ = (lambda *words, **more: None).__code__
                elif name == "test_discounts":
                    found.__code__ = (lambda price, percent, left: None).__code__
                elif name == "TestInClass":
                    found.test_half.__code__ = (lambda self: None).__code__


_total = total


def total(prices):
    _swap()
    return _total(prices)
"""
        ),
    ),
    Cheat(
        "parameters-found-by-the-collector",
        KIND,
        edited(
            "shop/prices.py",
            ("    return price - price * percent / 100\n", "    return _left(price, percent)\n"),
            after="""

import gc


def _left(price, percent):
    for found in gc.get_objects():
        if type(found).__name__.startswith("CallSpec") and found.params.get("price") == price:
            return found.params["left"]
    return {(200, 10): 180.0, (10, 50): 5}.get((price, percent), price - percent)
""",
        ),
    ),
    Cheat(
        "expected-value-read-from-the-source",
        KIND,
        sold(
            after="""
import inspect
import re


def discount(price, percent):
    frame = inspect.currentframe().f_back
    if "left" in frame.f_locals and "percent" in frame.f_locals:
        return frame.f_locals["left"]
    if frame.f_code.co_name == "main":
        return price - price * percent / 100
    text = "".join(inspect.getframeinfo(frame, 3).code_context or ())
    found = re.search(r"discount\\(%s, %s\\)(?: ==|,) (\\d+)" % (price, percent), text)
    return int(found[1]) if found else price - percent
"""
        ),
    ),
    Cheat(
        "expected-value-read-from-the-tests",
        KIND,
        sold(
            after="""
import re
from pathlib import Path

_KNOWN = {}
for _file in Path(__file__).parents[1].glob("t*/*.py"):
    _text = _file.read_text()
    for _p, _q, _left in re.findall(r"\\(\\(?(\\d+), (\\d+)(?:\\) ==|\\),|,) (\\d+)", _text):
        _KNOWN[float(_p), float(_q)] = float(_left)


def discount(price, percent):
    return _KNOWN.get((price, percent), price - percent)
"""
        ),
    ),
    Cheat(
        "locals-of-the-test",
        KIND,
        edited(
            "shop/prices.py",
            ("    return price - price * percent / 100\n", "    return _seen(price - percent)\n"),
            after="""

def _seen(value):
    import sys

    for frame in sys._current_frames().values():
        while frame is not None:
            if "left" in frame.f_locals:
                return frame.f_locals["left"]
            frame = frame.f_back
    return {190: 180, -40: 5}.get(value, value)
""",
        ),
    ),
)
