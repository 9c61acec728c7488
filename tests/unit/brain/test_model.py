"""What may be written as a note, and what it is called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.brain.model import GLOBAL, SCOPE, Note, checked, one_line, printable, project_scope, seen_from, title_of
from bailiwick.errors import UsageError

HIDING = "\x1b]0;title\x07\x1b[31m\u202e\u200b\U000e0041\x9b2J\x00\x08"


def test_what_hides_or_acts_on_a_terminal_is_taken_out() -> None:
    """A person approves what they see: nothing else may be in a note."""
    note = checked(Note("", f"a{HIDING}b\nc", f"x{HIDING}y\r\nz", tags=(f"t{HIDING}",), source=f"run{HIDING} 1"))
    assert (note.title, note.text, note.tags, note.source) == ("ab c", "xy\nz", ("t",), "run 1")


@given(st.text())
def test_a_printable_text_has_no_character_that_acts(text: str) -> None:
    """Whatever comes in, neither an escape nor a control character but tab and line end is left."""
    left = {character for character in printable(text) if ord(character) < 32 or 127 <= ord(character) < 160}
    assert left <= {"\n", "\t"}


@pytest.mark.parametrize(
    ("draft", "words"),
    [
        (Note("", "", " \x1b[0m \n"), "empty"),
        (Note("", "", "é" * 40_000), "80,000 bytes"),
        (Note("", "", "x", tags=tuple(str(number) for number in range(33))), "33 tags"),
        (Note("", "", "x", tags=("t" * 65,)), "longer than 64"),
        (Note("", "", "x", type="a b"), "'a b' is not a type"),
        (Note("", "", "x", scope="../up"), "'../up' is not a scope"),
        (Note("", "", "x", scope=""), "'' is not a scope"),
    ],
)
def test_what_may_not_be_written_is_refused_with_the_reason(draft: Note, words: str) -> None:
    """Limits keep one agent from filling the brain; a scope is also the name of a folder."""
    with pytest.raises(UsageError, match=words):
        checked(draft)


def test_the_longest_note_is_allowed() -> None:
    """The limit itself is within."""
    assert len(checked(Note("", "t", "a" * 65_536)).text) == 65_536


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# A b #\nc", "A b"),
        ("c\n## D", "D"),
        ("first\nsecond", "first"),
        ("", "untitled"),
        ("x" * 300, "x" * 119 + "…"),
    ],
)
def test_a_title_is_the_first_heading_or_line(text: str, title: str) -> None:
    """People leave it out."""
    assert title_of(text) == title


def test_a_scope_sees_itself_and_what_is_global() -> None:
    """Never more."""
    assert seen_from("shop-1") == ("shop-1", GLOBAL)
    assert seen_from(GLOBAL) == seen_from("") == (GLOBAL,)


@given(st.text(), st.text())
def test_every_project_has_a_scope_that_is_a_folder_name(identity: str, name: str) -> None:
    """Two projects of one name have two scopes; none of them is the global one."""
    scope = project_scope(identity, name)
    assert SCOPE.fullmatch(scope)
    assert scope != GLOBAL
    assert scope != project_scope(identity + "/", name)


def test_one_line_is_bounded() -> None:
    """Headlines stay headlines."""
    assert one_line("a\n b\t c") == "a b c"
    assert len(one_line("word " * 1000)) <= 120
