"""Reads what a foreign program prints: lines of bounded length, JSON of any shape, never more memory than the bounds.

What a program says is data that may be broken, huge or hostile. A line is cut, not kept; a field that has another type
than expected is absent; past the total only the newest lines count, because answers come last.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bailiwick.ids import Json

Amount = TypeVar("Amount", int, float)

CUT = "… [cut: the line is too long]".encode()
"""How a line ends that was cut."""


@dataclass(frozen=True, slots=True)
class OutputBounds:
    """How much output is looked at: bytes of one line, bytes and lines in all, and then how many lines of the end."""

    line: int = 16 << 20
    total: int = 256 << 20
    lines: int = 500_000
    last: int = 64


class LineSplitter:
    """Splits a stream of bytes into lines and passes them on.

    A line over the bound is cut and marked. When the total is reached, lines are only kept, as many of the newest as
    fit one line's bound, and passed on at the end.
    """

    def __init__(self, on_line: Callable[[bytes], None], bounds: OutputBounds | None = None) -> None:
        self.bounds = bounds or OutputBounds()
        self._on_line = on_line
        self._partial = bytearray()
        self._is_cut = False
        self._total = 0
        self._ended = 0
        self._newest: deque[bytes] = deque(maxlen=self.bounds.last)
        self._held = 0

    def feed(self, data: bytes) -> int:
        """Take some bytes; gives back how many lines they ended."""
        self._total += len(data)
        head, newline, rest = data.partition(b"\n")
        self._extend(head)
        if not newline:
            return 0
        ended = 1 + rest.count(b"\n")
        self._ended += ended
        self._end_line()
        most = self.bounds.last + 1 if self._is_over else -1
        *lines, tail = rest.rsplit(b"\n", most)
        if len(lines) == most:
            del lines[0]  # what is before the newest lines, however many lines that is
        for line in lines:
            self._pass_on(line if len(line) <= self.bounds.line else line[: self.bounds.line] + CUT)
        self._extend(tail)
        return ended

    @property
    def _is_over(self) -> bool:
        return self._total > self.bounds.total or self._ended > self.bounds.lines

    def _extend(self, data: bytes) -> None:
        sandbox = self.bounds.line - len(self._partial)
        self._partial += data[:sandbox]
        self._is_cut = self._is_cut or len(data) > sandbox

    def _end_line(self) -> None:
        if self._is_cut:
            self._partial += CUT
        line = bytes(self._partial)
        self._partial = bytearray()
        self._is_cut = False
        self._pass_on(line)

    def _pass_on(self, line: bytes) -> None:
        if not self._is_over:
            self._on_line(line)
            return
        if len(self._newest) == self.bounds.last:
            self._held -= len(self._newest[0])
        self._newest.append(line)
        self._held += len(line)
        while self._held > self.bounds.line and len(self._newest) > 1:
            self._held -= len(self._newest.popleft())

    def close(self) -> None:
        """Pass on the line that no newline ended, and the newest lines of a stream that was too long."""
        if self._partial:
            self._end_line()
        while self._newest:
            self._on_line(self._newest.popleft())


def read_object(line: bytes) -> dict[str, Json] | None:
    """The JSON object on a line, None where there is none: a blank or cut line, prose, another JSON value."""
    if line.endswith(CUT) or not line.lstrip().startswith(b"{"):
        return None
    return as_object(line.decode("utf-8", "replace"))


def as_object(text: str | bytes) -> dict[str, Json] | None:
    """The JSON object that a text is, None where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def at(data: Json, *path: str) -> Json:
    """The value at a path of keys, None where the path ends early."""
    for key in path:
        if not isinstance(data, dict):
            return None
        data = data.get(key)
    return data


def text_at(data: Json, *path: str) -> str:
    """The string at a path, empty where there is none."""
    value = at(data, *path)
    return value if isinstance(value, str) else ""


def number_at(data: Json, *path: str) -> float | None:
    """The number at a path, None where there is none or it is no sensible amount (negative, infinite)."""
    value = at(data, *path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < 1e18 and math.isfinite(value) else None


def count_at(data: Json, *path: str) -> int | None:
    """The whole number at a path, None where there is none."""
    value = number_at(data, *path)
    return None if value is None else int(value)


def objects_at(data: Json, *path: str) -> list[dict[str, Json]]:
    """The objects in the list at a path."""
    value = at(data, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def total_of(*counts: Amount | None) -> Amount | None:
    """The sum of what is known, None where nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def one_line(text: str, length: int = 500) -> str:
    """The beginning of a text as one line."""
    return excerpt(" ".join(text[: 4 * length].split()), length)


def excerpt(text: str, length: int = 4000) -> str:
    """The beginning of a text that is kept only to be read by people."""
    return text if len(text) <= length else text[: length - 1] + "…"
