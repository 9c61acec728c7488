"""Spans of time."""


def merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same times with as few spans as possible."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged
