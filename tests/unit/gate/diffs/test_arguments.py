"""Functions that no longer look at what they are given."""

from __future__ import annotations

import pytest

from bailiwick.gate.diffs.arguments import ignored_arguments, rebound_functions

OLD = "def cost(price, percent, *rest, **named):\n    return price * percent + sum(rest) + len(named)\n"
METHOD = "class Shop:\n    def open(self, day):\n        return day in self.days\n"

ASKS = {
    "one": (OLD, "def cost(price, percent, *rest, **named):\n    return price + sum(rest) + len(named)\n", "percent"),
    "several": (OLD, "def cost(price, percent, *rest, **named):\n    return 180.0\n", "named, percent, price, rest"),
    "the object": (METHOD, "class Shop:\n    def open(self, day):\n        return day == 'mo'\n", "self"),
    "async": ("async def f(a):\n    return a\n", "async def f(a):\n    return 1\n", "a"),
}
FINE = {
    "unused before": ("def f(a, b):\n    return a\n", "def f(a, b):\n    return a + 1\n"),
    "gone": (OLD, "def cost(price):\n    return price\n"),
    "by another name": (OLD, "def cost(amount, percent):\n    return amount * percent\n"),
    "in an inner function": (METHOD, METHOD.replace("day in self.days", "any(day == one for one in self.days)")),
    "without naming it": (METHOD, "class Shop:\n    def open(self, day):\n        return super().open(day)\n"),
    "all of them at once": (OLD, "def cost(price, percent, *rest, **named):\n    return add(locals())\n"),
    "left to others": (
        METHOD,
        "class Shop:\n    def open(self, day):\n        raise NotImplementedError(type(self))\n",
    ),
    "a protocol": (METHOD, "class Shop:\n    def open(self, day):\n        ...\n"),
    "broken": (METHOD, "def ("),
    "new": ("", OLD),
}


@pytest.mark.parametrize("case", ASKS.values(), ids=ASKS.keys())
def test_an_argument_that_is_no_longer_used_asks_for_a_person(case: tuple[str, str, str]) -> None:
    """An answer that looks at nothing can only be known by heart."""
    old, new, names = case
    (found,) = ignored_arguments(old.encode(), new.encode(), "shop.py")
    assert found.what.endswith(f" {names}")
    assert (found.code, found.blocks, found.parks) == ("argument-ignored", False, True)


@pytest.mark.parametrize("case", FINE.values(), ids=FINE.keys())
def test_what_still_looks_at_its_arguments_is_no_finding(case: tuple[str, str]) -> None:
    """Or never did, or has others now, or says nothing by itself."""
    assert ignored_arguments(case[0].encode(), case[1].encode(), "shop.py") == ()


def test_a_file_that_is_new_or_gone_has_nothing_to_compare() -> None:
    """There is no function that did otherwise."""
    assert ignored_arguments(None, OLD.encode(), "shop.py") == ()
    assert ignored_arguments(OLD.encode(), None, "shop.py") == ()


COST = "def cost(price, percent):\n    return price * percent\n"


@pytest.mark.parametrize(
    ("more", "asks"),
    [
        ("cost = lambda price, percent: {1: 2}.get(price)\n", True),
        ("cost = partial(_by_table, {1: 2})\n", True),
        ("cost = _Table()\n", True),
        ("cost: Callable = make(cost, 3)\n", True),
        ("cost = cache(cost)\n", False),
        ("cost = other.cost\n", False),
        ("price_of = cost\n", False),
        ("", False),
    ],
)
def test_a_function_whose_name_is_bound_to_something_computed_asks_for_a_person(more: str, asks: bool) -> None:
    """Calls of it are no longer seen; another name for it, and what is put around it, hide nothing."""
    found = rebound_functions(COST.encode(), (COST + more).encode(), "shop.py")
    assert [(one.code, one.blocks, one.parks) for one in found] == ([("function-rebound", False, True)] if asks else [])
    assert rebound_functions((COST + more).encode(), (COST + more).encode(), "shop.py") == ()
    assert rebound_functions(None, COST.encode(), "shop.py") == ()
