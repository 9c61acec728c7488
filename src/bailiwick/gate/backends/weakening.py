"""What in a change weakens the checks: fewer or softer tests, looser settings, new marks that silence a tool.

It is found by reading both versions of each changed file, by its syntax tree where there is one. Nothing is run. A
finding blocks only where a test is deleted or skipped; the others are for the person who reads the diff.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from bailiwick.gate.backends.weakening_config import config_findings, is_config
from bailiwick.gate.backends.weakening_marks import mark_findings
from bailiwick.gate.backends.weakening_other import other_findings
from bailiwick.gate.backends.weakening_python import python_findings
from bailiwick.gate.model import CheckResult, Finding
from bailiwick.gate.reading import read_versions
from bailiwick.gate.testfiles import is_test_file

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext
    from bailiwick.gate.spec import CheckSpec
    from bailiwick.git.objects import TreeChange

LONGEST = 1 << 20
"""Bytes of a file that is read; a longer one is data."""
MOST = 200
_TEST_FOLDERS = {"tests", "test", "testing", "__tests__", "spec"}

Read = Callable[[str], bytes | None]


def find_weakening(changes: Iterable[TreeChange], read_old: Read, read_new: Read) -> tuple[Finding, ...]:
    """What the changes weaken, in the order of their paths; at most some two hundred findings."""
    found: list[Finding] = []
    for change in sorted(changes, key=lambda change: change.path):
        old = read_old(change.path) if change.status != "A" else None
        new = read_new(change.path) if change.status != "D" else None
        found += _of_file(change.path, old, new)
    if len(found) <= MOST:
        return tuple(found)
    kept = sorted(found, key=lambda finding: not finding.blocks)[:MOST]
    return (*kept, Finding("more", f"and {len(found) - MOST} more findings of weakening", blocks=False))


def _of_file(path: str, old: bytes | None, new: bytes | None) -> list[Finding]:
    if new is None:
        if old is not None and is_test_file(path):
            return [Finding("test-file-deleted", f"the test file {path} is deleted", path)]
        return []
    before, after = _text(old), _text(new)
    if after is None or (old is not None and before is None):
        return []
    was = before or ""
    found = mark_findings(path, was, after)
    if is_config(path):
        found += config_findings(path, was, after)
    if path.endswith(".py"):
        found += python_findings(path, was, after) if _is_about_tests(path) else []
    else:
        found += other_findings(path, was, after) if is_test_file(path) or path.endswith(".rs") else []
    return found


def _is_about_tests(path: str) -> bool:
    folders = path.split("/")
    return is_test_file(path) or folders[-1] == "conftest.py" or bool(_TEST_FOLDERS.intersection(folders[:-1]))


def _text(data: bytes | None) -> str | None:
    """The text of a file; None for what is none."""
    if data is None or len(data) > LONGEST or b"\0" in data:
        return None
    return data.decode("utf-8", "replace")


class WeakeningCheck:
    """Reads the diff for what weakens the checks."""

    async def run(self, spec: CheckSpec, context: CheckContext) -> CheckResult:
        old, new = await read_versions(context.read, context.changes)
        listed = find_weakening(context.changes, old.get, new.get)
        findings = tuple(replace(f, blocks=f.blocks and f.path not in context.allowed) for f in listed)
        red = any(finding.blocks for finding in findings)
        return CheckResult(spec.name, spec.kind, "exit-code", "failed" if red else "passed", findings=findings)
