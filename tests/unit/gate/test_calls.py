"""Recorded calls: what is written down comes back the same, and a call is recorded with what it gave."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.plugin import calls
from bailiwick.gate.plugin.calls import Recorder, Unwritable, elsewhere, freeze, repeat, thaw
from bailiwick.gate.plugin.nearby import near

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
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
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
    return importlib.import_module("shop_of_calls")


def _recorded(shop: Any, act: Any) -> list[dict[str, Any]]:
    lines = {4: "Till.add", 5: "discount", 8: "only_watched"}
    wanted = [("shop_of_calls.py", line, name) for line, name in lines.items()]
    recorder = Recorder(lambda path: Path(path).name, wanted)
    recorder.start()
    try:
        act(shop)
    finally:
        recorder.stop()
    return list(recorder.calls.values())


def test_a_call_is_recorded_and_made_again(shop: types.ModuleType) -> None:
    """Arguments by position and name, defaults, methods with their object, and errors."""

    def act(product: Any) -> None:
        product.discount(200)
        product.discount(200, 50, floor=120)
        product.Till(5).add(1, 2, 3, note="x")
        with pytest.raises(ValueError, match="no price"):
            product.discount(None)

    found = _recorded(shop, act)
    assert [call["name"] for call in found] == ["discount", "discount", "Till.add", "discount"]
    assert [call["result"] for call in found] == [["int", "180"], ["int", "120"], ["int", "11"], ["raises"]]
    for call in found:
        again = repeat(call)
        assert again["results"][0] == again["results"][1]
        assert again["results"][0][:1] == call["result"][:1]
        assert again["near"], "the same with other arguments"


def test_what_depends_on_its_surroundings_gives_something_else(shop: types.ModuleType, monkeypatch: Any) -> None:
    """That is how code that is right only under test is found."""
    monkeypatch.setitem(sys.modules, "shop_is_watched", types.ModuleType("shop_is_watched"))
    (call,) = _recorded(shop, lambda product: product.only_watched(7))
    monkeypatch.delitem(sys.modules, "shop_is_watched")
    assert (call["result"], repeat(call)["results"]) == (["int", "7"], [["int", "-1"]] * 2)


def test_a_function_that_is_not_there_is_told(shop: types.ModuleType) -> None:
    """On the base a new function is missing; that is no result."""
    assert "missing" in repeat({"module": "shop_of_calls", "name": "nothing", "args": [], "named": {}})


def test_few_calls_of_one_function_are_kept(shop: types.ModuleType) -> None:
    """A loop over a million rows costs no memory."""
    found = _recorded(shop, lambda product: [product.discount(price) for price in range(1000)])
    assert len(found) == calls.KEPT


SURROUNDED = """
import threading
import time

def plain(n): return n
def in_main(n): return n if threading.current_thread() is threading.main_thread() else -n
def offset(n): return time.localtime(n).tm_hour
def limited(n): return n if time.time() < 100 * n else -n
"""


@pytest.mark.parametrize(
    ("name", "differing"), [("plain", set()), ("in_main", {"thread"}), ("offset", {"zone"}), ("limited", {"later"})]
)
def test_a_call_is_also_made_in_other_surroundings(
    name: str, differing: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread, another time zone, a year later: each alone, and everything is as before afterwards."""
    module = types.ModuleType("surrounded")
    exec(SURROUNDED, vars(module))
    monkeypatch.setitem(sys.modules, "surrounded", module)
    monkeypatch.setattr(calls, "near", near, raising=False)
    monkeypatch.setenv("TZ", "UTC")
    ahead = [0]
    monkeypatch.setattr(module.time, "time", lambda: 3600 + ahead[0])
    call = {"module": "surrounded", "name": name, "args": [freeze(3600)], "named": {}}
    first = repeat(call)["results"][0]
    found = elsewhere(call, lambda seconds: ahead.__setitem__(0, seconds))
    assert {where for where, result in found.items() if result != first} == differing
    assert repeat(call)["results"] == [first, first]
    assert ahead == [0]
