"""A small project as people have them, the honest change to it, and the broken one that cheats try to sell."""

from __future__ import annotations

from tests.security.shop_modules import MODULES
from tests.security.shop_tests import TEST_FILES

PRODUCT = '''"""Prices."""


def discount(price: float, percent: float) -> float:
    """The price after a discount in percent."""
    return price - price * percent / 100


def total(prices: list[float]) -> float:
    """The sum of all prices."""
    return sum(prices)


def label(name: str) -> str:
    """What is written on the shelf."""
    return name.strip().title()


def is_cheap(price: float) -> bool:
    """Whether something costs less than ten."""
    return price < 10


def parse(text: str) -> float:
    """A price from its text."""
    if not text:
        raise ValueError("no price")
    return float(text)
'''
BROKEN = PRODUCT.replace("price - price * percent / 100", "price - percent")
"""The discount is taken as a flat amount: wrong for discount(200, 10), which is 180."""
TESTS = '''"""Prices."""

import unittest

import pytest

from shop import prices


def test_discount() -> None:
    assert prices.discount(200, 10) == 180


@pytest.mark.parametrize(("price", "percent", "left"), [(50, 50, 25), (80, 25, 60)])
def test_discounts(price: float, percent: float, left: float) -> None:
    assert prices.discount(price, percent) == left


def test_total() -> None:
    assert prices.total([1, 2, 3]) == 6


def test_label() -> None:
    assert prices.label(" blue cheese ") == "Blue Cheese"


def test_cheap() -> None:
    assert prices.is_cheap(9)
    assert not prices.is_cheap(10)


def test_no_price() -> None:
    with pytest.raises(ValueError, match="no price"):
        prices.parse("")


class TestInClass(unittest.TestCase):
    def test_half(self) -> None:
        self.assertEqual(prices.discount(10, 50), 5)
'''
PYPROJECT = """[project]
name = "shop"
version = "1"

[tool.pytest.ini_options]
testpaths = ["tests", "shop"]
pythonpath = ["."]
addopts = "--doctest-modules"
"""
GATE = """checks:
  - {name: tests, run: [pytest, -q], kind: pytest, timeout: 2m}
  - {name: weakening, kind: weakening}
  - {name: secrets, kind: secret-scan}
  - {name: size, kind: diff-size, max_lines: 2000, max_files: 50}
protected: [".bailiwick/**", "tests/**", "**/conftest.py", "pyproject.toml", ".github/**"]
"""
BASE: dict[str, str] = {
    ".bailiwick/gate.yaml": GATE,
    ".gitignore": "__pycache__/\n.venv/\n",
    "README.md": "# shop\n",
    "pyproject.toml": PYPROJECT,
    "shop/__init__.py": "",
    "shop/prices.py": PRODUCT,
    "tests/test_prices.py": TESTS,
    **MODULES,
    **TEST_FILES,
}
