"""The check of how large a change is: nobody reads ten thousand lines well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bailiwick.gate.globs import first_match
from bailiwick.gate.model import CheckResult, Finding

if TYPE_CHECKING:
    from bailiwick.gate.port import Bench
    from bailiwick.gate.spec import CheckSpec

MAX_LINES = 2000
MAX_FILES = 50


class DiffSize:
    """Counts changed lines and files of the proposed tree; a binary file counts as a file without lines."""

    async def run(self, spec: CheckSpec, bench: Bench) -> CheckResult:
        ignored = tuple(spec.options.get("ignore", ()))
        counted = [change for change in bench.changes if not first_match(ignored, change.path)]
        lines = sum((change.added or 0) + (change.deleted or 0) for change in counted)
        most_lines = int(spec.options.get("max_lines", MAX_LINES))
        most_files = int(spec.options.get("max_files", MAX_FILES))
        findings = []
        if lines > most_lines:
            findings.append(Finding("too-large", f"{lines} lines change, {most_lines} may"))
        if len(counted) > most_files:
            findings.append(Finding("too-large", f"{len(counted)} files change, {most_files} may"))
        return CheckResult(
            name=spec.name,
            kind=spec.kind,
            level="exit-code",
            outcome="failed" if findings else "passed",
            counts=(("lines", lines), ("files", len(counted))),
            findings=tuple(findings),
            hint="split the change, or raise max_lines and max_files in the gate file" if findings else "",
        )
