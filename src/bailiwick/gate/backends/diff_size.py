"""The check of how large a change is: nobody reads ten thousand lines well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bailiwick.gate.diffs.sizes import ChangeSize, added_size
from bailiwick.gate.globs import first_match
from bailiwick.gate.model import CheckResult, Finding
from bailiwick.gate.reading import read_all

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext
    from bailiwick.gate.spec import CheckSpec
    from bailiwick.git.objects import TreeChange

MAX_LINES = 2000
MAX_FILES = 50
MAX_BYTES = 400_000
MAX_STATEMENTS = 4000


class DiffSize:
    """Counts what changes in the proposed tree: lines and files, and what is added in bytes and statements.

    A binary file counts as a file and its bytes, without lines.
    """

    async def run(self, spec: CheckSpec, bench: CheckContext) -> CheckResult:
        ignored = tuple(spec.options.get("ignore", ()))
        counted = [change for change in bench.changes if not first_match(ignored, change.path)]
        size = await _added(counted, bench)
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


async def _added(changes: list[TreeChange], bench: CheckContext) -> ChangeSize:
    new = await read_all(lambda path: bench.read("proposed", path), (c.path for c in changes if c.status != "D"))
    old = await read_all(lambda path: bench.read("base", path), (c.path for c in changes if c.status != "A"))
    return sum((added_size(path, old.get(path), data) for path, data in new.items()), ChangeSize())
