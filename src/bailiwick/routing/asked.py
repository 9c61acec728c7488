"""Every time that a model was asked, by a routed call or by a node of a run, in one shape for statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bailiwick.engine.events import EffectFinished
from bailiwick.ids import Json
from bailiwick.journal.codec import decode
from bailiwick.journal.port import Store
from bailiwick.journal.rows import AttemptRow, EventFilter, RunFilter
from bailiwick.routing.model import NOT_ASKED

LOCAL_BACKENDS = frozenset({"ollama", "openai", "simulate"})


@dataclass(frozen=True, slots=True)
class ModelAttempt:
    """A model was asked once. `subject` is the skill, or `workflow NAME`; what is not known is None, never 0."""

    subject: str
    model: str
    tier: str
    verdict: str
    at: float
    duration_ms: int
    cold: bool
    input_tokens: int | None
    output_tokens: int | None
    cost: float | None
    call: str = ""
    verified: bool | None = None


async def asked_since(store: Store, since: float | None) -> list[ModelAttempt]:
    """Attempts of routed calls, then those of agent nodes; tiers that were skipped left out."""
    rows = [row for row in await store.attempts(since=since) if not row.feedback.startswith(NOT_ASKED)]
    return [_routed(row) for row in rows] + await _by_nodes(store, since)


async def workflow_names(store: Store) -> dict[str, str]:
    """By the id of each run, the name of the workflow that was started: of the root of its tree."""
    rows = await store.runs(RunFilter(archived=True))
    names = {row.id: row.workflow for row in rows}
    return {row.id: names.get(row.root_id, row.workflow) for row in rows}


def _routed(row: AttemptRow) -> ModelAttempt:
    cold = row.tier == "local" and not row.warm_start
    return ModelAttempt(
        row.skill,
        model=row.model,
        tier=row.tier,
        verdict=row.verdict,
        at=row.at,
        duration_ms=row.duration_ms,
        cold=cold,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost=row.cost,
        call=row.call,
        verified=row.verified,
    )


async def _by_nodes(store: Store, since: float | None) -> list[ModelAttempt]:
    """Attempts of agent nodes. Earlier ones are read too: a session's totals count only beyond what they were."""
    names = await workflow_names(store)
    totals: dict[tuple[str, str, str], Mapping[str, Json]] = {}
    found = []
    for run, stored in await store.events(EventFilter(type="EffectFinished")):
        event = decode(stored)
        if not isinstance(event, EffectFinished) or "backend" not in event.log:
            continue
        session = (run, event.key, str(event.log.get("session")))
        before = totals.get(session, {})
        totals[session] = event.log.get("usage") or {}
        if since is None or stored.at >= since:
            found.append(_by_node(f"workflow {names.get(run, '?')}", event, before, stored.at))
    return found


def _by_node(subject: str, event: EffectFinished, before: Mapping[str, Json], at: float) -> ModelAttempt:
    backend, model = str(event.log["backend"]), event.log.get("model")
    usage: Mapping[str, Json] = event.log.get("usage") or {}
    earlier = before if usage.get("cumulative") else {}
    routed = event.log if "verdict" in event.log else {}
    tier = str(routed.get("tier") or ("local" if backend in LOCAL_BACKENDS else "subagent"))
    verdict = str(routed.get("verdict") or ("accept_unverified" if event.failure is None else "error"))
    return ModelAttempt(
        str(routed.get("skill") or subject),
        model=str(routed.get("candidate") or model or f"({backend})"),
        tier=tier,
        verdict=verdict,
        at=at,
        duration_ms=round(event.seconds * 1000),
        cold=tier == "local" and routed.get("warm_start") is False,
        input_tokens=_beyond(usage, earlier, "input"),
        output_tokens=_beyond(usage, earlier, "output"),
        cost=_cost(event, usage, earlier),
    )


def _beyond(usage: Mapping[str, Json], before: Mapping[str, Json], name: str) -> int | None:
    value = usage.get(name)
    return None if value is None else max(0, int(value) - int(before.get(name) or 0))


def _cost(event: EffectFinished, usage: Mapping[str, Json], before: Mapping[str, Json]) -> float | None:
    """What an attempt cost; one that was turned away before a model answered cost nothing unless somebody says so."""
    from bailiwick.runtime.money import TURNED_AWAY, UNCALLED

    if usage.get("usd") is not None:
        return max(0.0, float(usage["usd"]) - float(before.get("usd") or 0.0))
    kind = (event.failure or {}).get("kind")
    return 0.0 if kind in TURNED_AWAY or kind in UNCALLED else None
