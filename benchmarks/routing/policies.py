"""How each policy routes a call, and what a whole replay comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.routing.world import Case, Try


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
