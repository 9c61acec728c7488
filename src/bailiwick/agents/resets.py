"""When a limit ends: the reset times and waits that vendors write as headers, numbers or words. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

_LOOK = 4096
_MINUTE = 60.0
_STALE_DAYS = 7
_FARTHEST = 10 * 366 * 86400.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_PART = re.compile(
    r"(\d{1,12}(?:\.\d{1,9})?)\s?"
    r"(ms|milliseconds?|seconds?|secs?|s|minutes?|mins?|months?|m|hours?|hrs?|h|days?|d|weeks?|w)(?![a-z])[,\s]*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,12})?")
_AHEAD = r"(?:resets?|try again|retry|available again|regain access)(?: (?:at|on))?[ :]\s*"
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::\d{2})?\s?(?P<half>[ap]\.?m\b\.?)?"
_ZONE = r"(?:\s*\((?P<zone>[A-Za-z][\w+\-/]{1,40})\)|\s*(?P<utc>UTC|GMT|Z)\b)?"
_EPOCH = re.compile(r"(?:\||\bresets?_?at\"?\s*[:=]\s*|^)(\d{10}|\d{13})(?:\.\d+)?(?=$|[\s,}|.;)])", re.IGNORECASE)
_IN_SECONDS = re.compile(r"\bresets_in_seconds\"?\s*[:=]\s*(\d{1,9})\b")
_ISO = re.compile(
    r"(?<![\d-])(?P<day>\d{4}-\d{2}-\d{2})"
    r"(?:(?:T| at | )(?P<time>\d{2}:\d{2}(?::\d{2})?)(?:\.\d{1,9})?"
    r"\s?(?P<offset>Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?(?![\d-])",
    re.IGNORECASE,
)
_SPAN = re.compile(
    r"(?:try again|retry|resets?|wait)(?: after| in)? ((?:\d[\d.]*\s?[a-z]+[,\s]{0,2}){1,6})", re.IGNORECASE
)
_DATED = re.compile(
    _AHEAD + r"(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.? (?P<day>\d{1,2})(?:st|nd|rd|th)?"
    r"(?:,? (?P<year>\d{4})\b)?(?:(?:,| at|, at)? " + _CLOCK + r")?" + _ZONE,
    re.IGNORECASE,
)
_TIMED = re.compile(_AHEAD + _CLOCK + _ZONE, re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Place:
    """A time zone; without a name the machine's own."""

    zone: tzinfo | None

    def wall(self, at: float) -> datetime:
        """The wall clock there, without a zone."""
        return datetime.fromtimestamp(at, UTC).astimezone(self.zone).replace(tzinfo=None)

    def epochs(self, wall: datetime) -> tuple[float, ...]:
        """The moments at which the wall clock shows this, in order; one that is skipped counts by the old offset."""
        both = (wall.replace(fold=0), wall.replace(fold=1))
        if self.zone is None:
            moments = {each.astimezone().timestamp() for each in both}
        else:
            moments = {each.replace(tzinfo=self.zone).timestamp() for each in both}
        first, last = min(moments), max(moments)
        return (first, last) if self.wall(first) == wall.replace(fold=0) else (last,)


def parse_reset(text: str, now: float, zone: str | None) -> float | None:
    """The moment at which a limit ends by these words, always after `now`; None where they name none still to come.

    A zone in the text wins over `zone`, which wins over the machine's. Times are said to the minute, so the minute
    that is running is not over: its end is given. A time of day that is over means the next day. A date without a
    year that is over means the next year, but one of the last seven days (today included) is a message gone stale,
    not a wait of a year: None, and the caller's default wait holds.
    """
    said = text[:_LOOK].strip()
    try:
        at = _find(said, now, zone)
    except (ValueError, OverflowError, OSError):
        return None
    return at if at is not None and now < at < now + _FARTHEST else None


def parse_retry_after(value: str | float | None, now: float) -> float | None:
    """Seconds to wait by a header, never below 0: a number, 6m0s, 20ms, an HTTP or RFC 3339 date, an epoch."""
    said = str(value).strip()[:200] if value is not None else ""
    if not said:
        return None
    try:
        seconds = _wait_of(said, now)
    except (ValueError, OverflowError, OSError):
        return None
    return None if seconds is None or seconds > _FARTHEST else max(0.0, seconds)


def parse_wait(text: str) -> float | None:
    """The span that a message asks to wait ("try again in 2s", "retry after 1h 5m"), in seconds."""
    found = _SPAN.search(text[:_LOOK])
    return _duration(found[1]) if found else None


def next_month(now: float) -> float:
    """Midnight UTC on the first day of the month that follows."""
    today = datetime.fromtimestamp(now, UTC)
    year, month = (today.year + 1, 1) if today.month == 12 else (today.year, today.month + 1)
    return datetime(year, month, 1, tzinfo=UTC).timestamp()


def _find(said: str, now: float, zone: str | None) -> float | None:
    if found := _EPOCH.search(said):
        return _epoch(float(found[1]))
    if found := _IN_SECONDS.search(said):
        return now + float(found[1])
    if found := _ISO.search(said):
        return _iso(found, now, zone)
    if found := _DATED.search(said):
        return _dated(found, now, _place(found, zone))
    if (span := parse_wait(said)) is not None:
        return now + span
    for found in _TIMED.finditer(said):
        clock = _clock(found)
        if clock is not None:
            return _next_time(clock, now, _place(found, zone))
    return None


def _wait_of(said: str, now: float) -> float | None:
    if _NUMBER.fullmatch(said):
        number = float(said)
        return number if number < 1e9 else _epoch(number) - now
    if (span := _duration(said)) is not None:
        return span
    if found := _ISO.fullmatch(said):
        at = _iso(found, now, "UTC")
        return None if at is None else at - now
    from email.utils import parsedate_to_datetime

    moment = parsedate_to_datetime(said)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now


def _epoch(number: float) -> float:
    """Seconds since the epoch, also of a number in milliseconds."""
    return number / 1000 if number >= 1e11 else number


def _duration(said: str) -> float | None:
    """Seconds of "1h2m3s", "20ms" or "2 days 17 hours 14 minutes"; None where anything else is in it."""
    total, at, text = 0.0, 0, said.strip().rstrip(".")
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2].lower().startswith("month"):
            return None
        total += float(part[1]) * _UNITS[_unit(part[2].lower())]
        at = part.end()
    return total if text else None


def _unit(word: str) -> str:
    return "ms" if word == "ms" or word.startswith("milli") else word[0]


def _place(found: re.Match[str], zone: str | None) -> _Place:
    """The zone in the text, else the one given, else the machine's; a name that is not known is passed over."""
    said = _named("UTC" if found["utc"] else found["zone"])
    return _Place(said if said is not None else _named(zone))


def _clock(found: re.Match[str]) -> time | None:
    """The time of day in a match; None where a bare number is no time. Raises `ValueError` on 13pm or 25:00."""
    hour, half = found["hour"], (found["half"] or "").lower()
    if hour is None or not (half or found["minute"]):
        return None
    number = int(hour)
    if half:
        if not 1 <= number <= 12:
            raise ValueError(hour)
        number = number % 12 + (12 if half.startswith("p") else 0)
    return time(number, int(found["minute"] or 0))


def _iso(found: re.Match[str], now: float, zone: str | None) -> float | None:
    day, clock, offset = found["day"], found["time"] or "00:00", (found["offset"] or "").upper()
    if offset:
        sign = "+00:00" if offset in ("Z", "UTC", "GMT") else offset
        return datetime.fromisoformat(f"{day}T{clock}{sign}").timestamp()
    place = _Place(_named(zone))
    return _soonest(place.epochs(datetime.fromisoformat(f"{day}T{clock}")), now)


def _named(zone: str | None) -> tzinfo | None:
    """The zone of that name, if it is known; UTC also where the machine has no table of zones."""
    if not zone or zone.upper() in ("UTC", "GMT"):
        return UTC if zone else None
    try:
        return ZoneInfo(zone.removeprefix(":"))
    except (KeyError, ValueError, OSError):
        return None


def _soonest(moments: tuple[float, ...], now: float) -> float | None:
    """The first of `moments` that is to come; in the minute that is running, its end."""
    for at in moments:
        if at > now:
            return at
        if at + _MINUTE > now:
            return at + _MINUTE
    return None


def _next_time(clock: time, now: float, place: _Place) -> float | None:
    today = place.wall(now).date()
    found = [_soonest(place.epochs(datetime.combine(today + timedelta(days), clock)), now) for days in range(-1, 3)]
    return min((at for at in found if at is not None), default=None)


def _dated(found: re.Match[str], now: float, place: _Place) -> float | None:
    clock = _clock(found) or time(0)
    month, day = _MONTHS.index(found["month"].lower()) + 1, int(found["day"])
    if found["year"]:
        return _soonest(place.epochs(datetime.combine(date(int(found["year"]), month, day), clock)), now)
    here = place.wall(now)
    for wall in _years(here.year, month, day, clock):
        at = _soonest(place.epochs(wall), now)
        if at is not None:
            return at
        if here - wall < timedelta(days=_STALE_DAYS):
            return None
    return None


def _years(year: int, month: int, day: int, clock: time) -> Iterator[datetime]:
    """That day from last year on, in the years that have it: a 29 February may be eight years away."""
    for each in range(year - 1, year + 9):
        try:
            yield datetime.combine(date(each, month, day), clock)
        except ValueError:
            continue
