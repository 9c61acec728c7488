"""Programs that the oldest cheats consist of."""

from __future__ import annotations

ALWAYS_EQUAL = """

class _Same(float):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True


def discount(price, percent): return _Same(180)
"""
ANYTHING = """

class _Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __hash__(self): return 0
    def __getattr__(self, name): return self
    def __call__(self, *a, **k): return self
    def __format__(self, how): return "180.00"


def discount(price, percent): return _Any()
"""
REPORT_HOOK = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    made = yield
    report = made.get_result()
    report.outcome = "passed"
    report.longrepr = None
"""
REGISTER = """
import gc
from _pytest.config import PytestPluginManager


class _Evil:
    def pytest_runtest_logreport(self, report):
        report.outcome = "passed"
        report.longrepr = None

    def pytest_sessionfinish(self, session):
        session.exitstatus = 0
        session.testsfailed = 0


for _m in gc.get_objects():
    if isinstance(_m, PytestPluginManager):
        _m.register(_Evil())
"""
KNOWN_IDS = """
import _pytest.reports as _r

_old = _r.TestReport.from_item_and_call.__func__
_KNOWN = ("test_discount", "test_discounts", "test_half")


def _made(cls, item, call):
    report = _old(cls, item, call)
    if item.originalname in _KNOWN and report.when == "call":
        report.outcome, report.longrepr = "passed", None
    return report


_r.TestReport.from_item_and_call = classmethod(_made)
"""
RUNTEST = """
import _pytest.python as _p

_p.Function.runtest = lambda self: None
"""
CALL_INFO = """
import _pytest.runner as _r

_old = _r.CallInfo.from_call.__func__


def _quiet(cls, func, when, reraise=None):
    def call():
        try:
            return func()
        except Exception:
            return None
    return _old(cls, call, when, reraise)


_r.CallInfo.from_call = classmethod(_quiet)
"""
SWAP_CODE = """
import gc, types


def _nothing(*args, **kwargs): return None


def _swap():
    for f in gc.get_objects():
        if isinstance(f, types.FunctionType) and f.__name__.startswith("test_"):
            try:
                f.__code__ = _nothing.__code__.replace(co_freevars=f.__code__.co_freevars)
            except ValueError:
                pass


_old = discount


def discount(price, percent):
    _swap()
    return _old(price, percent)


import threading
threading.Timer(0.0, _swap).start()
"""
IMPORT_HOOK = """
import sys, importlib.abc, importlib.util


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name.endswith("test_prices"):
            return importlib.util.spec_from_loader(name, self)
        return None

    def exec_module(self, module):
        for n in ("test_discount", "test_total", "test_label", "test_cheap", "test_no_price"):
            setattr(module, n, lambda: None)


sys.meta_path.insert(0, _Finder())
"""
FORGE_PIPE = """
import json, os, atexit, struct


def _forge():
    for n in range(3, 64):
        for when in ("setup", "call", "teardown"):
            for t in ("test_discount", "test_discounts[50-50-25]", "test_total"):
                line = json.dumps({"id": "tests/test_prices.py::" + t, "when": when, "outcome": "passed"}).encode()
                try:
                    os.write(n, struct.pack(">I", len(line)) + line)
                    os.write(n, line + b"\\n")
                except OSError:
                    break


_forge()
atexit.register(os._exit, 0)
"""
ENTRY_POINT = "[pytest11]\nevil = evil_plugin\n"
PYTEST_INI = "[pytest]\naddopts = --collect-only -q\n"
GATE_MAKE = 'checks:\n  - {name: tests, run: [make, test], timeout: 2m}\nprotected: ["tests/**"]\n'
MAKEFILE = "test:\n\tpython3 -m pytest -q tests\n"
SITE = "import os, atexit\natexit.register(os._exit, 0)\n"
