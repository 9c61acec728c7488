"""Values that are near another one and not it, with which comparisons are asked again; sent as text."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import enum
import fractions
import pathlib
import types
import uuid
from typing import Any

SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, type(...)})
HOLDERS = frozenset({list, tuple, set, frozenset, dict})
DEPTH = 6
NODES = 3000
VARIED = 4
VARIANTS = 40
"""Near values of one container."""


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
    ((dt.date, dt.datetime, dt.timedelta), lambda value: [_moved_by(value, 1), _moved_by(value, 40)]),
    ((uuid.UUID,), lambda value: [uuid.UUID(int=value.int ^ 1)]),
)
"""What is near a value of exactly one of these types."""
BARE = (bool, int, float, str)


def _moved_by(value: Any, days: int) -> Any:
    """So many days later, or earlier at the end of time."""
    try:
        return value + dt.timedelta(days=days)
    except OverflowError:
        return value - dt.timedelta(days=days)


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


def attributes(value: Any, most: int = 2 * VARIED) -> dict[str, Any]:
    """The attributes of an object by name, from its dictionary and its slots, or the fields of a named tuple."""
    if isinstance(value, type):
        return {}
    kind = type(value)
    fields = getattr(kind, "_fields", None)
    if isinstance(value, tuple):
        return dict(zip(fields, tuple.__iter__(value))) if type(fields) is tuple else {}  # noqa: B905 - not before Python 3.10
    names = getattr(value, "__dict__", None)
    found = dict(names) if type(names) is dict else {}
    for one in kind.__mro__:
        slots = vars(one).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if isinstance(vars(one).get(name), types.MemberDescriptorType) and hasattr(value, name):
                found.setdefault(name, getattr(value, name))
    return dict(list(found.items())[:most])


def twin(value: Any, name: str, other: Any) -> Any:
    """A copy of an object with another attribute."""
    if isinstance(value, tuple):
        return tuple.__new__(type(value), {**attributes(value), name: other}.values())
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
        if holds(equals, twin(expected, name, little)) and not holds(equals, twin(expected, name, much)):
            return f"{kind_name(expected)} equals one whose {name} is {little} instead of {value}"
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


def holds(ask: Any, other: Any) -> bool:
    """Whether something is so; what raises is not."""
    try:
        return bool(ask(other))
    except Exception:  # noqa: BLE001 - what can't be compared is not equal
        return False


def first_equal(actual: Any, others: Any, equals: Any) -> str:
    """The first of some values that is equal too, in words."""
    for other in others:
        if holds(equals, other):
            return f"{kind_name(actual)} equals {kind_name(other)} too, which it is not"
    return ""


def lie(found: Any, value: Any, what: str) -> str:
    """In words what was found."""
    return f"{kind_name(value)} {what}" if found else ""


def kind_name(value: Any) -> str:
    """The full name of a class or of the class of an object."""
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"
