"""How a branch compares. Text equality first; numbers only where both sides are numbers."""

from __future__ import annotations

from bailiwick.engine.graph import Branch
from bailiwick.ids import Json

_WORDS: dict[str, tuple[str, ...]] = {"True": ("True", "true"), "False": ("False", "false"), "None": ("None", "null")}


def spellings(value: Json) -> tuple[str, ...]:
    """The texts a value equals: a boolean is `true` and `True`, null is `null` and `None`."""
    text = str(value)
    return _WORDS[text] if value is None or isinstance(value, bool) else (text,)


def choose(node: Branch, value: Json) -> str | None:
    """The node a branch goes to for a value; None when nothing matches and there is no default."""
    texts = spellings(value)
    for text in texts:
        if text in node.cases:
            return node.cases[text]
    for condition in node.conditions:
        if holds(condition.op, texts, condition.value):
            return condition.next
    return node.default


def holds(op: str, texts: tuple[str, ...], other: str) -> bool:
    """Whether one comparison is true of a value written as any of `texts`."""
    match op:
        case "==":
            return other in texts
        case "!=":
            return other not in texts
        case "<" | ">" | "<=" | ">=":
            return _ordered(op, texts[0], other)
        case _:
            return False


def _ordered(op: str, left: str, right: str) -> bool:
    a, b = _number(left), _number(right)
    if a is not None and b is not None:
        return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[op]
    return {"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right}[op]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
