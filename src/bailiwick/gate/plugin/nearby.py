"""Asks each comparison of a test once more with a near value, which must not hold; sent as text, before `witness`.

The real comparison decides and the test goes on. Where both operands are exact builtins throughout, C decides and
nothing is asked. What claims to equal a near value too is a lie, and is told with its place.
"""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import enum
import fractions
import operator
import pathlib
import types
import uuid
from collections import Counter
from typing import Any

SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, type(...)})
HOLDERS = frozenset({list, tuple, set, frozenset, dict})
DEPTH = 6
NODES = 3000
VARIED = 4
VARIANTS = 40
"""Near values of one container."""
OFTEN = 3
"""How often one place is asked in one test."""
LIES = 200
OPERATORS: dict[str, Any] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
}
EQUAL = frozenset({
    "assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertSetEqual", "assertTupleEqual",
    "assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual", "assertItemsEqual", "assert_equal",
    "assert_array_equal", "assert_string_equal", "assert_frame_equal", "assert_series_equal", "assert_index_equal",
})  # fmt: skip
CLOSE = frozenset({
    "assertAlmostEqual", "assertAlmostEquals", "assert_allclose", "assert_almost_equal", "assert_approx_equal",
    "assert_array_almost_equal", "assert_array_almost_equal_nulp", "assert_array_max_ulp",
})  # fmt: skip
CALLED = frozenset({
    "assert_called_with", "assert_called_once_with", "assert_any_call", "assert_has_calls", "assert_awaited_with",
    "assert_awaited_once_with", "assert_any_await", "assert_has_awaits",
})  # fmt: skip
ORDERED = {"assertLess": "<", "assertGreater": ">"}
KINDS = {"assertIsInstance": isinstance}


class Fresh(Exception):
    """An error that nobody can have meant."""


def is_plain(value: Any) -> bool:
    """Whether a value consists of exact builtins throughout."""
    left = [NODES]

    def plain(part: Any, depth: int) -> bool:
        kind = type(part)
        if kind in SCALARS:
            return True
        left[0] -= 1
        if kind not in HOLDERS or depth <= 0 or left[0] < 0:
            return False
        inner = (x for pair in part.items() for x in pair) if kind is dict else part
        return all(plain(one, depth - 1) for one in inner)

    return plain(value, DEPTH)


def holds_any(value: Any, depth: int = 3) -> bool:
    """Whether a value holds an object that is made to equal everything, as tests use them."""
    if type(value).__name__ in ("_ANY", "ANY") or type(value).__module__.startswith(("dirty_equals", "hamcrest")):
        return True
    if depth and type(value) in HOLDERS:
        inner = value.values() if type(value) is dict else value
        return any(holds_any(one, depth - 1) for one in list(inner)[:50])
    return False


def _next_digit(value: decimal.Decimal) -> list[decimal.Decimal]:
    """A decimal with one more in its last written place, as people see the smallest difference."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or not -40 < exponent < 0:
        return []
    with decimal.localcontext(decimal.Context(prec=80)):
        return [value + decimal.Decimal((0, (1,), exponent))]


SHIFTS: tuple[tuple[tuple[type, ...], Any], ...] = (
    ((bool,), lambda value: [not value]),
    ((int, float), lambda value: [value + 1, 2 * value + 3]),
    ((complex, fractions.Fraction), lambda value: [value + 1]),
    ((decimal.Decimal,), lambda value: [value + 1, *_next_digit(value)]),
    ((str,), lambda value: [value + "b", "b" + value]),
    ((bytes, bytearray), lambda value: [value + b"b", b"b" + value]),
    ((type(None),), lambda _: [0, ""]),
    ((dt.date, dt.datetime, dt.timedelta), lambda value: [value + dt.timedelta(days=1)]),
    ((uuid.UUID,), lambda value: [uuid.UUID(int=value.int ^ 1)]),
)
"""What is near a value of exactly one of these types."""
BARE = (bool, int, float, str)


def near(value: Any, depth: int = 3) -> list[Any]:
    """Values of the same type and shape that are something else; empty for what is not known."""
    kind = type(value)
    for kinds, shift in SHIFTS:
        if kind in kinds:
            return [other for other in shift(value) if other != value]
    if kind in HOLDERS:
        return near_holders(value, depth)
    if isinstance(value, enum.Enum):
        return [other for other in type(value) if other is not value][:2]
    if isinstance(value, pathlib.PurePath):
        return [value / "b"]
    bare = next((base for base in BARE if isinstance(value, base)), None)
    return near(bare(value)) if bare is not None else []


def near_holders(value: Any, depth: int) -> list[Any]:
    """The same for containers: one more element, and one of the first few changed, at any depth."""
    kind = type(value)
    if kind is dict:
        made = [{**value, "b-near": 1}]
        for key in list(value)[:VARIED] if depth else ():
            made += [{**value, key: other} for other in _inner(value[key], depth)]
        return made[:VARIANTS]
    if kind in (set, frozenset):
        return [kind([*value, "b-near"])]
    made = [kind([*value, "b-near"])]
    for index in range(min(len(value), VARIED)) if depth else ():
        made += [kind([*value[:index], other, *value[index + 1 :]]) for other in _inner(value[index], depth)]
    return made[:VARIANTS]


def _inner(value: Any, depth: int) -> list[Any]:
    """What is near an element: two values near a plain one, and all that a container brings."""
    found = near(value, depth - 1)
    return found if type(value) in HOLDERS else found[:2]


def far(value: Any, spread: float = 0.0) -> list[Any]:
    """Numbers that no tolerance a person writes can mean; element by element in containers."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [float(value) + 10 * spread + 1 + abs(float(value))]
    if type(value) in (decimal.Decimal, fractions.Fraction, complex):
        return [2 * value + 3]
    if type(value) in (list, tuple) and value:
        moved = [far(one, spread) for one in value]
        return [type(value)(one[0] for one in moved)] if all(moved) else []
    return []


def attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object by name, from its dictionary and its slots; of a few only."""
    if isinstance(value, type):
        return {}
    names = getattr(value, "__dict__", None)
    found = dict(names) if type(names) is dict else {}
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if isinstance(vars(kind).get(name), types.MemberDescriptorType) and hasattr(value, name):
                found.setdefault(name, getattr(value, name))
    return dict(list(found.items())[: 2 * VARIED])


def twin(value: Any, name: str, other: Any) -> Any:
    """A copy of an object with another attribute."""
    made = copy.copy(value)
    object.__setattr__(made, name, other)
    return made


def objects(actual: Any, expected: Any) -> tuple[list[Any], list[Any]]:
    """Copies of an object with one attribute near: all of them, and those that differ where the other side is odd."""
    made, odd = [], []
    for name, value in attributes(expected).items():
        for other in near(value)[:1]:
            made.append(twin(expected, name, other))
            if not is_plain(getattr(actual, name, None)) and is_plain(value):
                odd.append(made[-1])
    return made, odd


def tolerance(expected: Any, equals: Any) -> str:
    """The attribute in which an object is equal to one that differs a little, and not to one that differs much."""
    for name, value in attributes(expected).items():
        if type(value) not in (int, decimal.Decimal, fractions.Fraction):
            continue
        little, much = near(value)[-1 if type(value) is decimal.Decimal else 0], 3 * value + 1000
        if _holds(equals, twin(expected, name, little)) and not _holds(equals, twin(expected, name, much)):
            return f"{_named(expected)} equals one whose {name} is {little} instead of {value}"
    return ""


def near_approx(expected: Any) -> list[Any]:
    """`approx` of something that lies beyond what was written as its tolerance."""
    inner = getattr(expected, "expected", None)
    relative, absolute = getattr(expected, "rel", None), getattr(expected, "abs", None)
    size = abs(inner) if isinstance(inner, (int, float)) else _largest(inner)
    spread = max(float(absolute or 0), float(relative or 0) * size, 1e-6 * size)
    return [type(expected)(other, rel=relative, abs=absolute) for other in far(inner, spread)]


def _largest(value: Any) -> float:
    numbers = [abs(one) for one in value if isinstance(one, (int, float))] if type(value) in (list, tuple) else []
    return float(max(numbers, default=0))


class Nearby:
    """What instrumented tests call. `begin` and `end` are the witness's; the others stand in the text of the tests."""

    def __init__(self, is_changed: Any = None) -> None:
        self._is_changed = is_changed
        self._reached: set[int] = set()
        self._failed: set[int] = set()
        self._asked: Counter[int] = Counter()
        self._lies: list[list[Any]] = []
        self._loose: list[list[Any]] = []
        self._site = 0
        self._busy = False

    def begin(self) -> None:
        """A test begins."""
        self._reached, self._failed, self._asked, self._lies, self._loose = set(), set(), Counter(), [], []

    def end(self) -> dict[str, Any]:
        """It is over: which places it reached, which asserts failed there, and what lied."""
        lies, loose = self._lies[:LIES], self._loose[:LIES]
        return {"reached": sorted(self._reached), "failed": sorted(self._failed), "lies": lies, "loose": loose}

    def c(self, site: int, name: str, right_expected: bool, left: Any, right: Any) -> Any:
        """A comparison."""
        result = OPERATORS[name](left, right)
        self._reached.add(site)
        if result is True and not (type(left) in SCALARS and type(right) in SCALARS):
            self._ask(site, self._compared, name, right_expected, left, right)
        return result

    def t(self, site: int, value: Any) -> Any:
        """What is asserted."""
        self._reached.add(site)
        if type(value) in SCALARS and not value:
            self._failed.add(site)
        if type(value) not in SCALARS and type(value) not in HOLDERS:
            self._ask(site, self._truth, value)
        return value

    def i(self, site: int, function: Any, value: Any, kind: Any) -> Any:
        """`isinstance` and `issubclass`."""
        result = function(value, kind)
        self._ask(site, self._kind, function, kind)
        return result

    def r(self, site: int, function: Any, *args: Any, **named: Any) -> Any:
        """A block that has to raise or warn."""
        self._reached.add(site)
        expected = args[0] if args else named.get("expected_exception", named.get("expected_warning"))
        self._ask(site, self._kind, issubclass, expected)
        return function(*args, **named)

    def m(self, site: int, function: Any, *args: Any, **named: Any) -> Any:
        """A method or function that asserts."""
        result = function(*args, **named)
        self._reached.add(site)
        self._ask(site, self._method, function, args, named)
        return result

    def _ask(self, site: int, how: Any, *args: Any) -> None:
        if self._busy or self._asked[site] >= OFTEN:
            return
        self._busy, self._site = True, site
        try:
            told = how(*args)
        except Exception:  # noqa: BLE001 - an object that can't be compared with something else holds no lie
            told = None
        finally:
            self._busy = False
        if told is not None:
            self._asked[site] += 1
        if told:
            self._lies.append([site, told[:300]])

    def _compared(self, name: str, right_expected: bool, left: Any, right: Any) -> str | None:
        if is_plain(left) and is_plain(right):
            return None
        compare = OPERATORS[name]
        if name == "==":
            expected, actual = (right, left) if right_expected else (left, right)
            swapped = (
                (lambda other: compare(actual, other)) if right_expected else (lambda other: compare(other, actual))
            )
            return self._equal(actual, expected, swapped)
        if name == "!=":
            return _lie(compare(left, left), left, "differs from itself") if not is_plain(left) else ""
        if name in ("<", ">"):
            both = _holds(lambda other: compare(right, other), left) or _holds(
                lambda other: compare(left, other), object()
            )
            return _lie(both, left, f"is {name} whatever it is compared with")
        return self._member(name, left, right)

    def _equal(self, actual: Any, expected: Any, equals: Any) -> str:
        """What equals a near value too."""
        if holds_any(expected):
            return ""
        if type(expected).__name__.startswith("Approx"):
            return _first(actual, near_approx(expected), equals)
        if is_plain(expected) or isinstance(expected, enum.Enum):
            return _first(actual, near(expected), equals)
        made, odd = objects(actual, expected)
        told = _first(actual, [*odd, object()], equals)
        if not told and made and all(_holds(equals, other) for other in made):
            told = f"{_named(actual)} equals every near {_named(expected)}"
        if not told and self._decides(actual):
            loose = tolerance(expected, equals)
            self._loose += [[self._site, loose[:300]]] if loose else []
        return told or _first(actual, near(expected), equals)

    def _decides(self, value: Any) -> bool:
        """Whether the change itself says what an object equals."""
        code = getattr(getattr(type(value), "__eq__", None), "__code__", None)
        return self._is_changed is not None and code is not None and bool(self._is_changed(code.co_filename))

    def _member(self, name: str, member: Any, container: Any) -> str | None:
        if name not in ("in", "not in") or is_plain(container):
            return None
        if name == "in":
            others = [*near(member)[:2], object()]
            always = all(_holds(lambda other: other in container, other) for other in others)
            return _lie(always, container, "holds everything")
        inside = next(iter(container), None)
        return _lie(inside is not None and inside not in container, container, "holds nothing, not even its members")

    def _truth(self, value: Any) -> str:
        first = bool(value)
        return _lie(bool(value) != first, value, "is true only now and then")

    def _kind(self, function: Any, kind: Any) -> str:
        kinds = kind if type(kind) is tuple else (kind,)
        for one in kinds:
            if one in (object, BaseException, Exception):
                continue
            if function(Fresh if function is issubclass else Fresh(), one):
                return f"{_named(one)} takes everything for one of its own"
        return ""

    def _method(self, function: Any, args: Any, named: Any) -> str | None:
        name = getattr(function, "__name__", "")
        if name in CALLED:
            return self._called(function, args, named)
        if name in ("assertTrue", "assertFalse", "assert_"):
            return self._truth(args[0])
        if name in KINDS:
            return self._kind(isinstance, args[1])
        if name in ORDERED:
            return self._compared(ORDERED[name], True, args[0], args[1])
        if name in ("assertIn", "assertNotIn"):
            return self._member("in" if name == "assertIn" else "not in", args[0], args[1])
        if name not in EQUAL | CLOSE or len(args) < 2 or all(map(is_plain, args[:2])):
            return None
        first, second = args[0], args[1]
        told = self._again(function, (first,), second, name, args[2:], named)
        return told or self._again(function, (), first, name, (second, *args[2:]), named)

    def _again(self, function: Any, before: Any, value: Any, name: str, after: Any, named: Any) -> str:
        """The same assertion with a near value, which has to fail."""
        if holds_any(value):
            return ""
        made = far(value, 1.0) if name in CLOSE else near(value)
        for other in made:
            try:
                function(*before, other, *after, **named)
            except Exception:  # noqa: BLE001, S112 - it fails, as it has to
                continue
            return f"{name} holds for {_named(value)} and for a near value"
        return ""

    def _called(self, function: Any, args: Any, named: Any) -> str:
        """A mock's assertion about arguments, with another argument."""
        if holds_any(list(args)) or holds_any(dict(named)):
            return ""
        name = function.__name__
        if args and near(args[0]):
            return self._again(function, (), args[0], name, args[1:], named)
        varied = next((key for key, value in named.items() if near(value)), None)
        if varied is None:
            return ""
        rest = {other: kept for other, kept in named.items() if other != varied}
        return self._again(lambda other: function(*args, **{varied: other}, **rest), (), named[varied], name, (), {})


def _holds(ask: Any, other: Any) -> bool:
    try:
        return bool(ask(other))
    except Exception:  # noqa: BLE001 - what can't be compared is not equal
        return False


def _first(actual: Any, others: Any, equals: Any) -> str:
    for other in others:
        if _holds(equals, other):
            return f"{_named(actual)} equals {_named(other)} too, which it is not"
    return ""


def _lie(found: Any, value: Any, what: str) -> str:
    return f"{_named(value)} {what}" if found else ""


def _named(value: Any) -> str:
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"
