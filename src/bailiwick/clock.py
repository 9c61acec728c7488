"""The only wall clock. Times are seconds since the epoch, UTC; shown local with the offset."""

from __future__ import annotations

import time
from datetime import UTC, datetime
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


def day(at: float) -> str:
    """The local date, for what is counted per day."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d")


def local(at: float) -> str:
    """Local date and time with the offset, for people."""
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %z")
