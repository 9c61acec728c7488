"""Whether a call's arguments can be used; what is wrong is said as what to change."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from bailiwick.ids import Json
from bailiwick.lang.values import describe
from bailiwick.lang.wording import nearest, quoted
from bailiwick.skills.model import Argument, Tool
from bailiwick.skills.schemas import ID, MAX_COUNT, MAX_LIST, MAX_PATH, MAX_TEXT

MAX_DEPTH = 32
"""How deep the values of an object may be nested."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {
    "text": "a text", "id": "a name", "path": "a path", "paths": "a list of paths", "texts": "a list of texts",
    "integer": f"a whole number from 1 to {MAX_COUNT}", "object": "an object",
}  # fmt: skip


def given(tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments that count, in the tool's order: null, and empty where nothing is required, is not given."""
    out: dict[str, Json] = {}
    for one in tool.all_arguments:
        value = arguments.get(one.name)
        if value is not None and (one.required or not _is_empty(value)):
            out[one.name] = value
    return out


def bad_arguments(tool: Tool, arguments: Json) -> list[str]:
    """What to change, one sentence each; empty where the arguments can be used."""
    if not isinstance(arguments, Mapping):
        return [f"{tool.name} takes an object of arguments, found {describe(arguments)}"]
    known = {one.name: one for one in tool.all_arguments}
    out = [_unknown(tool, str(name), list(known)) for name in arguments if name not in known]
    for one in known.values():
        value = arguments.get(one.name)
        if value is None or _is_empty(value):
            if one.required:
                state = "is missing" if value is None else "is empty"
                out.append(f"'{one.name}' {state}: give {_WORDS[one.kind]}. {one.doc}")
        elif fault := _fault(one, value):
            out.append(f"'{one.name}': {fault}")
    return out


def _unknown(tool: Tool, name: str, known: list[str]) -> str:
    near = nearest(name, known)
    shown = name if len(name) <= 64 else name[:64] + "…"
    hint = f"did you mean {quoted(near)}?" if near else f"it takes {', '.join(known) or 'none'}"
    return f"{tool.name} has no argument {shown!r}; {hint}"


def _is_empty(value: Json) -> bool:
    return not value.strip() if isinstance(value, str) else isinstance(value, list | dict) and not value


def _fault(one: Argument, value: Json) -> str:
    match one.kind:
        case "paths" | "texts":
            return _list_fault(one, value)
        case "integer":
            whole = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_COUNT
            return "" if whole else f"give {_WORDS['integer']}, found {describe(value)}"
        case "object":
            return _object_fault(value)
        case "text":
            return _text_fault(value, "a text", MAX_TEXT)
        case "path":
            return _text_fault(value, "a path", MAX_PATH)
        case "id":
            fault = _text_fault(value, "a name", MAX_PATH)
            fits = "" if fault or re.fullmatch(ID, value) else "use letters, digits, '_', '.', '-', at most 128 of them"
            return fault or fits


def _list_fault(one: Argument, value: Json) -> str:
    if not isinstance(value, list):
        hint = ', such as ["a.py", "b.py"]' if one.kind == "paths" else ""
        return f"give {_WORDS[one.kind]}{hint}, found {describe(value)}"
    if len(value) > MAX_LIST:
        return f"give at most {MAX_LIST} items, found {len(value)}"
    word, limit = ("a path", MAX_PATH) if one.kind == "paths" else ("a text", MAX_TEXT)
    faults = (f"item {number}: {fault}" for number, item in enumerate(value, 1) if (fault := _item(item, word, limit)))
    return next(faults, "")


def _item(value: Json, word: str, limit: int) -> str:
    return f"give {word} that is not empty" if value == "" else _text_fault(value, word, limit)


def _text_fault(value: Json, word: str, limit: int) -> str:
    if not isinstance(value, str):
        return f"give {word}, found {describe(value)}"
    if len(value) > limit:
        return f"give at most {limit:,} characters, found {len(value):,}"
    if "\0" in value or _SURROGATE.search(value):
        return "remove the characters that are not text (NUL or half of a pair)"
    if word == "a path" and ("\n" in value or "\r" in value):
        return "a path has no line breaks"
    return ""


def _object_fault(value: Json) -> str:
    if not isinstance(value, dict):
        return f"give an object, found {describe(value)}"
    if _depth(value) > MAX_DEPTH:
        return f"nest values at most {MAX_DEPTH} deep"
    return "" if _finite(value) else "use finite numbers only"


def _depth(value: Json) -> int:
    """How deep a value is nested; counting ends just past the limit."""
    level, here = 0, [value]
    while here and level <= MAX_DEPTH:
        level += 1
        here = [part for one in here if isinstance(one, dict | list) for part in _parts(one)]
    return level


def _finite(value: Json) -> bool:
    if isinstance(value, dict | list):
        return all(_finite(part) for part in _parts(value))
    return not isinstance(value, float) or math.isfinite(value)


def _parts(value: Json) -> list[Json]:
    return list(value.values()) if isinstance(value, dict) else list(value)
