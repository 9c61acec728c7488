"""Why a test fails, in one line: where it happened and what was said there, from pytest's own text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from bailiwick.gate.model import CheckResult
from bailiwick.sandbox.spec import INNER

LONGEST = 300
"""Characters of what a test said."""
MOST = 20
"""Failing tests of a check that get a line."""

_SAID = re.compile(r"E {3}\s*(.*)")
_SAID_FILE = re.compile(r'E\s+File "(?P<path>[^"]+)", line (?P<line>\d+)')
_PLACE = re.compile(r"(?P<path>[^\s:>][^:\n]*):(?P<line>\d+)(?:: ?(?:[A-Za-z_][\w.]*|in .+)?)?")
_TRACEBACK_FILE = re.compile(r'  File "(?P<path>[^"]+)", line (?P<line>\d+)')
_CHAIN = re.compile(
    r"^(?:The above exception was the direct cause|During handling of the above exception).*$", re.MULTILINE
)
_HEADER = re.compile(r"_{3,} (?P<name>\S.*?\S|\S) _{3,}")
_RULE = re.compile(r"={3,} .*={3,}|={10,}")
_ELSEWHERE = ("/", "<", "..")
_INSTALLED = ("site-packages/", "dist-packages/")


def failure_line(text: str) -> str:
    """The text that pytest has for a failure (long, short or native) as `file:line: what was said`.

    Of several places it is the last one in the tree itself; of a chain of errors the last error.
    """
    lines = _last_error(text).splitlines()
    said = list(_last_words(lines))
    where = _place_said(lines) or _place(lines)
    what = _sentence(said) or _after_traceback(lines) or next((line.strip() for line in lines if line.strip()), "")
    return f"{where}: {what}" if where and what else what


def failure_lines(failures: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """For tests that fail, each an id and pytest's text, one line each: the id, the place, what was said."""
    listed = [(test, failure_line(text)) for test, text in failures]
    return tuple(f"{test}: {line}" if line else test for test, line in listed[:MOST])


def reasons_of(check: CheckResult) -> tuple[str, ...]:
    """Why the tests of a check fail: what it knows, else what can be read in what its runner printed."""
    return check.reasons or tuple(_read(check.output, check.failing))


def reason_of(check: CheckResult, test: str) -> str:
    """Why one test of a check fails, without its id; empty where that is not known."""
    named = next((line for line in reasons_of(check) if line.startswith(f"{test}: ")), "")
    return named.removeprefix(f"{test}: ")


def _last_error(text: str) -> str:
    found = list(_CHAIN.finditer(text))
    return text[found[-1].end() :] if found else text


def _last_words(lines: Sequence[str]) -> Iterator[str]:
    """The last block of lines in which pytest says what was wrong."""
    marked = [number for number, line in enumerate(lines) if _SAID.fullmatch(line)]
    if not marked:
        return
    first = marked[-1]
    while first - 1 in marked:
        first -= 1
    for line in lines[first : marked[-1] + 1]:
        yield line[1:].strip()


def _sentence(said: list[str]) -> str:
    if not said:
        return ""
    if said[0].startswith('File "'):
        return said[-1][:LONGEST]
    first = said[0].removeprefix("AssertionError: ") if said[0].startswith("AssertionError: assert ") else said[0]
    if len(said) > 1 and said[0].startswith("AssertionError: ") and said[1].startswith("assert "):
        first = f"{said[0].removeprefix('AssertionError: ')} ({said[1]})"
    return first[:LONGEST]


def _place_said(lines: Sequence[str]) -> str:
    """Where the parser of Python stopped: that file was never run."""
    return next((_below(match) for line in reversed(lines) if (match := _SAID_FILE.match(line))), "")


def _place(lines: Sequence[str]) -> str:
    matches = (_TRACEBACK_FILE.match(line) or _PLACE.fullmatch(line) for line in lines)
    found = [_below(match) for match in matches if match]
    own = [where for where in found if _is_own(where)]
    return (own or found or [""])[-1]


def _is_own(where: str) -> bool:
    return not where.startswith(_ELSEWHERE) and not any(part in where for part in _INSTALLED)


def _below(match: re.Match[str]) -> str:
    """A place with its path from the top of the tree."""
    return f"{match['path'].removeprefix(f'{INNER}/')}:{match['line']}"


def _after_traceback(lines: Sequence[str]) -> str:
    """What Python itself prints below a traceback."""
    frames = [number for number, line in enumerate(lines) if _TRACEBACK_FILE.match(line)]
    if not frames:
        return ""
    said = (line for line in lines[frames[-1] + 1 :] if line and not line.startswith(" "))
    return _sentence([next(said, "")])


def _read(output: str, failing: Sequence[str]) -> Iterator[str]:
    """The failing tests with what a terminal shows of each."""
    if not failing or not output:
        return
    sections = list(_sections(output.splitlines()))
    for test in failing[:MOST]:
        line = next((failure_line(text) for name, text in sections if _is_about(name, text, test)), "")
        line = line or _summary(output, test)
        yield f"{test}: {line}" if line else test


def _sections(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    name, held = "", list[str]()
    for line in (*lines, "=" * 10):
        header = _HEADER.fullmatch(line)
        if header or _RULE.fullmatch(line):
            if name:
                yield name, "\n".join(held)
            name, held = header["name"] if header else "", []
        else:
            held.append(line)


def _is_about(name: str, text: str, test: str) -> bool:
    path, _, rest = test.partition("::")
    titles = {rest.replace("::", "."), f"ERROR at setup of {rest.rpartition('::')[2]}", f"ERROR collecting {path}"}
    return name in titles and path in f"{name}\n{text}"


def _summary(output: str, test: str) -> str:
    """What the summary at the end says of a test."""
    for kind in ("FAILED", "ERROR"):
        start = output.find(f"\n{kind} {test} - ")
        if start >= 0:
            return output[start:].splitlines()[1].partition(" - ")[2][:LONGEST]
    return ""
