"""Who decides a comparison: results derived from builtins, and objects whose equality a change weakens."""

from __future__ import annotations

import abc
import ast
import pathlib
import unittest
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from unittest import mock  # noqa: TID251 - what tests of others use is asked too

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.plugin import parts
from bailiwick.gate.plugin.parts import ChangedClasses, bare, pair_document, told_apart
from tests.unit.gate.inside import Nearby


class Liar(float):
    """Satisfies every comparison."""

    def _yes(self, _other: object) -> bool:
        return True

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _yes
    __hash__ = float.__hash__

    def __sub__(self, _other: object) -> float:
        return 0.0


class One(float):
    """Says 1 where others say True."""

    def __eq__(self, other: object) -> int:  # type: ignore[override]
        return 1

    __hash__ = float.__hash__


class First(float):
    """Equals whatever it is compared with first."""

    def __eq__(self, other: object) -> bool:
        kept = vars(self).setdefault("kept", other)
        return bool(kept == other)

    __hash__ = float.__hash__


class Heading(str):
    """Compares without regard to case, as an honest class may."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.casefold() == other.casefold()

    __hash__ = str.__hash__


class Text(str):
    """Holds and begins with everything."""

    __slots__ = ()

    def __contains__(self, part: object) -> bool:
        return isinstance(part, str)

    def startswith(self, *_parts: object) -> bool:
        return True


class Empty(list[int]):
    """Says that it is empty."""

    def __bool__(self) -> bool:
        return False


class Euros(float):
    """Only writes itself otherwise."""

    def __str__(self) -> str:
        return f"{float(self):.2f} €"


@dataclass
class OrderLine:
    """One that leaves its total out."""

    name: str
    total: float = field(compare=False)


@dataclass
class Exact:
    """One that compares all it has."""

    name: str
    total: float


class Anything:
    """One object of it equals each other one."""

    def __init__(self, total: float) -> None:
        self.total = total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Anything)

    __hash__ = None  # type: ignore[assignment]


class NamedRow(NamedTuple):
    """Compares its name only."""

    name: str
    total: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedRow) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def _asked(*, changed: bool = True) -> Nearby:
    asked = Nearby(lambda file: changed and file == __file__)
    asked.begin()
    return asked


def _told(asked: Nearby) -> tuple[bool, bool, int]:
    end = asked.end()
    return bool(end["lies"]), bool(end["loose"]), len(end["pairs"])


@pytest.mark.parametrize(
    ("left", "right", "name"),
    [
        (Liar(3), 180, "=="),
        (180, Liar(3), "=="),
        (Liar(300), 180, "<="),
        (Liar(300), 181, "<"),
        (Liar(3), 180, ">="),
        (179, Liar(3), "<"),
        (Liar(180), 180, "!="),
        (One(3), 180, "=="),
        ([1, 1, 1, 1, Liar(3)], [1, 1, 1, 1, 5], "=="),
        ({"a": [Liar(3)]}, {"a": [5]}, "=="),
        ("total", Text("tea"), "in"),
        ([Anything(3)], [Anything(4)], "=="),
        ({"a": Anything(3)}, {"a": Anything(4)}, "=="),
    ],
)
def test_what_holds_only_because_of_its_own_methods_is_a_lie(left: Any, right: Any, name: str) -> None:
    """Any operator, either side, any place."""
    asked = _asked()
    assert asked.c(0, name, True, left, right)
    assert _told(asked)[0]


@pytest.mark.parametrize(
    ("left", "right", "name"),
    [
        (Euros(180), 180, "=="),
        (Euros(179), 180, "<"),
        ([Euros(1)], [1.0], "=="),
        (Euros(1), [1.0, 2.0], "in"),
        (Counter(a=1, b=0), Counter(a=1), "=="),
        (Exact("a", Euros(1)), Exact("a", 1.0), "=="),
        ("tea", Heading("tea and milk"), "in"),
        (OrderLine("a", 1.0), OrderLine("a", 1.0), "=="),
    ],
)
def test_an_honest_class_says_what_the_plain_value_says(left: Any, right: Any, name: str) -> None:
    """Nothing to find."""
    asked = _asked()
    assert asked.c(0, name, True, left, right)
    assert _told(asked) == (False, False, 0)


class Shelf:
    """Its methods need its rows as they are."""

    def __init__(self, *rows: NamedRow) -> None:
        self.rows = list(rows)

    def __contains__(self, name: str) -> bool:
        return any(row.name == name for row in self.rows)


def test_objects_keep_the_parts_that_their_methods_need() -> None:
    """A named tuple without its names would be something else."""
    asked = _asked()
    assert asked.c(0, "in", True, "tea", Shelf(NamedRow("tea", 1)))
    assert _told(asked) == (False, False, 0)


def test_the_near_value_comes_first() -> None:
    """What keeps its first answer can't know which one that is."""
    asked = _asked()
    assert not asked.c(0, "==", True, First(3), 180)
    assert _told(asked)[0]


def test_an_own_meaning_that_tells_values_apart_asks_a_person() -> None:
    """Case that does not count may be what was wanted. What is no part of the change is not asked about."""
    for changed in (True, False):
        asked = _asked(changed=changed)
        assert asked.c(0, "==", True, Heading("Tea"), "tea")
        assert _told(asked) == (False, changed, 0)


@pytest.mark.parametrize(
    ("made", "pairs"), [(OrderLine("a", 1.5), OrderLine("a", 4.5)), (NamedRow("a", 1.5), NamedRow("a", 4.5))]
)
def test_equal_objects_that_differ_are_written_down(made: Any, pairs: Any) -> None:
    """Alone and in containers; the base is asked about them."""
    for left, right in ((made, pairs), ([1, made], [1, pairs]), ({"x": (made,)}, {"x": (pairs,)})):
        asked = _asked()
        assert asked.c(0, "==", True, left, right)
        assert "differ in total" in asked.end()["pairs"][0][1]


def test_the_base_tells_apart_what_it_compares() -> None:
    """Where a copy is not even equal to its original, or the class is not there, nothing is said."""
    document = pair_document(OrderLine("a", 1.5), OrderLine("a", 4.5))
    assert not told_apart(document)
    module = document[0]
    assert told_apart([module, "Exact", *document[2:]])
    assert told_apart([module, "Stored", *document[2:]])
    assert not told_apart([module, "Identity", *document[2:]])
    assert not told_apart([module, "Missing", *document[2:]])
    assert Nearby().apart([document, [module, "Exact", *document[2:]]]) == [1]


@dataclass(frozen=True)
class Stored:
    """Frozen and with slots."""

    __slots__ = ("name", "total")
    name: str
    total: float


class Identity:
    """Equal only to itself."""


def test_chains_negations_differences_and_texts_are_asked() -> None:
    """Each operand of a chain; what is asserted not to be; the difference; the beginning of a text."""
    asked = _asked()
    low, value, high = (asked.s(0, one) for one in (179, Liar(3), 181))
    assert asked.k(0, ("<", "<"), low < value < high)
    assert not asked.n(1, Empty([1]))
    assert asked.b(2, Liar(3), 180) == 0
    assert asked.q(3, "startswith", Text("tea"), "2 items")
    assert asked.q(4, "startswith", "tea", "t")
    assert asked.b(5, Euros(3), 1) == 2
    end = asked.end()
    assert {site for site, _ in end["lies"]} == {0, 2, 3}
    assert {site for site, _ in end["loose"]} == {1}


def test_methods_of_test_tools_are_asked() -> None:
    """All orders of unittest, and every argument of a mock."""
    case, called, asked = unittest.TestCase(), mock.Mock(), _asked()
    called("bob", 1, price=Liar(3))
    asked.m(0, case.assertLessEqual, Liar(300), 180)
    asked.m(1, case.assertNotEqual, Liar(180), 180)
    asked.m(2, called.assert_called_once_with, "bob", 1, price=180)
    asked.m(3, case.assertGreaterEqual, Euros(3), 2)
    assert {site for site, _ in asked.end()["lies"]} == {0, 1, 2}
    called = mock.Mock()
    called("bob", Liar(3))
    asked.m(4, called.assert_called_once_with, "bob", 180)
    assert 4 in {site for site, _ in asked.end()["lies"]}


def test_a_kind_of_error_may_not_be_wider_than_its_name() -> None:
    """Unless the test itself says so."""
    asked = _asked()
    assert asked.r(0, pytest.raises, Exception)
    assert asked.w(1, pytest.raises, Exception)
    assert asked.i(2, isinstance, ValueError(), Exception)
    assert [site for site, _ in asked.end()["lies"]] == [0]


def test_an_instance_by_registration_asks_a_person() -> None:
    """Also of a tuple of kinds; not where it is derived."""

    class Money(abc.ABC):  # noqa: B024 - as people write it
        """Registered below."""

    class Derived(Money):
        """Derived."""

    Money.register(float)
    asked = _asked()
    assert asked.i(0, isinstance, 1.5, Money)
    assert asked.i(1, isinstance, 1.5, (int, Money))
    assert asked.i(2, isinstance, Derived(), Money)
    assert asked.i(3, isinstance, 1.5, (float, Money))
    asked.m(4, unittest.TestCase().assertIsInstance, 1.5, Money)
    assert [site for site, _ in asked.end()["loose"]] == [0, 1, 4]


@given(st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_a_plain_value_is_always_its_own_bare_value(value: Any) -> None:
    """Then nothing is asked."""
    assert bare(value, ChangedClasses(lambda _file: True)) is value


def test_the_texts_that_share_a_namespace_define_no_name_twice() -> None:
    """The later one would take the place of the earlier, for both."""
    folder = pathlib.Path(parts.__file__).parent
    defined: Counter[str] = Counter()
    for path in folder.glob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            defined.update(target.id for target in targets if isinstance(target, ast.Name))
            defined.update([node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else [])
    assert [name for name, count in defined.items() if count > 1] == []
