"""What an answer's header says about limits: the windows of a subscription, the rates of a key, the wait it asks for.

Windows are called `five_hour` and `week`, as in the configuration; rates by what they count. Only a window that
refuses counts as hit: a rate that is used up is over within a minute, and its status says enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bailiwick.agents.port import LimitSeen
from bailiwick.agents.resets import parse_retry_after
from bailiwick.egress.http1 import HeaderFields

_UNIFIED = re.compile(r"anthropic-ratelimit-unified-(\d+[a-z](?:_[a-z0-9_]+)?)-(?:utilization|reset|status)")
_RATE = re.compile(r"anthropic-ratelimit-((?:input-|output-)?tokens|requests)-(?:remaining|reset)")
_OPENAI = re.compile(r"x-ratelimit-(?:remaining|reset)-(tokens|requests)")
_CODEX = re.compile(r"x-codex-((?:[a-z0-9]+-)?(?:primary|secondary))-(?:used-percent|reset-at|reset-after-seconds)")
_NAMES = {"5h": "five_hour", "7d": "week", "seven_day": "week"}
_MINUTES = {"300": "five_hour", "10080": "week"}
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,18})?")
_KEPT = 64


def limits_of(fields: HeaderFields, status: int, now: float) -> list[LimitSeen]:
    """Every limit that an answer's header tells of."""
    seen = [*_unified(fields, now), *_rates(fields, now), *_codex(fields, status, now)]
    return seen[:_KEPT]


def _unified(fields: HeaderFields, now: float) -> Iterator[LimitSeen]:
    prefix = "anthropic-ratelimit-unified"
    stops = fields.get(f"{prefix}-status") == "rejected"
    windows = _named(fields, _UNIFIED)
    for window in windows:
        head = f"{prefix}-{window}"
        hit = stops and fields.get(f"{head}-status") == "rejected"
        used, resets_at = _number(fields.get(f"{head}-utilization")), _moment(fields.get(f"{head}-reset"), now)
        if used is not None or resets_at is not None:
            yield LimitSeen(hit, _window(window), used, resets_at)
    if stops and not windows:
        claim = fields.get(f"{prefix}-representative-claim")
        yield LimitSeen(True, _NAMES.get(claim, claim), None, _moment(fields.get(f"{prefix}-reset"), now))


def _rates(fields: HeaderFields, now: float) -> Iterator[LimitSeen]:
    for what in _named(fields, _RATE):
        head = f"anthropic-ratelimit-{what}"
        yield from _rate(fields, what, (f"{head}-limit", f"{head}-remaining", f"{head}-reset"), now)
    for what in _named(fields, _OPENAI):
        names = (f"x-ratelimit-limit-{what}", f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}")
        yield from _rate(fields, what, names, now)


def _rate(fields: HeaderFields, what: str, names: tuple[str, str, str], now: float) -> Iterator[LimitSeen]:
    most, left = (_number(fields.get(name)) for name in names[:2])
    used = None if not most or left is None else max(0.0, 1 - left / most)
    resets_at = _moment(fields.get(names[2]), now)
    if used is not None or resets_at is not None:
        yield LimitSeen(False, what.replace("-", "_"), used, resets_at)


def _codex(fields: HeaderFields, status: int, now: float) -> Iterator[LimitSeen]:
    for name in _named(fields, _CODEX):
        head = f"x-codex-{name}"
        minutes = fields.get(f"{head}-window-minutes")
        percent = _number(fields.get(f"{head}-used-percent"))
        if minutes == "0" or percent is None:
            continue
        resets_at = _moment(fields.get(f"{head}-reset-at") or fields.get(f"{head}-reset-after-seconds"), now)
        window = _MINUTES.get(minutes, f"{minutes}_minutes" if minutes else name)
        model = name.removesuffix("primary").removesuffix("secondary").strip("-")
        yield LimitSeen(
            status == 429 and percent >= 100, f"{window}_{model}" if model else window, percent / 100, resets_at
        )


def _named(fields: HeaderFields, pattern: re.Pattern[str]) -> list[str]:
    """What the fields of a family are about, each once."""
    found = (pattern.fullmatch(name) for name, _ in fields.pairs)
    return list(dict.fromkeys(each[1] for each in found if each))


def _window(name: str) -> str:
    span, _, model = name.partition("_")
    return _NAMES.get(span, span) + (f"_{model}" if model else "")


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _moment(text: str, now: float) -> float | None:
    """The moment that a header names: seconds since the epoch, RFC 3339, or a span such as 6m0s."""
    wait = parse_retry_after(text, now)
    return None if wait is None else now + wait
