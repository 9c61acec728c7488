"""Reading foreign output: every line once, none longer than the bound, any JSON, no surprise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents.streams import (
    CUT,
    LineSplitter,
    OutputBounds,
    as_object,
    at,
    count_at,
    excerpt,
    number_at,
    objects_at,
    read_object,
    text_at,
    total_of,
)


def _split(chunks: list[bytes], bounds: OutputBounds | None = None) -> list[bytes]:
    seen: list[bytes] = []
    lines = LineSplitter(seen.append, bounds)
    for chunk in chunks:
        lines.feed(chunk)
    lines.close()
    return seen


@given(st.lists(st.binary(max_size=8) | st.sampled_from([b"\n", b"a\n", b"\n\n"]), max_size=20))
def test_lines_do_not_depend_on_how_the_bytes_arrive(chunks: list[bytes]) -> None:
    """A pipe cuts where it likes."""
    whole = b"".join(chunks).split(b"\n")
    if whole[-1] == b"":
        whole.pop()
    assert _split(chunks) == whole


@given(st.lists(st.binary(max_size=12) | st.just(b"\n"), max_size=20), st.integers(1, 6))
def test_no_line_is_longer_than_the_bound_and_a_cut_one_says_so(chunks: list[bytes], bound: int) -> None:
    """An endless line costs as much as the longest allowed one."""
    whole = b"".join(chunks).split(b"\n")
    if whole[-1] == b"":
        whole.pop()
    assert _split(chunks, OutputBounds(line=bound)) == [w if len(w) <= bound else w[:bound] + CUT for w in whole]


def test_it_is_told_how_many_lines_ended() -> None:
    """A line is a sign of life; half of one is not."""
    lines = LineSplitter(lambda _line: None)
    assert [lines.feed(data) for data in (b"a", b"b\nc", b"\n\nd\n", b"")] == [0, 1, 3, 0]


@pytest.mark.parametrize(
    "bounds", [OutputBounds(total=10, last=3), OutputBounds(lines=5, last=3)], ids=["bytes", "lines"]
)
@pytest.mark.parametrize("at_once", [1, 7, 200])
def test_past_the_total_the_newest_lines_come_at_the_end(bounds: OutputBounds, at_once: int) -> None:
    """An answer stands last: whoever printed too much before it is still heard."""
    first = b"0\n1\n2\n3\n4\n"
    flood = b"".join(b"%d\n" % number for number in range(5, 100))
    chunks = [flood[start : start + at_once] for start in range(0, len(flood), at_once)]
    assert _split([first, *chunks], bounds) == [b"0", b"1", b"2", b"3", b"4", b"97", b"98", b"99"]


def test_past_the_total_no_more_is_held_than_one_line_may_have() -> None:
    """Sixty-four lines of the longest kind would be a gigabyte."""
    chunks = [b"x" * 10 + b"\n", *(b"%d" % number * 8 + b"\n" for number in range(10))]
    assert _split(chunks, OutputBounds(line=20, total=5, last=64)) == [b"8" * 8, b"9" * 8]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'  {"a": "\xff"}\r', {"a": "\ufffd"}),
        (b"", None),
        (b"[1]", None),
        (b"prose {", None),
        (b"{broken", None),
        (b'{"a": 1}' + CUT, None),
        (b"{" * 100_000, None),
        (b'{"a":' * 100_000, None),
        (b'{"a": ' + b"9" * 5000 + b"}", None),
    ],
)
def test_a_line_is_an_object_or_nothing(line: bytes, value: object) -> None:
    """What is no event of the program is passed over: banners, warnings, halves of lines, traps for parsers."""
    assert read_object(line) == value


def test_a_field_of_another_type_is_absent() -> None:
    """A number where a text was is as good as nothing; so is an amount that can't be one."""
    data = as_object('{"t": "x", "n": 2, "b": true, "neg": -1, "l": [1, {"k": 1}], "d": {"t": 1}, "inf": Infinity}')
    assert (text_at(data, "t"), text_at(data, "n"), text_at(data, "t", "deeper"), text_at(None, "t")) == (
        "x",
        "",
        "",
        "",
    )
    assert (number_at(data, "n"), number_at(data, "b"), number_at(data, "neg"), number_at(data, "inf")) == (
        2,
        None,
        None,
        None,
    )
    assert (count_at(data, "n"), count_at(data, "t")) == (2, None)
    assert (objects_at(data, "l"), objects_at(data, "d")) == ([{"k": 1}], [])
    assert at(data, "d", "t") == 1


def test_a_sum_of_unknowns_is_unknown() -> None:
    """Unknown is not zero."""
    assert (total_of(None, None), total_of(1, None, 2), total_of()) == (None, 3, None)


def test_an_excerpt_is_marked_where_it_is_cut() -> None:
    """Nobody takes a part for the whole."""
    assert (excerpt("abc", 3), excerpt("abcd", 3)) == ("abc", "ab…")
