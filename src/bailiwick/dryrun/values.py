"""Which values make a branch go which way. The engine's own comparison decides; this file only proposes. Pure."""

from __future__ import annotations

from bailiwick.engine.compare import holds, spellings
from bailiwick.engine.graph import Branch, Node, edges
from bailiwick.ids import Json

NONE = -1
"""The way of a value that no case, condition or default takes."""


def way_of(branch: Branch, value: Json, places: dict[str, int] | None = None) -> int:
    """The position in `edges(branch)` of the way a value takes; `places` are the positions of its cases, if known."""
    texts = spellings(value)
    for text in texts:
        if text in branch.cases:
            return (places or {name: number for number, name in enumerate(branch.cases)})[text]
    for number, condition in enumerate(branch.conditions):
        if holds(condition.op, texts, condition.value):
            return len(branch.cases) + number
    return default_way(branch)


def default_way(branch: Branch) -> int:
    """The position of the default."""
    return len(branch.cases) + len(branch.conditions) if branch.default else NONE


def error_way(node: Node) -> int:
    """The position of `on_error`, `NONE` where there is none."""
    return len(edges(node)) - 1 if node.on_error else NONE


def candidates(branch: Branch, further: list[Json]) -> dict[int, list[Json]]:
    """Values by the way they take, the most natural first; `further` are values that a schema names."""
    pool: list[Json] = [*further]
    for text in branch.cases:
        pool += _typed(text)
    for condition in branch.conditions:
        pool += _around(condition.value)
    pool += ["other", "", 0, 1, -1, 1_000_000, True, False, None]
    found: dict[int, list[Json]] = {}
    places = {name: number for number, name in enumerate(branch.cases)}
    for value in pool:
        if isinstance(value, dict | list):
            continue
        same = found.setdefault(way_of(branch, value, places), [])
        if not any(type(value) is type(known) and value == known for known in same):
            same.append(value)
    return found


def _typed(text: str) -> list[Json]:
    """The values a text may have been written for, the likeliest first."""
    words: dict[str, Json] = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
    if text in words:
        return [words[text], text]
    number = _number(text)
    return [text] if number is None else [number, text]


def _around(text: str) -> list[Json]:
    number = _number(text)
    if number is None:
        return [*_typed(text), text + "x", text[:-1]]
    return [number, number + 1, number - 1, text]


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            value: int | float = kind(text)
        except ValueError:
            continue
        return value if abs(value) < 1e15 and str(value) == text else None
    return None
