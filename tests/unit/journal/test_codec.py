"""Events to rows and back: what is large leaves the row, what the engine reads never does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.engine import events as ev
from bailiwick.engine.state import Deferred
from bailiwick.errors import JournalCorrupt
from bailiwick.ids import Json
from bailiwick.journal.codec import decode, encode
from bailiwick.journal.rows import StoredEvent

LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    LEAVES | st.text(), lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text() | st.just("$blob"), v, max_size=3)
)


def _back(event: ev.Event) -> tuple[ev.Event, dict[str, bytes]]:
    row, blobs = encode(event, 1.0)
    return decode(StoredEvent(1, row.type, row.version, row.body, row.at)), blobs


def _whole(value: Json, blobs: dict[str, bytes]) -> Json:
    return json.loads(blobs[value.digest]) if isinstance(value, Deferred) else value


@given(writes=st.dictionaries(st.text(), VALUES, max_size=4))
def test_every_value_comes_back_as_it_was(writes: dict[str, Json]) -> None:
    """Whatever a script prints: a value that looks like a reference to a blob, too."""
    event, blobs = _back(ev.StepPassed("", "n", 1, "m", writes))
    assert isinstance(event, ev.StepPassed)
    assert {key: _whole(value, blobs) for key, value in event.writes.items()} == writes


def test_a_large_value_leaves_the_row_and_is_named_by_its_digest() -> None:
    """The same megabyte written again is the same blob."""
    big = "x" * 10_000
    row, blobs = encode(ev.EffectFinished("", "k", {"big": big, "small": 1}), 1.0)
    assert len(row.body) < 300
    assert [json.loads(data) for data in blobs.values()] == [big]
    assert encode(ev.StepPassed("", "n", 1, "m", {"other": big}), 2.0)[1] == blobs


def test_a_value_that_is_still_deferred_keeps_its_reference() -> None:
    """An answer read back after a crash is passed on without being fetched."""
    row, blobs = encode(ev.StepDone("", "n", 1, "m", {"n": Deferred("ab" * 32)}), 1.0)
    assert blobs == {}
    event = decode(StoredEvent(1, row.type, row.version, row.body, row.at))
    assert isinstance(event, ev.StepDone)
    assert event.writes == {"n": Deferred("ab" * 32)}


def test_a_long_failure_stays_readable_for_the_engine() -> None:
    """What decides is never behind a reference."""
    event, blobs = _back(ev.EffectFinished("", "k", failure={"kind": "exit", "message": "m" * 9000, "detail": None}))
    assert isinstance(event, ev.EffectFinished)
    assert event.failure is not None
    assert len(event.failure["message"]) == 9000
    assert blobs == {}


@pytest.mark.parametrize(("kind", "body"), [("Unheard", "{}"), ("RunStopped", "{"), ("RunStopped", '{"x": 1}')])
def test_a_row_that_this_version_cannot_read_is_said_to_be_so(kind: str, body: str) -> None:
    """Better to stop than to walk a run half understood."""
    with pytest.raises(JournalCorrupt):
        decode(StoredEvent(1, kind, 1, body, 0.0))
