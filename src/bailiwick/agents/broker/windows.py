"""The limits that vendors told of, per credential: for people and for reserves, never the truth of a run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from bailiwick.agents.port import LimitSeen
from bailiwick.errors import StoreUnavailable
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.projected import ProjectedDocuments

T = TypeVar("T")
KIND = "limits"
MOST = 64
"""Credentials, and windows of each, that are kept: those seen last."""
_Windows = dict[str, dict[str, dict[str, Json]]]
"""Entries by credential and window."""


@dataclass(frozen=True, slots=True)
class Window:
    """A limit as it was last seen. `used` is a share of 1; times are seconds since the epoch."""

    credential: str
    window: str
    used: float | None
    resets_at: float | None
    hit: bool
    seen_at: float


class VendorLimits:
    """What vendors said of their windows: one document, whose file `limits.json` is for people."""

    def __init__(self, store: Store, state: Path) -> None:
        self.documents = ProjectedDocuments(store, state, KIND, _read_old)

    async def all(self) -> list[Window]:
        """Every window seen so far, by credential and name."""
        kept = _sound(await self.documents.get(KIND))
        found = [Window(**entry) for entries in kept.values() for entry in entries.values()]
        return sorted(found, key=lambda window: (window.credential, window.window))

    async def remember(self, credential: str, seen: Sequence[LimitSeen], now: float) -> None:
        """Keep what a vendor said of windows; a store that can't be written now stops nothing."""
        entries = {one.window: _entry(credential, one, now) for one in seen if one.window}
        told = {name: entry for name, entry in entries.items() if _is_sound(entry, credential, name)}
        if not told:
            return

        def with_them(known: Json) -> Json:
            kept = _sound(known)
            kept[credential] = _newest({**kept.get(credential, {}), **told}, lambda entry: entry["seen_at"])
            return _newest(kept, lambda windows: max(entry["seen_at"] for entry in windows.values()))

        with suppress(StoreUnavailable):
            await self.documents.change(KIND, with_them)


def _entry(credential: str, seen: LimitSeen, now: float) -> dict[str, Json]:
    return asdict(
        Window(credential, window=seen.window, used=seen.used, resets_at=seen.resets_at, hit=seen.hit, seen_at=now)
    )


def _newest(entries: dict[str, T], seen_at: Callable[[T], float]) -> dict[str, T]:
    return dict(sorted(entries.items(), key=lambda pair: seen_at(pair[1]))[-MOST:])


def _read_old(path: Path) -> Json:
    """The file of an earlier version; a broken one is as good as none."""
    try:
        return _sound(json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError):
        return None


def _sound(data: Json) -> _Windows:
    """The entries that can be used; a broken one is as good as none."""
    kept: _Windows = {}
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
