"""Output: what people read is aligned and short, and no text can act on their terminal."""

from __future__ import annotations

import io
import json
import unicodedata
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.config.variables import Environment
from bailiwick.errors import Place, Problem
from bailiwick.terminal.output import (
    Printer,
    Styled,
    budget_limit,
    cells,
    clean,
    clip,
    duration,
    emit_json,
    size,
)

NOON = 1_700_049_600.0


def problem_lines(problem: Problem, width: int = 0) -> list[str]:
    """What a printer writes of a problem."""
    out = io.StringIO()
    Printer(out=out, width=width).problem(problem)
    return out.getvalue().splitlines()


DIRECTIONS = set("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Ascii(io.StringIO):
    """A stream that can take ASCII only."""

    encoding = "ascii"


class ClosedPipe(io.StringIO):
    """A pipe whose reader left."""

    def write(self, _text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jgone", "gone"),
        ("\x1b]0;never closed", "]0;never closed"),
        ("a\tb\r\nc", "a b c"),
        ("user\u202egnp.exe", "usergnp.exe"),
        ("\u2066in\u2069", "in"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("half \ud83d", "half \ufffd"),
        ("\x07\x08\x00bell", "bell"),
        ("Grüße, 世界 ✓", "Grüße, 世界 ✓"),
    ],
)
def test_text_is_shown_without_what_acts_on_a_terminal(raw: str, shown: str) -> None:
    """Text from scripts is data: colours, titles, links and direction overrides in it must not reach the terminal."""
    assert clean(raw) == shown


@given(st.text(st.characters(codec="utf-16", categories=None)), st.booleans())
def test_cleaned_text_never_has_a_control_character(text: str, lines: bool) -> None:
    """One character that slips through is enough to rewrite a screen, so every string is tried."""
    cleaned = clean(f"\x1b[{text}\x1b]{text}\x9d{text}", lines=lines)
    allowed = {"\n"} if lines else set()
    assert not [c for c in cleaned if unicodedata.category(c) in ("Cc", "Cs") and c not in allowed]
    assert not set(cleaned) & DIRECTIONS
    assert clean(cleaned, lines=lines) == cleaned


def test_lines_stay_lines_where_asked() -> None:
    """The kept output of a script is shown as it was broken into lines."""
    assert clean("a\nb\tc\x1b[1m\n", lines=True) == "a\nb c\n"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.04, "40 ms"),
        (0.0996, "0.1 s"),
        (3.2, "3.2 s"),
        (2, "2 s"),
        (9.96, "10 s"),
        (41, "41 s"),
        (59.6, "1m"),
        (408, "6m48s"),
        (3599.7, "1h"),
        (7380, "2h3m"),
        (86_399, "1d"),
        (273_600, "3d4h"),
        (-5, "0 s"),
    ],
)
def test_a_duration_reads_as_people_say_it(seconds: float, shown: str) -> None:
    """Two units are enough, and rounding never yields sixty of something."""
    assert duration(seconds) == shown


def test_sizes_read_as_people_say_them() -> None:
    """Bytes are for machines."""
    assert [size(n) for n in (812, 4096, 1_258_291, 3 << 30, 5 << 40)] == [
        "812 B",
        "4.0 KiB",
        "1.2 MiB",
        "3.0 GiB",
        "5.0 TiB",
    ]


def test_columns_are_aligned_by_what_the_eye_sees() -> None:
    """A wide or combined character takes other room than one code point, and colours take none."""
    out = io.StringIO()
    Printer(out=out, colour=True).table(
        [("a", Styled("12", "bad"), "x"), ("世界", "7", "y"), ("e\u0301", "100", "z")], ("name", "n", "rest"), right={1}
    )
    plain = [clean(line) for line in out.getvalue().splitlines()]
    assert plain == ["name    n  rest", "a      12  x", "世界    7  y", "e\u0301     100  z"]
    assert "\x1b[31m12\x1b[0m" in out.getvalue()


def test_the_last_column_gives_way_on_a_narrow_terminal() -> None:
    """A wrapped table is no table."""
    out = io.StringIO()
    Printer(out=out, width=20).table([("name", "a long text that has no room")])
    assert out.getvalue() == "name  a long text…\n"


def test_a_table_without_rows_writes_nothing() -> None:
    """An empty list is the caller's to put into words."""
    out = io.StringIO()
    Printer(out=out).table([])
    assert out.getvalue() == ""


def test_data_in_a_table_or_line_is_cleaned() -> None:
    """Whoever prints need not remember to clean: the printer does it."""
    out = io.StringIO()
    printer = Printer(out=out)
    printer.table([("\x1b[2Ja", "b")])
    printer.line("x\x1b]0;t\x07", Styled("\r\ny", "bad"))
    printer.text("one\x07\ntwo")
    assert out.getvalue() == "a  b\nx y\none\ntwo\n"


def test_symbols_and_text_fit_an_output_that_has_only_ascii() -> None:
    """A mark that can't be encoded would end the command with a traceback."""
    out = Ascii()
    printer = Printer(out=out, unicode=False)
    printer.line(printer.symbol("done"), " ", printer.clip("abcdefgh", 6), " Grüße")
    assert out.getvalue() == "+ abc... Gr??e\n"


def test_a_cut_text_has_exactly_the_room_it_was_given() -> None:
    """Half of a wide character can't be shown."""
    assert clip("世界世界", 5) == "世界…"
    assert (clip("abc", 3), clip("abcd", 3), clip("abcd", 1), clip("abcd", 0)) == ("abc", "ab…", "…", "")
    assert (clip("one two three", 8), clip("one two three", 10), clip("a 0123456789", 8)) == (
        "one two…",
        "one two…",
        "a 01234…",
    )
    assert cells("世界…") == 5


def test_there_are_no_colours_off_a_terminal_or_where_nobody_wants_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes in a log file are noise."""
    printer = Printer.for_stdout(environment=Environment({}))
    printer.line(Styled("bad", "bad"))
    assert (capsys.readouterr().out, printer.width) == ("bad\n", 0)


def test_a_reader_that_left_is_an_error_unless_it_is_forgiven() -> None:
    """A query may end at once; a walk must not be disturbed because somebody closed `| head`."""
    with pytest.raises(BrokenPipeError):
        Printer(out=ClosedPipe()).line("x")
    printer = Printer(out=ClosedPipe(), forgive=True)
    printer.line("x")
    printer.line("y")
    assert printer.gone


def test_json_output_is_one_document_in_ascii() -> None:
    """A program reads it, whatever the terminal's encoding; and no character of it can act on one."""
    out = io.StringIO()
    emit_json({"text": "\x9b世\ud83d\x7f"}, out)
    assert out.getvalue().isascii()
    assert "\x7f" not in out.getvalue()
    assert json.loads(out.getvalue()) == {"text": "\x9b世\ud83d\x7f"}
    with pytest.raises(ValueError, match="JSON"):
        emit_json(float("nan"), out)


def test_times_are_local_with_their_offset() -> None:
    """A bare time of day in a log from another zone misleads."""
    printer = Printer(zone=timezone(timedelta(hours=2)))
    assert printer.clock(NOON) == "14:00:00"
    assert printer.time(NOON, NOON + 60) == "14:00:00 +0200"
    assert printer.time(NOON, NOON - 86_400) == "2023-11-15 14:00:00 +0200"
    assert Printer(zone=UTC).time(NOON) == "2023-11-15 12:00:00 +0000"


def test_a_relative_time_says_which_way_it_lies() -> None:
    """`41 s` alone does not say whether it is over."""
    printer = Printer()
    assert [printer.relative(NOON + d, NOON) for d in (303, -41, 0.1)] == ["in 5m3s", "41 s ago", "now"]


def test_a_problem_shows_its_source_line_with_a_caret(tmp_path: Path) -> None:
    """Under the column, at the right place also after wide characters; a long line is cut around it."""
    file = tmp_path / "w.yaml"
    file.write_text("a: 1\nnäme: 测试 chek\n" + "x" * 200 + "HERE" + "y" * 200 + "\n", "utf-8")
    lines = problem_lines(Problem("BW103", "no node 'chek'", Place(str(file), 2, 10), "did you mean check?"))
    assert lines[1:] == ["  |", "2 | näme: 测试 chek", "  |            ^", "  try: did you mean check?"]
    _, source, caret = problem_lines(Problem("BW103", "no", Place(str(file), 3, 201)), 60)[-3:]
    assert max(len(source), len(caret)) <= 60
    assert source[caret.index("^") :].startswith("HERE")


@pytest.mark.parametrize("place", [Place("nowhere.yaml", 3, 1), Place("nowhere.yaml"), None])
def test_a_problem_without_a_file_to_show_is_told_without_a_line(place: Place | None) -> None:
    """What was read from a commit or from standard input has no line on this disk."""
    assert problem_lines(Problem("BW100", "it is wrong", place, "mend it")) == [
        *str(Problem("BW100", "it is wrong", place, "mend it")).split("\n")
    ]


def test_a_line_and_a_column_beyond_the_file_are_no_error(tmp_path: Path) -> None:
    """The file may have changed since it was read, and what it holds is data, never a terminal escape."""
    file = tmp_path / "w.yaml"
    file.write_text("a\x1b[31mb\n")
    assert len(problem_lines(Problem("BW100", "x", Place(str(file), 9, 9)))) == 1
    assert "\x1b" not in "".join(problem_lines(Problem("BW100", "x", Place(str(file), 1, 99))))


@given(st.lists(st.text("abé", min_size=1, max_size=12), min_size=1, max_size=30), st.integers(12, 60), st.data())
def test_a_line_of_colours_is_broken_between_words(words: list[str], width: int, data: st.DataObject) -> None:
    """A colour may begin inside a word: the word stays whole all the same."""
    text = "  " + "  ".join(words)
    cut = data.draw(st.integers(0, len(text)))
    out, plain = io.StringIO(), io.StringIO()
    Printer(out=out, width=width, colour=True).line(text[:cut], Styled(text[cut:], "bad"))
    Printer(out=plain, width=width).line(text)
    shown = out.getvalue().replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert shown == plain.getvalue()
    assert shown.split() == words
    assert all(cells(line) <= width or len(line.split()) == 1 for line in shown.splitlines())


def test_a_command_to_copy_stays_in_one_line() -> None:
    """The terminal wraps it so that it can be copied; a line break in it would run half of it."""
    out = io.StringIO()
    Printer(out=out, width=20).line("bailiwick run flow --params '{}' --fresh", whole=True)
    assert out.getvalue() == "bailiwick run flow --params '{}' --fresh\n"


@pytest.mark.parametrize(
    ("unit", "limit", "shown"),
    [("wall", 43_200.0, "12h"), ("usd", 10, "$10.00"), ("day.usd", 0.5, "$0.50"), ("tokens", 5e6, "5,000,000")],
)
def test_a_budget_is_told_in_its_unit(unit: str, limit: float, shown: str) -> None:
    """Nobody should have to divide by 3600."""
    assert budget_limit(unit, limit) == shown
