"""Temperatures."""


def to_celsius(fahrenheit: float) -> float:
    """Degrees Fahrenheit in degrees Celsius, to one decimal."""
    return (fahrenheit - 32) * 5 // 9
