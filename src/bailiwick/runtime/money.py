"""What attempts cost: set aside before they begin, settled when they end. Unknown is not zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bailiwick.engine.commands import StartEffect
from bailiwick.engine.events import EffectFinished, Entry
from bailiwick.engine.failures import ENDPOINT, FailureKind
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.runtime.kinds import Done, Failed
from bailiwick.runtime.record import Pending

UNCALLED = frozenset({str(FailureKind.HELD), str(FailureKind.SPAWN), "no_backend"})
"""Failures before anything was asked: they cost nothing."""
TURNED_AWAY = frozenset(str(kind) for kind in ENDPOINT | {FailureKind.AUTH, FailureKind.BILLING, FailureKind.CAP})
"""Failures before a model answered: what they cost, where nobody says otherwise, is nothing."""
LEAST = 0.01
"""Dollars below which nothing is left."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What one attempt came to in one unit."""

    key: str
    unit: str
    amount: float
    known: bool = True


async def cut(
    store: Store, unit: str, wanted: float, limits: Sequence[tuple[str, float | None]], pending: Pending
) -> float:
    """What an attempt may set aside: what it wants, or what is left where that is less."""
    if unit != "usd":
        return wanted
    left = wanted
    for scope, limit in limits:
        if limit is not None:
            left = min(left, limit - await _taken(store, scope, unit, pending))
    return left if left >= LEAST else wanted


async def _taken(store: Store, scope: str, unit: str, pending: Pending) -> float:
    """What is spent or set aside in a scope, with what is about to be written in the same transaction."""
    closed = {s.key: s.amount for s in pending.settle if (s.scope, s.unit) == (scope, unit)}
    taken = sum(closed.values())
    taken += sum(r.amount for r in pending.reserve if (r.scope, r.unit) == (scope, unit))
    for row in await store.spend(scope):
        if row.unit == unit:
            taken += (row.settled or 0.0) + (0.0 if row.key in closed else row.reserved)
    return taken


def unknown(key: str, units: tuple[tuple[str, float], ...]) -> list[Spent]:
    """An attempt that was cut off is settled at what was set aside for it."""
    return [Spent(key, unit, amount, known=False) for unit, amount in units]


def settled(start: StartEffect, result: Done | Failed, history: Sequence[Entry]) -> list[Spent]:
    """What an attempt came to. A backend that counts over a whole session is differenced with what came before."""
    if not start.units:
        return []
    usage: dict[str, Json] = result.log.get("usage") or {}
    before = session_totals(start.key, result.log.get("session"), history) if usage.get("cumulative") else {}
    failed = result.failure.kind if isinstance(result, Failed) else ""
    called = failed not in UNCALLED
    out = []
    for unit, reserved in start.units:
        match unit:
            case "agent_calls":
                out.append(Spent(start.key, unit, 1.0 if called else 0.0))
            case "usd":
                charged = 0.0 if result.log.get("unknown_cost") == "allow" else reserved
                out.append(_usd(start.key, usage, before, charged, called=called and failed not in TURNED_AWAY))
            case _:
                amount = _tokens(usage) - _tokens(before)
                out.append(Spent(start.key, unit, max(0.0, amount), known="output" in usage or not called))
    return out


def _usd(key: str, usage: dict[str, Json], before: dict[str, Json], reserved: float, *, called: bool) -> Spent:
    if "usd" not in usage:
        return Spent(key, "usd", reserved, known=False) if called else Spent(key, "usd", 0.0)
    return Spent(key, "usd", max(0.0, float(usage["usd"]) - float(before.get("usd", 0.0))))


def _tokens(usage: dict[str, Json]) -> float:
    return float(usage.get("input") or 0) + float(usage.get("output") or 0)


def session_totals(key: str, session: Json, history: Sequence[Entry]) -> dict[str, Json]:
    """The totals of a session at the end of the last attempt of the same effect in which a model was asked."""
    for _, _, event in reversed(history):
        if not isinstance(event, EffectFinished) or event.key != key or "backend" not in event.log:
            continue
        if event.log.get("session") == session:
            found: dict[str, Json] = event.log.get("usage") or {}
            return found
    return {}
