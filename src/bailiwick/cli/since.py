"""`--since`: the moment at which what is listed or counted begins."""

from __future__ import annotations

from bailiwick.clock import read_local
from bailiwick.errors import UsageError
from bailiwick.lang.durations import seconds_of


def beginning(since: str | None, now: float) -> float | None:
    """The moment that a span ago or a local date means; None where nothing was said."""
    if since is None:
        return None
    span = seconds_of(since)
    try:
        return max(0.0, now - span if span is not None else read_local(since))
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since {since} is no time",
            hint="write a span such as 7d or 12h, or a date such as 2026-11-01 or 2026-11-01T09:00",
            code="BW202",
        ) from None
