"""Statistics as commands and tools ask for them: read from the store, counted, ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bailiwick.clock import iso
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Owner
from bailiwick.routing.asked import asked_since
from bailiwick.routing.explain import CallExplanation, tell
from bailiwick.routing.stats import IsDead, ModelStats, SessionStats, advice, by_status, model_stats, session_stats

ALL = -1


@dataclass(frozen=True, slots=True)
class ModelsReport:
    """Models by skill and workflow, how many routed calls stand how, and which models to take out of their chains."""

    since: float | None
    models: tuple[ModelStats, ...]
    calls: Mapping[str, int]
    advice: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """One document."""
        models = [one.to_json() for one in self.models]
        return {"since": _when(self.since), "models": models, "calls": dict(self.calls), "advice": list(self.advice)}


@dataclass(frozen=True, slots=True)
class SessionsReport:
    """Sessions, the newest first."""

    since: float | None
    sessions: tuple[SessionStats, ...]

    def to_json(self) -> dict[str, Json]:
        """One document."""
        return {"since": _when(self.since), "sessions": [one.to_json() for one in self.sessions]}


async def models_report(store: Store, now: float, since: float | None = None) -> ModelsReport:
    """What the records since then say about models; with None all of them."""
    calls = await store.calls(since=since, limit=ALL)
    asks = await asked_since(store, since)
    counts = by_status(calls, now, _looked_up())
    return ModelsReport(since, tuple(model_stats(asks, calls)), counts, advice(asks, calls))


async def sessions_report(store: Store, now: float, since: float | None = None) -> SessionsReport:
    """Sessions with calls begun since then."""
    calls = await store.calls(since=since, limit=ALL)
    found = session_stats(calls, await asked_since(store, since), now, _looked_up())
    return SessionsReport(since, tuple(found))


async def why_call(store: Store, call: str, now: float) -> CallExplanation:
    """Why a call went the way it did, by its id or an unmistakable beginning of it."""
    return await tell(store, call, now, _looked_up())


def _looked_up() -> IsDead:
    """Looks at this machine's processes whether an owner is dead."""
    from bailiwick.processes.owner import current_owner, is_dead

    me = current_owner("bailiwick stats")

    def dead(owner: Owner) -> bool | None:
        return is_dead(owner, me)

    return dead


def _when(since: float | None) -> str | None:
    return None if since is None else iso(since)
