"""Spans of work: each moment counts once, whatever order they come in."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bailiwick.engine.worktime import TOLD, Span, add_span, told_spans, uncovered

SPANS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 30)).map(lambda s: (float(s[0]), float(s[0] + s[1]))))


def _seconds(spans: list[Span]) -> set[int]:
    return {second for start, end in spans for second in range(int(start), int(end))}


@given(spans=SPANS, more=st.tuples(st.integers(0, 300), st.integers(1, 60)))
def test_the_time_counted_is_the_time_covered(spans: list[Span], more: tuple[int, int]) -> None:
    """Against a plain set of seconds."""
    kept: list[Span] = []
    counted = sum(add_span(kept, *span) for span in spans)
    assert counted == len(_seconds(spans))
    assert _seconds(kept) == _seconds(spans)
    assert all(one[1] < two[0] for one, two in pairwise(kept))
    start, end = float(more[0]), float(sum(more))
    assert uncovered(kept, start, end) == len(_seconds([(start, end)]) - _seconds(spans))


@given(spans=SPANS)
def test_what_a_child_tells_holds_all_it_worked(spans: list[Span]) -> None:
    """A few spans, never less than the work, and exactly it where there are few."""
    kept: list[Span] = []
    for span in spans:
        add_span(kept, *span)
    told = [(start, end) for start, end in told_spans(kept)]
    assert len(told) <= TOLD
    assert _seconds(told) >= _seconds(kept)
    if len(kept) <= TOLD:
        assert told == kept
