"""The Gregorian calendar."""


def is_leap(year: int) -> bool:
    """Whether a year has a 29 February."""
    return year % 4 == 0
