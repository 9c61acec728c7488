"""Finds the declared outputs in what an agent said. Pure, never raises, and linear in the length of the text.

A fenced block is believed before loose objects; of several the last one that satisfies the declared outputs counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from bailiwick.agents.streams import one_line
from bailiwick.engine.graph import Output
from bailiwick.ids import Json
from bailiwick.strict_json import finite_number, is_deep, refuse_constant

DEEPEST = 100
"""Levels of nesting that an answer may have."""
MOST_CANDIDATES = 64
"""Objects of one text that are looked at; the last ones."""
REPAIRABLE = 8 * 1024
"""Characters of a text that are given to the repairing library: it takes quadratic time on hostile ones."""
ESCAPED_QUOTES = 400
SHALLOW = 40

_TOKEN = re.compile(r'\\.|["{}\[\],]', re.DOTALL)
_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~)", re.MULTILINE)
_OBJECT = re.compile(r"\{\s*(?:[\"'}]|[A-Za-z_][\w-]*\s*:)")
_KEYED = re.compile(r"\s*\{\s*[\"}]")
_LINE_OBJECT = re.compile(r"^[ \t]{0,8}\{", re.MULTILINE)
_THINK_OPENS = re.compile(r"^[ \t]{0,8}<(think|thinking)>", re.MULTILINE)
_THINK_CLOSES = re.compile(r"^[ \t]{0,8}</think(?:ing)?>[ \t]{0,8}$", re.MULTILINE)
_CLOSERS = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class Extracted:
    """The values of the declared outputs; `repaired` says that the JSON had a slip that was mended."""

    values: dict[str, Json] = field(default_factory=dict)
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Bad:
    """No object in the text satisfies the declared outputs; `problem` says what is wrong, for the agent to mend it."""

    problem: str


def extract(text: str, outputs: Sequence[Output], structured: Json = None) -> Extracted | Bad:
    """The declared outputs from an answer; `structured` is what a backend that enforces a schema gave besides."""
    if not outputs:
        return Extracted()
    check = _Check(outputs)
    if isinstance(structured, dict) and _is_usable(structured) and not check.problems(structured):
        return Extracted(check.values(structured))
    seen: list[dict[str, Json]] = [structured] if isinstance(structured, dict) else []
    whole = _scan(text)
    for group in _groups(text, whole):
        for value, mended in _read(group):
            seen.append(value)
            if not check.problems(value):
                return Extracted(check.values(value), repaired=mended)
    return Bad(_why(text, whole, seen, check))


def answers_in_json(text: str, outputs: Sequence[Output]) -> bool:
    """Whether a text means to answer in JSON: it is an object, holds a block of one, or one with a declared key.

    Braces in what a program prints besides, the code of a change for example, are none.
    """
    if text.lstrip().startswith("{") or any(_KEYED.match(block) for block in _fenced(text)):
        return True
    keys = "|".join(re.escape(output.key) for output in outputs)
    named = re.compile(rf"(?:{keys})[\"']?\s*:")
    whole = _scan(text)
    cut_off = [] if whole.tail is None else [text[whole.tail :]]
    return any(named.search(part) for part in (*_objects(text, whole), *cut_off))


def without_thinking(text: str) -> str:
    """What is left of a text when `<think>` blocks are taken out; one that never closes takes the rest with it."""
    kept: list[str] = []
    at = 0
    while found := _THINK_OPENS.search(text, at):
        kept.append(text[at : found.start()])
        closing = f"</{found[1]}>"
        end = text.find(closing, found.end())
        at = len(text) if end < 0 else end + len(closing)
    kept.append(text[at:])
    left = "".join(kept)
    orphans = [found.end() for found in _THINK_CLOSES.finditer(left)]
    return left[orphans[-1] if orphans else 0 :].strip()


class _Check:
    """Compares objects with the declared outputs; each schema is compiled once."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self._outputs = outputs
        self._errors: dict[str, Callable[[Json], str]] = {}
        for output in outputs:
            if output.schema is not None:
                self._errors[output.key] = _first_error(output.schema)

    def problems(self, value: dict[str, Json]) -> list[str]:
        """What is missing or wrong, in the order of the outputs."""
        out: list[str] = []
        for output in self._outputs:
            if output.key not in value:
                out.append(f"the key '{output.key}' is missing")
            elif output.key in self._errors and (error := self._errors[output.key](value[output.key])):
                out.append(f"'{output.key}{error}")
        return out

    def values(self, value: dict[str, Json]) -> dict[str, Json]:
        """The declared keys alone."""
        return {output.key: value[output.key] for output in self._outputs}

    @property
    def keys(self) -> str:
        """The declared keys, for a message."""
        return ", ".join(f"'{output.key}'" for output in self._outputs)


def _first_error(schema: Json) -> Callable[[Json], str]:
    """A function that tells the first way in which a value misses a schema, empty where it fits."""
    import jsonschema_rs

    from bailiwick.lang.schemas import validator_of

    try:
        validator = validator_of(schema)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        fault = f"' can't be checked, its schema is not valid: {one_line(str(error), 300)}"
        return lambda _: fault

    def first(value: Json) -> str:
        error = next(iter(validator.iter_errors(value)), None)
        if error is None:
            return ""
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
        return f"{where}' does not fit its schema: {one_line(error.message, 300)}"

    return first


def _why(text: str, whole: _Scan, seen: Sequence[dict[str, Json]], check: _Check) -> str:
    hint = f"one JSON object with {check.keys} is expected"
    if seen:
        best = min(reversed(seen), key=lambda value: len(check.problems(value)))
        return "; ".join(check.problems(best)[:10])
    if not text.strip():
        return f"the answer is empty; {hint}"
    if whole.tail is not None:
        return f"the JSON object is cut off before its end; {hint}"
    return f"the JSON object can't be read; {hint}" if whole.pairs else f"the answer holds no JSON object; {hint}"


def _groups(text: str, whole: _Scan) -> Iterator[list[str]]:
    """The objects of a text, as groups that are believed in turn; within a group the last is the first."""
    fenced = [block for block in _fenced(text) if "{" in block][-MOST_CANDIDATES:]
    if fenced:
        yield [part for block in reversed(fenced) for part in _objects(block, _scan(block))]
    yield _objects(text, whole)
    if whole.tail is not None and (lines := [found.start() for found in _LINE_OBJECT.finditer(text)]):
        rest = text[lines[-1] :]
        yield _objects(rest, _scan(rest))


def _fenced(text: str) -> list[str]:
    """What stands between lines that open and close a code fence; an open one ends with the text."""
    marks = [found.start() for found in _FENCE.finditer(text)]
    out: list[str] = []
    for number in range(0, len(marks), 2):
        begin = text.find("\n", marks[number])
        end = marks[number + 1] if number + 1 < len(marks) else len(text)
        out.append(text[begin + 1 : end] if 0 <= begin < end else "")
    return out


@dataclass(slots=True)
class _Scan:
    """Where the outermost balanced objects of a text are, and where an unfinished one begins."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    tail: int | None = None
    in_string: bool = False


def _scan(text: str) -> _Scan:
    """Find them in one pass. A brace in prose that no key or closing brace follows opens nothing."""
    found = _Scan()
    opened: list[int] = []
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == '"' and opened:
            found.in_string = not found.in_string
        elif found.in_string:
            continue
        elif mark == "{" and (opened or _OBJECT.match(text, token.start())):
            opened.append(token.start())
        elif mark == "}" and opened:
            begin = opened.pop()
            if not opened:
                found.pairs.append((begin, token.end()))
    found.tail = opened[0] if opened else None
    return found


def _objects(text: str, scan: _Scan) -> list[str]:
    """The objects of a text, the last first; an unfinished one that does not end within a string counts too."""
    parts = [text[begin:end] for begin, end in scan.pairs[-MOST_CANDIDATES:]]
    if scan.tail is not None and not scan.in_string:
        parts.append(text[scan.tail :])
    return parts[::-1]


def _read(parts: Sequence[str]) -> Iterator[tuple[dict[str, Json], bool]]:
    """Each part as an object, with whether it had to be mended."""
    left = REPAIRABLE
    for part in parts:
        value = _loaded(part, strict=True)
        if isinstance(value, dict):
            yield value, False
            continue
        tidied = _tidied(part)
        value = None if tidied is None else _loaded(tidied, strict=False)
        if isinstance(value, dict):
            yield value, True
        elif len(part) <= left and _is_repairable(part):
            left -= len(part)
            for mended in _repaired(part):
                yield mended, True


def _loaded(text: str, *, strict: bool) -> Json:
    try:
        value = json.loads(text, strict=strict, parse_constant=refuse_constant, parse_float=finite_number)
    except (ValueError, RecursionError):
        return None
    return value if _is_usable(value) else None


def _tidied(text: str) -> str | None:
    """A text without commas before closing brackets and with the closing brackets it lacks; None if it is worse."""
    drop: list[int] = []
    opened: list[str] = []
    in_string = False
    comma = -1
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == '"':
            in_string = not in_string
        elif in_string or mark[0] == "\\":
            continue
        elif mark == ",":
            comma = token.start()
        elif mark in _CLOSERS:
            opened.append(_CLOSERS[mark])
            comma = -1
        elif not opened or opened.pop() != mark:
            return None
        else:
            drop += [comma] if comma >= 0 and not text[comma + 1 : token.start()].strip() else []
            comma = -1
    if in_string or len(opened) > SHALLOW:
        return None
    pieces = [text[begin + 1 : end] for begin, end in zip([-1, *drop], [*drop, len(text)], strict=True)]
    return "".join(pieces).rstrip().rstrip("," if opened else "") + "".join(reversed(opened))


def _is_repairable(text: str) -> bool:
    depth = deepest = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in _CLOSERS) - (token[0] in ("}", "]"))
        deepest = max(deepest, depth)
    return deepest <= SHALLOW and text.count('\\"') <= ESCAPED_QUOTES


def _repaired(text: str) -> Iterator[dict[str, Json]]:
    """What the repairing library makes of a text; it gives a list for several objects and '' for prose."""
    import json_repair

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError, IndexError, KeyError, TypeError, AttributeError):
        return
    for part in reversed(value) if isinstance(value, list) else (value,):
        if isinstance(part, dict) and part and _is_usable(part):
            yield part


def _is_usable(value: Json) -> bool:
    """Whether a value can be kept: finite numbers, whole characters, text keys, not too deep."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (ValueError, TypeError, RecursionError):
        return False
    return text.count("{") + text.count("[") <= DEEPEST or not is_deep(value, DEEPEST)
