"""Endpoints that keep failing are left alone for a while, by every worker that shares the store."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from bailiwick.clock import Clock
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import FailureKind
from bailiwick.journal.rows import AttemptRow
from bailiwick.routing.endpoints import EndpointAddress
from bailiwick.routing.model import NOT_ASKED, Candidate

PATIENCE = 3
"""Failures in a row before an endpoint is left alone."""
SHORTEST, LONGEST = 30.0, 600.0
"""Seconds it is left alone: doubled each time it fails again, up to the longest."""
REMEMBERED = 2 * LONGEST
"""Seconds for which a failure may be the reason that an endpoint is left alone."""
_COUNTED = frozenset({FailureKind.UNREACHABLE, FailureKind.OVERLOADED, FailureKind.TIMEOUT})


class CooldownStore(Protocol):
    """The part of the store that tells which endpoints are left alone, and why."""

    async def bucket_until(self, name: str) -> float:
        """Until when a credential is held back; 0 where it is not."""

    async def attempts(self, *, since: float | None = None, call: str | None = None) -> list[AttemptRow]:
        """What models were asked, oldest first."""

    async def cooldown(self, name: str) -> tuple[int, float]:
        """Failures in a row, and until when it is left alone; (0, 0.0) where nothing is known."""

    async def cooldown_report(self, name: str, failures: int, until: float) -> None:
        """Keep both."""


def counts(kind: str) -> bool:
    """Whether a failure of this kind is the endpoint's: unreachable, 5xx or too slow; a limit tells its own reset."""
    return kind in _COUNTED


def key_of(candidate: Candidate, place: EndpointAddress | None) -> str:
    """Under which name a candidate's endpoint is remembered: its address, or the program of a subagent."""
    return place.key if place is not None else f"program:{candidate.backend}"


@dataclass(slots=True)
class Cooldowns:
    """Knows which endpoints are to be left alone."""

    store: CooldownStore
    clock: Clock

    async def blocked(self, key: str) -> float:
        """Seconds for which an endpoint is still left alone; 0 where it may be asked."""
        _, until = await self.store.cooldown(key)
        return max(0.0, until - self.clock.now())

    async def held(self, credential: str) -> float:
        """Seconds for which a credential, or an endpoint that is asked directly, is held back after a limit."""
        return max(0.0, await self.store.bucket_until(credential) - self.clock.now())

    async def because(self, models: Collection[str]) -> str:
        """What the last failed try of one of these models said, whichever process made it; "" where none is known."""
        tries = await self.store.attempts(since=self.clock.now() - REMEMBERED)
        failed = [row for row in tries if row.model in models and row.verdict == "error"]
        said = [row.feedback for row in failed if row.feedback and not row.feedback.startswith(NOT_ASKED)]
        return said[-1] if said else ""

    async def heard(self, key: str, failure: Failure | None) -> None:
        """Tell what a call to an endpoint came to. Any answer, even a bad one, shows that the endpoint is well."""
        if failure is None or failure.kind == FailureKind.BAD_OUTPUT:
            await self.report(key, ok=True)
        elif counts(failure.kind):
            await self.report(key, ok=False)

    async def report(self, key: str, ok: bool) -> None:
        """Tell how a call to an endpoint went. Calls that fail while it is left alone already count for nothing."""
        failures, until = await self.store.cooldown(key)
        if ok:
            if failures:
                await self.store.cooldown_report(key, 0, 0.0)
            return
        now = self.clock.now()
        if until > now:
            return
        failures += 1
        over = failures - PATIENCE
        pause = min(LONGEST, SHORTEST * 2.0 ** min(over, 10)) if over >= 0 else 0.0
        await self.store.cooldown_report(key, failures, now + pause if pause else 0.0)
