"""Whoever writes a test is told what there is: the files, the module concerned, the nearest test."""

from __future__ import annotations

import pytest

from bailiwick.skills.material import MOST_CHARACTERS, MOST_LISTED, candidates, listing, surroundings

FILES = (
    "README.md",
    "shop/__init__.py",
    "shop/price.py",
    "shop/cart.py",
    "tests/conftest.py",
    "tests/test_cart.py",
    "tests/test_everything.py",
    "web/menu.ts",
    "web/menu.test.ts",
)
SOURCES = {
    "shop/price.py": b"def parse_amount(text):\n    return float(text)\n",
    "shop/cart.py": b"class Cart:\n    pass\n",
    "tests/test_everything.py": b"from shop.price import parse_amount\n",
}


@pytest.mark.parametrize(
    ("text", "module", "test"),
    [
        ("shop/cart.py: an empty cart costs nothing", "shop/cart.py", "tests/test_cart.py"),
        ("an empty cart costs nothing", "shop/cart.py", "tests/test_cart.py"),
        ("an amount below zero is refused", "shop/price.py", "tests/test_everything.py"),
        ("the menu closes on escape", "web/menu.ts", "web/menu.test.ts"),
        ("something else entirely", "", "tests/test_cart.py"),
    ],
)
def test_the_module_and_the_nearest_test_are_found(text: str, module: str, test: str) -> None:
    """By a path, a file's name, a definition; a test by its name, or because it imports the module."""
    found = surroundings(text, FILES, SOURCES)
    assert (found.module, found.test) == (module, test)


def test_what_pytest_loads_for_the_test_is_shown_too() -> None:
    """A fixture that exists is not written again."""
    assert surroundings("the cart", FILES, SOURCES).shown == [
        "tests/test_cart.py",
        "shop/cart.py",
        "tests/conftest.py",
    ]
    assert surroundings("the menu", FILES, SOURCES).conftest == ""


def test_a_project_without_tests_has_none_to_show() -> None:
    """The first test has no neighbour."""
    found = surroundings("adds numbers", ("calc.py",), {})
    assert (found.module, found.test, found.shown) == ("calc.py", "", ["calc.py"])
    assert found.lines == {"project_files": "calc.py", "module": "calc.py"}
    assert surroundings("x", (), {}).lines == {}


def test_a_listing_has_a_limit() -> None:
    """And says how much it leaves out."""
    many = [f"deep/er/file_{number}.py" for number in range(MOST_LISTED + 50)] + ["top.py"]
    lines = listing(many).splitlines()
    assert len(lines) == MOST_LISTED + 1
    assert "top.py" in lines
    assert lines[-1] == "and 51 more"
    long = listing([f"{'x' * 900}/{number}" for number in range(100)])
    assert len(long) <= MOST_CHARACTERS + 20
    assert long.endswith("more")


def test_the_likeliest_files_are_read_first() -> None:
    """Only so many are looked into."""
    assert candidates("a cart", FILES)[0] == "shop/cart.py"
    assert "README.md" not in candidates("a cart", FILES)
