"""When a `wait` is over: a span from now, a date and time, or the next firing of a cron expression."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from bailiwick.lang.durations import seconds_of

LATEST = 253_402_300_799.0
"""The end of the year 9999: no date can be written for a later time."""

_EXAMPLES = (
    'write a span ("+2h", "1h30m"), a time ("2026-05-01T09:00:00+02:00", "2026-05-01") or cron ("0 9 * * MON-FRI")'
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2})?", re.ASCII)
_COMPACT = re.compile(r"\d{8,}", re.ASCII)


def due_at(text: str, now: float, zone: str | None) -> float:
    """When `text` is due, never before `now`; a time without an offset and cron are meant in `zone`.

    Without a zone the system's own is taken. Raises `ValueError` with a sentence for people.
    """
    text = text.strip()
    at = _span(text, now)
    if at is None:
        at = _moment(text, zone)
    if at is None:
        at = _firing(text, now, zone)
    if at > LATEST:
        raise ValueError(f"{_quoted(text)} is after the year 9999; {_EXAMPLES}")
    return max(at, now)


def _span(text: str, now: float) -> float | None:
    """The end of a span that begins now; None where the text is none."""
    explicit = text.startswith("+")
    if not explicit and _COMPACT.fullmatch(text):
        raise ValueError(
            f"{_quoted(text)} can be read as a date or as seconds; write '+{text[:20]}' for seconds, or {_EXAMPLES}"
        )
    seconds = seconds_of(text.removeprefix("+"))
    if seconds is None and explicit:
        raise ValueError(
            f'{_quoted(text)} is not a duration; write one like "+90", "+10s", "+1h30m", "+2d" or "+500ms"'
        )
    return None if seconds is None else now + seconds


def _moment(text: str, zone: str | None) -> float | None:
    """A date and time or a date; None where the text has another form."""
    if not _TIME.fullmatch(text) and not _DATE.fullmatch(text):
        return None
    here = _zone(zone)
    try:
        moment = datetime.fromisoformat(text.upper())
        aware = moment if moment.tzinfo else moment.replace(tzinfo=here)
        return (aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{_quoted(text)} is not a date and time that exists ({error}); {_EXAMPLES}") from None


def _firing(text: str, now: float, zone: str | None) -> float:
    """The next firing of a cron expression, strictly after now."""
    from cronsim import CronSim, CronSimError

    if len(text.split()) != 5 or len(text) > 200:
        raise ValueError(f"{_quoted(text)} is not a time; {_EXAMPLES}")
    try:
        for moment in CronSim(text, datetime.fromtimestamp(math.floor(now), _zone(zone))):
            if moment.timestamp() > now:  # in an hour that comes twice, the first pass may already be over
                return moment.timestamp()
    except (CronSimError, OverflowError) as error:
        raise ValueError(f"{_quoted(text)} is not a cron expression ({error}); {_EXAMPLES}") from None
    raise ValueError(f"{_quoted(text)} never fires; {_EXAMPLES}")


def _zone(name: str | None) -> tzinfo:
    """The zone of a name such as Europe/Berlin; None is the system's own."""
    from zoneinfo import ZoneInfo

    if name is None:
        try:
            with Path("/etc/localtime").open("rb") as file:
                return ZoneInfo.from_file(file)
        except (OSError, ValueError):
            return UTC
    try:
        return ZoneInfo(name.removeprefix(":"))
    except (KeyError, ValueError, OSError):
        raise ValueError(
            f"the time zone {_quoted(name)} is not known; write one like 'Europe/Berlin' or 'UTC'"
        ) from None


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "…")
