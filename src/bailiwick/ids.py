"""Identities: run keys, scope paths, effect keys. Pure and stable over attempts, epochs and restarts."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

Json = Any  # a JSON value: null, bool, int, float, str, list, dict

NODE_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces; equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(data: bytes | str) -> str:
    """The SHA-256 of some bytes or UTF-8 text, in hex."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()


def params_key(params: dict[str, Any]) -> str:
    """The run id that stands for these params when the person gives none."""
    return digest(canonical(params))[:8]


def run_uid(workflow: str, key: str, generation: int, origin: str) -> str:
    """The row id of a run. `origin` (where and when) keeps runs of one name, and their effect keys, apart."""
    return digest(f"run\0{workflow}\0{key}\0{generation}\0{origin}")[:20]


def effect_key(run: str, scope: str, node: str, visit: int, ordinal: int) -> str:
    """The identity of one effect: the same over attempts, epochs and restarts."""
    return digest(f"effect\0{run}\0{scope}\0{node}\0{visit}\0{ordinal}")[:24]


def child_uid(key: str) -> str:
    """The row id of the child run that an effect starts: the same each time it is tried."""
    return digest(f"child\0{key}")[:20]


def wait_id(scope: str, node: str, visit: int, ordinal: int) -> str:
    """A wait's name within its run, short enough to type."""
    return digest(f"wait\0{scope}\0{node}\0{visit}\0{ordinal}")[:8]


def scope_path(parent: str, construct: str, visit: int, member: str) -> str:
    """`fan[3]` for an item, `fan.a` for a branch; a later visit reads `fan@2[3]`."""
    head = construct if visit == 1 else f"{construct}@{visit}"
    tail = f"[{member}]" if member.isdigit() else f".{member}"
    return f"{parent}/{head}{tail}" if parent else f"{head}{tail}"


def place(scope: str, node: str) -> str:
    """How a node in a scope is written for people: `fan[3]/inner.a/step`."""
    return f"{scope}/{node}" if scope else node
