"""The time in which a run works: spans that are counted once, however many of its effects overlap. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

Span = tuple[float, float]
KEPT = 500
"""Spans that are remembered; the time of older ones stays counted."""
TOLD = 50
"""Spans that a called run tells its caller at its end."""


def uncovered(spans: Sequence[Span], start: float, end: float) -> float:
    """How much of a span is in none of `spans`, which are sorted and apart from each other."""
    low, high = _touching(spans, start, end)
    inside = sum(min(end, e) - max(start, s) for s, e in spans[low:high])
    return max(0.0, end - start - inside)


def add_span(spans: list[Span], start: float, end: float) -> float:
    """Take a span in; gives how much of it is new."""
    if end <= start:
        return 0.0
    new = uncovered(spans, start, end)
    low, high = _touching(spans, start, end)
    if low < high:
        start, end = min(start, spans[low][0]), max(end, spans[high - 1][1])
    spans[low:high] = [(start, end)]
    del spans[:-KEPT]
    return new


def told_spans(spans: Sequence[Span]) -> list[list[float]]:
    """At most `TOLD` spans that hold all of these: those with the shortest pauses between them become one."""
    joints = sorted(range(1, len(spans)), key=lambda i: spans[i][0] - spans[i - 1][1])
    closed = set(joints[: max(0, len(spans) - TOLD)])
    out: list[list[float]] = []
    for i, (start, end) in enumerate(spans):
        if i in closed:
            out[-1][1] = end
        else:
            out.append([start, end])
    return out


def _touching(spans: Sequence[Span], start: float, end: float) -> tuple[int, int]:
    low = bisect_left(spans, start, key=lambda span: span[1])
    return low, max(low, bisect_right(spans, end, key=lambda span: span[0]))
