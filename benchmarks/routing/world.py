"""The simulated world: calls whose every outcome is drawn beforehand, so that all policies meet the same luck.

docs/explanation/routing.md says where the numbers come from.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist

from bailiwick.routing.model import Verdict

SIZES = {"small": 0.5, "medium": 0.4, "large": 0.1}
"""How often a task has which size."""
CHARACTERS = {"small": (800, 4_000), "medium": (4_001, 16_000), "large": (16_001, 64_000)}
RIGHT: Mapping[str, tuple[float, float, float]] = {
    "ollama/phi4": (0.80, 0.50, 0.25),
    "ollama/gemma4": (0.85, 0.62, 0.35),
    "ollama/deepseek-r1-tuned": (0.85, 0.60, 0.35),
    "ollama/devstral-tuned": (0.86, 0.60, 0.40),
    "ollama/qwen3-coder-30b-tuned": (0.88, 0.65, 0.40),
    "claude-sonnet-4-6": (0.95, 0.85, 0.75),
    "claude-opus-4-6": (0.955, 0.865, 0.77),
}
"""How often a model is right, by size."""
DRIFT = {"ollama/qwen3-coder-30b-tuned": -0.6, "ollama/phi4": 0.5}
"""By half time two models are swapped under their names; in standard deviations of difficulty."""
PRICES = {
    "claude-sonnet-4-6": (3.0, 15.0),
    "claude-opus-4-6": (5.0, 25.0),
    "claude-haiku-4-5": (1.0, 5.0),
    "nobody": (0.0, 0.0),
}
"""Dollars for a million tokens in and out."""
LOCAL_PRICE = (0.10, 0.40)
"""What an open model costs at a host; nothing is free, not even electricity."""
AGENT_DOLLARS = {"small": 0.12, "medium": 0.40, "large": 1.19}
"""An agent CLI's whole call with Sonnet; with Opus by the ratio of list prices."""
OUTPUT_TOKENS = {"small": 800, "medium": 2_500, "large": 5_000}
DISCIPLINE_TOKENS = 2_000
VERDICT_TOKENS = 150
COLD_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill: its chain, how its local models fare beside the table, how its check errs.

    `false_accept` of wrong outputs are accepted, `false_reject` of right ones rejected; `caught` of the wrong outputs
    fail a deterministic check, before the verifier is paid.
    """

    share: float
    chain: tuple[str, ...]
    shift: float
    false_accept: float
    false_reject: float
    caught: float


QWEN, SONNET = "ollama/qwen3-coder-30b-tuned", "claude-sonnet-4-6"
SKILLS: Mapping[str, Skill] = {
    "tdd": Skill(0.4, (QWEN, SONNET), 0.0, 0.03, 0.03, 0.8),
    "review": Skill(0.25, ("ollama/devstral-tuned", "ollama/gemma4", SONNET), -0.15, 0.10, 0.08, 0.1),
    "debug": Skill(0.2, ("ollama/deepseek-r1-tuned", SONNET), -0.3, 0.08, 0.08, 0.0),
    "spec": Skill(0.15, ("ollama/phi4", "ollama/gemma4", SONNET, "claude-opus-4-6"), 0.0, 0.10, 0.08, 0.0),
}


@dataclass(frozen=True, slots=True)
class World:
    """Which world: its seed, its length, and what is changed in it to see what follows.

    `shift` makes local models better or worse, in standard deviations of difficulty; `false_accept` is one for all;
    `alike` is the correlation of two models' success on one task.
    """

    seed: int = 1
    calls: int = 10_000
    verifier: str = SONNET
    false_accept: float | None = None
    shift: float = 0.0
    alike: float = 0.6

    def skill(self, name: str) -> Skill:
        """A skill as it is in this world."""
        found = SKILLS[name]
        return found if self.false_accept is None else replace(found, false_accept=self.false_accept)


@dataclass(frozen=True, slots=True)
class Try:
    """What a model would do on a call: right or not, how it is judged, dollars of generation and of the verdict."""

    right: bool
    verdict: Verdict
    generated: float
    judged: float
    seconds: float
    warm: bool = False

    @property
    def accepted(self) -> bool:
        """Whether the walk ends here."""
        return self.verdict in ("accept", "accept_unverified")

    @property
    def cost(self) -> float:
        """Dollars of the try."""
        return self.generated + self.judged


@dataclass(frozen=True, slots=True)
class Case:
    """One call with all that could come of it, by model."""

    id: str
    skill: str
    size: int
    tries: Mapping[str, Try]


def is_agent(model: str) -> bool:
    """Whether an agent CLI serves a model; its outputs are not verified."""
    return model.startswith("claude-")


def cases(world: World) -> Iterator[Case]:
    """The calls of a world, in order; the same for the same world."""
    dice = random.Random(world.seed)  # noqa: S311 - a simulation wants repeatable luck
    for number in range(world.calls):
        skill = dice.choices(list(SKILLS), [one.share for one in SKILLS.values()])[0]
        size = dice.choices(list(SIZES), list(SIZES.values()))[0]
        characters = dice.randint(*CHARACTERS[size])
        hard = dice.gauss(0, 1)
        late = number >= world.calls / 2
        tries = {
            model: _try(world, dice, _Task(skill, size, characters, hard, late=late), model)
            for model in SKILLS[skill].chain
        }
        yield Case(f"{world.seed}-{number}", skill, characters, tries)


@dataclass(frozen=True, slots=True)
class _Task:
    skill: str
    size: str
    characters: int
    hard: float
    late: bool


def _try(world: World, dice: random.Random, task: _Task, model: str) -> Try:
    """Draw one outcome; every model draws as often as any other, so a change in one leaves the others alone."""
    luck, judged, checked, speed, loaded = dice.gauss(0, 1), *(dice.random() for _ in range(4))
    skill = world.skill(task.skill)
    strength = NormalDist().inv_cdf(RIGHT[model][list(SIZES).index(task.size)])
    if task.late:
        strength += DRIFT.get(model, 0.0)
    if not is_agent(model):
        strength += skill.shift + world.shift
    right = strength > math.sqrt(world.alike) * task.hard + math.sqrt(1 - world.alike) * luck
    if is_agent(model):
        ratio = PRICES[model][0] / PRICES[SONNET][0]
        cost = AGENT_DOLLARS[task.size] * ratio * (0.5 + speed)
        return Try(right, "accept_unverified", cost, 0.0, 60 + 240 * speed)
    accepted = judged >= skill.false_reject if right else judged < skill.false_accept
    caught = not right and not accepted and checked < skill.caught
    verdict = 0.0 if caught else verifying(world.verifier, task.size, task.characters)
    warm = loaded < 0.7
    seconds = OUTPUT_TOKENS[task.size] / (30 + 40 * speed) + (0.0 if warm else COLD_SECONDS)
    return Try(right, "accept" if accepted else "escalate", _local_cost(task), verdict, seconds, warm)


def _local_cost(task: _Task) -> float:
    into = DISCIPLINE_TOKENS + task.characters / 4
    return (into * LOCAL_PRICE[0] + OUTPUT_TOKENS[task.size] * LOCAL_PRICE[1]) / 1e6


def verifying(verifier: str, size: str, characters: int) -> float:
    """Dollars of one verdict: it reads discipline, task and output, and says little."""
    price = PRICES[verifier]
    into = DISCIPLINE_TOKENS + characters / 4 + OUTPUT_TOKENS[size]
    return (into * price[0] + VERDICT_TOKENS * price[1]) / 1e6
