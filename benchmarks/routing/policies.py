"""How each policy routes a call, and what a whole replay comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bailiwick.routing.estimates import Estimates, Record, ending_of
from bailiwick.routing.learned import Aims, StartQuery, Trust, choose_start
from bailiwick.routing.model import Chain
from benchmarks.routing.world import Case, Try, chain


@dataclass(frozen=True, slots=True)
class Walked:
    """What a policy made of one call: the tries it paid for, and the model whose output was taken."""

    models: Sequence[str]
    taken: Try
    cost: float


Policy = Callable[[Case], Walked]


@dataclass(slots=True)
class Replay:
    """The sums of a replay; `costs` and `rights` are running totals after each call."""

    calls: int = 0
    cost: float = 0.0
    right: int = 0
    tries: int = 0
    costs: list[float] = field(default_factory=list)
    rights: list[int] = field(default_factory=list)
    starts: dict[str, int] = field(default_factory=dict)

    @property
    def quality(self) -> float:
        """The share of calls that ended with a right output."""
        return self.right / self.calls


def replay(policy: Policy, calls: Iterable[Case]) -> Replay:
    """Run a policy over the calls, in order."""
    done = Replay()
    for case in calls:
        walked = policy(case)
        done.calls += 1
        done.cost += walked.cost
        done.right += walked.taken.right
        done.tries += len(walked.models)
        done.costs.append(done.cost)
        done.rights.append(done.right)
        done.starts[walked.models[0]] = done.starts.get(walked.models[0], 0) + 1
    return done


def walk(case: Case, models: Sequence[str]) -> Walked:
    """Try these models in order until one is accepted; the last one's output is taken whatever it is."""
    cost = 0.0
    for number, model in enumerate(models, 1):
        one = case.tries[model]
        cost += one.cost
        if one.accepted or number == len(models):
            return Walked(models[:number], one, cost)
    raise ValueError(f"call {case.id} has an empty chain")


def strongest(case: Case) -> Walked:
    """Always the last tier."""
    return walk(case, list(case.tries)[-1:])


def fixed(case: Case) -> Walked:
    """Always from the first tier on."""
    return walk(case, list(case.tries))


def oracle(case: Case) -> Walked:
    """Knows every outcome: pays for the cheapest right output, for no verdict; if all are wrong, for the cheapest."""
    offered = {model: one for model, one in case.tries.items() if one.right} or dict(case.tries)
    model = min(offered, key=lambda name: offered[name].generated)
    return Walked([model], offered[model], offered[model].generated)


class Learned:
    """The shipped policy with its estimates. `measured` by skill replaces what is assumed of the verifier."""

    def __init__(self, aims: Aims | None = None, measured: Mapping[str, Trust] | None = None) -> None:
        self.known = Estimates()
        self._aims = aims or Aims()
        self._measured = measured or {}
        self._chains: dict[tuple[str, ...], Chain] = {}

    def __call__(self, case: Case) -> Walked:
        """Route one call and learn from what came of it."""
        models = tuple(case.tries)
        tiers = self._chains.setdefault(models, chain(models))
        ask = StartQuery(case.id, case.skill, case.size)
        walked = walk(case, models[choose_start(tiers, self.known, ask, self.aims(case.skill)).index :])
        self.learn(case, walked.models)
        return walked

    def aims(self, skill: str) -> Aims:
        """What is wanted of a skill's calls."""
        return replace(self._aims, trust=self._measured.get(skill, self._aims.trust))

    def learn(self, case: Case, models: Sequence[str]) -> None:
        """Put the verdicts of a call on record; what was right stays hidden, as it is in life."""
        for number, model in enumerate(models):
            one = case.tries[model]
            told = (ending_of(one.verdict, one.accepted), one.cost, one.seconds, one.warm)
            self.known.learn(Record(case.skill, case.size, model, *told, after=number > 0, opens=number == 0))
