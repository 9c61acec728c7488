"""What is read from a change before anything runs, and what of all findings a person has to look at."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bailiwick.gate.diffs.arguments import ignored_arguments, rebound_functions
from bailiwick.gate.diffs.changes import SourceChange
from bailiwick.gate.diffs.conduct import read_conduct
from bailiwick.gate.diffs.expectations import asserting_helpers, changed_doctests, own_assertions, rewritten_docstrings
from bailiwick.gate.diffs.expected_names import PROPOSED, changed_expectations, changed_samples
from bailiwick.gate.diffs.hygiene import read_hygiene
from bailiwick.gate.globs import first_match
from bailiwick.gate.model import CheckResult, Doubt, Finding
from bailiwick.gate.testfiles import belongs_to_tests

if TYPE_CHECKING:
    from bailiwick.git.objects import TreeChange
    from bailiwick.git.store import GitStore

PATCH_KEPT = 16 * 1024
"""Characters of the hunk of one doubt."""
MOST_TESTS = 500
"""Test files that are read to know what tests ask for."""
_VALUES, _CASES = "conduct-values", "conduct-cases"
DECIDED_LATER = (_VALUES,)
"""Codes of findings about which runs may still show that they are nothing."""
_TABLE, _GENERALISES = "value-table", "generalises"


@dataclass(frozen=True, slots=True)
class DiffReader:
    """Reads a change from the base to the tree that is checked. `test_files` hold tests of the base."""

    git_store: GitStore
    base: str
    tree: str
    changes: tuple[TreeChange, ...]
    test_files: frozenset[str] = frozenset()
    doctest_files: frozenset[str] = frozenset()
    """Files whose examples the base runs as tests."""
    opened: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Files that the base's run opened, each with the files that did."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values of configured secrets, none of which may be in a change."""

    async def findings(self) -> tuple[Finding, ...]:
        """All that reading shows."""
        old = await self.git_store.blobs(self.base, (c.path for c in self.changes if c.status != "A"))
        new = await self.git_store.blobs(self.tree, (c.path for c in self.changes if c.status != "D"))
        changes = [
            SourceChange(c.path, old.get(c.path), new.get(c.path), is_test=self._is_test(c.path)) for c in self.changes
        ]
        tests = await self._tests() if any(not change.is_test for change in changes) else {}
        products = await self._products() if tests else {}
        return await asyncio.to_thread(self._read, changes, tests, products)

    def _read(
        self, changes: Sequence[SourceChange], tests: dict[str, bytes], products: Mapping[str, bytes]
    ) -> tuple[Finding, ...]:
        found = [*read_conduct(changes, tests), *read_hygiene(changes, self.secrets)]
        found += changed_expectations(changes, tests, products)
        changed = [change.path for change in changes if change.old is not None and not change.is_test]
        openers = {opener: self._is_test(opener) for path in changed for opener in self.opened.get(path, ())}
        found += changed_samples(changed, self.opened, tests, openers)
        for change in changes:
            if change.is_test:
                continue
            if change.path.endswith(".py") and change.new is not None:
                found += asserting_helpers(change.old, change.new, change.path, tests)
                found += own_assertions(change.old, change.new, change.path, tests)
                found += ignored_arguments(change.old, change.new, change.path)
                found += rebound_functions(change.old, change.new, change.path)
            if change.old is not None and change.path in self.doctest_files:
                found += changed_doctests(change.old, change.new or b"", change.path)
            if self.doctest_files and change.path.endswith(".py"):
                found += rewritten_docstrings(change.old, change.new, change.path)
        return tuple(found)

    def _is_test(self, path: str) -> bool:
        return belongs_to_tests(path) or path in self.test_files

    async def _products(self) -> dict[str, bytes]:
        """The Python files of the base that are no tests."""
        listed = [path for path in await self.git_store.files(self.base) if path.endswith(".py")]
        return await self.git_store.blobs(self.base, [path for path in listed if not self._is_test(path)][:MOST_TESTS])

    async def _tests(self) -> dict[str, bytes]:
        """The test files of base and change together."""
        files = [path for path in await self.git_store.files(self.base) if path.endswith(".py") and self._is_test(path)]
        added = [c.path for c in self.changes if c.path.endswith(".py") and self._is_test(c.path) and c.status != "D"]
        found = await self.git_store.blobs(self.base, files[:MOST_TESTS])
        proposed = await self.git_store.blobs(self.tree, added)
        return {**found, **{f"{path}{PROPOSED}": data for path, data in proposed.items()}}


def weigh_values(findings: Iterable[Finding], checks: Iterable[CheckResult]) -> tuple[Finding, ...]:
    """What calls with other arguments show of values of tests in the product.

    They are a note where it computes them. Where it gives what tests ask for, and beside them what it always gave, one
    of them is enough to ask a person, and so are several cases that lead to a yes or no; else these are nothing.
    """
    told = [finding for check in checks for finding in check.findings]
    tables = {finding.path for finding in told if finding.code == _TABLE}
    general = {finding.path for finding in told if finding.code == _GENERALISES} - tables
    return tuple(
        replace(finding, parks=finding.path in tables)
        if finding.code in (_VALUES, _CASES) and finding.path in general | tables
        else finding
        for finding in findings
        if finding.code != _CASES or finding.path in tables
    )


def without_measurements(check: CheckResult) -> CheckResult:
    """A result for people: that a function computes what it gives is no finding."""
    return replace(check, findings=tuple(f for f in check.findings if f.code != _GENERALISES))


def approved(findings: Iterable[Finding], allow: Sequence[str]) -> tuple[Finding, ...]:
    """The findings; those on paths that a person allowed park nothing."""
    return tuple(
        replace(finding, parks=False, what=f"{finding.what} (allowed)")
        if finding.parks and first_match(allow, finding.path)
        else finding
        for finding in findings
    )


async def doubts_of(findings: Iterable[Finding], git_store: GitStore, base: str, tree: str) -> tuple[Doubt, ...]:
    """What a person has to look at, each with its hunk; one finding of a kind for each file."""
    seen: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        if finding.parks:
            seen.setdefault((finding.path, finding.code), finding)
    patches: dict[str, str] = {}
    for path, _ in seen:
        if path and path not in patches:
            patches[path] = await git_store.diff(base, tree, (path,), PATCH_KEPT)
    return tuple(
        Doubt(finding.path, finding.what, finding.line, patches.get(finding.path, "")) for finding in seen.values()
    )


def only_read_by_tests(opened: Iterable[tuple[str, Sequence[str]]], test_files: Collection[str]) -> frozenset[str]:
    """Data files that the base's run opened from tests alone: what they hold is expected, not made."""
    return frozenset(
        path
        for path, openers in opened
        if not path.endswith(".py") and openers and all(belongs_to_tests(o) or o in test_files for o in openers)
    )
