"""Where to start a chain, learnt from recorded verdicts. Pure: the same evidence and the same call give the same start.

A walk that starts at tier i costs what i costs (its verification included) and, unless i is accepted, what the walk
from i+1 costs. With two tiers the cheap one comes first exactly if p > (c₁+v)/c₂; where both cost the same, the later
tier is taken, since it is the better one.

Wrong outputs that the check lets through are the price of cheapness; how many there are follows from how many it
rejects and how often it errs. Against them stands what a checked cheap tier gets right where the unchecked last one
would have been wrong. What is lost, less what is won, may make up at most 1-quality of a skill's calls, all sizes
together; the sizes in which a loss buys the most money get it.

A tier that nobody checks ends the chain: nothing is ever learnt about its mistakes. Tiers after it only stand in when
it fails.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from bailiwick.routing.estimates import Estimates, Odds, bucket, typical
from bailiwick.routing.model import Candidate, Chain

APART = 0.25
"""The part of the last tier's mistakes taken to fall on tasks that a cheaper tier gets right; 1 if by luck alone."""
EXPLORED_LOSS = 0.1
"""The part of the allowed wrong results that exploring may use up."""
EXPLORE_MOST = 0.1
"""The largest share of calls that explores."""


@dataclass(frozen=True, slots=True)
class Trust:
    """How far verdicts can be trusted. Verdicts alone don't tell: somebody measured it, or it is assumed.

    `false_accept`: the share of wrong outputs that checks and verifier accept; `false_reject`: the share of right ones
    that they reject. `last_wrong`: how often the last tier is wrong itself.
    """

    false_accept: float = 0.05
    false_reject: float = 0.05
    last_wrong: float = 0.1

    def lost(self, odds: Odds) -> float:
        """The share of tries by which right results become fewer than the last tier's; below 0 where they grow."""
        judged = odds.accepted + odds.rejected
        wrong = max(0.0, odds.rejected - self.false_reject * judged) / (1 - self.false_accept - self.false_reject)
        slipped = wrong * self.false_accept
        return slipped * (1 - self.last_wrong) - (odds.accepted - slipped) * self.last_wrong * APART


BLIND = Trust(0.0, 0.0, 0.0)
"""Verdicts are the truth, and the last tier is always right."""


@dataclass(frozen=True, slots=True)
class Aims:
    """What routing has to keep to.

    `quality`: the share of the last tier's right results that must be kept. `least`: tries needed before anything is
    learnt. `extra`: the part of the money that exploring may cost.
    """

    quality: float = 0.99
    least: float = 20.0
    extra: float = 0.02
    trust: Trust = Trust()

    @property
    def allowed(self) -> float:
        """The share of calls that may lose a right result."""
        return (1 - self.quality) * (1 - self.trust.last_wrong)


@dataclass(frozen=True, slots=True)
class StartQuery:
    """The call to be routed: its id decides whether it explores, `warm` names the models that are loaded."""

    id: str
    skill: str
    size: int
    seconds: float = 600.0
    warm: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Start:
    """Where a chain is entered, and why, in one line. `learned` is False where the fixed chain stands."""

    index: int
    why: str
    learned: bool = True


@dataclass(frozen=True, slots=True)
class TierForecast:
    """What one tier is expected to do: `cost` with verification, odds as the first try and after a rejected one."""

    cost: float
    first: Odds
    after: Odds
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a walk from one start is expected to cost, to lose (right results, as a share of calls) and to take."""

    cost: float
    loss: float
    seconds: float


def prospects(steps: Sequence[TierForecast], trust: Trust = BLIND) -> list[Prospect]:
    """What to expect of each start; the last tier's results are the measure: it loses nothing."""
    following = Prospect(0.0, 0.0, 0.0)
    found: list[Prospect] = []
    for number in reversed(range(len(steps))):
        step, last = steps[number], number == len(steps) - 1
        found.append(_ahead(step, step.first, following, trust, last=last))
        following = _ahead(step, step.after, following, trust, last=last)
    return found[::-1]


def _ahead(step: TierForecast, odds: Odds, following: Prospect, trust: Trust, *, last: bool) -> Prospect:
    if last:
        return Prospect(step.cost, 0.0, step.seconds)
    on = 1 - odds.accepted
    return Prospect(
        step.cost + on * following.cost, trust.lost(odds) + on * following.loss, step.seconds + on * following.seconds
    )


def best_start(expected: Sequence[Prospect], price: float = 0.0, seconds: float = float("inf")) -> int:
    """The start that costs least, a lost result counted at `price`; on a tie the later tier.

    A start that is expected to take longer than `seconds` is left out, but for the last.
    """
    chosen = len(expected) - 1
    for number in reversed(range(chosen)):
        here, best = expected[number], expected[chosen]
        if here.seconds <= seconds and here.cost + price * here.loss < best.cost + price * best.loss:
            chosen = number
    return chosen


def price_of_loss(cells: Sequence[tuple[float, Sequence[Prospect]]], allowed: float) -> float:
    """The least price of a lost result at which the best starts of all cells, by their shares, keep to `allowed`."""
    prices = sorted({0.0, *(price for _, expected in cells for price in _turns(expected))})
    low, high = 0, len(prices) - 1
    while low < high:
        middle = (low + high) // 2
        if _lost(cells, prices[middle]) <= allowed:
            high = middle
        else:
            low = middle + 1
    return prices[low]


def _turns(expected: Sequence[Prospect]) -> list[float]:
    """The prices at which a start that loses less becomes the better one; a little more, to be past rounding."""
    return [
        (dear.cost - cheap.cost) / (cheap.loss - dear.loss) * (1 + 1e-9)
        for cheap, dear in permutations(expected, 2)
        if cheap.cost < dear.cost and cheap.loss > dear.loss
    ]


def _lost(cells: Sequence[tuple[float, Sequence[Prospect]]], price: float) -> float:
    return sum(share * expected[best_start(expected, price)].loss for share, expected in cells)


def choose_start(chain: Chain, known: Estimates, ask: StartQuery, aims: Aims) -> Start:
    """Where to start this call; the fixed chain's start where too little is known."""
    tiers = _judged(chain)
    if chain.pinned or len(tiers) < 2:
        return Start(0, "nothing to choose", learned=False)
    missing = _missing(tiers, known, ask, aims)
    if missing:
        return Start(0, f"fixed chain: {missing}", learned=False)
    steps = {size: _steps(tiers, known, ask, typical(size)) for size in {*known.shares(ask.skill), bucket(ask.size)}}
    views = {size: prospects(found, aims.trust) for size, found in steps.items()}
    cells = [(share, views[size]) for size, share in known.shares(ask.skill).items()]
    price = price_of_loss(cells, aims.allowed * (1 - EXPLORED_LOSS))
    expected = views[bucket(ask.size)]
    best = best_start(expected, price, ask.seconds)
    return _explored(tiers, expected, best=best, known=known, ask=ask, aims=aims) or Start(
        best, _told(tiers, expected, best)
    )


def start_chain(chain: Chain, start: Start) -> Chain:
    """The chain from its start on, with the reason."""
    return replace(chain, candidates=chain.candidates[start.index :], why=f"{chain.why}; {start.why}")


def _judged(chain: Chain) -> Sequence[Candidate]:
    """The tiers up to the first whose outputs no verifier judges."""
    for number, one in enumerate(chain.candidates):
        if one.tier != "local" or chain.verifier is None:
            return chain.candidates[: number + 1]
    return chain.candidates


def _missing(tiers: Sequence[Candidate], known: Estimates, ask: StartQuery, aims: Aims) -> str:
    """What is not known well enough, in words; "" if everything is."""
    for one in tiers:
        if known.cost(ask.skill, ask.size, one.model) is None:
            return f"what {one.model} costs for {ask.skill} is not known"
    for one in tiers[:-1]:
        seen = known.evidence(ask.skill, one.model)
        if seen < aims.least:
            return f"{seen:.0f} of {aims.least:.0f} tries of {one.model} for {ask.skill} on record"
    return ""


def _steps(tiers: Sequence[Candidate], known: Estimates, ask: StartQuery, size: int) -> list[TierForecast]:
    return [
        TierForecast(
            known.cost(ask.skill, size, one.model) or 0.0,
            known.odds(ask.skill, size, one.model),
            known.odds(ask.skill, size, one.model, after=True),
            known.seconds(ask.skill, size, one.model, warm=one.model in ask.warm),
        )
        for one in tiers
    ]


def _explored(
    tiers: Sequence[Candidate], expected: Sequence[Prospect], best: int, known: Estimates, ask: StartQuery, aims: Aims
) -> Start | None:
    """Another start, for a share of the calls that falls with what is known and with what it would cost."""
    others = [number for number in range(len(tiers) - 1) if number != best and expected[number].seconds <= ask.seconds]
    if not others:
        return None
    seen = {number: known.evidence(ask.skill, tiers[number].model, ask.size) for number in others}
    other = min(others, key=lambda number: (seen[number], number))
    share = min(EXPLORE_MOST, 2 / (20 + seen[other]))
    dearer = expected[other].cost - expected[best].cost
    worse = expected[other].loss - expected[best].loss
    if dearer > 0:
        share = min(share, aims.extra * expected[best].cost / dearer)
    if worse > 0:
        share = min(share, EXPLORED_LOSS * aims.allowed / worse)
    if _die(ask.id) >= share:
        return None
    return Start(other, f"explores: starts at {tiers[other].model}, as {share:.1%} of such calls do")


def _die(text: str) -> float:
    """A number in [0, 1) that the text decides."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big") / 2**56


def _told(tiers: Sequence[Candidate], expected: Sequence[Prospect], best: int) -> str:
    words = f"learned: starts at {tiers[best].model}, ${expected[best].cost:.4f} expected"
    last = len(tiers) - 1
    cheapest = min(range(len(tiers)), key=lambda number: expected[number].cost)
    if expected[cheapest].cost < expected[best].cost:
        other = expected[cheapest]
        return f"{words}; ${other.cost:.4f} from {tiers[cheapest].model} would lose {other.loss:.1%} of right results"
    other, number = (expected[0], 0) if best == last else (expected[last], last)
    return f"{words}, ${other.cost:.4f} from {tiers[number].model}"
