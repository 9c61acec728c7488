"""Averages."""


def median(values: list[float]) -> float:
    """The value in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half]
