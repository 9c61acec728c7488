"""A recorded call log as calls to replay: what a tier would have done where nobody asked it is drawn from its like.

A log has no truth, only verdicts. So an accepted output counts as right but for the share that an assumed false-accept
rate makes of it, and what nobody judged counts as right.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.routing.world import CHARACTERS, Case, Try

UNKNOWN_SIZE = 8_000
CHARACTERS_PER_TOKEN = 4


@dataclass(slots=True)
class Log:
    """The calls of a log: per skill the longest chain that was walked, and every try by skill, size and model."""

    calls: list[tuple[str, str, int, dict[str, Try]]] = field(default_factory=list)
    chains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tries: dict[tuple[str, str, str], list[Try]] = field(default_factory=dict)

    def add(self, name: str, entry: Mapping[str, Any]) -> None:
        """Take one entry in."""
        skill, attempts = str(entry["skill"]), list(entry.get("attempts") or [])
        if not attempts:
            return
        size = _size(attempts)
        found = {str(one["model"]): _read(one) for one in attempts}
        for model, one in found.items():
            for cell in _cells(skill, size, model):
                self.tries.setdefault(cell, []).append(one)
        if len(found) > len(self.chains.get(skill, ())):
            self.chains[skill] = tuple(found)
        self.calls.append((name, skill, size, found))


def read_log(path: Path) -> Log:
    """The entries of a JSONL file; a torn last line is left out."""
    log = Log()
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and "skill" in entry:
            log.add(f"{path.stem}-{number}", entry)
    return log


def cases_of(log: Log, seed: int = 1, false_accept: float = 0.05) -> Iterator[Case]:
    """Every call with all tiers of its skill's chain; the same for the same log and seed."""
    dice = random.Random(seed)  # noqa: S311 - a replay wants repeatable luck
    for name, skill, size, found in log.calls:
        tries = {}
        for model in log.chains[skill]:
            cells, luck, pick = _cells(skill, size, model), dice.random(), dice.random()
            like = next(log.tries[cell] for cell in cells if cell in log.tries)
            one = found.get(model) or like[int(pick * len(like))]
            tries[model] = replace(one, right=luck >= _wrong(one, log.tries[cells[1]], false_accept))
        yield Case(name, skill, size, tries)


def _wrong(one: Try, like: Sequence[Try], false_accept: float) -> float:
    """How likely a try's output is wrong, as far as verdicts tell."""
    if one.verdict != "accept":
        return 0.0 if one.verdict == "accept_unverified" else 1.0
    accepted = sum(other.verdict == "accept" for other in like)
    rejected = sum(other.verdict == "escalate" for other in like)
    return min(1.0, rejected / accepted * false_accept / (1 - false_accept))


def _bucket(size: int) -> str:
    """The size class of a task of so many characters."""
    return next((name for name, (_, most) in CHARACTERS.items() if size <= most), "huge")


def _cells(skill: str, size: int, model: str) -> tuple[tuple[str, str, str], ...]:
    return (skill, _bucket(size), model), (skill, "", model), ("", "", model)


def _size(attempts: Sequence[Mapping[str, Any]]) -> int:
    for one in attempts:
        tokens = (one.get("tokens") or {}).get("input")
        if tokens:
            return int(tokens) * CHARACTERS_PER_TOKEN
    return UNKNOWN_SIZE


def _read(one: Mapping[str, Any]) -> Try:
    cost = one.get("cost") or 0.0
    return Try(False, one["verdict"], float(cost), 0.0, one.get("duration_ms", 0) / 1000, bool(one.get("warm_start")))
