"""The shapes that only configuration has."""

from __future__ import annotations

import pytest

from bailiwick.config.shapes import FilePath, Share, Size, as_value, from_text, masked
from bailiwick.ids import Json
from bailiwick.lang.fields import Findings, Flag, ListOf, Number, Shape, Text


@pytest.mark.parametrize(
    ("shape", "given", "read"),
    [
        (Size(), "20 GB", 20 * 10**9),
        (Size(), "1.5MB", 1_500_000),
        (Size(), 7, 7),
        (Share(), "30%", 0.3),
        (Share(), 0.25, 0.25),
        (FilePath(), "~/x", "~/x"),
    ],
)
def test_a_value_is_read_in_its_unit(shape: Shape, given: Json, read: Json) -> None:
    """Bytes and parts of one are what the code computes with; people write what they say."""
    assert shape.read(as_value(given, "here"), Findings()) == read


@pytest.mark.parametrize(
    ("shape", "given"),
    [(Size(), "20 GiB"), (Size(), -1), (Size(), "much"), (Share(), "130%"), (Share(), True), (FilePath(), " ")],
)
def test_a_value_without_a_meaning_is_refused(shape: Shape, given: Json) -> None:
    """Guessing at a size or a share would guess at a limit."""
    found = Findings()
    assert shape.read(as_value(given, "here"), found) is None
    assert len(found.problems) == 1


@pytest.mark.parametrize(
    ("text", "shape", "data"),
    [
        ("3", Number(), 3),
        ("0.5", Number(), 0.5),
        ("3", Text(), "3"),
        ("no", Flag(), False),
        ("1", Flag(), True),
        ("a, b", ListOf(Text()), ["a", "b"]),
        ("[a, 'b']", ListOf(Text()), ["a", "b"]),
        ("", ListOf(Text()), []),
    ],
)
def test_a_text_means_what_its_key_expects(text: str, shape: Shape, data: Json) -> None:
    """Variables and arguments are texts; `3` is a number only where a number is expected."""
    assert from_text(text, shape) == data


def test_references_and_passwords_in_urls_are_covered() -> None:
    """Screens are shared and output is pasted."""
    value = {"a": ["${secret:x#y}"], "b": "https://me:pw@host/p", "c": "plain", "d": 3}
    assert masked(value) == {"a": ["${secret:***}"], "b": "https://***@host/p", "c": "plain", "d": 3}
