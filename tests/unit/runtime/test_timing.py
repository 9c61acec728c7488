"""When a wait is over."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.runtime.timing import LATEST, due_at

NOW = datetime(2026, 3, 28, 12, 0, tzinfo=UTC).timestamp()
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kathmandu", "UTC")
moments = st.floats(
    datetime(2020, 1, 1, tzinfo=UTC).timestamp(), datetime(2032, 1, 1, tzinfo=UTC).timestamp(), allow_nan=False
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("+2h", 7200),
        ("2h", 7200),
        ("90", 90),
        ("+90", 90),
        ("10s", 10),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("500ms", 0.5),
        ("+0", 0),
        (" +5m ", 300),
        ("+20260101", 20_260_101),
    ],
)
def test_a_span_counts_from_now(text: str, seconds: float) -> None:
    """`for: 2h` and `until: +2h` are the same wait."""
    assert due_at(text, NOW, "UTC") == NOW + seconds


@pytest.mark.parametrize(
    ("text", "zone", "utc"),
    [
        ("2026-05-01T09:00:00Z", "Europe/Berlin", "2026-05-01T09:00:00+00:00"),
        ("2026-05-01T09:00:00+02:00", "UTC", "2026-05-01T07:00:00+00:00"),
        ("2026-05-01t09:00:00.250z", "UTC", "2026-05-01T09:00:00.250000+00:00"),
        ("2026-05-01 09:00", "Europe/Berlin", "2026-05-01T07:00:00+00:00"),
        ("2026-12-01T09:00:00", "Europe/Berlin", "2026-12-01T08:00:00+00:00"),
        ("2026-05-01", "America/New_York", "2026-05-01T04:00:00+00:00"),
        ("2026-05-01", ":Europe/Berlin", "2026-04-30T22:00:00+00:00"),
    ],
)
def test_a_date_and_time_is_taken_with_its_offset_or_in_the_zone(text: str, zone: str, utc: str) -> None:
    """Nine o'clock means nine o'clock where the person is."""
    assert datetime.fromtimestamp(due_at(text, NOW, zone), UTC).isoformat() == utc


def test_a_time_that_has_passed_is_due_at_once() -> None:
    """A run that slept through its hour goes on."""
    assert due_at("2001-01-01", NOW, "UTC") == NOW
    assert due_at("2001-01-01T00:00:00Z", NOW, "UTC") == NOW


def test_cron_fires_strictly_after_now() -> None:
    """A wait that opens at nine sharp is for the next nine o'clock, else a loop would spin."""
    nine = datetime(2026, 3, 30, 9, 0, tzinfo=UTC).timestamp()
    assert due_at("0 9 * * *", nine - 0.5, "UTC") == nine
    assert due_at("0 9 * * *", nine, "UTC") == nine + 86_400
    assert due_at("0 9 * * MON-FRI", nine, "UTC") == nine + 86_400
    assert due_at("*/15 * * * *", nine + 1, "UTC") == nine + 900


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "+",
        "+soon",
        "++5",
        "+-5",
        "-5",
        "+nan",
        "+inf",
        "nan",
        "inf",
        "1e400",
        "+1.5h",
        "20260501",
        "1777626000",
        "2026-13-01",
        "2026-02-30T00:00:00Z",
        "2026-05-01T25:00",
        "2026-W10-1",
        "* * * *",
        "0 0 9 * * *",
        "61 * * * *",
        "0 0 30 2 *",
        "@daily",
        "9999-12-31T23:59:59-01:00",
        "+999999999d",
        "x" * 100_000,
    ],
)
def test_other_texts_are_refused_with_examples(text: str) -> None:
    """A wait that nobody understands must not become a wait of no time, or of a thousand years."""
    with pytest.raises(ValueError, match=r"write |\+90") as caught:
        due_at(text, NOW, "UTC")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "", "/etc/localtime", "CET-1CEST"])
def test_an_unknown_zone_is_refused_by_name(zone: str) -> None:
    """A typo in the zone would shift every wait by hours."""
    for text in ("0 9 * * *", "2026-05-01T09:00"):
        with pytest.raises(ValueError, match="time zone"):
            due_at(text, NOW, zone)


def test_without_a_zone_the_systems_own_is_taken() -> None:
    """It gives an answer on every machine; which one depends on the machine."""
    assert abs(due_at("2026-05-01T00:00", NOW, None) - due_at("2026-05-01T00:00", NOW, "UTC")) <= 14 * 3600
    assert NOW < due_at("0 9 * * *", NOW, None) <= NOW + 86_400


@given(text=st.text(max_size=40), now=moments)
def test_any_text_gives_a_time_or_a_sentence(text: str, now: float) -> None:
    """The text is rendered from data: nothing in it may raise anything else."""
    with suppress(ValueError):
        assert now <= due_at(text, now, "Europe/Berlin") <= LATEST


cron_fields = st.text("0123456789*/,-#LW", min_size=1, max_size=6)


@given(fields=st.tuples(cron_fields, cron_fields, cron_fields, cron_fields, cron_fields), now=moments)
def test_any_cron_line_gives_a_later_time_or_a_sentence(fields: tuple[str, ...], now: float) -> None:
    """A line that looks like cron is never an endless search or a foreign exception."""
    with suppress(ValueError):
        assert due_at(" ".join(fields), now, "Europe/Berlin") > now


@given(minute=st.integers(0, 59), hour=st.integers(0, 23), zone=st.sampled_from(ZONES), now=moments)
def test_a_daily_line_fires_once_a_day_also_when_the_clocks_change(
    minute: int, hour: int, zone: str, now: float
) -> None:
    """An hour that is skipped must not lose the day, an hour that comes twice must not fire twice."""
    line = f"{minute} {hour} * * *"
    here = ZoneInfo(zone)
    first = due_at(line, now, zone)
    days = [first]
    for _ in range(3):
        days.append(due_at(line, days[-1], zone))
    assert now < first <= now + 86_400 + 7_200
    dates = [datetime.fromtimestamp(at, here).date() for at in days]
    assert [later - earlier for earlier, later in pairwise(dates)] == [timedelta(days=1)] * 3
    for at in days:
        local = datetime.fromtimestamp(at, here)
        wished = local.replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
        exists = wished.astimezone(UTC).astimezone(here).replace(tzinfo=None) == wished.replace(tzinfo=None)
        assert not exists or (local.hour, local.minute) == (hour, minute)


@given(now=moments, zone=st.sampled_from(ZONES))
def test_an_hourly_line_never_waits_longer_than_an_hour(now: float, zone: str) -> None:
    """Across a change of clocks, a check that runs every hour still does."""
    assert now < due_at("0 * * * *", now, zone) <= now + 3_600 + (1_800 if zone == "Australia/Lord_Howe" else 0)


@given(
    wall=st.datetimes(datetime(2020, 1, 1), datetime(2032, 1, 1)),  # noqa: DTZ001 - wall clocks have no offset
    zone=st.sampled_from(ZONES),
)
def test_a_time_without_an_offset_shows_on_the_clock_of_the_zone(wall: datetime, zone: str) -> None:
    """In a skipped hour it is moved on, never lost; in a repeated one the first is meant."""
    wall = wall.replace(microsecond=0, fold=0)
    here = ZoneInfo(zone)
    local = datetime.fromtimestamp(due_at(wall.isoformat(), 0.0, zone), here)
    skipped = wall.replace(tzinfo=here).astimezone(UTC).astimezone(here).replace(tzinfo=None) != wall
    shift = local.replace(tzinfo=None) - wall
    assert shift == timedelta(0) if not skipped else timedelta(0) < shift <= timedelta(hours=1)
    assert skipped or local.fold == 0
