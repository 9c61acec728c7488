"""Events to rows and back. Values over 4 KiB leave the row as blobs by digest and come back deferred."""

from __future__ import annotations

import json
from typing import Any

from bailiwick.engine.events import Event, body_of, from_body
from bailiwick.engine.state import Deferred
from bailiwick.errors import JournalCorrupt
from bailiwick.ids import Json, digest
from bailiwick.journal.rows import EncodedEvent, StoredEvent

INLINE = 4096
_MARK = '"$blob"'
_WHOLE = frozenset({"value", "request"})
_INLINE = frozenset({"failure", "error"})
"""Fields the engine itself reads: short by construction, never deferred."""
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), check_circular=False).encode
_decode = json.JSONDecoder().raw_decode
"""Without looking for spaces around: bodies have none, and a resume decodes tens of thousands."""


def encode(event: Event, at: float) -> tuple[EncodedEvent, dict[str, bytes]]:
    """The row of an event, and the blobs that have to be kept with it."""
    body = body_of(event)
    blobs: dict[str, bytes] = {}
    try:
        text = _encode(body)
        fits = len(text) <= INLINE and _MARK not in text
    except TypeError:  # a value that is still deferred: its reference is kept
        fits = False
    if not fits:
        text = _encode({name: _shrink(name, value, blobs) for name, value in body.items()})
    kind = type(event)
    return EncodedEvent(kind.__name__, kind.VERSION, text, at), blobs


def _shrink(name: str, value: Json, blobs: dict[str, bytes]) -> Json:
    if name in _INLINE:
        return value
    if isinstance(value, dict) and name not in _WHOLE:
        return {key: _keep(item, blobs) for key, item in value.items()}
    return _keep(value, blobs) if name in _WHOLE else value


def _keep(value: Json, blobs: dict[str, bytes]) -> Json:
    """The value itself, or a reference to its blob. A value that looks like a reference always becomes a blob."""
    if isinstance(value, Deferred):
        return {"$blob": value.digest}
    text = _encode(value)
    if len(text) <= INLINE and _MARK not in text:
        return value
    data = text.encode("ascii")
    name = digest(data)
    blobs[name] = data
    return {"$blob": name}


def decode(row: StoredEvent) -> Event:
    """The event of a row; blobs stay deferred until somebody looks."""
    try:
        body: dict[str, Any]
        body, end = _decode(row.body)
        if end != len(row.body):
            raise ValueError(f"there is more after its end at {end}")
    except ValueError as error:
        raise JournalCorrupt(f"event {row.seq} is not readable: {error}") from error
    if _MARK in row.body:
        body = {name: _defer_field(name, value) for name, value in body.items()}
    return from_body(row.type, row.version, body)


def _defer_field(name: str, value: Json) -> Json:
    if name in _INLINE:
        return value
    if name in _WHOLE:
        return _defer(value)
    return {key: _defer(item) for key, item in value.items()} if isinstance(value, dict) else value


def _defer(value: Json) -> Json:
    if isinstance(value, dict) and len(value) == 1 and "$blob" in value:
        return Deferred(value["$blob"])
    return value
