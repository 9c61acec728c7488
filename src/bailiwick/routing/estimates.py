"""What recorded tries say about the next one: how likely a model is accepted, what it costs, how long it takes. Pure.

Evidence is kept by model, by skill and by task size; a cell with few tries leans on the next wider one. Old tries fade:
every `HALF_LIFE` calls of a skill halve their weight, so a model that was swapped under its name is noticed, and one
that is no longer tried is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, assert_never

from bailiwick.routing.model import NOT_ASKED

HALF_LIFE = 400.0
"""Calls of a skill after which a try counts half."""
LEANING = 10.0
"""How many tries the wider cell counts for in a narrower one."""
LEANING_COST = 2.0
"""The same for money and time: they follow the size of a task more than anything else."""

BUCKETS = (("small", 4_000), ("medium", 16_000), ("large", 64_000))
"""Task sizes by name and the most characters; what is longer is huge."""


Ending = Literal["accepted", "rejected", "error"]
"""What became of a try. An error (nobody answered, nobody could judge) says nothing about the output."""


class PastAttempt(Protocol):
    """A try as it is on record, in a result or in the store."""

    @property
    def model(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def verified(self) -> bool | None: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def duration_ms(self) -> int: ...
    @property
    def warm_start(self) -> bool: ...
    @property
    def feedback(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Record:
    """One try. `cost` is in dollars, verification included, None where unknown; `after`: a try before it was rejected.

    `opens` marks the first try of a call.
    """

    skill: str
    size: int
    model: str
    ending: Ending
    cost: float | None = None
    seconds: float = 0.0
    warm: bool = False
    after: bool = False
    opens: bool = True


@dataclass(frozen=True, slots=True)
class Odds:
    """How likely a try is accepted, and how likely it is judged wrong; the rest are errors."""

    accepted: float
    rejected: float


NOTHING_KNOWN = Odds(0.5, 0.4)


@dataclass(slots=True)
class _Tally:
    """Weighted counts of one cell as they stood at `tick`."""

    tick: int = 0
    accepted: float = 0.0
    rejected: float = 0.0
    errors: float = 0.0

    @property
    def total(self) -> float:
        return self.accepted + self.rejected + self.errors

    def fade(self, tick: int) -> None:
        if tick == self.tick:
            return
        weight = _faded(tick - self.tick)
        self.accepted *= weight
        self.rejected *= weight
        self.errors *= weight
        self.tick = tick

    def lean(self, wider: Odds) -> Odds:
        total = self.total
        if not total:
            return wider
        whole = total + LEANING
        accepted = (self.accepted + LEANING * wider.accepted) / whole
        return Odds(accepted, (self.rejected + LEANING * wider.rejected) / whole)


@dataclass(slots=True)
class _Mean:
    """A mean that leans on a wider one; `sum` and `count` fade like tallies."""

    tick: int = 0
    sum: float = 0.0
    count: float = 0.0

    def fade(self, tick: int) -> None:
        if tick == self.tick:
            return
        weight = _faded(tick - self.tick)
        self.sum *= weight
        self.count *= weight
        self.tick = tick

    def lean(self, wider: float | None) -> float | None:
        if not self.count:
            return wider
        if wider is None:
            return self.sum / self.count
        return (self.sum + LEANING_COST * wider) / (self.count + LEANING_COST)


_Cell = tuple[str, str, str]
"""Skill, size bucket, model; "" in a wider cell."""


class Estimates:
    """The evidence so far. Tries are learnt in the order in which they happened."""

    def __init__(self) -> None:
        self._ticks: dict[str, int] = {}
        self._tallies: dict[tuple[_Cell, bool], _Tally] = {}
        self._costs: dict[_Cell, _Mean] = {}
        self._seconds: dict[tuple[_Cell, bool], _Mean] = {}
        self._calls: dict[tuple[str, str], _Mean] = {}

    def learn(self, record: Record) -> None:
        """Take one try into account."""
        size = bucket(record.size)
        if record.opens:
            for skill in (record.skill, ""):
                self._ticks[skill] = self._ticks.get(skill, 0) + 1
            calls = self._calls.setdefault((record.skill, size), _Mean())
            calls.fade(self._tick(record.skill))
            calls.count += 1
        for cell in _widening(record.skill, size, record.model):
            tick = self._tick(cell[0])
            tally = self._tallies.setdefault((cell, record.after), _Tally(tick))
            tally.fade(tick)
            _count(tally, record.ending)
            if record.cost is not None:
                _add(self._costs.setdefault(cell, _Mean(tick)), tick, record.cost)
            _add(self._seconds.setdefault((cell, record.warm), _Mean(tick)), tick, record.seconds)

    def odds(self, skill: str, size: int, model: str, *, after: bool = False) -> Odds:
        """The odds of a model's try, as the first of a call or `after` one that was rejected (so on a harder task).

        Without evidence for one of the two, what is known of the other stands in.
        """
        cells = _widening(skill, bucket(size), model)
        found = NOTHING_KNOWN
        for kind in (not after, after):
            for cell in cells:
                tally = self._tallies.get((cell, kind))
                if tally is not None:
                    tally.fade(self._tick(cell[0]))
                    found = tally.lean(found)
        return found

    def cost(self, skill: str, size: int, model: str) -> float | None:
        """Dollars of one try with its verification; None where nobody ever knew."""
        found: float | None = None
        for cell in _widening(skill, bucket(size), model):
            mean = self._costs.get(cell)
            if mean is not None:
                mean.fade(self._tick(cell[0]))
                found = mean.lean(found)
        return found

    def seconds(self, skill: str, size: int, model: str, *, warm: bool) -> float:
        """How long a try takes when the model is loaded (`warm`) or not; 0 where nothing is known."""
        found: float | None = None
        for kind in (not warm, warm):
            for cell in _widening(skill, bucket(size), model):
                mean = self._seconds.get((cell, kind))
                if mean is not None:
                    mean.fade(self._tick(cell[0]))
                    found = mean.lean(found)
        return found or 0.0

    def evidence(self, skill: str, model: str, size: int | None = None) -> float:
        """How many tries, faded ones counted less, speak about a model in a skill, or in one of its sizes."""
        cell = (skill, "" if size is None else bucket(size), model)
        total = 0.0
        for after in (False, True):
            tally = self._tallies.get((cell, after))
            if tally is not None:
                tally.fade(self._tick(skill))
                total += tally.total
        return total

    def shares(self, skill: str) -> dict[str, float]:
        """Which part of a skill's calls has which size; the sizes that occurred."""
        counts = {size: mean for (name, size), mean in self._calls.items() if name == skill}
        for mean in counts.values():
            mean.fade(self._tick(skill))
        total = sum(mean.count for mean in counts.values())
        return {size: mean.count / total for size, mean in counts.items()} if total else {}

    def _tick(self, skill: str) -> int:
        return self._ticks.get(skill, 0)


def bucket(size: int) -> str:
    """The size class of a task of so many characters."""
    return next((name for name, most in BUCKETS if size <= most), "huge")


def typical(name: str) -> int:
    """A size that falls into a class."""
    return dict(BUCKETS).get(name, BUCKETS[-1][1] + 1)


def records(skill: str, size: int, attempts: Iterable[PastAttempt]) -> list[Record]:
    """The tries of one call, as evidence."""
    found: list[Record] = []
    rejected = False
    for one in attempts:
        if one.feedback.startswith(NOT_ASKED):
            continue
        ending = ending_of(one.verdict, one.verified)
        told = Record(skill, size, one.model, ending, cost=one.cost, seconds=one.duration_ms / 1000)
        found.append(replace(told, warm=one.warm_start, after=rejected, opens=not found))
        rejected = rejected or ending == "rejected"
    return found


def ending_of(verdict: str, verified: bool | None) -> Ending:
    """What a verdict means; one that was never spoken, because the verifier failed, is an error."""
    if verdict in ("accept", "accept_unverified"):
        return "accepted"
    return "rejected" if verdict == "escalate" and verified is False else "error"


def _widening(skill: str, size: str, model: str) -> tuple[_Cell, _Cell, _Cell]:
    """The cells that a try speaks for, the widest first."""
    return ("", "", model), (skill, "", model), (skill, size, model)


def _count(tally: _Tally, ending: Ending) -> None:
    match ending:
        case "accepted":
            tally.accepted += 1
        case "rejected":
            tally.rejected += 1
        case "error":
            tally.errors += 1
        case never:
            assert_never(never)


def _add(mean: _Mean, tick: int, value: float) -> None:
    mean.fade(tick)
    mean.sum += value
    mean.count += 1


def _faded(ticks: int) -> float:
    return float(0.5 ** (ticks / HALF_LIFE))
