"""How a command of a pattern speaks: its first lines fit the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bailiwick.cli.pipelines.service import PipelineCommand
from bailiwick.pipelines.model import PreflightLine
from bailiwick.terminal import output
from bailiwick.terminal.output import cells

if TYPE_CHECKING:
    import pytest

WORDS = st.lists(st.text("abc/.:é", min_size=1, max_size=25), min_size=1, max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=WORDS, width=st.integers(40, 120))
def test_the_first_lines_fit_the_terminal_and_no_word_is_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], width: int
) -> None:
    """Broken between words, the rest below the text and not below the label."""
    monkeypatch.setattr(output, "is_terminal", lambda _stream: True)
    monkeypatch.setattr(output, "terminal_width", lambda _stream: width)
    PipelineCommand("issue-to-pr").tell(PreflightLine("sandbox", " ".join(words)))
    first, *more = capsys.readouterr().out.splitlines()
    assert first.startswith("sandbox   ")
    assert all(line.startswith(" " * 10) for line in more)
    assert " ".join([first.removeprefix("sandbox"), *more]).split() == words
    assert all(cells(line) <= width for line in (first, *more))


def test_where_nobody_looks_lines_stay_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """A log is searched line by line."""
    PipelineCommand("issue-to-pr").tell(PreflightLine("gate", "word " * 60))
    assert len(capsys.readouterr().out.splitlines()) == 1
