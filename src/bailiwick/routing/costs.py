"""What days, workflows and models cost: from the day's ledger, which knows every attempt, and from what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from bailiwick.clock import day
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Spender, SpendRow
from bailiwick.routing.asked import ModelAttempt, asked_since
from bailiwick.routing.stats import TokenUsage, use_of

HALF_DAY = 43_200.0
REMOVED = "(removed runs)"


@dataclass(frozen=True, slots=True)
class CostLine:
    """Dollars under one name. `usd` is known; `unknown_usd` counts what nobody priced as much as was set aside for it.

    `open_usd` is set aside now, or was when a process died. `lines` are entries of the ledger.
    """

    name: str
    usd: float = 0.0
    unknown_usd: float = 0.0
    open_usd: float = 0.0
    lines: int = 0

    def with_line(self, row: SpendRow) -> CostLine:
        """The same with one more line."""
        settled = row.settled or 0.0
        return replace(
            self,
            usd=self.usd + (settled if row.known else 0.0),
            unknown_usd=self.unknown_usd + (0.0 if row.known else settled),
            open_usd=self.open_usd + row.reserved,
            lines=self.lines + 1,
        )

    def to_json(self) -> dict[str, Json]:
        """Without the dust of binary fractions."""
        return {name: round(value, 9) if isinstance(value, float) else value for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class ModelCost:
    """What was asked of one model, over all skills and workflows."""

    model: str
    calls: int
    use: TokenUsage

    def to_json(self) -> dict[str, Json]:
        """The numbers."""
        return {"model": self.model, "calls": self.calls, **asdict(self.use)}


@dataclass(frozen=True, slots=True)
class Costs:
    """Days newest first, workflows and skills by cost, models by calls."""

    days: tuple[CostLine, ...]
    workflows: tuple[CostLine, ...]
    models: tuple[ModelCost, ...]

    def __bool__(self) -> bool:
        return bool(self.days or self.models)

    def to_json(self) -> dict[str, Json]:
        """One document."""
        return {
            "days": [one.to_json() for one in self.days],
            "workflows": [one.to_json() for one in self.workflows],
            "models": [one.to_json() for one in self.models],
        }


async def costs_since(store: Store, since: float, now: float) -> Costs:
    """Everything from the day of `since` to that of `now`; models from `since` on."""
    ledger: list[tuple[str, SpendRow]] = []
    owners: dict[str, str] = {}
    for date in days_between(since, now):
        ledger += [(date, row) for row in await store.spend(f"day:{date}") if row.unit == "usd"]
        owners |= {one.id: _name(one) for one in await store.spenders(f"day:{date}")}
    days = _summed((date, row) for date, row in ledger)
    parts = _summed((owners.get(row.run_id, REMOVED), row) for _, row in ledger)
    models = _by_model(await asked_since(store, since))
    return Costs(
        tuple(sorted(days, key=lambda one: one.name, reverse=True)),
        tuple(sorted(parts, key=lambda one: (-(one.usd + one.unknown_usd + one.open_usd), one.name))),
        tuple(models),
    )


def days_between(since: float, now: float) -> list[str]:
    """Local dates from one moment to another, both included."""
    found: dict[str, None] = {}
    at = since
    while at < now:
        found[day(at)] = None
        at += HALF_DAY
    found[day(now)] = None
    return list(found)


def _name(one: Spender) -> str:
    return f"skill {one.skill}" if one.skill else one.workflow


def _summed(lines: Iterable[tuple[str, SpendRow]]) -> list[CostLine]:
    found: dict[str, CostLine] = {}
    for name, row in lines:
        found[name] = found.get(name, CostLine(name)).with_line(row)
    return list(found.values())


def _by_model(asks: Sequence[ModelAttempt]) -> list[ModelCost]:
    groups: dict[str, list[ModelAttempt]] = {}
    for ask in asks:
        groups.setdefault(ask.model, []).append(ask)
    found = [ModelCost(model, len(group), use_of(group)) for model, group in groups.items()]
    return sorted(found, key=lambda one: (-one.calls, one.model))
