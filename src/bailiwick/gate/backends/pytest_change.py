"""What a change means for a run of tests: which files are new tests, which functions changed, and trees made of it."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bailiwick.gate.diffs.functions import ChangedFunction, changed_code, functions_of, insert_at_start
from bailiwick.gate.diffs.mutants import with_other_results
from bailiwick.gate.instrument import AssertionSite, Reach, Target, instrument
from bailiwick.gate.port import read_many
from bailiwick.gate.testfiles import belongs_to_tests

if TYPE_CHECKING:
    from bailiwick.gate.outcomes import PytestItem
    from bailiwick.gate.port import CheckContext, Which

_AT_IMPORT = ("__init_subclass__", "__set_name__", "__prepare__")
MOST_FILES = 600
"""Test files and their helpers that are instrumented at once."""


@dataclass(frozen=True, slots=True)
class Touched:
    """A function that the change touches. `decides`: its own code changed, not only the module around it."""

    path: str
    function: ChangedFunction
    decides: bool


@dataclass(frozen=True, slots=True)
class ChangeView:
    """A change as the check sees it. Paths that a person allowed count as part of the base's tests."""

    without: Mapping[str, bytes | None] = field(default_factory=dict)
    """What makes the proposed tree one without the new tests."""
    tests: Mapping[str, bytes] = field(default_factory=dict)
    """The files with new tests and what belongs to them, as proposed."""
    touched: tuple[Touched, ...] = ()
    product: frozenset[str] = frozenset()
    """Changed Python files that are no tests."""
    loose: frozenset[str] = frozenset()
    """Those of them in which code outside of functions changed."""

    @property
    def noticeable(self) -> bool:
        """Whether some changed function is called while tests run; hooks of classes are when they are imported."""
        return any(touched.decides and touched.function.name not in _AT_IMPORT for touched in self.touched)

    @property
    def with_tests(self) -> tuple[str, ...]:
        """The Python files in which new tests are looked for."""
        return tuple(sorted(path for path in self.tests if path.endswith(".py")))


async def view_change(context: CheckContext, test_files: Collection[str]) -> ChangeView:
    """Read a change once. `test_files` hold tests of the base: these count in the base's form, changed or not."""
    without: dict[str, bytes | None] = {}
    tests: dict[str, bytes] = {}
    touched: list[Touched] = []
    loose: set[str] = set()
    product: set[str] = set()
    before = await read_many(context, "base", (c.path for c in context.changes if c.status != "A"))
    after = await read_many(context, "proposed", (c.path for c in context.changes if c.status != "D"))
    for path in (change.path for change in context.changes):
        old, now = before.get(path), after.get(path)
        if (belongs_to_tests(path) or path in test_files) and path not in context.allowed:
            without[path] = old
            if now is not None:
                tests[path] = now
        elif path.endswith(".py") and now is not None:
            product.add(path)
            found, outside = _touched(path, old, now)
            touched += found
            if outside:
                loose.add(path)
    return ChangeView(
        without=without,
        tests=tests,
        touched=tuple(touched),
        product=frozenset(product),
        loose=frozenset(loose),
    )


def _touched(path: str, old: bytes | None, new: bytes) -> tuple[list[Touched], bool]:
    changed = changed_code(old, new)
    own = {function.line for function in changed.functions}
    functions = functions_of(new) if changed.module_level else changed.functions
    return [Touched(path, f, decides=f.line in own) for f in functions], changed.module_level


def absent_call(token: str, number: int) -> str:
    """The statement by which a changed function says that it begins; in a process started by a test it raises."""
    raising = "lambda _: [][0]"
    started = f'({raising}) if __import__("os").environ.get("{token}") else int'
    return f'__import__("builtins").__dict__.get("{token}", {started})({number})'


async def absent_files(context: CheckContext, view: ChangeView, token: str) -> dict[str, bytes | None]:
    """The changed files with every changed function calling `absent_call` first."""
    files: dict[str, bytes | None] = {}
    for path in sorted({touched.path for touched in view.touched}):
        source = await context.read("proposed", path)
        if source is None:
            continue
        numbers = {t.function.line: n for n, t in enumerate(view.touched) if t.path == path}
        functions = [touched.function for touched in view.touched if touched.path == path]
        files[path] = insert_at_start(source, functions, lambda f, n=numbers: absent_call(token, n[f.line]))  # type: ignore[misc]
    return files


async def other_files(context: CheckContext, view: ChangeView) -> dict[str, bytes | None]:
    """The changed files with every changed function giving another result; none where that can't be had for all."""
    files: dict[str, bytes | None] = {}
    deciding = [touched for touched in view.touched if touched.decides]
    for path in sorted({touched.path for touched in deciding}):
        source = await context.read("proposed", path)
        names = {touched.function.qualname for touched in deciding if touched.path == path}
        made = with_other_results(source, names) if source is not None else None
        if made is None:
            return {}
        files[path] = made
    return files


@dataclass(frozen=True, slots=True)
class Watched:
    """Files in which every assertion is asked again; their places, and by test those that it reaches."""

    files: Mapping[str, bytes | None]
    sites: Mapping[int, AssertionSite]
    reach: Mapping[str, Reach]


async def watched_files(
    context: CheckContext,
    which: Which,
    tests: Collection[str],
    items: Iterable[PytestItem],
    token: str,
    given: Mapping[str, bytes | None],
) -> Watched:
    """Instrument the files of some tests and whatever helps them. `given` holds files that differ from the tree's."""
    listed = {item.id: item for item in items if item.id in tests}
    holding = {path for item in listed.values() for path in (item.path, item.code_path) if path.endswith(".py")}
    names = {path: given.get(path, b"") for path in (*await context.files(which), *given)}
    helping = [path for path, data in names.items() if data is not None and _helps(path)]
    files: dict[str, bytes | None] = {}
    sites: dict[int, AssertionSite] = {}
    reach: dict[tuple[str, Target], Reach] = {}
    paths = sorted({*holding.intersection(names), *helping})[:MOST_FILES]
    texts = await read_many(context, which, (path for path in paths if path not in given))
    for path in paths:
        source = given[path] if path in given else texts.get(path)
        made = instrument(path, source, token, len(sites)) if source is not None else None
        if made is not None and made.sites:
            files[path] = made.source
            sites.update(made.sites)
            reach.update({(path, target): numbers for target, numbers in made.reach.items()})
    places = {test: (item.code_path, Target(item.line, item.name)) for test, item in listed.items()}
    return Watched(files, sites, {test: reach[place] for test, place in places.items() if place in reach})


def _helps(path: str) -> bool:
    """Whether a file may hold assertions that tests of other files use."""
    name = posixpath.basename(path)
    test = name.startswith("test_") or name.endswith("_test.py")
    return path.endswith(".py") and belongs_to_tests(path) and not test
