"""The check that no credential is added."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bailiwick.gate.diffs.lines import added_lines
from bailiwick.gate.globs import first_match
from bailiwick.gate.model import CheckResult, Finding
from bailiwick.gate.reading import read_all
from bailiwick.gate.secrets import MOST_FINDINGS, scan
from bailiwick.gate.testfiles import is_test_file

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext
    from bailiwick.gate.spec import CheckSpec

LARGEST = 8 << 20
_TEST_FOLDERS = ("tests/", "test/", "testdata/", "fixtures/", "examples/", "docs/")


class SecretScan:
    """Looks through the lines that a change adds."""

    async def run(self, spec: CheckSpec, bench: CheckContext) -> CheckResult:
        ignored = tuple(spec.options.get("ignore", ()))
        looked = [c for c in bench.changes if c.status != "D" and not first_match(ignored, c.path)]
        new = await read_all(lambda path: bench.read("proposed", path), (c.path for c in looked))
        old = await read_all(lambda path: bench.read("base", path), (c.path for c in looked if c.status != "A"))
        findings: list[Finding] = []
        lines = 0
        for path, data in new.items():
            if data is not None and len(data) > LARGEST:
                what = f"{len(data)} bytes were not looked through: the file is too large"
                findings.append(Finding("not-scanned", what, path, blocks=False))
                continue
            added = tuple(added_lines(old.get(path) or b"", data or b""))
            lines += len(added)
            findings += scan(path, added, test=is_test(path))
        blocking = any(finding.blocks for finding in findings)
        return CheckResult(
            name=spec.name,
            kind=spec.kind,
            level="exit-code",
            outcome="failed" if blocking else "passed",
            counts=(("lines", lines), ("secrets", sum(f.code == "secret" for f in findings))),
            findings=tuple(findings[:MOST_FINDINGS]),
            hint="remove the secret, and revoke it: whoever has read the diff has it" if blocking else "",
        )


def is_test(path: str) -> bool:
    """Whether made-up values are to be expected in a file."""
    return is_test_file(path) or any(f"/{folder}" in f"/{path}" for folder in _TEST_FOLDERS)
