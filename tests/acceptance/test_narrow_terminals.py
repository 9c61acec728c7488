"""What people read on a narrow terminal: no line is longer than it, and no word is cut."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import pytest

from tests.acceptance.command import BAILIWICK, Person

WRONG = """version: 1
name: wrong
start: a
nodes:
  - {id: a, type: script, script: scripts/a.sh, next: somewhere_that_does_not_exist_in_this_workflow}
  - {id: done, type: terminal}
"""
FAILING = """version: 1
name: failing
start: fetch
nodes:
  - {id: fetch, type: script, script: scripts/fetch.sh, retry: {max: 1, backoff: 1ms}, next: done}
  - {id: done, type: terminal}
"""
SAID = "the package index did not answer although it was asked three times in a row, so this gives up now for good"
COMMANDS = (
    ("validate", "wrong"),
    ("run", "nowhere-to-be-found"),
    ("why", "failing"),
    ("logs", "failing"),
    ("status",),
    ("runs", "list"),
    ("runs", "show", "failing"),
    ("doctor",),
    ("gate",),
)
_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SOURCE = re.compile(r" *[0-9]* \|")


def on_terminal(person: Person, columns: int, *words: str) -> list[str]:
    """The lines that a command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [BAILIWICK, *words],
        cwd=person.cwd,
        env=person.env() | {"TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        printed = b""
        while chunk := _read(ours):
            printed += chunk
        process.wait(600)
    os.close(ours)
    return _SEQUENCE.sub("", printed.decode()).replace("\r\n", "\n").splitlines()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def cut_words(narrow: list[str], wide: str) -> list[str]:
    """Words of the narrow lines that the same output has not where nothing has to fit.

    Words with numbers differ anyway, and of a long source line only the part around the caret is shown.
    """
    known = set(wide.split())
    words = (word.removesuffix("…") for line in narrow if not _SOURCE.match(line) for word in line.split())
    return [word for word in words if word not in known and not re.search(r"\d", word) and word]


@pytest.mark.parametrize("columns", [80, 60])
def test_no_line_is_too_long_and_no_word_is_cut(person: Person, columns: int) -> None:
    """An error that breaks inside a word or a path can't be read, searched for or copied."""
    person.workflow("wrong", WRONG, a_sh="true\n")
    person.workflow("failing", FAILING, fetch_sh=f"echo '{SAID}' >&2; exit 3\n")
    assert person.runs("run", "failing").code == 1
    for words in COMMANDS:
        plain = person.runs(*words)
        shown = on_terminal(person, columns, *words)
        long = [line for line in shown if len(line) > columns and len(line.split()) > 1]
        assert (words, long) == (words, [])
        assert (words, cut_words(shown, plain.out + plain.err)) == (words, [])
        assert shown


def test_a_cut_word_is_noticed() -> None:
    """The test above would be worth nothing if every word were known."""
    assert cut_words(["the pack…", "it gave"], "the package index, it gave up") == ["pack"]
    assert cut_words(["the package…", "in 2m3s"], "the package index 2m5s in") == []
