"""JSON as the standard has it: what Python reads beyond that is refused. The functions are hooks of `json.loads`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

from bailiwick.ids import Json

_SHOWN = 80


def unique_keys(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    """An object, `ValueError` for one that names a key twice; for `object_pairs_hook`."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {_short(twice)!r} is there twice")
    return found


def refuse_constant(name: str) -> NoReturn:
    """NaN and the infinities are no numbers; for `parse_constant`."""
    raise ValueError(f"{name} is not a JSON number")


def finite_number(text: str) -> float:
    """A number, `ValueError` for one that is too large to be one here; for `parse_float`."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{_short(text)} is too large for a number")
    return number


def is_deep(value: Json, most: int) -> bool:
    """Whether lists and objects nest more than `most` levels deep."""
    level = [value]
    for _ in range(most + 1):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return False
    return True


def _parts(value: Json) -> Sequence[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
