"""The only wall clock. Times are seconds since the epoch, UTC; shown in the person's zone, with the offset."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Protocol


class Clock(Protocol):
    """Tells the time; tests bring one that stands still."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds that never go back and do not count suspended time."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class ManualClock:
    """A clock that moves only when told to."""

    def __init__(self, at: float = 1_700_000_000.0) -> None:
        self.at = at
        self.step = 0.0

    def now(self) -> float:
        return self.at + self.step

    def monotonic(self) -> float:
        return self.at

    def advance(self, seconds: float) -> None:
        """Move on."""
        self.at += seconds

    def set_by(self, seconds: float) -> None:
        """Set the wall clock, and not the time that really passes, forward or back."""
        self.step += seconds


def iso(at: float) -> str:
    """RFC 3339 in UTC, milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_find_zone: Callable[[], str | None] = lambda: None  # noqa: E731  the machine's own, until somebody names one


def show_times_in(find: Callable[[], str | None]) -> None:
    """Show times, and read those that people write, in the zone that `find` names; it is asked when one is needed."""
    global _find_zone  # noqa: PLW0603  one command, one person
    _find_zone = find
    shown_zone.cache_clear()


@cache
def shown_zone() -> tzinfo | None:
    """The zone in which times are shown; None is the machine's own."""
    name = _find_zone()
    if name is None:
        return None
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


def local_time(at: float) -> datetime:
    """A time as the person's clocks show it."""
    return datetime.fromtimestamp(at, UTC).astimezone(shown_zone())


def read_local(text: str) -> float:
    """The time that a date such as 2026-08-01T09:00 means here; `ValueError` where it is none."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        found = found.replace(tzinfo=shown_zone())
    return found.timestamp()


def day(at: float) -> str:
    """The local date, for what is counted per day."""
    return local_time(at).strftime("%Y-%m-%d")


def local(at: float) -> str:
    """Local date and time with the offset, for people."""
    return local_time(at).strftime("%Y-%m-%d %H:%M:%S %z")
