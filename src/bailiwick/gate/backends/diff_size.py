"""The check of how large a change is: nobody reads ten thousand lines well."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bailiwick.gate.diffs.lines import added_bytes
from bailiwick.gate.diffs.syntax import parse_or_none
from bailiwick.gate.globs import first_match
from bailiwick.gate.model import CheckResult, Finding
from bailiwick.gate.reading import read_versions

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext
    from bailiwick.gate.spec import CheckSpec


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


MAX_LINES = 2000
MAX_FILES = 50
MAX_BYTES = 400_000
MAX_STATEMENTS = 4000


class DiffSize:
    """Counts what changes in the proposed tree: lines and files, and what is added in bytes and statements.

    A binary file counts as a file and its bytes, without lines.
    """

    async def run(self, spec: CheckSpec, context: CheckContext) -> CheckResult:
        ignored = tuple(spec.options.get("ignore", ()))
        counted = [change for change in context.changes if not first_match(ignored, change.path)]
        old, new = await read_versions(context.read, counted)
        size = sum((added_size(path, old.get(path), data) for path, data in new.items()), ChangeSize())
        lines = sum((change.added or 0) + (change.deleted or 0) for change in counted)
        counts = (
            ("lines", lines, "lines change", MAX_LINES),
            ("files", len(counted), "files change", MAX_FILES),
            ("bytes", size.bytes, "bytes are added", MAX_BYTES),
            ("statements", size.statements, "statements are added", MAX_STATEMENTS),
        )
        findings = []
        for name, count, words, most in counts:
            limit = int(spec.options.get(f"max_{name}", most))
            if count > limit:
                findings.append(Finding("too-large", f"{count} {words}, {limit} may"))
        return CheckResult(
            name=spec.name,
            kind=spec.kind,
            level="exit-code",
            outcome="failed" if findings else "passed",
            counts=tuple((name, count) for name, count, _, _ in counts),
            findings=tuple(findings),
            hint="split the change, or raise the max_ options of the check in the gate file" if findings else "",
        )
