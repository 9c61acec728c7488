"""How names and values are worded in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bailiwick.ids import Json

_ENOUGH = 300


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of the known names that look most like `name`; of very many only likely ones are compared."""
    import difflib

    names = list(known)
    if len(names) > _ENOUGH:
        names = sorted(names, key=lambda other: -_shared(name, other))[:_ENOUGH]
    return difflib.get_close_matches(name[:80], names, n=3, cutoff=0.6)


def _shared(one: str, other: str) -> int:
    """How many characters two names share at their beginning and at their end."""
    return _alike(one, other) + _alike(reversed(one), reversed(other))


def _alike(one: Iterable[str], other: Iterable[str]) -> int:
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def quoted(names: Iterable[str]) -> str:
    """Names for a hint: 'a', 'b' or 'c'."""
    words = [repr(name) for name in names]
    return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else "".join(words)


def suggestion(name: str, known: Iterable[str], otherwise: str) -> str:
    """A hint with the nearest known names, or `otherwise` where none comes near."""
    return quoted(nearest(name, known)) or otherwise


def plain_text(data: Json) -> str:
    """A text, number or boolean as the author wrote it: "3", "true"."""
    return str(data).lower() if isinstance(data, bool) else str(data)
