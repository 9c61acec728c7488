"""The parts of the broker that need no connection: addresses, events, limit headers."""

from __future__ import annotations

import pytest

from bailiwick.agents.broker.events import Events, data_of
from bailiwick.agents.broker.grants import Upstream
from bailiwick.agents.broker.limits import limits_of
from bailiwick.agents.port import LimitSeen
from bailiwick.egress.http1 import HeaderFields
from bailiwick.errors import UsageError


@pytest.mark.parametrize("url", ["", "ftp://x", "https://", "https://a b", "http://x:0", "http://x:99999", "x\n"])
def test_an_address_that_is_none_is_refused_at_once(url: str) -> None:
    """Better than a turn that fails in the middle."""
    with pytest.raises(UsageError) as caught:
        Upstream(url)
    assert caught.value.code == "BW260"


def test_a_credential_with_a_line_break_is_refused_without_being_shown() -> None:
    """It would end the header and begin another."""
    with pytest.raises(UsageError) as caught:
        Upstream("https://x", {"x-api-key": "sk-abc\r\nx: y"})
    assert (caught.value.code, "sk-abc" in str(caught.value)) == ("BW261", False)


def test_events_come_whole_however_the_bytes_are_cut() -> None:
    """An error that is inserted between two events must not end up within one."""
    raw = b"event: a\r\ndata: 1\r\n\r\ndata: 2\ndata: 3\n\ndata: 4\r\rdata: 5"
    for size in (1, 2, 3, 7, 100):
        events = Events()
        got = [each for at in range(0, len(raw), size) for each in events.feed(raw[at : at + size])]
        assert [data_of(event) for event, _ in [*got, events.finish()]] == [b"1", b"2\n3", b"4", b"5"]
        assert all(is_whole for _, is_whole in got)


def test_an_event_that_is_too_large_goes_through_in_parts_that_are_marked() -> None:
    """It is not counted, but it is not lost either; the next one is whole again."""
    events = Events(most=100)
    raw = b"data: " + b"x" * 1000 + b"\n\ndata: y\n\n"
    got = [each for at in range(0, len(raw), 64) for each in events.feed(raw[at : at + 64])]
    assert b"".join(event for event, _ in got) == raw
    assert [event for event, is_whole in got if is_whole] == [b"data: y\n\n"]


def test_rates_and_other_windows_are_read_from_headers() -> None:
    """A rate is no cap: only a window that refuses is told as hit."""
    fields = HeaderFields(
        (
            ("anthropic-ratelimit-input-tokens-limit", "1000"),
            ("anthropic-ratelimit-input-tokens-remaining", "250"),
            ("anthropic-ratelimit-input-tokens-reset", "2023-11-14T22:14:20Z"),
            ("x-ratelimit-limit-requests", "100"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-codex-primary-used-percent", "100.0"),
            ("x-codex-primary-window-minutes", "300"),
            ("x-codex-primary-reset-after-seconds", "60"),
            ("x-codex-secondary-used-percent", "40"),
            ("x-codex-secondary-window-minutes", "10080"),
            ("anthropic-ratelimit-unified-7d_oi-utilization", "0.13"),
            ("anthropic-ratelimit-unified-30d-utilization", "nonsense"),
            ("anthropic-ratelimit-unified-status", "allowed"),
            ("anthropic-ratelimit-unified-7d-status", "rejected"),
            ("anthropic-ratelimit-unified-7d-utilization", "1.2"),
        )
    )
    assert limits_of(fields, 429, 1_700_000_000.0) == [
        LimitSeen(False, "week_oi", 0.13),
        LimitSeen(False, "week", 1.2),
        LimitSeen(False, "input_tokens", 0.75, 1_700_000_060.0),
        LimitSeen(False, "requests", 1.0, 1_700_000_360.0),
        LimitSeen(True, "five_hour", 1.0, 1_700_000_060.0),
        LimitSeen(False, "week", 0.4),
    ]
