"""How a limit that several layers set is combined: always to the strictest. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bailiwick.ids import Json


class LimitRule(Protocol):
    """What stricter means for one limit. `combine` is never looser than either side; of equals it gives `first`."""

    @property
    def words(self) -> str:
        """How layers combine, for the reference."""

    def combine(self, first: Json, second: Json) -> Json:
        """The strictest value that both sides allow."""

    def within(self, value: Json, bound: Json) -> bool:
        """Whether `value` allows nothing that `bound` forbids."""


class Least:
    """The smallest number wins; None is no limit."""

    __slots__ = ()
    words = "the smallest wins"

    def combine(self, first: Json, second: Json) -> Json:
        return first if self.within(first, second) else second

    def within(self, value: Json, bound: Json) -> bool:
        return bound is None or (value is not None and value <= bound)


class Most:
    """The largest number wins; None asks for nothing."""

    __slots__ = ()
    words = "the largest wins"

    def combine(self, first: Json, second: Json) -> Json:
        return first if self.within(first, second) else second

    def within(self, value: Json, bound: Json) -> bool:
        return bound is None or (value is not None and value >= bound)


class AllAgree:
    """A permission: true only if every layer that speaks says so."""

    __slots__ = ()
    words = "off wins"

    def combine(self, first: Json, second: Json) -> Json:
        return bool(first and second)

    def within(self, value: Json, bound: Json) -> bool:
        return bool(bound) or not value


class AnyAsks:
    """A precaution: true if one layer asks for it."""

    __slots__ = ()
    words = "on wins"

    def combine(self, first: Json, second: Json) -> Json:
        return bool(first or second)

    def within(self, value: Json, bound: Json) -> bool:
        return bool(value) or not bound


@dataclass(frozen=True, slots=True)
class Ranked:
    """Words from the loosest to the strictest; words in one group are equally strict."""

    groups: tuple[tuple[str, ...], ...]

    @property
    def words(self) -> str:
        """See `LimitRule`."""
        return "from loose to strict: " + " < ".join("/".join(group) for group in self.groups)

    def _rank(self, word: Json) -> int:
        return next(rank for rank, group in enumerate(self.groups) if word in group)

    def combine(self, first: Json, second: Json) -> Json:
        return first if self._rank(first) >= self._rank(second) else second

    def within(self, value: Json, bound: Json) -> bool:
        return self._rank(value) >= self._rank(bound)


class Overlap:
    """What every layer lists; None lists everything, and a `*` at the end of a name stands for any rest."""

    __slots__ = ()
    words = "only what every layer lists"

    def combine(self, first: Json, second: Json) -> Json:
        if first is None or second is None:
            return second if first is None else first
        kept = [name for name in first if _covered(name, second)]
        return kept + [name for name in second if name not in kept and _covered(name, first)]

    def within(self, value: Json, bound: Json) -> bool:
        return bound is None or (value is not None and all(_covered(name, bound) for name in value))


class Union:
    """Everything that one layer lists."""

    __slots__ = ()
    words = "everything that a layer lists"

    def combine(self, first: Json, second: Json) -> Json:
        return [*first, *(name for name in second if name not in first)]

    def within(self, value: Json, bound: Json) -> bool:
        return all(name in value for name in bound)


def _covered(name: str, names: list[str]) -> bool:
    stem = name.removesuffix("*")
    return any(name == other or (other.endswith("*") and stem.startswith(other[:-1])) for other in names)
