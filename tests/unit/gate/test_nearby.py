"""Comparisons that are asked again: what claims to equal a near value too is a lie, what is honest is not."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import pathlib
import unittest
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest import mock  # noqa: TID251 - what tests of others use is asked too

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.plugin.nearby import is_plain, near
from tests.unit.gate.inside import Nearby

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


class Always:
    """Equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    def __lt__(self, other: object) -> bool:
        return True

    def __contains__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Same(float):
    """A number that equals every number."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float | int)

    __hash__ = float.__hash__


class Everything(type):
    """A class that takes everything for its own."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True

    def __subclasscheck__(cls, subclass: type) -> bool:
        return True


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class Order:
    """A value as people write them."""

    total: object
    note: str = field(default="", compare=False)


class Money:
    """Compares by its amount, within a cent, also with numbers."""

    def __init__(self, amount: float) -> None:
        self.amount = amount

    def __eq__(self, other: object) -> bool:
        amount = other.amount if isinstance(other, Money) else other
        return isinstance(amount, int | float) and abs(self.amount - amount) < 0.01

    def __hash__(self) -> int:
        return 1


def _compared(left: Any, right: Any, name: str = "==", *, right_expected: bool = True) -> list[Any]:
    nearby = Nearby()
    nearby.begin()
    assert nearby.c(0, name, right_expected, left, right)
    return nearby.end()["lies"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Always(), 180),
        (Same(3), 180),
        ([Same(3)], [180]),
        ({"a": Always()}, {"a": 1}),
        (Order(Always()), Order(180)),
        (mock.ANY, 180),
        ((1, mock.ANY), (1, 2)),
        (Always(), Order(1)),
        (Order(Same(1), "x"), Order(180, "x")),
        (pytest.approx(180, abs=1e9), 180),
    ],
)
def test_what_equals_a_near_value_too_is_a_lie(left: Any, right: Any) -> None:
    """Whoever decides the comparison, it has to tell one value from another."""
    assert _compared(left, right)
    assert _compared(right, left, right_expected=False)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (180, 180),
        (1.5, 1.5),
        ("a", "a"),
        ([1, {"b": None}], [1, {"b": None}]),
        (Order(3), Order(3)),
        (Money(1.001), Money(1.0)),
        (Money(5), 5),
        (Colour.RED, Colour.RED),
        (0.1 + 0.2, pytest.approx(0.3)),
        ([0.1 + 0.2, 1], pytest.approx([0.3, 1])),
        (dt.date(2026, 1, 1), dt.date(2026, 1, 1)),
        (uuid.UUID(int=3), uuid.UUID(int=3)),
        (decimal.Decimal("1.0"), 1),
        (Fraction(1, 2), 0.5),
        (pathlib.PurePath("a"), pathlib.PurePath("a")),
        (OrderedDict(a=1), {"a": 1}),
        (5, mock.ANY),
        ({"a": 1, "id": 7}, {"a": 1, "id": mock.ANY}),
        (ValueError, ValueError),
        (180.4, pytest.approx(180, rel=0.5)),
        (None, None),
    ],
)
def test_an_honest_comparison_is_no_lie(left: Any, right: Any) -> None:
    """Tolerances that somebody wrote, fields that don't count, a test's own ANY: nothing to find."""
    assert _compared(left, right) == []


@pytest.mark.parametrize(
    ("left", "right", "name", "lies"),
    [
        (1, Always(), "in", True),
        (1, [1, 2], "in", False),
        (1, {1: Order(2)}, "in", False),
        (Always(), 3, "<", True),
        (2, 3, "<", False),
        (Order(1), Order(2), "!=", False),
        (Fraction(1, 3), 1, "<", False),
    ],
)
def test_other_comparisons_are_asked_too(left: Any, right: Any, name: str, lies: bool) -> None:
    """A container that holds everything, an order that goes both ways."""
    assert bool(_compared(left, right, name)) == lies


def test_a_class_that_takes_everything_for_its_own_is_a_lie() -> None:
    """So is an expected error that any error is."""

    sly = Everything("Sly", (Exception,), {})

    nearby = Nearby()
    nearby.begin()
    assert nearby.i(0, isinstance, 3, sly)
    assert nearby.r(1, pytest.raises, sly)
    assert nearby.i(2, isinstance, 3, int)
    assert nearby.r(3, pytest.raises, ValueError)
    assert [site for site, _ in nearby.end()["lies"]] == [0, 1]


def test_methods_that_assert_are_asked_again() -> None:
    """unittest's own and a mock's: with another value they have to fail."""
    case = unittest.TestCase()
    called = mock.Mock()
    called(Same(3))
    nearby = Nearby()
    nearby.begin()
    nearby.m(0, case.assertEqual, Always(), 3)
    nearby.m(1, case.assertEqual, 3, 3)
    nearby.m(2, case.assertAlmostEqual, Money(2.0), 2.0)
    nearby.m(3, called.assert_called_with, 180)
    nearby.m(4, case.assertIn, 3, Always())
    assert sorted({site for site, _ in nearby.end()["lies"]}) == [0, 3, 4]


def test_an_assert_that_did_not_hold_is_noted() -> None:
    """Somebody may catch its error."""
    nearby = Nearby()
    nearby.begin()
    nearby.t(3, value=False)
    nearby.t(4, value=True)
    assert (nearby.end()["failed"], nearby.end()["reached"]) == ([3], [3, 4])


@given(PLAIN)
def test_a_near_value_is_never_the_value(value: Any) -> None:
    """Else an honest comparison would be called a lie."""
    assert is_plain(value)
    assert all(type(other) is type(value) or value is None for other in near(value))
    assert not any(other == value and type(other) is type(value) for other in near(value) if value == value)  # noqa: PLR0124


@given(PLAIN)
def test_exact_builtins_never_lie(value: Any) -> None:
    """C decides about them."""
    if value == value:  # noqa: PLR0124
        assert _compared(value, value) == []


class Stepped:
    """An amount that is compared to a step of `step`."""

    __slots__ = ("amount", "step")

    def __init__(self, amount: str, step: str = "0.01") -> None:
        self.amount = decimal.Decimal(amount)
        self.step = decimal.Decimal(step)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stepped) and self.amount.quantize(self.step) == other.amount.quantize(self.step)

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(("step", "changed", "told"), [("0.1", True, 1), ("0.01", True, 0), ("0.1", False, 0)])
def test_a_tolerance_that_the_change_brings_is_told(step: str, changed: bool, told: int) -> None:
    """The last written digit of an amount counts, also in an object with slots; what the base has is its own."""
    asked = Nearby(lambda file: changed and file == __file__)
    asked.begin()
    assert asked.c(1, "==", True, Stepped("3.10", step), Stepped("3.10", step))
    end = asked.end()
    assert (len(end["loose"]), end["lies"]) == (told, [])
    assert not told or "amount is 3.11 instead of 3.10" in end["loose"][0][1]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9))
def test_a_near_decimal_differs_in_its_last_digit(value: decimal.Decimal) -> None:
    """People read 3.11 as next to 3.10; a whole one more is far away."""
    assert abs(near(value)[-1] - value) == decimal.Decimal("0.01")


def test_the_end_of_time_has_days_near_it() -> None:
    """The last day is what honest code writes for never."""
    assert all(other < dt.date.max for other in near(dt.date.max))
    assert len(near(dt.date(2024, 1, 20))) == 2
