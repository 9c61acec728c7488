"""Time spans, and moments so long ago, as people write them."""

from __future__ import annotations

import re

from bailiwick.clock import read_local
from bailiwick.errors import UsageError
from bailiwick.ids import Json

_PARTS = re.compile(
    r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,9})ms)?", re.ASCII
)
_FACTORS = (86400.0, 3600.0, 60.0, 1.0, 0.001)
_PLAIN = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)


def seconds_of(data: Json) -> float | None:
    """The seconds of `90`, "90", "10s", "1h30m", "500ms" or "2d"; None for anything else."""
    if isinstance(data, bool):
        return None
    if isinstance(data, int | float):
        return float(data) if data >= 0 else None
    if not isinstance(data, str):
        return None
    text = data.strip()
    if _PLAIN.fullmatch(text):
        return float(text)
    parts = _PARTS.fullmatch(text)
    if not text or parts is None:
        return None
    return sum(float(part) * factor for part, factor in zip(parts.groups(), _FACTORS, strict=True) if part)


def beginning(since: str | None, now: float) -> float | None:
    """The moment that a span ago or a local date means; None where nothing was said."""
    if since is None:
        return None
    span = seconds_of(since)
    try:
        return max(0.0, now - span if span is not None else read_local(since))
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since {since} is not a time",
            hint="write a span such as 7d or 12h, or a date such as 2026-11-01 or 2026-11-01T09:00",
            code="BW202",
        ) from None
