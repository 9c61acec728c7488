"""The smallest value that a JSON Schema allows, as far as one can be told without searching."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from bailiwick.ids import Json

DEEPEST = 12
_FORMATS = {
    "date": "2030-01-31",
    "date-time": "2030-01-31T08:00:00Z",
    "time": "08:00:00Z",
    "email": "somebody@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.org",
}
_SAMPLES = ("a", "A", "0", "1", "abc", "ABC", "a1", "abc-1", "main", "1.0.0", "v1.0.0", "0000000", "a@b.org")


def smallest(schema: Json) -> Json:
    """A value for a schema: its constant, first choice or default, else the least its keywords ask for."""
    return _make(schema, schema, 0)


class SchemaValidator:
    """Checks values against schemas; each schema is compiled once."""

    def __init__(self) -> None:
        self._checkers: dict[int, Any] = {}
        self._kept: list[Json] = []

    def allows(self, schema: Json, value: Json) -> bool:
        """Whether a value satisfies a schema; a schema that can't be compiled allows everything."""
        if schema is None or schema is True:
            return True
        if id(schema) not in self._checkers:
            self._kept.append(schema)
            self._checkers[id(schema)] = _checker(schema)
        checker = self._checkers[id(schema)]
        return checker is None or bool(checker.is_valid(value))


def _checker(schema: Json) -> Any:
    import jsonschema_rs

    from bailiwick.lang.schemas import validator_of

    try:
        return validator_of(schema)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def schema_at(schema: Json, path: Iterable[str]) -> Json:
    """The part of a schema that speaks of a dot path; None where it says nothing of it."""
    here = schema
    for part in path:
        if not isinstance(here, dict):
            return None
        here = (here.get("properties") or {}).get(part)
    return here


def offered(schema: Json) -> list[Json]:
    """Values that a schema names itself: constants, choices, bounds."""
    if not isinstance(schema, dict):
        return []
    found = list(schema.get("enum") or ())
    found += [schema[key] for key in ("const", "default", "minimum", "maximum") if key in schema]
    return found + list(schema.get("examples") or ())


def _make(schema: Json, root: Json, depth: int) -> Json:
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None if depth > DEEPEST else "example"
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    if "$ref" in schema:
        return _make(_referred(root, str(schema["$ref"])), root, depth + 1)
    if schema.get("allOf"):
        return _make(_merged(schema), root, depth + 1)
    for key in ("oneOf", "anyOf"):
        if schema.get(key):
            rest = {name: value for name, value in schema.items() if name != key}
            return _make(_merged({**rest, "allOf": [schema[key][0]]}), root, depth + 1)
    return _typed(schema, root, depth)


def _typed(schema: dict[str, Json], root: Json, depth: int) -> Json:
    match _type(schema):
        case "object":
            return _object(schema, root, depth)
        case "array":
            return _array(schema, root, depth)
        case "integer" | "number" as kind:
            return _number(schema, whole=kind == "integer")
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return _text(schema)


def _type(schema: dict[str, Json]) -> str:
    """The type a schema names, or the one its keywords speak of."""
    given = schema.get("type")
    if isinstance(given, list):
        given = next((name for name in given if name != "null"), "null")
    if given:
        return str(given)
    words = {
        "object": ("properties", "required", "additionalProperties", "minProperties"),
        "array": ("items", "prefixItems", "minItems", "contains"),
        "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
    return next((kind for kind, keys in words.items() if any(key in schema for key in keys)), "string")


def _object(schema: dict[str, Json], root: Json, depth: int) -> Json:
    known: dict[str, Json] = schema.get("properties") or {}
    names = list(dict.fromkeys([*(schema.get("required") or ()), *(known if depth < 3 else ())]))
    extra = schema.get("additionalProperties", {})
    made = {name: _make(known.get(name, extra), root, depth + 1) for name in names}
    while len(made) < int(schema.get("minProperties", 0)):
        made[f"key{len(made) + 1}"] = _make(extra, root, depth + 1)
    return made


def _array(schema: dict[str, Json], root: Json, depth: int) -> Json:
    made = [_make(part, root, depth + 1) for part in schema.get("prefixItems") or ()]
    least = max(int(schema.get("minItems", 0)), 1 if depth < 3 else 0)
    most = int(schema.get("maxItems", least))
    part = schema.get("items", schema.get("contains", {}))
    while len(made) < min(least, most) and len(made) < 1000:
        value = _make(part, root, depth + 1)
        made.append(value if not schema.get("uniqueItems") else _another(value, len(made)))
    return made


def _another(value: Json, number: int) -> Json:
    if not number or isinstance(value, bool | list | dict) or value is None:
        return value
    return value + number if isinstance(value, int | float) else f"{value}{number}"


def _number(schema: dict[str, Json], *, whole: bool) -> Json:
    step = schema.get("multipleOf") or 1
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + (step if whole or "multipleOf" in schema else 1)
    if high is None and "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - (step if whole or "multipleOf" in schema else 1)
    if low is None:
        return min(high, 1) if high is not None else step
    value = math.ceil(low / step) * step if whole or "multipleOf" in schema else low
    return value if high is None or value <= high else (low + high) / 2


def _text(schema: dict[str, Json]) -> str:
    pattern = schema.get("pattern")
    made = _FORMATS.get(str(schema.get("format", "")), "example")
    if isinstance(pattern, str):
        made = next((sample for sample in (made, *_SAMPLES, *_FORMATS.values()) if _found(pattern, sample)), made)
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    made = made.ljust(min(least, 100_000), "x")
    return made[: int(most)] if most is not None else made


def _found(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False


def _referred(root: Json, reference: str) -> Json:
    here = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        if part:
            here = here.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(here, dict) else None
    return here


def _merged(schema: dict[str, Json]) -> dict[str, Json]:
    """A schema and those it has to satisfy besides, as one."""
    made: dict[str, Json] = {key: value for key, value in schema.items() if key != "allOf"}
    for part in schema.get("allOf") or ():
        if not isinstance(part, dict):
            continue
        for key, value in part.items():
            if key == "properties":
                made[key] = {**made.get(key, {}), **value}
            elif key == "required":
                made[key] = [*made.get(key, []), *value]
            else:
                made.setdefault(key, value)
    return made
