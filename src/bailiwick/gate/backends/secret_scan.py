"""The check that no credential is added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bailiwick.gate.globs import first_match
from bailiwick.gate.model import CheckResult, Finding
from bailiwick.gate.secrets import MOST_FINDINGS, scan
from bailiwick.gate.testfiles import is_test_file

if TYPE_CHECKING:
    from bailiwick.gate.port import Bench
    from bailiwick.gate.spec import CheckSpec

LARGEST = 8 << 20
_TEST_FOLDERS = ("tests/", "test/", "testdata/", "fixtures/", "examples/", "docs/")


class SecretScan:
    """Looks through the lines that a change adds."""

    async def run(self, spec: CheckSpec, bench: Bench) -> CheckResult:
        ignored = tuple(spec.options.get("ignore", ()))
        findings: list[Finding] = []
        lines = 0
        for change in bench.changes:
            if change.status == "D" or first_match(ignored, change.path):
                continue
            new = await bench.read("proposed", change.path) or b""
            if len(new) > LARGEST:
                what = f"{len(new)} bytes were not looked through: the file is too large"
                findings.append(Finding("not-scanned", what, change.path, blocks=False))
                continue
            old = b"" if change.status == "A" else await bench.read("base", change.path) or b""
            added = tuple(added_lines(old, new))
            lines += len(added)
            findings += scan(change.path, added, test=is_test(change.path))
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


def added_lines(old: bytes, new: bytes) -> Iterator[tuple[int, str]]:
    """The numbered lines of the new version that the old one does not have."""
    left = Counter(old.splitlines())
    for number, line in enumerate(new.splitlines(), 1):
        if left[line] > 0:
            left[line] -= 1
        else:
            yield number, line.decode("utf-8", "replace")
