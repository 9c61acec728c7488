"""What is believed of a model after so many tries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.routing.estimates import (
    HALF_LIFE,
    NOTHING_KNOWN,
    Ending,
    Estimates,
    Record,
    bucket,
    ending_of,
    records,
    typical,
)
from bailiwick.routing.model import Attempt, Verdict

SMALL, LARGE = 1_000, 30_000


def _learnt(*tries: Record) -> Estimates:
    known = Estimates()
    for one in tries:
        known.learn(one)
    return known


def _try(ending: Ending = "accepted", skill: str = "tdd", size: int = SMALL, cost: float | None = 0.1) -> Record:
    return Record(skill, size, "m", ending, cost, 2.0)


def _attempt(number: int, verdict: Verdict, *, verified: bool | None = None, model: str = "m") -> Attempt:
    return Attempt(number, model, "local", 1500, verdict, verified=verified, cost=0.2)


def test_without_evidence_nothing_is_believed() -> None:
    """A model that was never tried must be neither praised nor damned."""
    known = Estimates()
    assert known.odds("tdd", SMALL, "m") == NOTHING_KNOWN
    assert known.cost("tdd", SMALL, "m") is None
    assert known.seconds("tdd", SMALL, "m", warm=True) == 0.0
    assert known.evidence("tdd", "m") == 0.0
    assert known.shares("tdd") == {}


def test_one_try_moves_the_odds_a_little_and_many_move_them_far() -> None:
    """A lucky first try is no proof."""
    once = _learnt(_try()).odds("tdd", SMALL, "m").accepted
    often = _learnt(*[_try()] * 200).odds("tdd", SMALL, "m").accepted
    assert NOTHING_KNOWN.accepted < once < 0.75
    assert 0.95 < often < 1


def test_a_size_without_tries_leans_on_its_skill_and_a_skill_on_its_model() -> None:
    """Evidence is scarce: what is known next door is better than nothing."""
    known = _learnt(*[_try("rejected", size=SMALL)] * 50)
    same_skill, other_skill = known.odds("tdd", LARGE, "m"), known.odds("review", LARGE, "m")
    assert known.odds("tdd", SMALL, "m").accepted < same_skill.accepted < other_skill.accepted < NOTHING_KNOWN.accepted


def test_a_narrow_cell_overrules_the_wide_one_as_it_fills() -> None:
    """A model that fails on large tasks only has to be known for that."""
    known = _learnt(*[_try(size=SMALL)] * 60, *[_try("rejected", size=LARGE)] * 60)
    assert known.odds("tdd", SMALL, "m").accepted > 0.8
    assert known.odds("tdd", LARGE, "m").accepted < 0.2


def test_errors_lower_the_chance_without_counting_as_wrong_outputs() -> None:
    """From an endpoint that was down nothing follows about what slips through the verifier."""
    down = _learnt(*[_try("error")] * 100).odds("tdd", SMALL, "m")
    assert down.accepted < 0.05
    assert down.rejected < 0.05


def test_tries_after_a_rejected_one_are_told_apart() -> None:
    """They are made on harder tasks; a tier that starts a call does better."""
    hard = Record("tdd", SMALL, "m", "rejected", 0.1, after=True, opens=False)
    known = _learnt(*[_try()] * 80, *[hard] * 80)
    assert known.odds("tdd", SMALL, "m").accepted > 0.85
    assert known.odds("tdd", SMALL, "m", after=True).accepted < 0.15


def test_what_is_known_of_one_position_stands_in_for_the_other() -> None:
    """Under a fixed chain a later tier never comes first, yet something is known about it."""
    known = _learnt(*[Record("tdd", SMALL, "m", "accepted", 0.1, after=True, opens=False)] * 40)
    assert known.odds("tdd", SMALL, "m").accepted == known.odds("tdd", SMALL, "m", after=True).accepted > 0.8


def test_a_model_that_was_swapped_is_noticed() -> None:
    """Names outlive models: evidence from before must fade."""
    count = int(HALF_LIFE)
    known = _learnt(*[_try()] * count, *[_try("rejected")] * (2 * count))
    assert known.odds("tdd", SMALL, "m").accepted < 0.25


def test_evidence_about_a_model_that_is_no_longer_tried_fades() -> None:
    """Else a tier that was given up once would never be looked at again."""
    known = _learnt(*[_try()] * 100)
    before = known.evidence("tdd", "m")
    for _ in range(int(HALF_LIFE)):
        known.learn(Record("tdd", SMALL, "other", "accepted", 0.1))
    assert known.evidence("tdd", "m") == pytest.approx(before / 2)


def test_unknown_costs_stay_unknown_and_known_ones_are_averaged() -> None:
    """A price nobody knows is not 0."""
    known = _learnt(_try(cost=None), _try(cost=None))
    assert known.cost("tdd", SMALL, "m") is None
    known.learn(_try(cost=0.3))
    assert known.cost("tdd", SMALL, "m") == pytest.approx(0.3)


def test_a_cold_model_takes_longer_than_a_warm_one() -> None:
    """Loading a model can take longer than its answer."""
    known = Estimates()
    for warm, seconds in ((True, 3.0), (False, 30.0)):
        for _ in range(50):
            known.learn(Record("tdd", SMALL, "m", "accepted", 0.0, seconds, warm))
    assert known.seconds("tdd", SMALL, "m", warm=True) < 5
    assert known.seconds("tdd", SMALL, "m", warm=False) > 28


def test_sizes_have_their_shares_of_the_calls() -> None:
    """The wanted quality holds over all sizes together, by how often they occur."""
    known = _learnt(_try(), _try(), _try(), _try(size=LARGE), Record("tdd", LARGE, "m", "accepted", opens=False))
    assert known.shares("tdd") == pytest.approx({"small": 0.75, "large": 0.25}, rel=0.01)


@pytest.mark.parametrize(
    ("size", "name"), [(0, "small"), (4_000, "small"), (4_001, "medium"), (64_000, "large"), (64_001, "huge")]
)
def test_every_size_has_a_class_and_each_class_a_typical_size(size: int, name: str) -> None:
    """The bounds belong to the smaller class."""
    assert bucket(size) == name == bucket(typical(name))


def test_the_tries_of_a_call_become_evidence_in_their_order() -> None:
    """Only a rejected output makes what follows harder; an error does not."""
    attempts = [
        _attempt(1, "error"),
        _attempt(2, "escalate", verified=False, model="n"),
        _attempt(3, "accept_unverified", model="o"),
    ]
    found = records("tdd", SMALL, attempts)
    assert [(one.ending, one.after, one.opens) for one in found] == [
        ("error", False, True),
        ("rejected", False, False),
        ("accepted", True, False),
    ]
    assert found[0].cost == 0.2
    assert found[0].seconds == 1.5


@pytest.mark.parametrize(
    ("verdict", "verified", "ending"),
    [
        ("accept", True, "accepted"),
        ("accept_unverified", None, "accepted"),
        ("escalate", False, "rejected"),
        ("escalate", None, "error"),
        ("error", None, "error"),
    ],
)
def test_a_verdict_that_nobody_spoke_is_an_error(verdict: str, verified: bool | None, ending: str) -> None:
    """A verifier that failed is recorded as `escalate`, but it judged nothing."""
    assert ending_of(verdict, verified) == ending


ENDINGS: list[Ending] = ["accepted", "rejected", "error"]


@given(
    st.lists(
        st.builds(
            Record,
            skill=st.sampled_from(["tdd", "review"]),
            size=st.integers(0, 100_000),
            model=st.sampled_from(["m", "n"]),
            ending=st.sampled_from(ENDINGS),
            cost=st.none() | st.floats(0, 10),
            seconds=st.floats(0, 600),
            warm=st.booleans(),
            after=st.booleans(),
            opens=st.booleans(),
        ),
        max_size=60,
    ),
    st.booleans(),
)
def test_odds_are_always_probabilities_and_costs_within_what_was_seen(tries: list[Record], after: bool) -> None:
    """Whatever is on record, nothing impossible may come out of it."""
    known = _learnt(*tries)
    odds = known.odds("tdd", SMALL, "m", after=after)
    assert 0 <= odds.accepted <= 1
    assert 0 <= odds.rejected <= 1 - odds.accepted + 1e-9
    seen = [one.cost for one in tries if one.model == "m" and one.cost is not None]
    cost = known.cost("tdd", SMALL, "m")
    assert (cost is None) == (not seen)
    assert cost is None or min(seen) - 1e-9 <= cost <= max(seen) + 1e-9
