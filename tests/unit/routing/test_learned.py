"""Where learned routing starts a chain."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.routing.estimates import Estimates, Odds, Record
from bailiwick.routing.learned import (
    BLIND,
    Aims,
    Prospect,
    StartQuery,
    TierForecast,
    Trust,
    best_start,
    choose_start,
    price_of_loss,
    prospects,
    start_chain,
)
from bailiwick.routing.model import Candidate, Chain

CHEAP, MIDDLE, STRONG = "ollama/cheap", "ollama/middle", "claude-strong"
WHOLE = 1024
"""Shares of this and whole numbers of it are exact in binary, so that equality means equality."""
SURE = Odds(1.0, 0.0)


def _step(cost: float, accepted: float, rejected: float | None = None, seconds: float = 0.0) -> TierForecast:
    odds = Odds(accepted, 1 - accepted if rejected is None else rejected)
    return TierForecast(cost, odds, odds, seconds)


def _chain(*models: str, verified: bool = True, pinned: bool = False) -> Chain:
    tiers = tuple(
        Candidate(name, "local", "openai", cloud=False)
        if name.startswith("ollama/")
        else Candidate(name, "subagent", "claude", cloud=True)
        for name in models
    )
    judge = Candidate(STRONG, "subagent", "claude", cloud=True) if verified else None
    return Chain(tiers, judge, "skill tdd", pinned)


def _known(accepted: int, rejected: int, cost: float | None = 0.01, strong: float | None = 1.0) -> Estimates:
    known = Estimates()
    for number in range(accepted + rejected):
        known.learn(Record("tdd", 1_000, CHEAP, "accepted" if number < accepted else "rejected", cost, 1.0))
    for _ in range(20):
        known.learn(Record("tdd", 1_000, STRONG, "accepted", strong, 1.0, after=True, opens=False))
    return known


def _ask(name: str = "call", seconds: float = 600.0) -> StartQuery:
    return StartQuery(name, "tdd", 1_000, seconds)


def _quiet() -> Aims:
    """Aims without exploring and without a limit on quality."""
    return Aims(quality=0.0, extra=0.0)


@given(st.integers(0, 8 * WHOLE), st.integers(0, 8 * WHOLE), st.integers(1, 8 * WHOLE), st.integers(0, WHOLE))
def test_of_two_tiers_the_cheap_one_comes_first_exactly_if_p_exceeds_its_price(
    cheap: int, verdict: int, strong: int, share: int
) -> None:
    """The rule: p > (c₁+v)/c₂, and on equality the strong one."""
    expected = prospects([_step(cheap + verdict, share / WHOLE), _step(strong, 1.0)])
    pays = Fraction(share, WHOLE) > Fraction(cheap + verdict, strong)
    assert best_start(expected) == (0 if pays else 1)


def test_where_both_cost_the_same_the_stronger_one_is_taken() -> None:
    """Equal money, better output, one try less."""
    assert best_start(prospects([_step(0.25, 0.5), _step(0.5, 1.0)])) == 1
    assert best_start(prospects([_step(0.0, 1.0), _step(0.0, 1.0)])) == 1


@st.composite
def _walks(draw: st.DrawFn) -> list[TierForecast]:
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        shares = [draw(st.integers(0, 100)) for _ in range(2)]
        first, after = (Odds(share / 100, 1 - share / 100) for share in shares)
        steps.append(TierForecast(draw(st.integers(0, 100)) / 10, first, after, draw(st.integers(0, 50))))
    return steps


def _by_hand(steps: list[TierForecast], start: int) -> float:
    """The expected cost of a walk, summed over the tier at which it ends."""
    total, reached = 0.0, 1.0
    for number in range(start, len(steps)):
        odds = steps[number].first if number == start else steps[number].after
        total += reached * steps[number].cost
        reached *= 1 - odds.accepted
    return total


@given(_walks())
def test_what_a_walk_costs_is_the_sum_over_where_it_can_end(steps: list[TierForecast]) -> None:
    """The recursion must agree with counting it out, for each start."""
    expected = prospects(steps)
    assert [one.cost for one in expected] == pytest.approx([_by_hand(steps, start) for start in range(len(steps))])


@given(_walks(), st.floats(0, 100))
def test_no_other_start_is_ever_better_than_the_best(steps: list[TierForecast], price: float) -> None:
    """Best means best, at every price of a loss."""
    expected = prospects(steps, Trust())
    scores = [one.cost + price * one.loss for one in expected]
    assert scores[best_start(expected, price)] == min(scores)


def test_a_blind_judge_loses_nothing_and_a_real_one_by_how_often_it_errs() -> None:
    """The more wrong outputs there are to slip through, the more do."""
    odds = Odds(0.6, 0.4)
    assert BLIND.lost(odds) == 0.0
    assert Trust(0.2, 0.0, 0.0).lost(odds) == pytest.approx(0.1)  # 0.5 are wrong, 0.4 rejected, 0.1 slip through
    assert Trust(0.2, 0.1, 0.0).lost(odds) < 0.1  # some of the rejected were right
    assert Trust(0.2, 0.0, 0.5).lost(odds) < 0.1 * 0.5  # the last tier would have been wrong too, here and elsewhere


@given(st.integers(0, 90), st.integers(0, 90), st.integers(0, 100))
def test_a_worse_judge_never_loses_less(low: int, more: int, share: int) -> None:
    """Else the guard could be fooled by bad news."""
    odds = Odds(share / 100, 1 - share / 100)
    better, worse = Trust(low / 200, 0.05, 0.1), Trust(min(0.9, (low + more) / 200), 0.05, 0.1)
    assert worse.lost(odds) >= better.lost(odds) - 1e-12


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 50), st.integers(-5, 50)), min_size=1, max_size=4), min_size=1, max_size=5
    ),
    st.integers(0, 50),
)
def test_the_price_keeps_the_losses_within_what_is_allowed(drawn: list[list[tuple[int, int]]], allowed: int) -> None:
    """The limit holds over all sizes together, whatever they cost; the last tier alone always keeps it."""
    cells = [
        (1 / len(drawn), [*(Prospect(cost / 10, loss / 100, 0) for cost, loss in cell), Prospect(cell[0][0], 0.0, 0)])
        for cell in drawn
    ]
    price = price_of_loss(cells, allowed / 100)
    lost = sum(share * expected[best_start(expected, price)].loss for share, expected in cells)
    assert lost <= allowed / 100 + 1e-9


def test_the_price_is_nothing_where_nothing_is_lost() -> None:
    """Quality that holds by itself must cost no money."""
    assert price_of_loss([(1.0, prospects([_step(0.1, 0.9), _step(1.0, 1.0)], BLIND))], 0.01) == 0.0


def test_too_little_evidence_leaves_the_fixed_chain() -> None:
    """A few tries are no reason to depart from what the person wrote down."""
    start = choose_start(_chain(CHEAP, STRONG), _known(0, 19), _ask(), _quiet())
    assert (start.index, start.learned) == (0, False)
    assert start.why == "fixed chain: 19 of 20 tries of ollama/cheap for tdd on record"


@pytest.mark.parametrize(("cheap", "strong", "named"), [(None, 1.0, CHEAP), (0.1, None, STRONG)])
def test_an_unknown_price_leaves_the_fixed_chain(cheap: float | None, strong: float | None, named: str) -> None:
    """Unknown is not 0."""
    start = choose_start(_chain(CHEAP, STRONG), _known(0, 60, cheap, strong), _ask(), _quiet())
    assert start.why == f"fixed chain: what {named} costs for tdd is not known"


def test_a_tier_that_is_mostly_rejected_is_skipped_and_the_reason_is_one_line() -> None:
    """Paying for a try and a verdict that come to nothing is what learning is to prevent."""
    start = choose_start(_chain(CHEAP, STRONG), _known(0, 200), _ask(), _quiet())
    assert (start.index, start.learned) == (1, True)
    assert start.why.startswith("learned: starts at claude-strong, $1.0000 expected, $1.0")
    assert "\n" not in start.why


def test_a_tier_that_is_mostly_accepted_is_kept() -> None:
    """The cheap tier is the point of the chain."""
    start = choose_start(_chain(CHEAP, STRONG), _known(190, 10), _ask(), Aims())
    assert start.index == 0
    assert start.why.startswith("learned: starts at ollama/cheap, $0.0")


def test_a_judge_that_lets_much_through_moves_the_start_to_the_last_tier() -> None:
    """Cheap and wrong is no saving."""
    known, tiers = _known(160, 40), _chain(CHEAP, STRONG)
    assert choose_start(tiers, known, _ask(), Aims(extra=0.0)).index == 0
    start = choose_start(tiers, known, _ask(), Aims(extra=0.0, trust=Trust(0.3, 0.0, 0.0)))
    assert start.index == 1
    assert start.why.endswith("from ollama/cheap would lose 9.8% of right results")


def test_a_walk_that_would_outlast_the_deadline_is_not_begun() -> None:
    """A cheap answer that comes too late is none."""
    known = _known(190, 10)
    assert choose_start(_chain(CHEAP, STRONG), known, _ask(seconds=60.0), _quiet()).index == 0
    assert choose_start(_chain(CHEAP, STRONG), known, _ask(seconds=0.5), _quiet()).index == 1


def test_a_tier_that_no_verifier_judges_ends_the_chain() -> None:
    """From unjudged outputs nothing is learnt, so nothing may be skipped for them."""
    assert not choose_start(_chain(STRONG, "claude-stronger"), _known(0, 200), _ask(), _quiet()).learned
    assert not choose_start(_chain(CHEAP, STRONG, verified=False), _known(0, 200), _ask(), _quiet()).learned
    start = choose_start(_chain(CHEAP, STRONG, "claude-stronger"), _known(0, 200), _ask(), _quiet())
    assert start.index == 1


def test_a_model_that_the_caller_named_is_never_replaced() -> None:
    """A caller's word comes first."""
    assert choose_start(_chain(CHEAP, STRONG, pinned=True), _known(0, 200), _ask(), _quiet()).index == 0


def _explorers(aims: Aims, known: Estimates, calls: int = 1_000) -> int:
    starts = [choose_start(_chain(CHEAP, STRONG), known, _ask(f"call-{number}"), aims) for number in range(calls)]
    return sum(start.why.startswith("explores") for start in starts)


def test_exploring_keeps_to_its_part_of_the_money() -> None:
    """Looking again at a skipped tier is worth something, not anything."""
    dear = _known(0, 100, cost=2.0)
    assert 0 < _explorers(Aims(quality=0.5, extra=0.02), dear) < 1_000 * 0.02
    assert _explorers(Aims(quality=0.5, extra=0.0), dear) == 0


def test_a_call_explores_or_not_by_its_id_alone() -> None:
    """A replay must take the same way."""
    known = _known(0, 100)
    picks = [choose_start(_chain(CHEAP, STRONG), known, _ask(f"call-{number}"), Aims()) for number in range(300)]
    again = [choose_start(_chain(CHEAP, STRONG), known, _ask(f"call-{number}"), Aims()) for number in range(300)]
    assert picks == again


def test_the_more_is_known_the_less_is_explored() -> None:
    """Curiosity about what is well known is waste."""
    aims = Aims(quality=0.5, extra=1.0)
    assert _explorers(aims, _known(0, 30)) > _explorers(aims, _known(0, 400)) > 0


def test_the_chain_is_cut_at_its_start_and_says_why() -> None:
    """Who asks why a model was not tried reads it in the call."""
    tiers = _chain(CHEAP, MIDDLE, STRONG)
    start = choose_start(_chain(CHEAP, STRONG), _known(0, 200), _ask(), _quiet())
    cut = start_chain(tiers, start)
    assert [one.model for one in cut.candidates] == [MIDDLE, STRONG]
    assert cut.why == f"skill tdd; {start.why}"
    assert cut.verifier == tiers.verifier
