"""Which rung follows a failed attempt. Pure: the same journal climbs the same ladder after a crash."""

from __future__ import annotations

from dataclasses import dataclass

from bailiwick.engine.events import Failure
from bailiwick.engine.graph import Poll, Retry
from bailiwick.engine.retry_agent import backoff
from bailiwick.engine.state import EffectInFlight

FINAL = frozenset({"cancelled", "not_found", "no_backend"})
"""Failures that trying again can't help."""


@dataclass(frozen=True, slots=True)
class Again:
    """Wait, then try again; `latest` caps the due time."""

    kind: str
    seconds: float
    latest: float | None = None


def after_failure(flight: EffectInFlight, retry: Retry | None) -> Again | Failure:
    """Try again while `retry` allows it, with a pause that doubles; else the failure stands."""
    failure = flight.failure or Failure("unknown", "failed")
    if retry is None or flight.attempt > retry.max or failure.kind in FINAL:
        return failure
    return Again("retry", backoff(retry.backoff, flight.attempt, flight.key))


def after_poll(flight: EffectInFlight, poll: Poll, since: float) -> Again | Failure:
    """Not yet means again after `every`, until `timeout` has passed since the first look."""
    failure = flight.failure or Failure("unknown", "failed")
    if failure.kind != "not_yet":
        return failure
    deadline = since + poll.timeout if poll.timeout is not None else None
    if deadline is not None and flight.finished_at >= deadline:
        return Failure("timeout", f"not ready after {poll.timeout:g} s")
    return Again("poll", poll.every, deadline)
