"""When a limit ends: every form that was seen, every zone, the hours that come twice or not at all."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bailiwick.agents.resets import next_month, parse_reset, parse_retry_after, parse_wait

ZONES = (
    "UTC",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Pacific/Apia",
    "Pacific/Chatham",
)


def _at(text: str, zone: str = "UTC") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


NOW = _at("2026-11-15 19:49")


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("resets 3:50am", "2026-11-16 03:50"),
        ("resets at 11pm", "2026-11-15 23:00"),
        ("You've hit your session limit · resets 1:10am (UTC)", "2026-11-16 01:10"),
        ("resets 8pm (America/New_York)", "2026-11-16 01:00"),
        ("5-hour limit reached ∙ resets 9pm", "2026-11-15 21:00"),
        ("Your limit will reset at 9am (America/Chicago).", "2026-11-16 15:00"),
        ("Your limit will reset at 1pm (Etc/GMT+5)", "2026-11-16 18:00"),
        ("resets 12am", "2026-11-16 00:00"),
        ("resets 12pm", "2026-11-16 12:00"),
        ("resets at 21:30", "2026-11-15 21:30"),
        ("or try again at 11:01 PM.", "2026-11-15 23:01"),
        ("resets Oct 9, 3pm", "2027-10-09 15:00"),
        ("You've hit your weekly limit · resets Nov 19, 8:47pm (UTC)", "2026-11-19 20:47"),
        ("Resets Jul 18 at 4am (Europe/Vienna)", "2027-07-18 02:00"),
        ("resets Jan 3, 3pm", "2027-01-03 15:00"),
        ("resets Dec 1", "2026-12-01 00:00"),
        ("try again at Nov 19th, 2026 8:47 PM.", "2026-11-19 20:47"),
        ("try again at Dec 31st, 2026 11:59 PM.", "2026-12-31 23:59"),
        ("You will regain access on 2026-12-01 at 00:00 UTC.", "2026-12-01 00:00"),
        ("Claude AI usage limit reached|1794782952", "2026-11-15 22:49:12"),
        ("1794782952", "2026-11-15 22:49:12"),
        ("1794782952000", "2026-11-15 22:49:12"),
        ("2026-11-16T00:00:00Z", "2026-11-16 00:00"),
        ("2026-11-16T01:00:00.250+01:00", "2026-11-16 00:00"),
        ('{"type":"usage_limit_reached","resets_at":1794784645,"resets_in_seconds":10800}', "2026-11-15 23:17:25"),
        ('{"resets_in_seconds":60}', "2026-11-15 19:50"),
        ("or try again in 2 days 17 hours 14 minutes.", "2026-11-18 13:03"),
        ("Please try again in 6m0s.", "2026-11-15 19:55"),
    ],
)
def test_each_form_that_was_seen_is_understood(text: str, when: str) -> None:
    """A form that is not understood costs an hour of default wait, or a wait that is hours too short."""
    assert parse_reset(text, NOW, "UTC") == _at(when)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "try again later.",
        "resets 3",
        "resets 13pm",
        "resets 0am",
        "resets at 25:00",
        "resets 3:75pm",
        "resets Nov 31, 3pm",
        "resets Feb 30, 3pm",
        "resets 2026-02-30 at 00:00 UTC",
        "Claude AI usage limit reached|1700000000",
        "try again at Nov 14th, 2026 8:47 PM.",
        "wrote 1500 lines at 11pm",
        "resets every month",
        "try again in 3 months",
        "9999999999999",
    ],
)
def test_what_names_no_coming_moment_gives_none(text: str) -> None:
    """No time is better than a wrong one: the default wait is safe, a wait until never is not."""
    assert parse_reset(text, NOW, "UTC") is None


def test_the_zone_in_the_text_wins_over_the_one_given() -> None:
    """The tool knows in which zone it wrote; the run only guesses."""
    assert parse_reset("resets 8pm (Asia/Tokyo)", NOW, "America/New_York") == _at("2026-11-16 11:00")
    assert parse_reset("resets 8pm", NOW, "America/New_York") == _at("2026-11-16 01:00")
    assert parse_reset("resets 8pm (Mars/Olympus)", NOW, "America/New_York") == _at("2026-11-16 01:00")


def test_without_a_known_zone_the_machine_s_own_holds() -> None:
    """Tools write local time when they write no zone."""
    here = datetime.fromtimestamp(NOW, UTC).astimezone()
    said = (here + timedelta(hours=2)).strftime("resets %I:%M%p").lower()
    assert parse_reset(said, NOW, None) == NOW + 7200
    assert parse_reset(said, NOW, "No/Such_Zone") == NOW + 7200


def test_the_minute_that_is_running_is_not_over() -> None:
    """Times are cut to the minute: at 10:49:05 "resets 10:49pm" means in seconds, not tomorrow."""
    assert parse_reset("resets 7:49pm", NOW + 5, "UTC") == NOW + 60
    assert parse_reset("resets 7:49pm", NOW + 60, "UTC") == NOW + 86400


def test_a_date_of_the_last_days_is_a_stale_message_not_a_wait_of_a_year() -> None:
    """A weekly limit that has just been reset may still be told; parking for a year would lose the run."""
    assert parse_reset("resets Nov 15, 3pm", NOW, "UTC") is None
    assert parse_reset("resets Nov 9, 3pm", NOW, "UTC") is None
    assert parse_reset("resets Nov 8, 3pm", NOW, "UTC") == _at("2027-11-08 15:00")
    assert parse_reset("resets Dec 30, 3pm", _at("2027-01-02 10:00"), "UTC") is None


def test_a_leap_day_waits_for_a_leap_year() -> None:
    """29 February exists in some years only; in the others it is no date at all."""
    assert parse_reset("resets Feb 29, 3pm", NOW, "UTC") == _at("2028-02-29 15:00")


def test_an_hour_that_is_skipped_is_counted_by_the_old_offset() -> None:
    """On 14 March 2027 New York has no 2:30: half an hour after the gap began is 3:30 summer time."""
    now = _at("2027-03-14 01:00", "America/New_York")
    assert parse_reset("resets 2:30am (America/New_York)", now, None) == _at("2027-03-14 03:30", "America/New_York")


def test_an_hour_that_comes_twice_is_taken_when_it_comes_next() -> None:
    """On 1 November 2026 New York has two 1:30; the second is not tomorrow."""
    first = _at("2026-11-01 01:30", "America/New_York")
    text = "resets 1:30am (America/New_York)"
    assert parse_reset(text, first - 600, None) == first
    assert parse_reset(text, first + 600, None) == first + 3600
    assert parse_reset(text, first + 4200, None) == _at("2026-11-02 01:30", "America/New_York")


_NOWS = st.integers(1_230_000_000, 2_100_000_000).map(float)


@given(now=_NOWS, zone=st.sampled_from(ZONES), hour=st.integers(0, 23), minute=st.integers(0, 59))
def test_a_time_of_day_is_always_the_next_one_on_that_wall(now: float, zone: str, hour: int, minute: int) -> None:
    """In every zone and on every day: after now, within a day and a bit, and the clock there shows what was said."""
    said = time(hour, minute).strftime("%I:%M%p").lower()
    at = parse_reset(f"resets {said} ({zone})", now, None)
    assert at is not None
    assert now < at <= now + 26 * 3600
    wall = datetime.fromtimestamp(at, ZoneInfo(zone))
    running = at - now <= 60
    skipped = wall.utcoffset() != datetime.fromtimestamp(at - 3 * 3600, ZoneInfo(zone)).utcoffset()
    assert (wall.hour, wall.minute) == (hour, minute) or running or skipped


@given(now=_NOWS, zone=st.sampled_from(ZONES), ahead=st.integers(2 * 86400, 300 * 86400))
def test_a_date_without_a_year_finds_the_year(now: float, zone: str, ahead: int) -> None:
    """Over the turn of a year too: what was written from a coming moment is read back as that moment."""
    wall = datetime.fromtimestamp(now + ahead, ZoneInfo(zone)).replace(second=0, microsecond=0, fold=0)
    moment = wall.timestamp()
    assume(datetime.fromtimestamp(moment, ZoneInfo(zone)) == wall)
    text = f"resets {wall:%b} {wall.day}, {wall:%I:%M%p} ({zone})"
    assert parse_reset(text, now, None) == moment


@given(text=st.text(max_size=200), now=st.floats(-1e12, 1e12), zone=st.one_of(st.none(), st.text(max_size=20)))
def test_no_text_raises_or_gives_a_moment_that_is_over(text: str, now: float, zone: str | None) -> None:
    """The text comes from outside, and a run waits by what is read in it."""
    for words in (text, f"resets {text}", f"try again at {text}", f"resets 3pm ({text})"):
        at = parse_reset(words, now, zone)
        assert at is None or at > now
    wait = parse_retry_after(text, now)
    assert wait is None or 0 <= wait < 1e9


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        ("2.5", 2.5),
        (3600, 3600.0),
        ("6m0s", 360.0),
        ("20ms", 0.02),
        ("1h2m3s", 3723.0),
        ("2 days 17 hours 14 minutes", 234840.0),
        ("1794782952", 10812.0),
        ("1794782952000", 10812.0),
        ("2026-11-15T20:49:00Z", 3600.0),
        ("2026-11-15T21:49:00+01:00", 3600.0),
        ("Sun, 15 Nov 2026 19:50:00 GMT", 60.0),
        ("-5", 0.0),
        ("Sun, 15 Nov 2026 19:40:00 GMT", 0.0),
        ("", None),
        (None, None),
        ("soon", None),
        ("nan", None),
        (float("inf"), None),
        ("6m0", None),
        ("9" * 30, None),
    ],
)
def test_a_retry_header_is_read_in_each_of_its_forms(value: str | float | None, seconds: float | None) -> None:
    """Vendors send seconds, dates, epochs and durations under one name; the wait has to be the same."""
    assert parse_retry_after(value, NOW) == seconds


def test_a_wait_in_words_is_a_span() -> None:
    """The sentence repeats the header, which the tool in between has swallowed."""
    assert parse_wait("Limit 30000, Used 29000, Requested 5000. Please try again in 2s.") == 2.0
    assert parse_wait("Suggested retry after 3600s.") == 3600.0
    assert parse_wait("try again at 11:01 PM.") is None
    assert parse_wait("try again later") is None


def test_the_next_month_begins_at_midnight_utc() -> None:
    """Also after December."""
    assert next_month(NOW) == _at("2026-12-01 00:00")
    assert next_month(_at("2026-12-31 23:59")) == _at("2027-01-01 00:00")
