"""Counting words."""

from collections import Counter


def count(text: str) -> Counter[str]:
    """How often each word is there."""
    return Counter(text.split())
