"""How much of a change there is to read, however few lines it is written in."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from bailiwick.gate.diffs.lines import added_bytes
from bailiwick.gate.diffs.syntax import parse_or_none


@dataclass(frozen=True, slots=True)
class ChangeSize:
    """What a version of a file adds to another: bytes and statements."""

    bytes: int = 0
    statements: int = 0

    def __add__(self, other: ChangeSize) -> ChangeSize:
        return ChangeSize(self.bytes + other.bytes, self.statements + other.statements)


def added_size(path: str, old: bytes | None, new: bytes | None) -> ChangeSize:
    """What is added; of a file that is no text all of its bytes, and no statement.

    Statements of Python are counted by its syntax tree; elsewhere a line is one, and each semicolon within one more.
    """
    if new is None or new == old:
        return ChangeSize()
    if b"\0" in new:
        return ChangeSize(len(new))
    added = dict(added_bytes(old or b"", new))
    length = sum(len(line) + 1 for line in added.values())
    parsed = parse_or_none(new) if path.endswith((".py", ".pyi")) else None
    if parsed is not None:
        lines = added.keys()
        count = sum(isinstance(node, ast.stmt) and node.lineno in lines for node in ast.walk(parsed.tree))
        return ChangeSize(length, count)
    return ChangeSize(
        length, sum(1 + line.rstrip().rstrip(b";").count(b";") for line in added.values() if line.strip())
    )
