"""What instrumented tests call: each comparison decides as it did, and is asked once more; sent as text.

The real comparison decides and the test goes on. Where both operands are exact builtins throughout, C decides and
nothing is asked. What claims to equal a near value too is a lie, and is told with its place.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import operator
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bailiwick.gate.plugin.nearby import (  # noqa: TC004 - sent before this one
        HOLDERS,
        SCALARS,
        attributes,
        far,
        first_equal,
        holds,
        holds_any,
        is_plain,
        kind_name,
        lie,
        near,
        near_approx,
        objects,
        tolerance,
        twin,
    )
    from bailiwick.gate.plugin.parts import (  # noqa: TC004 - as above
        PAIRS,
        ChangedClasses,
        bare,
        differing_names,
        opposite,
        pair_document,
        placed,
        told_apart,
        unlike,
    )

OFTEN = 3
"""How often one place is asked in one test."""
LIES = 200
MOST_ARGUMENTS = 8
ANSWERS = frozenset({type(None), bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict})
"""What a comparison gives that is meant as yes or no; others are made for something else, such as queries."""
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
COMPARED = {
    "assertLess": "<", "assertGreater": ">", "assertLessEqual": "<=", "assertGreaterEqual": ">=",
    "assertNotEqual": "!=", "assertIn": "in", "assertNotIn": "not in",
}  # fmt: skip
KINDS = {"assertIsInstance": isinstance}
WIDEST = (object, BaseException, Exception)


class UnexpectedError(Exception):
    """An error that nobody can have meant."""


class Nearby:
    """What instrumented tests call. `begin` and `end` are the witness's; the others stand in the text of the tests."""

    def __init__(self, is_changed: Any = None) -> None:
        self._is_changed = is_changed
        self._origin = ChangedClasses(is_changed or (lambda _: False))
        self._operands: dict[int, list[Any]] = {}
        self._pairs: list[list[Any]] = []
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
        self._operands, self._pairs = {}, []

    def end(self) -> dict[str, Any]:
        """It is over: which places it reached, which asserts failed there, and what lied."""
        reached, failed = sorted(self._reached), sorted(self._failed)
        lies, loose, pairs = self._lies[:LIES], self._loose[:LIES], self._pairs[:PAIRS]
        return {"reached": reached, "failed": failed, "lies": lies, "loose": loose, "pairs": pairs}

    def apart(self, pairs: Any) -> list[int]:
        """Which of some pairs of objects, made elsewhere, are told apart here."""
        return [number for number, document in enumerate(pairs) if told_apart(document)]

    def c(self, site: int, name: str, right_expected: bool, left: Any, right: Any) -> Any:
        """A comparison."""
        exact = type(left) in SCALARS and type(right) in SCALARS
        if name == "==" and not exact:
            self._ask(site, self._before, left, right)
        result = OPERATORS[name](left, right)
        self._reached.add(site)
        if not exact and type(result) in ANSWERS and result:
            self._ask(site, self._compared, name, right_expected, left, right)
        return result

    def s(self, site: int, value: Any) -> Any:
        """An operand of a chain of comparisons."""
        self._operands.setdefault(site, []).append(value)
        return value

    def k(self, site: int, names: Any, result: Any) -> Any:
        """A chain of comparisons."""
        self._reached.add(site)
        operands = self._operands.pop(site, [])[-len(names) - 1 :]
        if type(result) in ANSWERS and result and len(operands) == len(names) + 1:
            for name, left, right in zip(names, operands, operands[1:]):  # noqa: B905 - not before Python 3.10
                if not (type(left) in SCALARS and type(right) in SCALARS):
                    self._ask(site, self._compared, name, True, left, right)
        return result

    def n(self, site: int, value: Any) -> Any:
        """What is asserted not to be true."""
        if type(value) not in SCALARS and type(value) not in HOLDERS:
            self._ask(site, self._truth, value)
        return value

    def q(self, site: int, name: str, value: Any, *args: Any) -> Any:
        """A method of a text that is asserted."""
        result = getattr(value, name)(*args)
        if type(value) not in SCALARS and isinstance(value, (str, bytes)):
            self._ask(site, self._text_method, name, value, args, result)
        return result

    def b(self, site: int, left: Any, right: Any) -> Any:
        """A difference in an assertion."""
        result = left - right
        if not (type(left) in SCALARS and type(right) in SCALARS):
            self._ask(site, self._difference, left, right, result)
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
        if result is True:
            self._ask(site, self._member_of, value if function is issubclass else type(value), kind)
        return result

    def r(self, site: int, function: Any, *args: Any, **named: Any) -> Any:
        """A block that has to raise or warn."""
        self._reached.add(site)
        expected = args[0] if args else named.get("expected_exception", named.get("expected_warning"))
        self._ask(site, self._kind, issubclass, expected, WIDEST[:1])
        return function(*args, **named)

    def w(self, site: int, function: Any, *args: Any, **named: Any) -> Any:
        """The same where the test itself says which kind, and may say that it is any."""
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

    def _tell_loose(self, what: str) -> str:
        """Something that a person has to look at; no lie by itself."""
        told = [self._site, what[:300]]
        if told not in self._loose:
            self._loose.append(told)
        return ""

    def _before(self, left: Any, right: Any) -> str | None:
        """The near value first, where the change decides: what keeps the first answer gives itself away."""
        for mine, other, swapped in ((left, right, False), (right, left, True)):
            if self._origin.decides(mine) and is_plain(other):
                for one in near(other)[:1]:
                    if holds(lambda x, mine=mine, swapped=swapped: x == mine if swapped else mine == x, one):
                        return f"{kind_name(mine)} equals {kind_name(one)} too, which it is not"
        return None

    def _bared(self, name: str, left: Any, right: Any) -> str:
        """The same comparison with each odd part as the builtin that it is."""
        if holds_any(left) or holds_any(right):
            return ""
        origin, compare = self._origin, OPERATORS[name]
        first, second = bare(left, origin), bare(right, origin)
        if (first is left and second is right) or compare(first, second):  # what raises here shows nothing
            return ""
        odd = left if first is not left else right
        if name == "==":
            always = any(holds(lambda other: left == other, one) for one in opposite(left, second, origin))
            always = always or any(holds(lambda other: other == right, one) for one in opposite(right, first, origin))
        elif name in ("<", "<=", ">", ">="):
            always = any(holds(lambda other: compare(left, other), one) for one in beyond(first, name[0] == ">"))
            always = always or any(
                holds(lambda other: compare(other, right), x) for x in beyond(second, name[0] == "<")
            )
        elif name == "in":
            others = near(first)[:2]
            always = bool(others) and all(holds(lambda other: other in right, one) for one in others)
        else:
            always = False
        if always:
            return f"{kind_name(odd)} decides it by itself; the plain value does not satisfy it"
        return self._tell_loose(f"{kind_name(odd)} decides it by itself; the plain value does not satisfy it")

    def _compared(self, name: str, right_expected: bool, left: Any, right: Any) -> str | None:
        if is_plain(left) and is_plain(right):
            return None
        return self._bared(name, left, right) or self._near_compared(name, right_expected, left, right)

    def _near_compared(self, name: str, right_expected: bool, left: Any, right: Any) -> str | None:
        compare = OPERATORS[name]
        if name == "==":
            expected, actual = (right, left) if right_expected else (left, right)
            swapped = (
                (lambda other: compare(actual, other)) if right_expected else (lambda other: compare(other, actual))
            )
            return self._equal(actual, expected, swapped)
        if name == "!=":
            return lie(compare(left, left), left, "differs from itself") if not is_plain(left) else ""
        if name in ("<", ">"):
            both = holds(lambda other: compare(right, other), left) or holds(
                lambda other: compare(left, other), object()
            )
            return lie(both, left, f"is {name} whatever it is compared with")
        return self._member(name, left, right)

    def _equal(self, actual: Any, expected: Any, equals: Any) -> str:
        """What equals a near value too."""
        if holds_any(expected):
            return ""
        if type(expected).__name__.startswith("Approx"):
            return first_equal(actual, near_approx(expected), equals)
        if is_plain(expected) or isinstance(expected, enum.Enum):
            return first_equal(actual, near(expected), equals)
        made, odd = objects(actual, expected)
        told = first_equal(actual, [*odd, object()], equals)
        if not told and made and all(holds(equals, other) for other in made):
            told = f"{kind_name(actual)} equals every near {kind_name(expected)}"
        told = told or self._placed(expected, equals)
        if not told and self._decides(actual):
            loose = tolerance(expected, equals)
            _ = loose and self._tell_loose(loose)
        if not told:
            self._keep_pairs(actual, expected)
        return told or first_equal(actual, near(expected), equals)

    def _decides(self, value: Any) -> bool:
        """Whether a method of the change itself says what an object equals."""
        code = getattr(getattr(type(value), "__eq__", None), "__code__", None)
        return self._is_changed is not None and code is not None and bool(self._is_changed(code.co_filename))

    def _placed(self, expected: Any, equals: Any) -> str:
        """The same for objects in containers: one that may be any other of its class."""
        for one, put in placed(expected):
            others = [put(twin(one, key, x)) for key, value in attributes(one).items() for x in near(value)[:1]]
            if self._origin.decides(one) and others and all(holds(equals, other) for other in others):
                return f"{kind_name(one)} in a container equals every near {kind_name(one)}"
        return ""

    def _keep_pairs(self, actual: Any, expected: Any) -> None:
        """Write down objects that differ and are equal by what the change decides: the base is asked about them."""
        for one, other in unlike(actual, expected, self._origin):
            names = ", ".join(differing_names(one, other, self._origin)[:3])
            what = f"two {kind_name(other)} that differ in {names} are equal now"
            try:
                self._pairs.append([self._site, what[:300], pair_document(one, other)])
            except Exception:  # noqa: BLE001, S112 - what can't be written down is not asked
                continue

    def _member(self, name: str, member: Any, container: Any) -> str | None:
        if name not in ("in", "not in") or is_plain(container):
            return None
        if name == "in":
            others = [*near(member)[:2], object()]
            always = all(holds(lambda other: other in container, other) for other in others)
            return lie(always, container, "holds everything")
        inside = next(iter(container), None)
        return lie(inside is not None and inside not in container, container, "holds nothing, not even its members")

    def _truth(self, value: Any) -> str:
        first = bool(value)
        plain = bare(value, self._origin)
        if plain is not value and bool(plain) != first:
            self._tell_loose(f"{kind_name(value)} says {first}, the plain value {not first}")
        return lie(bool(value) != first, value, "is true only now and then")

    def _text_method(self, name: str, value: Any, args: Any, result: Any) -> str | None:
        """A method that a text overrides, asked of the plain text."""
        plain = bare(value, self._origin)
        if plain is value:
            return None
        if getattr(plain, name)(*args) == result:
            return ""
        others = [(*args[:n], other, *args[n + 1 :]) for n, one in enumerate(args) for other in near(one)[:2]]
        if others and all(holds(lambda x: getattr(value, name)(*x) == result, other) for other in others):
            return f"{kind_name(value)}.{name} says {result!r} whatever it is asked"
        return self._tell_loose(f"{kind_name(value)}.{name} says {result!r}, and not that of the plain text")

    def _difference(self, left: Any, right: Any, result: Any) -> str | None:
        """A difference that is the same whatever is subtracted."""
        first, second = bare(left, self._origin), bare(right, self._origin)
        if (first is left and second is right) or first - second == bare(result, self._origin):
            return None
        others = [(left, other) for other in near(second)[:2]] if first is not left else []
        others += [(other, right) for other in near(first)[:2]] if second is not right else []
        same = bool(others) and all(holds(lambda x: x[0] - x[1] == result, other) for other in others)
        return lie(same, left if first is not left else right, "gives the same difference whatever is subtracted")

    def _kind(self, function: Any, kind: Any, meant: Any = WIDEST) -> str:
        kinds = kind if type(kind) is tuple else (kind,)
        for one in kinds:
            if one in meant:
                continue
            if function(UnexpectedError if function is issubclass else UnexpectedError(), one):
                return f"{kind_name(one)} takes everything for one of its own"
        return ""

    def _member_of(self, kind: type, asked: Any) -> str | None:
        """What is taken for one of a kind only because the change says so, without being derived from it."""
        kinds = asked if type(asked) is tuple else (asked,)
        if any(type.__subclasscheck__(one, kind) if type(one) is type else one in kind.__mro__ for one in kinds):
            return None
        for one in kinds:
            shape = getattr(one, "_is_protocol", False)
            if isinstance(one, type) and not shape and self._origin.brings(one) and issubclass(kind, one):
                return self._tell_loose(f"{kind_name(kind)} counts as {kind_name(one)} without being derived from it")
        return None

    def _method(self, function: Any, args: Any, named: Any) -> str | None:
        name = getattr(function, "__name__", "")
        if name in CALLED:
            return self._called(function, args, named)
        if name in ("assertTrue", "assertFalse", "assert_"):
            return self._truth(args[0])
        if name in KINDS:
            self._member_of(type(args[0]), args[1])
            return self._kind(isinstance, args[1])
        if name in COMPARED:
            return self._compared(COMPARED[name], True, args[0], args[1])
        if name not in EQUAL | CLOSE or len(args) < 2 or all(map(is_plain, args[:2])):
            return None
        first, second = args[0], args[1]
        if name in CLOSE:
            self._close(function, args, named)
            told = ""
        else:
            self._keep_pairs(first, second)
            told = self._bared("==", first, second) if first == second else ""
        told = told or self._again(function, (first,), value=second, name=name, after=args[2:], named=named)
        return told or self._again(function, (), value=first, name=name, after=(second, *args[2:]), named=named)

    def _close(self, function: Any, args: Any, named: Any) -> None:
        """An assertion about numbers with the plain ones."""
        plain = [bare(one, self._origin) for one in args]
        if all(one is other for one, other in zip(plain, args)):  # noqa: B905 - not before Python 3.10
            return
        try:
            function(*plain, **named)
        except Exception:  # noqa: BLE001 - it fails
            self._tell_loose(f"{function.__name__} holds, but not for the plain numbers")

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
            return f"{name} holds for {kind_name(value)} and for a near value"
        return ""

    def _called(self, function: Any, args: Any, named: Any) -> str:
        """A mock's assertion about arguments, with another argument."""
        if holds_any(list(args)) or holds_any(dict(named)):
            return ""
        name = function.__name__
        for index, one in enumerate(args[:MOST_ARGUMENTS]):
            told = self._again(function, args[:index], value=one, name=name, after=args[index + 1 :], named=named)
            if told:
                return told
        for key, one in list(named.items())[:MOST_ARGUMENTS]:
            told = self._again(_naming(function, args, named, key), (), value=one, name=name, after=(), named={})
            if told:
                return told
        return ""


def _naming(function: Any, args: Any, named: Any, key: str) -> Any:
    return lambda other: function(*args, **{**named, key: other})


def beyond(value: Any, up: bool) -> list[Any]:
    """A value beyond a plain one, above or below it; only of what has an order that is known."""
    if type(value) in (int, float, decimal.Decimal, fractions.Fraction):
        return [value + 1 + abs(value) if up else value - 1 - abs(value)]
    if type(value) is dt.date:
        return [value + dt.timedelta(days=1 if up else -1)]
    return [value + "b"] if type(value) is str and up else []
