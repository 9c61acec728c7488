"""What a command's end is made of."""

from __future__ import annotations

import signal

from hypothesis import given
from hypothesis import strategies as st

from bailiwick.gate.backends.command import trial_of
from bailiwick.gate.run import CommandResult, judge
from bailiwick.gate.shown import KEPT, shown_lines
from bailiwick.processes.command import Exit


def test_a_missing_program_is_told_by_the_shim_s_own_words() -> None:
    """Exit code 127 is also what a shell gives for a command inside a script: that is another matter."""
    end = Exit(127, b"", b"bailiwick-shim: ruff: not found\n", 0.1)
    assert trial_of(end, "ruff").missing == "ruff"
    assert trial_of(Exit(127, b"", b"sh: 1: ruff: not found\n", 0.1), "sh").missing == ""
    assert trial_of(Exit(1, b"", b"bailiwick-shim: ruff: not found\n", 0.1), "ruff").missing == ""


def test_a_cancelled_command_says_nothing_about_the_change() -> None:
    """It was ended by us; its exit code is ours."""
    trial = trial_of(Exit(-signal.SIGTERM, b"", b"", 0.1, cancelled=True), "x")
    assert (trial.code, trial.good, trial.is_infrastructure) == (None, False, True)


def test_a_check_that_filled_the_disk_says_so() -> None:
    """It is neither slow nor simply wrong: whoever reads it has to know which limit it met."""
    said = b"bailiwick: it wrote more than 20 GB to disk, the limit of a sandbox\n"
    trial = trial_of(Exit(-9, b"", said, 0.1, why="disk"), "x")
    assert (trial.good, trial.timed_out) == (False, False)
    outcome, hint = judge(trial, CommandResult(0))
    assert outcome == "failed"
    assert "was ended (it wrote more than 20 GB to disk, the limit of a sandbox) here" in hint
    assert judge(trial, trial)[0] == "environment"


def test_both_outputs_are_kept_in_their_bounds() -> None:
    """A flood on one stream must not push out what the other said."""
    end = Exit(1, b"out\n" * 100_000, b"the reason\n", 0.1)
    trial = trial_of(end, "x")
    assert trial.lines[-1] == "the reason"
    assert sum(map(len, trial.lines)) < KEPT + 200
    assert trial.lines[0].endswith("bytes before this are left out")


@given(st.binary(max_size=3000), st.integers(1, 2000))
def test_any_output_is_safe_and_bounded(raw: bytes, sandbox: int) -> None:
    """Whatever a program prints, no line of it acts on a terminal."""
    lines = shown_lines(raw, sandbox)
    assert not any(ord(sign) < 32 or 127 <= ord(sign) < 160 for line in lines for sign in line)
    assert isinstance(CommandResult(0, lines), CommandResult)


def test_the_indent_of_code_and_diffs_stays() -> None:
    """An agent reads a traceback better than a flat list of words."""
    assert shown_lines(b"def f():\n    return 1\n\tx\n") == ("def f():", "    return 1", " x")
