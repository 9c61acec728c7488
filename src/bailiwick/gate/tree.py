"""The proposed tree: what the agent left, without its changes to protected paths. What is tested is what is proposed.

A new test file, what it needs beside it, and a test appended to an existing file are let in although `tests/**` is
protected: they only add, a fix without a test of its own can't be proven, and the base's tests run without them.
Everything else below protected paths (a changed or deleted test, a fixture, a `conftest.py`) is reverted and listed.
Protected wherever they are: files that a tool loads by itself, data that only tests read, and a module that would be
imported in place of one that the tests rely on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from bailiwick.errors import InputInvalid, Problem
from bailiwick.gate.diffs.appended import appended
from bailiwick.gate.globs import fault_of, first_match, matches
from bailiwick.gate.model import Finding, RevertedChange
from bailiwick.gate.run import EXPECTATION
from bailiwick.gate.spec import BAD_PATTERN
from bailiwick.gate.testfiles import belongs_to_tests, is_test_file, self_loading, shadowed

if TYPE_CHECKING:
    from bailiwick.git.objects import TreeChange
    from bailiwick.git.store import GitStore

PATCH_KEPT = 64 * 1024
"""Bytes of each hunk that are shown."""
PATCHES_KEPT = 256 * 1024
"""Characters of all hunks together: a report is kept, shown and sent."""
_LINK = "120000"
_ABOUT_TESTS = ("test", "spec")
_KIND: dict[str, Literal["added", "changed", "deleted"]] = {"A": "added", "D": "deleted"}


@dataclass(frozen=True, slots=True)
class TreePolicy:
    """What counts: patterns of protected paths, what a person allowed beforehand, modules that are installed."""

    protected: tuple[str, ...]
    allow: tuple[str, ...] = ()
    installed: frozenset[str] = frozenset()
    test_files: frozenset[str] = frozenset()
    """Files that hold tests of the base, wherever they are."""
    expectations: frozenset[str] = frozenset()
    """Files that say what tests expect: data that only tests read, the settings in use."""


@dataclass(frozen=True, slots=True)
class ProposedTree:
    """What is left of a tree. `without` lacks the allowed changes too, where there are any."""

    tree: str
    without: str = ""
    taken: tuple[RevertedChange, ...] = ()
    findings: tuple[Finding, ...] = ()
    changes: tuple[TreeChange, ...] = ()
    """From the base to `tree`."""

    @property
    def out(self) -> tuple[RevertedChange, ...]:
        """What is not in `tree`."""
        return tuple(part for part in self.taken if not part.allowed)


@dataclass(frozen=True, slots=True)
class _Ground:
    """The base as far as the rules look at it."""

    files: frozenset[str]
    folders: frozenset[str] = frozenset()
    guarded_files: frozenset[str] = frozenset()
    guarded_folders: frozenset[str] = frozenset()
    empty: frozenset[str] = field(default_factory=frozenset)
    """New files that hold nothing."""
    extended: frozenset[str] = frozenset()
    """Test files that keep all they had and only gain tests."""


def check_allowed(patterns: Iterable[str]) -> None:
    """Refuse a pattern of `--allow` that can't be read."""
    for pattern in patterns:
        if fault := fault_of(pattern):
            raise InputInvalid([Problem(BAD_PATTERN, f"--allow {pattern}: {fault}", hint="such as tests/test_x.py")])


async def sift(git_store: GitStore, base: str, asked: str, policy: TreePolicy) -> ProposedTree:
    """Changes to protected paths are reverted; those that a person allowed stay, and are listed first."""
    check_allowed(policy.allow)
    changes = await git_store.changes(base, asked)
    ground = replace(
        _survey(await git_store.files(base), policy, await _empty_files(git_store, asked, changes)),
        extended=await _extended(git_store, base, asked=asked, changes=changes, policy=policy),
    )
    rules = {change.path: rule for change in changes if (rule := rule_of(change, policy, ground))}
    kept = {path for path in rules if first_match(policy.allow, path)}
    tree = await _restored(git_store, base, asked=asked, ground=ground, paths=rules.keys() - kept)
    without = await _restored(git_store, base, asked=asked, ground=ground, paths=rules.keys()) if kept else ""
    order = sorted(rules, key=lambda path: (path not in kept, path))
    by_path = {change.path: change for change in changes}
    taken = [
        RevertedChange(
            path, change=_KIND.get(by_path[path].status, "changed"), patch="", allowed=path in kept, rule=rules[path]
        )
        for path in order
    ]
    sandbox = PATCHES_KEPT
    for index, part in enumerate(taken):
        if sandbox <= 0:
            break
        taken[index] = replace(part, patch=await git_store.diff(base, asked, (part.path,), min(PATCH_KEPT, sandbox)))
        sandbox -= len(taken[index].patch)
    return ProposedTree(
        tree=tree,
        without=without if without != tree else "",
        taken=tuple(taken),
        findings=tuple(_findings(changes, rules, kept)),
        changes=await git_store.changes(base, tree),
    )


def rule_of(change: TreeChange, policy: TreePolicy, ground: _Ground) -> str:
    """By which rule a change needs a person's word; empty where it needs none."""
    path = change.path
    new = path not in ground.files
    if pattern := self_loading(path, new=new):
        return f"loaded by itself: {pattern}"
    hits = [pattern for pattern in policy.protected if matches(pattern, path)]
    if hits and not _only_adds(change, hits, ground):
        return hits[0]
    if path in policy.test_files and path not in ground.extended:
        return "holds tests of the base"
    if path in policy.expectations:
        return EXPECTATION
    if path in ground.guarded_folders:
        return "takes the place of a protected directory"
    if any(above in ground.guarded_files for above in _above(path)):
        return "takes the place of a protected file"
    if new and (module := shadowed(path, ground.files, policy.installed)):
        return f"shadows the module {module}"
    return ""


def _only_adds(change: TreeChange, hits: list[str], ground: _Ground) -> bool:
    """Whether a change below a protected path only brings tests and what they need; the base's run without it.

    A new package file has to be empty and in a new folder: else it would change how others are imported.
    """
    if change.new_mode == _LINK or not all(any(word in hit.casefold() for word in _ABOUT_TESTS) for hit in hits):
        return False
    if change.path in ground.files:
        return change.path in ground.extended
    folder, _, name = change.path.rpartition("/")
    if name == "__init__.py":
        return change.path in ground.empty and folder not in ground.folders
    return belongs_to_tests(change.path)


async def _extended(
    git_store: GitStore, base: str, asked: str, changes: Iterable[TreeChange], policy: TreePolicy
) -> frozenset[str]:
    """The changed test files that keep all they had and only gain tests."""
    paths = [
        change.path
        for change in changes
        if change.status == "M"
        and change.path.endswith(".py")
        and change.new_mode == change.old_mode
        and (is_test_file(change.path) or change.path in policy.test_files)
    ]
    old, new = await git_store.blobs(base, paths), await git_store.blobs(asked, paths)
    return frozenset(path for path in paths if path in old and path in new and appended(old[path], new[path]))


def _survey(files: Iterable[str], policy: TreePolicy, empty: frozenset[str]) -> _Ground:
    there = frozenset(files)
    guarded = frozenset(p for p in there if self_loading(p, new=False) or first_match(policy.protected, p))
    return _Ground(
        files=there,
        folders=frozenset(above for path in there for above in _above(path)),
        guarded_files=guarded,
        guarded_folders=frozenset(above for path in guarded for above in _above(path)),
        empty=empty,
    )


def _above(path: str) -> Iterable[str]:
    """The directories that a path lies in, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


async def _empty_files(git_store: GitStore, asked: str, changes: Iterable[TreeChange]) -> frozenset[str]:
    named = [c.path for c in changes if c.status == "A" and c.path.endswith("/__init__.py")]
    return frozenset([path for path in named if not (await git_store.blob(asked, path) or b"").strip()])


async def _restored(git_store: GitStore, base: str, asked: str, ground: _Ground, paths: Iterable[str]) -> str:
    """The asked tree with these paths as the base has them."""
    back: Mapping[str, str | None] = {path: base if path in ground.files else None for path in sorted(paths)}
    return await git_store.replace(asked, back) if back else asked


def _findings(changes: Iterable[TreeChange], rules: Mapping[str, str], kept: set[str]) -> Iterable[Finding]:
    for change in changes:
        rule = rules.get(change.path, "")
        if rule.startswith("shadows"):
            fate = "allowed" if change.path in kept else "reverted"
            yield Finding("shadows", f"the new file {rule}: {fate}", change.path, blocks=False)
        elif change.new_mode == _LINK and change.path not in rules:
            yield Finding("link", "the change makes this a symbolic link", change.path, blocks=False)
