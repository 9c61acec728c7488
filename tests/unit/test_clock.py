"""Times as people see and write them: in the zone that they chose."""

from __future__ import annotations

from collections.abc import Iterator
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.clock import day, local, local_time, read_local, show_times_in, shown_zone

NAMES = ("UTC", "Asia/Tokyo", "Europe/Berlin", "America/St_Johns", "Pacific/Apia")


@pytest.fixture(autouse=True)
def _machines_own_afterwards() -> Iterator[None]:
    yield
    show_times_in(lambda: None)


@given(name=st.sampled_from(NAMES), at=st.integers(0, 4_000_000_000))
def test_a_shown_time_is_that_of_the_chosen_zone(name: str, at: int) -> None:
    """With its offset, so that it means one moment; what is written with an offset is read as it says."""
    show_times_in(lambda: name)
    assert shown_zone() == ZoneInfo(name)
    assert local_time(at).timestamp() == at
    assert read_local(local(at)) == at
    assert local(at).startswith(day(at))


@given(name=st.sampled_from(NAMES), at=st.integers(0, 4_000_000_000))
def test_a_written_time_without_an_offset_is_one_of_the_chosen_zone(name: str, at: int) -> None:
    """A clock on the wall that is set back shows some times twice; then it is either of them."""
    show_times_in(lambda: name)
    text = local_time(at).replace(tzinfo=None).isoformat()
    assert local_time(read_local(text)).replace(tzinfo=None).isoformat() == text


def test_the_zone_is_looked_up_when_a_time_is_shown_and_only_once() -> None:
    """Most commands show none."""
    asked: list[str] = []

    def zone() -> str:
        asked.append("zone")
        return "Asia/Tokyo"

    show_times_in(zone)
    assert asked == []
    assert (local(0.0), local(1.0)) == ("1970-01-01 09:00:00 +0900", "1970-01-01 09:00:01 +0900")
    assert asked == ["zone"]
