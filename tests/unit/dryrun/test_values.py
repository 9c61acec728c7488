"""Values that make a branch go a certain way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bailiwick.dryrun.values import NONE, candidates, error_way, way_of
from bailiwick.engine.compare import choose
from bailiwick.engine.graph import Branch, Condition, edges

OPS = st.sampled_from(["==", "!=", "<", ">", "<=", ">="])
TEXTS = st.one_of(st.sampled_from(["ok", "true", "null", "10", "3.5", "", "x y"]), st.text(max_size=5))
BRANCHES = st.builds(
    lambda cases, conditions, default: Branch(
        id="b",
        path="p",
        cases={case: f"c{number}" for number, case in enumerate(cases)},
        conditions=tuple(Condition(op, value, f"o{number}") for number, (op, value) in enumerate(conditions)),
        default="d" if default else None,
    ),
    st.lists(TEXTS, max_size=3, unique=True),
    st.lists(st.tuples(OPS, TEXTS), max_size=3),
    st.booleans(),
)


@given(BRANCHES)
def test_the_engine_goes_where_a_candidate_was_said_to_lead(branch: Branch) -> None:
    """A pass that aims at an edge must not be sent elsewhere by its own answer."""
    for way, values in candidates(branch, []).items():
        for value in values:
            assert choose(branch, value) == (None if way == NONE else edges(branch)[way][1])


@given(BRANCHES)
def test_every_case_has_a_candidate(branch: Branch) -> None:
    """Each case is a text, so the text itself always takes it."""
    found = candidates(branch, [])
    assert all(found.get(number) for number in range(len(branch.cases)))


def test_values_keep_the_type_they_were_written_for() -> None:
    """A script that prints true means the boolean."""
    branch = Branch(id="b", path="p", cases={"true": "a", "10": "b", "ok": "c"}, default="d")
    found = candidates(branch, [])
    assert [found[way][0] for way in range(3)] == [True, 10, "ok"]
    assert way_of(branch, found[3][0]) == 3


def test_numbers_on_both_sides_of_a_bound_are_tried() -> None:
    """`< 3` and its default need a number below and one above."""
    found = candidates(Branch(id="b", path="p", conditions=(Condition("<", "3", "low"),), default="high"), [])
    assert 2 in found[0]
    assert 3 in found[1]


def test_the_error_way_is_the_last_one() -> None:
    """The engine appends it after all others."""
    branch = Branch(id="b", path="p", cases={"a": "x"}, on_error="y")
    assert edges(branch)[error_way(branch)] == ("on_error", "y")
    assert error_way(Branch(id="b", path="p", default="x")) == NONE
