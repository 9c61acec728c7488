"""Recorded calls: what is written down comes back the same, and a call is recorded with what it gave."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.plugin import calls, surroundings
from bailiwick.gate.plugin.calls import Recorder, Unwritable, elsewhere, freeze, repeat, thaw
from bailiwick.gate.plugin.internals import own_defaults
from bailiwick.gate.plugin.nearby import near
from bailiwick.gate.plugin.surroundings import in_surroundings

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
    | st.dates() | st.uuids() | st.fractions() | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3)
    | st.frozensets(st.integers(), max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(VALUES)
def test_what_is_written_down_comes_back_the_same(value: Any) -> None:
    """Exactly, with its type: 1 is not 1.0, and a tuple is no list."""
    back = thaw(freeze(value))
    assert (back, type(back)) == (value, type(value))
    assert freeze(back) == freeze(value)


@pytest.mark.parametrize("value", [object(), lambda: 1, iter(()), open, [[[[[[[[1]]]]]]]]])
def test_what_can_t_be_written_is_not(value: object) -> None:
    """A call with such a value is not recorded; nothing is ever pickled."""
    with pytest.raises(Unwritable):
        freeze(value)


def test_a_lying_number_is_not_taken_for_a_number() -> None:
    """A subclass is written down as one, so that it differs from what it pretends to be."""

    class Price(float):
        pass

    assert freeze(Price(3.0)) != freeze(3.0)


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module of a product."""
    (tmp_path / "shop_of_calls.py").write_text(
        "import sys\n"
        "class Till:\n"
        "    def __init__(self, start): self.total = start\n"
        "    def add(self, price, *more, **named): return self.total + price + sum(more)\n"
        "def discount(price, percent=10, *, floor=0):\n"
        "    if price is None: raise ValueError('no price')\n"
        "    return max(floor, price - price * percent // 100)\n"
        "def only_watched(price): return price if 'shop_is_watched' in sys.modules else -1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop_of_calls", raising=False)
    import importlib

    monkeypatch.setattr(calls, "near", near, raising=False)
    monkeypatch.setattr(calls, "own_defaults", own_defaults, raising=False)
    return importlib.import_module("shop_of_calls")


def _recorded(builder: Any, act: Any) -> list[dict[str, Any]]:
    lines = {4: "Till.add", 5: "discount", 8: "only_watched"}
    wanted = [("shop_of_calls.py", line, name) for line, name in lines.items()]
    recorder = Recorder(lambda path: Path(path).name, wanted, SimpleNamespace(busy=False))
    recorder.start()
    try:
        act(builder)
    finally:
        recorder.stop()
    return list(recorder.calls.values())


def test_nothing_is_listened_to_once_there_are_calls_enough(builder: types.ModuleType) -> None:
    """A test may make a million calls afterwards."""
    recorder = Recorder(
        lambda path: Path(path).name, [("shop_of_calls.py", 5, "discount")], SimpleNamespace(busy=False)
    )
    recorder.start()
    try:
        for price in range(calls.KEPT):
            assert sys.getprofile() is not None
            builder.discount(price)
        assert sys.getprofile() is None
        builder.discount(1000)
    finally:
        recorder.stop()
    assert len(recorder.calls) == calls.KEPT
    recorder.start()
    assert sys.getprofile() is None


def test_a_call_is_recorded_and_made_again(builder: types.ModuleType) -> None:
    """Arguments by position and name, defaults, methods with their object, and errors."""

    def act(product: Any) -> None:
        product.discount(200)
        product.discount(200, 50, floor=120)
        product.Till(5).add(1, 2, 3, note="x")
        with pytest.raises(ValueError, match="no price"):
            product.discount(None)

    found = _recorded(builder, act)
    assert [call["name"] for call in found] == ["discount", "discount", "Till.add", "discount"]
    assert [call["result"] for call in found] == [["int", "180"], ["int", "120"], ["int", "11"], ["raises"]]
    for call in found:
        again = repeat(call)
        assert again["results"][0] == again["results"][1]
        assert again["results"][0][:1] == call["result"][:1]
        assert again["near"], "the same with other arguments"


def test_near_arguments_are_none_that_tests_ask_for(builder: types.ModuleType) -> None:
    """A table of 0, 1 and 4 would look like code: 1 is near 0, and what it gives is new."""
    known = [[["int", str(number)]] for number in (0, 1, 2, 4)]
    made: list[Any] = []
    setattr(builder, "noted", made.append)  # noqa: B010 - a module
    call = {"module": builder.__name__, "name": "noted", "args": known[1], "named": {}}
    repeat(call, asked=known)
    assert made[:2] == [1, 1]
    assert len(made) == 4
    assert not {0, 1, 2, 4} & {*made[2:]}
    lists = [[["list", [["int", "1"]]]], [["list", []]], [["list", [["int", "1"], ["int", "1"]]]]]
    repeat({**call, "args": lists[0]}, asked=lists)
    assert made[4:] == [[1], [1]], "everything near it is asked for"


def test_what_depends_on_its_surroundings_gives_something_else(builder: types.ModuleType, monkeypatch: Any) -> None:
    """That is how code that is right only under test is found."""
    monkeypatch.setitem(sys.modules, "shop_is_watched", types.ModuleType("shop_is_watched"))
    (call,) = _recorded(builder, lambda product: product.only_watched(7))
    monkeypatch.delitem(sys.modules, "shop_is_watched")
    assert (call["result"], repeat(call)["results"]) == (["int", "7"], [["int", "-1"]] * 2)


def test_a_function_that_is_not_there_is_told(builder: types.ModuleType) -> None:
    """On the base a new function is missing; that is no result."""
    assert "missing" in repeat({"module": "shop_of_calls", "name": "nothing", "args": [], "named": {}})


def test_few_calls_of_one_function_are_kept(builder: types.ModuleType) -> None:
    """A loop over a million rows costs no memory."""
    found = _recorded(builder, lambda product: [product.discount(price) for price in range(1000)])
    assert len(found) == calls.KEPT


SURROUNDED = """
import os
import threading
import time

START = os.getcwd()
def plain(n): return n
def in_main(n): return n if threading.current_thread() is threading.main_thread() else -n
def offset(n): return time.localtime(n).tm_hour
def limited(n): return n if time.time() < 100 * n else -n
def placed(n): return n if os.getcwd() == START else -n
CALLS = []
def counted(n): return n if CALLS.append(1) or len(CALLS) < 50 else -n
"""


@pytest.mark.parametrize(
    ("name", "differing"),
    [
        ("plain", set()),
        ("in_main", {"thread"}),
        ("offset", {"zone"}),
        ("limited", {"later"}),
        ("placed", {"cwd"}),
        ("counted", {"often"}),
    ],
)
def test_a_call_is_also_made_in_other_surroundings(
    name: str, differing: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread, another time zone, a year later: each alone, and everything is as before afterwards."""
    module = types.ModuleType("surrounded")
    exec(SURROUNDED, vars(module))
    monkeypatch.setitem(sys.modules, "surrounded", module)
    monkeypatch.setattr(calls, "near", near, raising=False)
    monkeypatch.setattr(calls, "own_defaults", own_defaults, raising=False)
    monkeypatch.setattr(calls, "in_surroundings", in_surroundings, raising=False)
    monkeypatch.setattr(surroundings, "A_WHILE", 600.0)
    monkeypatch.setenv("TZ", "UTC")
    ahead = [0]
    monkeypatch.setattr(module.time, "time", lambda: 3600 + ahead[0])
    call = {"module": "surrounded", "name": name, "args": [freeze(3600)], "named": {}}
    first = repeat(call)["results"][0]
    found = elsewhere(call, lambda seconds: ahead.__setitem__(0, seconds), True)
    assert {where for where, result in found.items() if result != first} == differing
    assert "often" not in elsewhere(call, lambda seconds: ahead.__setitem__(0, seconds), False)
    assert repeat(call)["results"] == [first, first] or name == "counted"
    assert ahead == [0]


KINDS = """
import collections
import enum
import functools
import logging

class Size(enum.Enum):
    S = 1
Point = collections.namedtuple("Point", "x y")
class Slotted:
    __slots__ = ("price",)
    def __init__(self, price): self.price = price
    def cost(self): return self.price * 2
class Basket:
    def __init__(self): self.total = 0
    def add(self, price): self.total += price
    @property
    def double(self): return self.total * 2
def parts(amount, months):
    for _ in range(months):
        yield amount
def chained(amount):
    yield from parts(amount, 2)
    yield 0
async def quote(price): return price + 1
def same(size, point): return size is Size.S and point.x
"""


def test_what_generates_changes_or_hides_its_state_is_recorded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Generators, coroutines, properties, slots, members of enums, named tuples, and methods that give nothing back."""
    import ast
    import asyncio
    import importlib

    (tmp_path / "kinds_of_calls.py").write_text(KINDS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "kinds_of_calls", raising=False)
    monkeypatch.setattr(calls, "near", near, raising=False)
    monkeypatch.setattr(calls, "own_defaults", own_defaults, raising=False)
    kinds = importlib.import_module("kinds_of_calls")
    wanted = []
    for node in ast.parse(KINDS).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for one in inner:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name != "__init__":
                line = min([one.lineno, *(d.lineno for d in one.decorator_list)])
                wanted.append(("kinds_of_calls.py", line, prefix + one.name))
    recorder = Recorder(lambda path: Path(path).name, wanted, SimpleNamespace(busy=False))
    basket = kinds.Basket()
    recorder.start()
    try:
        kinds.Slotted(5).cost()
        basket.add(3)
        assert basket.double == 6
        assert list(kinds.chained(4)) == [4, 4, 0]
        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(kinds.quote(1)) == 2
        loop.close()
        assert kinds.same(kinds.Size.S, kinds.Point(7, 8)) == 7
        next(kinds.parts(1, 5))
    finally:
        recorder.stop()
    found = {call["name"]: call for call in recorder.calls.values()}
    assert {"Slotted.cost", "Basket.add", "Basket.double", "chained", "parts", "quote", "same"} == set(found)
    assert found["Basket.add"]["result"][0] == "after"
    assert found["chained"]["result"] == ["yields", [["int", "4"], ["int", "4"], ["int", "0"]]]
    for call in found.values():
        assert repeat(call)["results"] == [call["result"]] * 2, call


def test_a_call_that_never_ends_is_made_once(builder: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs its limit, not many times that."""
    ended: list[int] = []

    def hanging(*_: object) -> None:
        ended.append(1)
        raise TimeoutError

    monkeypatch.setattr(builder, "discount", hanging)
    call = {"module": "shop_of_calls", "name": "discount", "args": [["int", "1"]], "named": {}}
    assert repeat(call) == {"results": [calls.ENDLESS] * 2, "near": []}
    assert ended == [1]


def test_a_default_that_nobody_gave_is_known() -> None:
    """The function of the base may not know the argument: it would then be told apart by an error alone."""
    found: list[dict[str, Any]] = []

    def look(price: int, off: int = 3, *, known: tuple[int, ...] = (1, 2)) -> int:
        found.append(own_defaults(sys._getframe(), "look"))
        return price - off - known[0]

    globals()["look"] = look
    try:
        assert look(10) == 6
    finally:
        del globals()["look"]
    look(10)
    assert found == [{"off": 3, "known": (1, 2)}, {}]
