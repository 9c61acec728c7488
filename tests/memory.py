"""How much memory a piece of work takes at most."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bailiwick.agents.prices import context_window


@dataclass
class Peak:
    """The most bytes that were held at a time; known once the work is over."""

    bytes: int = 0


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Trace what is allocated inside, and nothing after it, however it ends.

    The table of prices is loaded before: traced, its tens of thousands of lines take a minute.
    """
    context_window("any")
    peak = Peak()
    tracemalloc.start()
    try:
        yield peak
    finally:
        peak.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
