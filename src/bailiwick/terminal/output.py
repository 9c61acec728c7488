"""How commands speak: aligned columns, durations, times, few colours and symbols, JSON. What is shown is cleaned."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TextIO

from bailiwick.clock import local_time
from bailiwick.config.variables import Environment
from bailiwick.errors import Place, Problem
from bailiwick.ids import Json

_SEQUENCE = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # titles, links, clipboard
    "|\x1b[ -/]+[0-~]|\x1b[0-Z\\\\`-~]"
)
_SPACE = re.compile("[\t\n\x0b\x0c\r\x85\u2028\u2029]+")
_SPACE_IN_LINE = re.compile("[\t\x0b\x0c\r\x85\u2028\u2029]+")
_HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")

_COLOURS = {"good": "32", "bad": "31", "wait": "33", "dim": "2", "strong": "1"}
_SYMBOLS = {
    "done": ("✓", "+"),
    "failed": ("✗", "x"),
    "waits": ("‖", "?"),
    "sleeps": ("…", "~"),
    "runs": ("▸", ">"),
    "cut": ("✗", "x"),
    "passed": ("·", "-"),
    "warn": ("!", "!"),
    "arrow": ("→", "->"),
    "more": ("…", "..."),
    "below": ("›", ">"),
}
MINUTE, HOUR, DAY = 60, 3600, 86_400
NARROW = 80


class Styled(NamedTuple):
    """A text and how it looks: good, bad, wait, dim, strong, or plain when empty."""

    text: str
    style: str = ""


Part = str | Styled
Line = tuple[Styled, ...]


def clean(text: str, *, lines: bool = False) -> str:
    """The text without terminal sequences, control, bidi and invisible characters; in one line unless `lines`."""
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCE.sub("", text)
    text = (_SPACE_IN_LINE if lines else _SPACE).sub(" ", text)
    text = _HIDDEN.sub("", text)
    return _SURROGATE.sub("\ufffd", text)


def cells(text: str) -> int:
    """How many columns of a terminal a cleaned text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    wide = sum(1 for c in text if east_asian_width(c) in "WF")
    none = sum(1 for c in text if category(c) in ("Mn", "Me", "Cf"))
    return len(text) + wide - none


def clip(text: str, width: int, more: str = "…") -> str:
    """The text cut to a number of columns, between words unless one is very long; a mark says that some is missing."""
    if cells(text) <= width:
        return text
    room = width - cells(more)
    if room <= 0:
        return more[: max(width, 0)]
    kept = text[:room]
    while cells(kept) > room:
        kept = kept[:-1]
    words = kept if text[len(kept)] == " " else kept.rpartition(" ")[0]
    return (words if 2 * cells(words) >= room else kept).rstrip() + more


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken between words and never inside one; 0 breaks nothing."""
    return [text[start:end] for start, end in _breaks(text, width, 0)]


def _breaks(text: str, width: int, indent: int) -> list[tuple[int, int]]:
    """Where the lines of a text begin and end."""
    if width <= 0 or cells(text) <= width:
        return [(0, len(text))]
    lines, start, end = list[tuple[int, int]](), 0, 0
    for word in re.finditer(" *[^ ]+", text):
        if end > start and cells(text[start : word.end()]) + (indent if start else 0) > width:
            lines.append((start, end))
            start = word.end() - len(word[0].lstrip(" "))
        end = word.end()
    return [*lines, (start, end)]


def duration(seconds: float) -> str:
    """A span as people write it, in at most two units: `40 ms`, `3.2 s`, `41 s`, `6m48s`, `12h`, `3d4h`."""
    seconds = max(0.0, seconds)
    if seconds < 0.0995:
        return f"{round(seconds * 1000)} ms" if seconds >= 0.0005 else "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if (whole := round(seconds)) < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        counts, units = divmod(whole, MINUTE), "ms"
    elif (minutes := round(seconds / MINUTE)) < DAY // MINUTE:
        counts, units = divmod(minutes, 60), "hm"
    else:
        counts, units = divmod(round(seconds / HOUR), 24), "dh"
    return "".join(f"{count}{unit}" for count, unit in zip(counts, units, strict=True) if count)


def budget_limit(unit: str, limit: float) -> str:
    """The limit of a budget in its unit: `12h` of time, `$10.00` of money, a plain number of anything else."""
    return duration(limit) if unit == "wall" else dollars(limit) if unit.endswith("usd") else f"{limit:,.10g}"


def dollars(amount: float) -> str:
    """An amount as people say it: `$1.46`, `$0.004`, never `$0.00` for something."""
    return f"${amount:.2f}" if amount >= 0.01 or amount <= 0 else f"${amount:.2g}"


def size(count: int) -> str:
    """A number of bytes as people say it: `812 B`, `4.0 KiB`, `1.2 MiB`."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1023.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TiB"


def counted(number: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def json_text(value: Json, *, indent: int | None = 2) -> str:
    """A value as JSON in ASCII: no character of it can act on a terminal or fail to be encoded."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(value, indent=indent, ensure_ascii=True, allow_nan=False, separators=separators)


@dataclass(slots=True)
class Printer:
    """Writes lines for people, or JSON. `width` 0 cuts nothing; with `forgive` a reader that left is no error."""

    json: bool = False
    colour: bool = False
    width: int = 0
    unicode: bool = True
    zone: tzinfo | None = None
    out: TextIO | None = None
    forgive: bool = False
    gone: bool = False

    @classmethod
    def for_stdout(cls, *, json: bool = False, environment: Environment | None = None) -> Printer:
        """A printer that fits standard output: colours only on a terminal."""
        colour = is_terminal(sys.stdout) and (environment or Environment()).colour_wanted()
        return replace(cls.on(sys.stdout), json=json, colour=colour, out=None)

    @classmethod
    def on(cls, stream: TextIO) -> Printer:
        """A printer without colours: a width only on a terminal, symbols by the encoding."""
        width = terminal_width(stream) if is_terminal(stream) else 0
        return cls(width=width, unicode=speaks_unicode(stream), out=stream)

    @property
    def stream(self) -> TextIO:
        """Where lines go: standard output as it is now, unless another stream was given."""
        return self.out or sys.stdout

    def symbol(self, name: str) -> str:
        """A mark by its meaning, in ASCII where the output can show no other."""
        pretty, ascii_only = _SYMBOLS[name]
        return pretty if self.unicode else ascii_only

    def clip(self, text: str, width: int) -> str:
        """The text cut to a number of columns."""
        return clip(text, width, self.symbol("more"))

    def safe(self, text: str) -> str:
        """The text as this output can show it."""
        text = clean(text)
        if self.unicode or text.isascii():
            return text
        encoding = getattr(self.stream, "encoding", None) or "ascii"
        return text.encode(encoding, "replace").decode(encoding)

    def paint(self, part: Part) -> str:
        """A part as it is written: cleaned, and in its colour where there are colours."""
        text, style = (part, "") if isinstance(part, str) else part
        text = self.safe(text)
        return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if self.colour and style and text else text

    def line(self, *parts: Part, indent: int | None = None, whole: bool = False) -> None:
        """Write one line, broken between words where a terminal is too narrow unless it is to be copied `whole`.

        What follows a break begins below `indent` columns; two more than the line itself if not given.
        """
        shown = [self._cell(part) for part in parts]
        text = "".join(cell.text for cell in shown)
        below = len(text) - len(text.lstrip(" ")) + 2 if indent is None else indent
        for start, end in _breaks(text.rstrip(" "), 0 if whole else self.width, below):
            at, written = 0, " " * below if start else ""
            for cell in shown:
                written += self.paint(Styled(cell.text[max(start - at, 0) : max(end - at, 0)], cell.style))
                at += len(cell.text)
            self.write(written + "\n")

    def text(self, text: str) -> None:
        """Write text of several lines, each cleaned."""
        for line in clean(text, lines=True).split("\n"):
            self.line(line)

    def problem(self, problem: Problem) -> None:
        """Write what is wrong and where, its source line with a caret under the place, how to fix it."""
        head, *rest = str(problem).split("\n")
        for line in (head, *_source(problem.place, self.width or NARROW), *rest):
            self.line(line)

    def write(self, text: str) -> None:
        """Write text as it is and flush it."""
        if self.gone:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            if not self.forgive:
                raise
            self.gone = True
            _drop(self.stream)

    def emit_json(self, value: Json) -> None:
        """Write one JSON document."""
        self.write(json_text(value) + "\n")

    def table(self, rows: Iterable[Sequence[Part]], header: Sequence[str] = (), right: Collection[int] = ()) -> None:
        """Write rows in aligned columns, those of `right` to the right; the last one gives way on a narrow terminal."""
        body = [[self._cell(part) for part in row] for row in rows]
        if header:
            body.insert(0, [Styled(self.safe(title), "dim") for title in header])
        columns = range(max(map(len, body), default=0))
        widths = [max(cells(row[i].text) for row in body if i < len(row)) for i in columns]
        for row in body:
            self.line(*self._aligned(row, widths, right))

    def facts(self, pairs: Iterable[tuple[str, Part]]) -> None:
        """Write labels and what they stand for, aligned."""
        self.table([(Styled(label, "dim"), value) for label, value in pairs])

    def _cell(self, part: Part) -> Styled:
        text, style = (part, "") if isinstance(part, str) else part
        return Styled(self.safe(text), style)

    def _aligned(self, row: list[Styled], widths: list[int], right: Collection[int]) -> Iterable[Part]:
        used = 0
        for i, (text, style) in enumerate(row):
            last = i == len(row) - 1
            if last and self.width:
                text = self.clip(text, max(self.width - used, 8))  # noqa: PLW2901  the cell as it fits
            blank = " " * (widths[i] - cells(text))
            yield blank if i in right else ""
            yield Styled(text, style)
            yield "" if i in right else blank
            yield "  "
            used += widths[i] + 2

    def _at(self, at: float) -> datetime:
        return local_time(at) if self.zone is None else datetime.fromtimestamp(at, UTC).astimezone(self.zone)

    def clock(self, at: float) -> str:
        """The local time of day."""
        return self._at(at).strftime("%H:%M:%S")

    def time(self, at: float, now: float | None = None) -> str:
        """A local time with its offset; without the date when it is the day of `now`."""
        there = self._at(at)
        short = now is not None and there.date() == self._at(now).date()
        return there.strftime("%H:%M:%S %z" if short else "%Y-%m-%d %H:%M:%S %z")

    def relative(self, at: float, now: float) -> str:
        """How far away a time is: `in 5m3s`, `41 s ago`, `now`."""
        if abs(at - now) < 0.5:
            return "now"
        return f"in {duration(at - now)}" if at > now else f"{duration(now - at)} ago"


def _source(place: Place | None, width: int) -> list[str]:
    """The line of a place with a caret under its column; nothing where the file can't be read as text."""
    if place is None or place.line < 1:
        return []
    try:
        with Path(place.file).open(encoding="utf-8", newline="\n") as file:
            line = next(islice(file, place.line - 1, None)).rstrip("\r\n").expandtabs(1)
    except (OSError, ValueError, StopIteration):
        return []
    column = min(max(place.column, 1), len(line) + 1) - 1
    gutter = str(place.line)
    room = max(width - len(gutter) - 3, 20)
    start = max(0, column - room // 2) if len(line) > room else 0
    shown = clean(line[start : start + room])
    caret = cells(clean(line[start:column]))
    blank = " " * len(gutter)
    return [f"{blank} |", f"{gutter} | {shown}", f"{blank} | {' ' * caret}^"]


def emit_json(value: Json, out: TextIO | None = None) -> None:
    """Write one JSON document to standard output."""
    Printer(json=True, out=out).emit_json(value)


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at a stream."""
    with suppress(ValueError, AttributeError):
        return bool(stream.isatty())
    return False


def terminal_width(stream: TextIO) -> int:
    """The columns of a terminal."""
    with suppress(OSError, ValueError, AttributeError):
        return os.get_terminal_size(stream.fileno()).columns or NARROW
    return NARROW


def speaks_unicode(stream: TextIO) -> bool:
    """Whether a stream can take every character."""
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").replace("_", "")
    return encoding.startswith("utf")


def _drop(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the interpreter's last flush doesn't complain."""
    with suppress(OSError, ValueError, AttributeError):
        descriptor = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, descriptor)
        finally:
            os.close(nowhere)
