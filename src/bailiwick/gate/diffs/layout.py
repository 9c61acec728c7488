"""Where the parts of a syntax tree stand in their file, so that text can be put in without moving anything else."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """A text in place of the bytes from `place` to `until`. `order` is that of several at one place."""

    place: int
    until: int
    text: str
    order: tuple[int, int] = (0, 0)
    """At one place ends come before starts, the inner ones first."""


class Layout:
    """A file as UTF-8 bytes with the places of its syntax tree."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._starts = [0]
        for line in raw.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: ast.expr | ast.stmt) -> int:
        """Where a node begins."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Where a node ends."""
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def indent(self, node: ast.stmt) -> str:
        """What stands before a statement on its line."""
        begin = self._starts[node.lineno - 1]
        return self._raw[begin : begin + node.col_offset].decode("utf-8")

    def line_start(self, line: int) -> int:
        """Where a line begins; lines count from 1."""
        return self._starts[line - 1]

    def newline(self, line: int) -> str:
        """How a line ends: as the file has it, a line feed where it has none."""
        text = self._raw[self._starts[line - 1] : self._starts[line]]
        return next((end for end in ("\r\n", "\n", "\r") if text.endswith(end.encode())), "\n")

    def apply(self, edits: Iterable[Edit]) -> str:
        """The file with every text put in at its place; what lies in bytes that are gone already is left out."""
        parts, last = [], 0
        for edit in sorted(edits, key=lambda edit: (edit.place, edit.order)):
            if edit.place >= last:
                parts += [self._raw[last : edit.place], edit.text.encode("utf-8")]
                last = edit.until
        return b"".join([*parts, self._raw[last:]]).decode("utf-8")
