"""Waiting for another process: a condition and a deadline, never a guess at how long something takes."""

from __future__ import annotations

import time
from collections.abc import Callable

from bailiwick.clock import SystemClock

STEP = 0.01


def until(holds: Callable[[], bool], seconds: float = 600.0, what: str = "it") -> None:
    """Return as soon as `holds`; an `AssertionError` when it never does. The time is only against hanging."""
    clock = SystemClock()
    deadline = clock.monotonic() + seconds
    while not holds():
        if clock.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {seconds:g} s")
        time.sleep(STEP)
