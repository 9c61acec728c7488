"""Reading `--params`, `--params-file` and `-p`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bailiwick.engine.graph import Graph
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.strict_json import refuse_constant


def read_params(inline: str | None, file: str | None) -> dict[str, Json]:
    """The params of both sources, inline wins. Raises `UsageError` for what is not a JSON object."""
    out: dict[str, Json] = {}
    if file is not None:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--params-file {file} can't be read: {error}", code="BW203") from error
        out.update(_object(text, f"--params-file {file}"))
    if inline is not None:
        out.update(_object(inline, "--params"))
    return out


def with_pairs(params: dict[str, Json], pairs: Sequence[str], graph: Graph) -> dict[str, Json]:
    """The params with each `key=value` on top. Raises `UsageError` for what is no pair."""
    out = dict(params)
    for text in pairs:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UsageError(f"-p {text} has no value", hint="write -p key=value", code="BW203")
        out[name] = _typed(graph, name, value)
    return out


def _typed(graph: Graph, name: str, text: str) -> Json:
    """Text where the param's schema says so; else JSON where the text is JSON, else the text."""
    schema = (graph.params or {}).get(name)
    if isinstance(schema, dict) and schema.get("type") == "string":
        return text
    try:
        return _json(text)
    except ValueError:
        return text


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique, parse_constant=refuse_constant, parse_int=_bounded)


def _object(text: str, label: str) -> dict[str, Json]:
    try:
        value = _json(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{label} is not valid JSON: {error}", hint='an object, such as {"name": "value"}', code="BW203"
        ) from error
    if not isinstance(value, dict):
        raise UsageError(f"{label} must be a JSON object", hint='such as {"name": "value"}', code="BW203")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise ValueError(f"key '{key}' is there twice")
        out[key] = value
    return out


def _bounded(text: str) -> int:
    limit = 2**63
    if len(text) > 20 or not -limit <= (number := int(text)) < limit:
        raise ValueError("an integer is larger than 64 bits")
    return number
