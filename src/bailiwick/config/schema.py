"""JSON Schemas of `config.yaml` and `policy.yaml`, for editors. Made from the table of keys."""

from __future__ import annotations

from bailiwick.config.keys import KEYS, Key
from bailiwick.ids import Json
from bailiwick.lang.fields import Schema

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def config_schema() -> Schema:
    """What a configuration file may hold."""
    return {"$schema": _DIALECT, "title": "Bailiwick configuration", **_object(KEYS)}


def policy_schema() -> Schema:
    """What an organisation's policy may hold: limits only."""
    limits = tuple(key for key in KEYS if key.rule is not None or key.name == "version")
    return {"$schema": _DIALECT, "title": "Bailiwick policy", **_object(limits)}


def _object(keys: tuple[Key, ...]) -> Schema:
    root: Schema = _empty()
    for key in keys:
        *folders, leaf = key.name.split(".")
        here = root
        for folder in folders:
            here = _child(here, folder)
        here["properties"][leaf] = _leaf(key)
    return root


def _empty() -> Schema:
    return {"type": ["object", "null"], "properties": {}, "additionalProperties": False}


def _child(here: Schema, name: str) -> Schema:
    if name == "*":
        if here["additionalProperties"] is False:
            here["additionalProperties"] = _empty()
        found: Schema = here["additionalProperties"]
    else:
        found = here["properties"].setdefault(name, _empty())
    return found


def _leaf(key: Key) -> Schema:
    words = f"{key.doc} (a limit: {key.rule.words})" if key.rule else key.doc
    shown: dict[str, Json] = {"description": words}
    if key.default is not None:
        shown["default"] = key.default
    return {**shown, "anyOf": [key.shape.schema(), {"type": "null"}]}
