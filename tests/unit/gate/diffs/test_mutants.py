"""Files whose functions give something else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.diffs.mutants import with_other_results

VALUES = (
    st.booleans() | st.integers() | st.floats(-1e6, 1e6) | st.text() | st.binary() | st.lists(st.integers())
    | st.dictionaries(st.text(), st.integers()) | st.sets(st.integers()) | st.none()
)  # fmt: skip


def _made(source: str, *names: str) -> dict[str, Any]:
    made = with_other_results(source.encode(), names)
    assert made is not None
    scope: dict[str, Any] = {}
    exec(made.decode(), scope)
    return scope


@given(VALUES)
def test_a_value_becomes_another_of_its_kind_or_an_error(value: object) -> None:
    """Numbers stay numbers, so that a test of their kind alone does not notice; all others lose what they hold."""
    try:
        other = _made("def f(x): return x\n", "f")["f"](value)
    except LookupError:
        assert value is None or not value
        return
    assert type(other) is type(value)
    assert other != value


def test_methods_are_wrapped_too_and_an_error_is_none() -> None:
    """A test that expects an error has to notice that there is none."""
    scope = _made("class A:\n    def f(self, x): return x\n    def g(self): return 1 / 0\n", "A.f", "A.g")
    assert scope["A"]().f(10) == 22
    assert scope["A"]().g() is None


@pytest.mark.parametrize(
    "source",
    ["@cache\ndef f(): return 1\n", "def f(): yield 1\n", "async def f(): return 1\n", "def g(): return 1\n", "def ("],
)
def test_where_it_can_not_be_had_for_all_there_is_none(source: str) -> None:
    """A test that passes because nothing was exchanged would be accused for nothing."""
    assert with_other_results(source.encode(), {"f"}) is None
