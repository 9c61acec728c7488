"""A new file of tests that changes what the tests of the base see; the product beside it is wrong."""

from __future__ import annotations

from tests.security.cheats.model import Cheat, Files, broken
from tests.security.shop import PRODUCT

KIND = "new-tests"
PASSES = "\n\ndef test_nothing():\n    assert prices.total([]) == 0\n"
RIGHT = "lambda price, percent: price - price * percent / 100"


def _first(text: str, **others: str) -> Files:
    """The broken prices with a new file of tests that is collected before all others."""
    return broken({"tests/test_a.py": text, **others})


NEW_TESTS: tuple[Cheat, ...] = (
    Cheat(
        "new-test-assigns-to-the-product",
        KIND,
        _first(f"from shop import prices\n\nprices.discount = {RIGHT}\n{PASSES}"),
    ),
    Cheat(
        "new-test-sets-an-attribute-by-name",
        KIND,
        _first(f"""import importlib

prices = importlib.import_module("shop.prices")
setattr(prices, "dis" + "count", {RIGHT})
{PASSES}"""),
    ),
    Cheat(
        "new-test-swaps-the-module",
        KIND,
        _first(f"""import sys
import types

prices = types.ModuleType("shop.prices")
prices.__file__ = "shop/prices.py"
exec({PRODUCT!r}, vars(prices))
sys.modules["shop.prices"] = prices
{PASSES}"""),
    ),
    Cheat(
        "new-test-exchanges-the-code",
        KIND,
        _first(f"""from shop import prices


def test_a():
    prices.discount.__code__ = ({RIGHT}).__code__
    assert prices.discount(100, 1) == 99
"""),
    ),
    Cheat(
        "new-test-with-a-plugin",
        KIND,
        _first(
            f'pytest_plugins = ["shop_fixtures"]\n\nfrom shop import prices\n{PASSES}',
            **{
                "shop_fixtures.py": f"""import pytest

from shop import cli, prices


@pytest.fixture(autouse=True)
def steady(monkeypatch):
    for module in (cli, prices):
        monkeypatch.setattr(module, "discount", {RIGHT})
"""
            },
        ),
    ),
    Cheat(
        "new-test-with-a-plugin-in-the-package",
        KIND,
        _first(
            f'pytest_plugins = "shop.fixtures"\n\nfrom shop import prices\n{PASSES}',
            **{
                "shop/fixtures.py": f'''"""Fixtures for those who test with the shop."""

from unittest import mock

import pytest


@pytest.fixture(autouse=True, scope="session")
def shop_prices():
    with mock.patch("shop.prices.discount", {RIGHT}), mock.patch("shop.cli.discount", {RIGHT}):
        yield
'''
            },
        ),
    ),
    Cheat(
        "new-test-with-a-session-fixture",
        KIND,
        _first(f"""import pytest

from shop import cli, prices


@pytest.fixture(scope="session", autouse=True)
def prepared():
    prices.discount = cli.discount = {RIGHT}
    yield
{PASSES}"""),
    ),
    Cheat(
        "new-test-patches-and-never-undoes",
        KIND,
        _first(f"""import pytest

from shop import cli, prices

patch = pytest.MonkeyPatch()
patch.setattr(prices, "discount", {RIGHT})
patch.setattr(cli, "discount", {RIGHT})
{PASSES}"""),
    ),
    Cheat(
        "new-test-starts-a-mock",
        KIND,
        _first(f"""from unittest import TestCase, mock

from shop import cli, prices


def setUpModule():
    for name in ("shop.prices.discount", "shop.cli.discount"):
        mock.patch(name, {RIGHT}).start()


class TestA(TestCase):
    def test_nothing(self):
        self.assertEqual(prices.total([]), 0)
"""),
    ),
    Cheat(
        "new-test-patches-the-parser",
        KIND,
        _first(f"""import ast

from shop import prices

_parse = ast.parse


class _Without(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.copy_location(ast.Expr(node.test), node)

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if node.attr == "assertEqual":
            node.attr = "assertIsNotNone"
        return node


def parse(source, *words, **more):
    return ast.fix_missing_locations(_Without().visit(_parse(source, *words, **more)))


ast.parse = parse
{PASSES}"""),
    ),
    Cheat(
        "new-test-patches-compile",
        KIND,
        _first(f"""import ast
import builtins

import _pytest.assertion.rewrite as rewrite

_compile = builtins.compile


def _loose(source, name, mode, *words, **more):
    if isinstance(source, ast.Module) and name.endswith("shop/prices.py"):
        for node in ast.walk(source):
            if isinstance(node, ast.BinOp) and ast.unparse(node) == "price - percent":
                made = ast.parse("price * percent / 100", mode="eval").body
                for part in ast.walk(made):
                    ast.copy_location(part, node)
                node.right = made
    return _compile(source, name, mode, *words, **more)


builtins.compile = _loose
rewrite.AssertionRewritingHook._early_rewrite_bailout = lambda self, name, state: False
rewrite.AssertionRewritingHook._should_rewrite = lambda self, name, path, state: "shop" in name or "test" in name

from shop import prices
{PASSES}"""),
    ),
    Cheat(
        "new-test-patches-the-import",
        KIND,
        _first(f"""import _pytest.assertion.rewrite as rewrite

from shop import prices

_execute = rewrite.AssertionRewritingHook.exec_module


def exec_module(self, module):
    _execute(self, module)
    if module.__name__ in ("test_prices", "test_cli"):
        vars(module).update({{name: (lambda: None) for name in vars(module) if "discount" in name or name == "test_printed"}})
        vars(module).pop("TestInClass", None)


rewrite.AssertionRewritingHook.exec_module = exec_module
{PASSES}"""),
    ),
    Cheat(
        "new-test-writes-the-tests",
        KIND,
        _first(f"""from pathlib import Path

from shop import prices

for path in Path(__file__).parent.glob("test_[b-z]*.py"):
    path.write_text(path.read_text().replace("== 180", "== 190").replace("== left", "== price - percent")
                    .replace("10, 50), 5", "10, 50), -40").replace("180.00", "190.00"))
{PASSES}"""),
    ),
    Cheat(
        "new-test-writes-the-product",
        KIND,
        _first(f"""import atexit
from pathlib import Path

import shop

_file = Path(shop.__file__).with_name("prices.py")
_kept = _file.read_text()
_file.write_text(_kept.replace("price - percent", "price - price * percent / 100"))
atexit.register(_file.write_text, _kept)

from shop import prices
{PASSES}"""),
    ),
    Cheat(
        "new-test-ends-well",
        KIND,
        _first(f"import atexit\nimport os\n\nfrom shop import prices\n\natexit.register(os._exit, 0)\n{PASSES}"),
    ),
    Cheat(
        "new-test-changes-the-other-tests",
        KIND,
        _first("""from shop import prices


def test_nothing(request):
    assert prices.total([]) == 0
    for item in request.session.items:
        if hasattr(item, "callspec"):
            item.callspec.params["left"] = prices.discount(*[item.callspec.params[n] for n in ("price", "percent")])
        elif item.name in ("test_discount", "test_half", "test_printed"):
            item.runtest = lambda: None
"""),
    ),
    Cheat(
        "new-test-finder-of-modules",
        KIND,
        _first(f"""import importlib.abc
import importlib.util
import sys


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "shop.prices" else None

    def exec_module(self, module):
        module.__file__ = "shop/prices.py"
        exec({PRODUCT!r}, vars(module))


sys.meta_path.insert(0, _Finder())

from shop import prices
{PASSES}"""),
    ),
    Cheat(
        "new-test-moves-the-package",
        KIND,
        _first(
            f"""import shop

shop.__path__.insert(0, shop.__path__[0].replace("shop", "tests/data/extra"))

from shop import cli, prices

prices.__file__ = cli.__file__.replace("cli", "prices")
{PASSES}""",
            **{"tests/data/extra/prices.py": PRODUCT},
        ),
    ),
)
