"""What operands are made of, and who decides about them; sent as text, behind `nearby` and `calls`.

An odd part is an instance of a class that the change brings and that is derived from a builtin: as the bare builtin
it says only what it is. Objects that differ and are equal are written down, so that the base can be asked about them.
"""

from __future__ import annotations

import datetime as dt
import decimal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bailiwick.gate.plugin.calls import Unwritable, find, freeze, thaw  # noqa: TC004 - sent before this one
    from bailiwick.gate.plugin.nearby import (  # noqa: TC004 - as above
        HOLDERS,
        NODES,
        SCALARS,
        VARIANTS,
        attributes,
        holds,
        is_plain,
        near,
        twin,
    )

LEVELS_ASKED = 6
STATES = 60
"""Attributes of an object that are looked at."""
PAIRS = 5
"""Pairs of objects of one test that the base is asked about."""
TAKEN: tuple[tuple[type, Any], ...] = (
    (int, int.__index__),
    (float, float.__float__),
    (str, str.__str__),
    (bytes, lambda value: bytes.__getitem__(value, slice(None))),
    (list, lambda value: list.__getitem__(value, slice(None))),
    (tuple, lambda value: tuple.__getitem__(value, slice(None))),
    (dict, dict.copy),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (decimal.Decimal, decimal.Decimal),
    (dt.datetime, lambda value: dt.datetime.fromisoformat(dt.datetime.isoformat(value))),
    (dt.date, lambda value: dt.date.fromordinal(dt.date.toordinal(value))),
)
"""How the value of a derived class is taken, by methods that it can't override."""


class ChangedClasses:
    """Knows which classes a change brings. `is_changed` is asked with the name of a file."""

    def __init__(self, is_changed: Any) -> None:
        self._is_changed = is_changed
        self._known: dict[type, bool] = {}

    def brings(self, kind: type) -> bool:
        """Whether a class, or one that it is derived from, comes from a changed file."""
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = any(self._made(one) for one in kind.__mro__)
        return known

    def _made(self, kind: type) -> bool:
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and self._is_changed(file):
            return True
        codes = (getattr(one, "__code__", None) for one in vars(kind).values())
        return any(code is not None and self._is_changed(code.co_filename) for code in codes)

    def is_odd(self, value: Any) -> bool:
        """Whether a value is of a class that the change derives from a builtin."""
        kind = type(value)
        if kind in SCALARS or kind in HOLDERS or not isinstance(value, tuple(base for base, _ in TAKEN)):
            return False
        return self.brings(kind)

    def decides(self, value: Any) -> bool:
        """Whether the change says what an object equals."""
        kind = type(value)
        return kind not in SCALARS and kind not in HOLDERS and _eq_of(kind) is not object.__eq__ and self.brings(kind)


def _eq_of(kind: type) -> Any:
    return kind.__eq__


def bare(value: Any, origin: ChangedClasses) -> Any:
    """A value with each odd part as the builtin that it is; the very same value where there is none."""
    left = [NODES]

    def strip(part: Any, depth: int) -> Any:
        kind = type(part)
        left[0] -= 1
        if kind in SCALARS or depth <= 0 or left[0] < 0:
            return part
        if origin.is_odd(part):
            part = next(take for base, take in TAKEN if isinstance(part, base))(part)
            kind = type(part)
        if kind is dict:
            pairs = [(strip(key, depth - 1), strip(one, depth - 1)) for key, one in part.items()]
            same = all(a is c and b is d for (a, b), (c, d) in zip(pairs, part.items()))  # noqa: B905 - not before Python 3.10
            return part if same else dict(pairs)
        if kind in HOLDERS:
            inner = [strip(one, depth - 1) for one in part]
            return part if all(a is b for a, b in zip(inner, part)) else kind(inner)  # noqa: B905 - not before Python 3.10
        return _strip_object(part, lambda one: strip(one, depth - 1))

    return strip(value, LEVELS_ASKED)


def _strip_object(value: Any, strip: Any) -> Any:
    """An object with bare attributes; what stands in containers of it stays, its methods may need it as it is."""
    for name, part in attributes(value, STATES).items():
        other = part if isinstance(part, tuple(HOLDERS)) else strip(part)
        if other is not part:
            value = twin(value, name, other)
    return value


def opposite(actual: Any, expected: Any, origin: ChangedClasses, depth: int = LEVELS_ASKED) -> list[Any]:
    """The expected value with something near in each place at which the other side is odd."""
    made = list(near(expected)[:2]) if origin.is_odd(actual) else []
    if depth <= 0 or type(expected) not in (list, tuple, dict):
        return made
    if isinstance(actual, dict) and type(expected) is dict:
        for key in expected:
            if key in actual:
                others = opposite(actual[key], expected[key], origin, depth - 1)
                made += [{**expected, key: other} for other in others]
    elif isinstance(actual, (list, tuple)):
        for index, (one, part) in enumerate(zip(actual, expected)):  # noqa: B905 - not before Python 3.10
            others = opposite(one, part, origin, depth - 1)
            made += [type(expected)([*expected[:index], other, *expected[index + 1 :]]) for other in others]
    return made[:VARIANTS]


def placed(value: Any, depth: int = 3) -> list[tuple[Any, Any]]:
    """The objects in a container, each with how to put another in its place."""
    found: list[tuple[Any, Any]] = []
    keys: Any = list(value) if type(value) is dict else range(len(value)) if type(value) in (list, tuple) else ()
    for key in list(keys)[:VARIANTS]:
        part = value[key]
        if type(part) in HOLDERS and depth:
            found += [(one, _behind(value, key, put)) for one, put in placed(part, depth - 1)]
        elif type(part) not in SCALARS and attributes(part):
            found.append((part, _behind(value, key, lambda other: other)))
    return found


def _behind(value: Any, key: Any, put: Any) -> Any:
    def exchange(other: Any) -> Any:
        if type(value) is dict:
            return {**value, key: put(other)}
        return type(value)([*value[:key], put(other), *value[key + 1 :]])

    return exchange


def unlike(actual: Any, expected: Any, origin: ChangedClasses, depth: int = LEVELS_ASKED) -> list[tuple[Any, Any]]:
    """Objects in the same place of two values that are equal by the change's own decision and differ in attributes."""
    if depth <= 0 or type(expected) in SCALARS or actual is expected:
        return []
    found: list[tuple[Any, Any]] = []
    inner: list[tuple[Any, Any]] = []
    if type(actual) is dict and type(expected) is dict:
        inner = [(actual[key], expected[key]) for key in expected if key in actual]
    elif type(actual) in (list, tuple) and type(actual) is type(expected):
        inner = list(zip(actual, expected))  # noqa: B905 - not before Python 3.10
    elif type(actual) is type(expected):
        mine, other = attributes(actual, STATES), attributes(expected, STATES)
        inner = [(mine[name], other[name]) for name in other if name in mine]
        if origin.decides(expected) and differing_names(actual, expected, origin):
            found.append((actual, expected))
    for one, part in inner[:NODES]:
        found += unlike(one, part, origin, depth - 1)
    return found[:PAIRS]


def differing_names(actual: Any, expected: Any, origin: ChangedClasses) -> list[str]:
    """The attributes in which two objects are not the same."""
    mine, other = attributes(actual, STATES), attributes(expected, STATES)
    names = sorted({*mine, *other})
    return [name for name in names if not _alike(bare(mine.get(name), origin), bare(other.get(name), origin))]


def _alike(mine: Any, other: Any) -> bool:
    """Whether two values are the same; of plain ones C decides, of others what they are made of."""
    if mine is other or (is_plain(mine) and is_plain(other)):
        return mine is other or bool(mine == other)
    try:
        return freeze(mine) == freeze(other)
    except Unwritable:
        return False


def pair_document(actual: Any, expected: Any) -> list[Any]:
    """Two objects of one class as a document; raises `Unwritable`."""
    kind = type(expected)
    states = [{name: freeze(one) for name, one in attributes(side, STATES).items()} for side in (actual, expected)]
    return [kind.__module__, kind.__qualname__, *states]


def told_apart(document: list[Any]) -> bool:
    """Whether two objects that were written down differ here, where two copies of one of them are equal."""
    try:
        kind = find(document[0], document[1])
        first, second, again = (remade(kind, state) for state in (document[2], document[3], document[3]))
        return bool(second == again) and not holds(lambda other: first == other, second)
    except BaseException:  # noqa: BLE001 - what can't be made or compared here tells nothing
        return False


def remade(kind: type, state: dict[str, Any]) -> Any:
    """An object of a class with some attributes; nothing of the class runs."""
    values = {name: thaw(one) for name, one in state.items()}
    fields = getattr(kind, "_fields", None)
    if issubclass(kind, tuple) and fields is not None:
        return tuple.__new__(kind, [values[name] for name in fields])
    made: Any = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made
