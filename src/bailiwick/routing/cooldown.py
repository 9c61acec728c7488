"""Endpoints that keep failing are left alone for a while, by every worker that shares the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from bailiwick.clock import Clock
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import Kind
from bailiwick.routing.endpoints import Place
from bailiwick.routing.model import Candidate

PATIENCE = 3
"""Failures in a row before an endpoint is left alone."""
SHORTEST, LONGEST = 30.0, 600.0
"""Seconds it is left alone: doubled each time it fails again, up to the longest."""
_COUNTED = frozenset({Kind.UNREACHABLE, Kind.OVERLOADED, Kind.TIMEOUT})


class Remembers(Protocol):
    """The part of the store that cool-downs are kept in."""

    async def cooldown(self, name: str) -> tuple[int, float]:
        """Failures in a row, and until when it is left alone; (0, 0.0) where nothing is known."""

    async def cooldown_report(self, name: str, failures: int, until: float) -> None:
        """Keep both."""


def counts(kind: str) -> bool:
    """Whether a failure of this kind is the endpoint's: unreachable, 5xx or too slow; a limit tells its own reset."""
    return kind in _COUNTED


def key_of(candidate: Candidate, place: Place | None) -> str:
    """Under which name a candidate's endpoint is remembered: its address, or the program of a subagent."""
    return place.key if place is not None else f"program:{candidate.backend}"


@dataclass(slots=True)
class Cooldowns:
    """Knows which endpoints are to be left alone."""

    store: Remembers
    clock: Clock
    _said: dict[str, str] = field(default_factory=dict)

    async def blocked(self, key: str) -> float:
        """Seconds for which an endpoint is still left alone; 0 where it may be asked."""
        _, until = await self.store.cooldown(key)
        return max(0.0, until - self.clock.now())

    async def heard(self, key: str, failure: Failure | None) -> None:
        """Tell what a call to an endpoint came to. Any answer, even a bad one, shows that the endpoint is well."""
        if failure is None or failure.kind == Kind.BAD_OUTPUT:
            await self.report(key, ok=True)
        elif counts(failure.kind):
            await self.report(key, ok=False, message=failure.message)

    async def report(self, key: str, ok: bool, message: str = "") -> None:
        """Tell how a call to an endpoint went. Calls that fail while it is left alone already count for nothing."""
        failures, until = await self.store.cooldown(key)
        if ok:
            self._said.pop(key, None)
            if failures:
                await self.store.cooldown_report(key, 0, 0.0)
            return
        now = self.clock.now()
        self._said[key] = message
        if until > now:
            return
        failures += 1
        over = failures - PATIENCE
        pause = min(LONGEST, SHORTEST * 2.0 ** min(over, 10)) if over >= 0 else 0.0
        await self.store.cooldown_report(key, failures, now + pause if pause else 0.0)

    def reason(self, key: str) -> str:
        """What the last failed call of this process said; "" where there was none since the last good one."""
        return self._said.get(key, "")
