"""What a change adds: what there is more of than before, wherever it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")


def added(old: Iterable[Hashable], new: Iterable[_T], key: Callable[[_T], object] = lambda one: one) -> Iterator[_T]:
    """Those of the new things whose keys are not among the old ones, each as often as there are more of it."""
    left: Counter[object] = Counter(old)
    for thing in new:
        known = key(thing)
        if left[known] > 0:
            left[known] -= 1
        else:
            yield thing


def added_bytes(old: bytes, new: bytes) -> Iterator[tuple[int, bytes]]:
    """The numbered lines of the new version that the old one does not have, without their ends."""
    return added(old.splitlines(), enumerate(new.splitlines(), 1), key=lambda numbered: numbered[1])


def added_lines(old: bytes, new: bytes) -> Iterator[tuple[int, str]]:
    """The same as text; what is no UTF-8 is replaced."""
    for number, line in added_bytes(old, new):
        yield number, line.decode("utf-8", "replace")
