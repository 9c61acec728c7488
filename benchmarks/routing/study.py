"""What is asked of the policies: side by side in several worlds, over time, and against the verifier's mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.measure import Spread
from benchmarks.routing.policies import Policy, Replay, fixed, oracle, replay, strongest
from benchmarks.routing.world import Case, World, cases

STRONGEST, CHAIN, ORACLE = "always the strongest", "the chain", "oracle"
POLICIES: Mapping[str, Policy] = {STRONGEST: strongest, CHAIN: fixed, ORACLE: oracle}
WORLDS: Mapping[str, World] = {
    "as described": World(),
    "verified by Haiku": World(verifier="claude-haiku-4-5"),
    "verdicts are free": World(verifier="nobody"),
    "weaker local models": World(shift=-0.5),
    "much weaker local models": World(shift=-1.0),
    "models fail on the same tasks": World(alike=0.8),
}
RATES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
"""The false-accept rates of the curve."""


@dataclass(frozen=True, slots=True)
class Row:
    """A policy over all seeds: percent saved, percent of the strongest's right results kept, tries by call."""

    saved: Spread
    kept: Spread
    tries: Spread


@dataclass(frozen=True, slots=True)
class Course:
    """A policy after so many calls: `regret` is money above the oracle's, in average calls of the strongest.

    `ahead` counts the right results that it has more than the strongest.
    """

    calls: Sequence[int]
    regret: Sequence[float]
    ahead: Sequence[float]


def compare(world: World, seeds: Sequence[int], say: Callable[[str], None]) -> dict[str, Row]:
    """Every policy in a world, over the seeds."""
    found = []
    for seed in seeds:
        calls = list(cases(replace(world, seed=seed)))
        found.append({name: replay(policy, calls) for name, policy in POLICIES.items()})
        say(f"  seed {seed}")
    return rows(found)


def rows(replays: Sequence[Mapping[str, Replay]]) -> dict[str, Row]:
    """What the replays say by policy, held against the strongest of the same seed."""
    return {
        name: Row(
            Spread.of([100 * (1 - one[name].cost / one[STRONGEST].cost) for one in replays]),
            Spread.of([100 * one[name].right / one[STRONGEST].right for one in replays]),
            Spread.of([one[name].tries / one[name].calls for one in replays]),
        )
        for name in replays[0]
    }


def over_time(calls: Sequence[Case], points: int = 100) -> dict[str, Course]:
    """How regret and right results add up."""
    found = {name: replay(policy, calls) for name, policy in POLICIES.items()}
    base, best = found[STRONGEST], found[ORACLE]
    one = base.cost / base.calls
    marks = [round((number + 1) * base.calls / points) - 1 for number in range(points)]
    return {
        name: Course(
            [mark + 1 for mark in marks],
            [(done.costs[mark] - best.costs[mark]) / one for mark in marks],
            [float(done.rights[mark] - base.rights[mark]) for mark in marks],
        )
        for name, done in found.items()
    }


def against_mistakes(world: World, seeds: Sequence[int], say: Callable[[str], None]) -> dict[float, dict[str, Row]]:
    """The comparison at each false-accept rate, the same for all skills."""
    found = {}
    for rate in RATES:
        say(f"false accepts {rate:.0%}")
        found[rate] = compare(replace(world, false_accept=rate), seeds, say)
    return found
