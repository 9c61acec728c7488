"""A file that is replaced keeps its encoding, its byte order mark, its line endings and how it ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.skills.text_form import in_the_form_of

LINES = st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=5), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        (b"a\nb\n", b"\xef\xbb\xbfa\r\nc\r\n", b"a\nc\n"),
        (b"a\r\nb\r\n", b"a\nc\nd\n", b"a\r\nc\r\nd\r\n"),
        (b"\xef\xbb\xbfa\n", b"b\n", b"\xef\xbb\xbfb\n"),
        (b"a\nb", b"a\nb\nc\n", b"a\nb\nc"),
        (b"a\nb\n", b"a\nc", b"a\nc\n"),
        (b"a\r\nb\nc\r\n", b"b\na\nnew\n", b"b\na\r\nnew\r\n"),
        (b"one line", b"two\nlines\n", b"two\nlines\n"),
        (b"", b"x\r\n", b"x\r\n"),
        (b"\xe4\n", "ä ö\n".encode(), b"\xe4 \xf6\n"),
        (b"\xe4\n", "€\n".encode(), "€\n".encode()),
        (
            b"# -*- coding: cp1252 -*-\nx = '\x80'\n",
            "# -*- coding: cp1252 -*-\ny = '€'\n".encode(),
            b"# -*- coding: cp1252 -*-\ny = '\x80'\n",
        ),
        ("\ufeffa\r\n".encode("utf-16-le"), b"b\n", "\ufeffb\r\n".encode("utf-16-le")),
        (b"\0\1", b"a\r\n", b"a\r\n"),
    ],
)
def test_a_new_text_is_written_as_the_old_one_was(old: bytes, new: bytes, kept: bytes) -> None:
    """What the old encoding has no sign for is written in the new one."""
    assert in_the_form_of(old, new, "a.py") == kept


@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["\n", "\r\n"]))
def test_a_file_of_one_kind_of_line_ending_always_keeps_it(old: list[str], new: list[str], had: str, came: str) -> None:
    """Whatever comes, and writing it twice changes nothing more."""
    before = "".join(line + had for line in old).encode()
    made = in_the_form_of(before, "".join(line + came for line in new).encode(), "a.txt")
    assert made == "".join(line + had for line in new).encode()
    assert in_the_form_of(before, made, "a.txt") == made
