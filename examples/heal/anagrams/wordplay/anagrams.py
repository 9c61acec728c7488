"""Anagrams."""


def are_anagrams(one: str, other: str) -> bool:
    """Whether two words are made of the same letters."""
    return set(one.lower()) == set(other.lower())
