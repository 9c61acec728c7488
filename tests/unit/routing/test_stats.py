"""What the records say: rates, times, money, and nothing that nobody knows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.journal.rows import CallRow, Owner
from bailiwick.routing.asked import ModelAttempt
from bailiwick.routing.stats import (
    INTERRUPTED,
    ModelStats,
    advice,
    by_status,
    model_stats,
    session_stats,
    status_of,
    use_of,
)
from tests.unit.routing.records import NOW, ask, call, ended


def dead(owner: Owner) -> bool | None:
    return {"dead": True, "alive": False}.get(owner.name)


def owner(name: str) -> Owner:
    return Owner("h", "b", "n", 1, 1, name)


def only(found: list[ModelStats], model: str) -> ModelStats:
    (one,) = [each for each in found if each.model == model]
    return one


def test_rates_and_counts_are_of_the_times_a_model_was_asked() -> None:
    """This is what somebody looks at to reorder a chain."""
    asks = [
        ask("c-1", verdict="accept"),
        ask("c-2", verdict="accept_unverified"),
        ask("c-3", verdict="escalate", cold=True),
        ask("c-4", verdict="error", input_tokens=None, output_tokens=None, cost=None, cold=True),
    ]
    (found,) = model_stats(asks, [])
    assert (found.calls, found.accepted, found.unverified, found.escalated, found.errors) == (4, 2, 1, 1, 1)
    assert (found.cold_starts, found.use.input_tokens, found.use.tokens_unknown) == (2, 30, 1)
    told = found.to_json()
    assert (told["accept_rate"], told["escalation_rate"], told["cost_unknown"]) == (0.5, 0.25, 1)
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("spans", "mean", "p95"),
    [([100], 100, 100), ([100, 200], 150, 200), (list(range(1, 101)), 50, 95), (list(range(1, 21)), 10, 19)],
)
def test_latency_is_the_mean_and_the_95th_percentile(spans: list[int], mean: int, p95: int) -> None:
    """The mean hides the waits that people complain about."""
    (found,) = model_stats([ask(f"c-{n}", duration_ms=n) for n in spans], [])
    assert (found.mean_ms, found.p95_ms) == (mean, p95)


def test_errors_do_not_make_a_model_look_fast() -> None:
    """A refused connection takes a millisecond; where there is nothing else, nobody knows."""
    (found,) = model_stats([ask(duration_ms=800), ask("c-2", verdict="error", duration_ms=1)], [])
    assert (found.mean_ms, found.p95_ms) == (800, 800)
    (found,) = model_stats([ask(verdict="error", duration_ms=1)], [])
    assert (found.mean_ms, found.p95_ms) == (None, None)


def test_saved_is_what_the_last_model_would_have_cost_less_what_was_paid() -> None:
    """Two of three calls stopped at the cheap model; the third paid for both."""
    rows = [call(f"c-{n}") for n in (1, 2, 3)]
    asks = [
        ask("c-1", cost=0.25),
        ask("c-2", cost=0.5),
        ask("c-3", verdict="escalate", cost=0.25),
        ask("c-3", "big", "accept_unverified", cost=2.0, tier="subagent"),
    ]
    found = model_stats(asks, rows)
    assert (only(found, "small").saved, only(found, "small").saved_calls) == (3.25, 2)
    assert (only(found, "big").saved, only(found, "big").saved_calls) == (-0.25, 1)


@pytest.mark.parametrize(
    ("row", "cheap"),
    [
        (call("c-1", chain=()), 0.1),
        (call("c-1", chain=("small",)), 0.1),
        (call("c-1", model="small"), 0.1),
        (call("c-1", chain=("small", "never asked")), 0.1),
        (call("c-1"), None),
    ],
    ids=["no chain", "one model", "the caller's model", "last never asked", "cost unknown"],
)
def test_what_can_not_be_estimated_is_not_said_to_be_saved(row: CallRow, cheap: float | None) -> None:
    """A made-up saving is worse than none."""
    asks = [ask("c-1", cost=cheap), ask("c-2", "big", cost=2.0)]
    found = only(model_stats(asks, [row, call("c-2", model="big")]), "small")
    assert (found.saved, found.saved_calls) == (None, 0)


def test_several_tries_of_the_last_model_are_one_answer() -> None:
    """The ladder's further tries belong to what an answer of that model costs; failed ones alone are no answer."""
    rows = [call("c-1"), call("c-2"), call("c-3")]
    asks = [
        ask("c-1", cost=0.0),
        ask("c-2", "big", "error", cost=1.0),
        ask("c-2", "big", "accept", cost=3.0),
        ask("c-3", "big", "error", cost=0.0),
    ]
    assert only(model_stats(asks, rows), "small").saved == 4.0


def test_skills_come_before_workflows_and_the_most_used_model_first() -> None:
    """A list that jumps about is not read."""
    asks = [
        ask("", "m", subject="workflow a"),
        ask("c-1", "rare", subject="zeta"),
        ask("c-2", "often", subject="zeta"),
        ask("c-3", "often", subject="zeta"),
    ]
    found = [(one.skill, one.model) for one in model_stats(asks, [])]
    assert found == [("zeta", "often"), ("zeta", "rare"), ("workflow a", "m")]


COSTS = st.lists(st.none() | st.floats(0, 100), min_size=1, max_size=20)


@given(costs=COSTS)
def test_unknown_is_never_counted_as_zero(costs: list[float | None]) -> None:
    """Nothing known is no sum at all; each unknown is counted as such."""
    found = use_of([ask(cost=cost) for cost in costs])
    known = [cost for cost in costs if cost is not None]
    assert found.cost_unknown == len(costs) - len(known)
    assert (found.cost is None) == (not known)
    assert known == [] or found.cost == pytest.approx(sum(known))


@pytest.mark.parametrize(
    ("row", "status"),
    [
        (call(owner=owner("alive")), "open"),
        (call(owner=owner("dead")), INTERRUPTED),
        (call(owner=owner("elsewhere")), "open"),
        (call(owner=owner("elsewhere"), until=NOW - 1), INTERRUPTED),
        (call(owner=None, until=None), "open"),
        (ended(call(owner=owner("dead"))), "pass"),
    ],
)
def test_an_open_call_without_its_process_was_interrupted(row: CallRow, status: str) -> None:
    """A killed process can't say so itself; another machine's is believed until the deadline."""
    assert status_of(row, NOW, dead) == status
    assert by_status([row, row], NOW, dead) == {status: 2}


def test_a_session_sums_up_its_calls() -> None:
    """Newest first, with what is unknown about calls that were cut off."""
    rows = [
        ended(call("c-1")),
        ended(call("c-2", skill="debug", started_at=NOW + 50), status="error"),
        call("c-3", owner=owner("dead")),
        ended(call("c-4", session_id="", started_at=NOW + 100)),
    ]
    asks = [ask("c-1", cost=0.5), ask("c-1", "big", cost=1.0), ask("c-2", cost=None), ask("", "node's", cost=9.0)]
    none, first = session_stats(rows, asks, NOW + 200, dead)
    assert (none.session_id, none.calls, none.attempts, none.use.cost) == ("", 1, 0, None)
    assert (first.calls, first.attempts, first.skills, first.models) == (3, 3, ("debug", "review"), ("big", "small"))
    assert first.how == {"error": 1, INTERRUPTED: 1, "pass": 1}
    assert (first.use.cost, first.use.cost_unknown) == (1.5, 2)
    assert (first.first_at, first.last_at) == (NOW, NOW + 55)
    told = first.to_json()
    assert json.loads(json.dumps(told)) == told


def _tried(accepted: int, rejected: int, cost: float | None = 0.02, last: float | None = 0.1) -> list[ModelAttempt]:
    """A cheap model that was accepted and rejected so often, and the strong one that answered instead."""
    good = [ask(f"c-{number}", cost=cost) for number in range(accepted)]
    bad = [ask(f"r-{number}", verdict="escalate", verified=False, cost=cost) for number in range(rejected)]
    strong = [ask(f"r-{number}", "big", "accept_unverified", cost=last, tier="subagent") for number in range(rejected)]
    return [*good, *bad, *strong]


def test_a_model_that_does_not_pay_for_its_tries_is_named_in_a_sentence() -> None:
    """A try costs a fifth of the last model's: three accepts of forty-one are no luck any more."""
    assert advice(_tried(3, 38), [call()]) == ("small was accepted 3 of 41 times for review: take it out",)
    assert advice(_tried(3, 38, cost=None, last=None), [call()]) == advice(_tried(3, 38), [call()])
    assert advice(_tried(20, 21), [call()]) == ()


def test_a_cheap_try_pays_even_if_it_is_seldom_accepted() -> None:
    """Cheap first pays where the share of accepts is above the share of the cost."""
    assert advice(_tried(3, 38, cost=0.001), [call()]) == ()
    assert advice(_tried(20, 21, cost=0.099), [call()]) != ()


def test_nothing_is_advised_without_enough_verdicts() -> None:
    """Too few tries, errors, and outputs that nobody could judge say nothing about a model."""
    assert advice(_tried(0, 19), [call()]) == ()
    assert advice(_tried(0, 20), [call()]) != ()
    silent = [ask(f"c-{number}", verdict="error") for number in range(50)]
    unjudged = [ask(f"u-{number}", verdict="escalate") for number in range(50)]
    assert advice([*silent, *unjudged], [call()]) == ()


def test_advice_is_about_the_chain_as_it_is_now() -> None:
    """A model that was taken out, that ends its chain, or that the caller named, is left alone."""
    bad = _tried(0, 41)
    later = NOW + 60
    assert advice(bad, [call(), call("c-2", chain=("big",), started_at=later)]) == ()
    assert advice(bad, [call(chain=("other", "small"))]) == ()
    assert advice(bad, [call(), call("c-2", model="big", chain=("big",), started_at=later)]) != ()
    assert advice(bad, []) == ()
