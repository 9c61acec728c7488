"""The index rows of model attempts, made with the events that end them: statistics then read no journals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bailiwick.engine.events import EffectFinished, Entry, Event
from bailiwick.ids import Json
from bailiwick.journal.rows import AttemptRow
from bailiwick.runtime.money import TURNED_AWAY, UNCALLED, session_totals

LOCAL_BACKENDS = frozenset({"ollama", "openai", "simulate"})


def attempt_rows(
    run: str, after: int, events: Sequence[tuple[Event, float]], history: Sequence[Entry]
) -> tuple[AttemptRow, ...]:
    """A row for each attempt of a model among events that are written behind `after`."""
    return tuple(
        _row(run, seq, event, at=at, history=history)
        for seq, (event, at) in enumerate(events, after + 1)
        if isinstance(event, EffectFinished) and "backend" in event.log
    )


def _row(run: str, seq: int, event: EffectFinished, *, at: float, history: Sequence[Entry]) -> AttemptRow:
    log, failure = event.log, event.failure or {}
    backend, usage = str(log["backend"]), log.get("usage") or {}
    before = session_totals(event.key, log.get("session"), history) if usage.get("cumulative") else {}
    routed = log if "verdict" in log else {}
    verified = routed.get("verified")
    return AttemptRow(
        "",
        attempt=seq,
        at=at,
        skill=str(routed.get("skill") or ""),
        model=str(routed.get("candidate") or log.get("model") or f"({backend})"),
        tier=str(routed.get("tier") or ("local" if backend in LOCAL_BACKENDS else "subagent")),
        verdict=str(routed.get("verdict") or ("accept_unverified" if event.failure is None else "error")),
        verified=verified if isinstance(verified, bool) else None,
        warm_start=routed.get("warm_start") is not False,
        duration_ms=round(event.seconds * 1000),
        input_tokens=_beyond(usage, before, "input"),
        output_tokens=_beyond(usage, before, "output"),
        cost=_cost(usage, before, failure),
        feedback=str(failure.get("message") or ""),
        run=run,
    )


def _beyond(usage: Mapping[str, Json], before: Mapping[str, Json], name: str) -> int | None:
    value = usage.get(name)
    return None if value is None else max(0, int(value) - int(before.get(name) or 0))


def _cost(usage: Mapping[str, Json], before: Mapping[str, Json], failure: Mapping[str, Json]) -> float | None:
    """What an attempt cost; one that was turned away before a model answered cost nothing unless somebody says so."""
    if usage.get("usd") is not None:
        return max(0.0, float(usage["usd"]) - float(before.get("usd") or 0.0))
    kind = failure.get("kind")
    return 0.0 if kind in TURNED_AWAY or kind in UNCALLED else None
