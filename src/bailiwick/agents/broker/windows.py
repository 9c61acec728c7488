"""The limits that vendors told of, per credential: a small file for people to look at, never the truth of a run."""

from __future__ import annotations

import fcntl
import json
import math
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from bailiwick.agents.port import LimitSeen
from bailiwick.ids import Json

MOST = 64
"""Credentials, and windows of each, that are kept: those seen last."""


@dataclass(frozen=True, slots=True)
class Window:
    """A limit as it was last seen. `used` is a share of 1; times are seconds since the epoch."""

    credential: str
    window: str
    used: float | None
    resets_at: float | None
    hit: bool
    seen_at: float


def limits_file(state: Path) -> Path:
    """Where limits are kept."""
    return state / "limits.json"


def remember_limits(state: Path, credential: str, seen: LimitSeen, now: float) -> bool:
    """Keep what a vendor said of a window; False where it can't be written, which stops nothing."""
    if not seen.window:
        return False
    file = limits_file(state)
    entry = asdict(
        Window(credential, window=seen.window, used=seen.used, resets_at=seen.resets_at, hit=seen.hit, seen_at=now)
    )
    try:
        handle = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        kept = _read(file)
        windows = {**kept.pop(credential, {}), seen.window: entry}
        newest = sorted(windows.items(), key=lambda pair: pair[1]["seen_at"])[-MOST:]
        _write(file, dict([*kept.items(), (credential, dict(newest))][-MOST:]))
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def remembered_limits(state: Path) -> list[Window]:
    """Every window seen so far, by credential and name."""
    found = [Window(**entry) for entries in _read(limits_file(state)).values() for entry in entries.values()]
    return sorted(found, key=lambda window: (window.credential, window.window))


def _read(file: Path) -> dict[str, dict[str, dict[str, Json]]]:
    """What the file holds; a broken one, or a broken entry, is as good as none."""
    try:
        data = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    kept: dict[str, dict[str, dict[str, Json]]] = {}
    for name, windows in data.items() if isinstance(data, dict) else ():
        for window, entry in windows.items() if isinstance(windows, dict) else ():
            if _is_sound(entry, name, window):
                kept.setdefault(name, {})[window] = entry
    return kept


def _is_sound(entry: Json, credential: str, window: str) -> bool:
    return (
        isinstance(entry, dict)
        and set(entry) == set(Window.__dataclass_fields__)
        and (entry["credential"], entry["window"]) == (credential, window)
        and all(entry[name] is None or _is_number(entry[name]) for name in ("used", "resets_at"))
        and _is_number(entry["seen_at"])
        and isinstance(entry["hit"], bool)
    )


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value < 1e11


def _write(file: Path, data: Json) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}.new")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(data, stream)
        draft.replace(file)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise
