"""The lines that a change adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator


def added_bytes(old: bytes, new: bytes) -> Iterator[tuple[int, bytes]]:
    """The numbered lines of the new version that the old one does not have, without their ends."""
    left = Counter(old.splitlines())
    for number, line in enumerate(new.splitlines(), 1):
        if left[line] > 0:
            left[line] -= 1
        else:
            yield number, line


def added_lines(old: bytes, new: bytes) -> Iterator[tuple[int, str]]:
    """The same as text; what is no UTF-8 is replaced."""
    for number, line in added_bytes(old, new):
        yield number, line.decode("utf-8", "replace")
