"""Loading a workflow: its file, the files it needs, the workflows it calls; checked as a whole, then compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.engine.graph import Call, Graph
from bailiwick.errors import InputInvalid, Place, Problem
from bailiwick.lang import codes
from bailiwick.lang.compile import Compiled, compile_file
from bailiwick.lang.dataflow import DataFlow
from bailiwick.lang.fields import Findings
from bailiwick.lang.files import MAX_PINNED, WorkflowFiles, pinned_size
from bailiwick.lang.flow import check_flow
from bailiwick.lang.paths import PathRefused, confine
from bailiwick.lang.source import read_workflow

FILE = "workflow.yaml"
MAX_PROBLEMS = 200

Finder = Callable[[str, Path], Path | None]
"""Finds a called workflow by its name, given the calling workflow's directory; None where there is none."""


@dataclass(slots=True)
class Loaded:
    """A checked workflow. `files` are its pinned files by relative name; one that calls itself is its own entry.

    `reads` are the context keys that its templates and branches read; None where that is not known.
    """

    graph: Graph
    warnings: list[Problem]
    root: Path
    files: dict[str, Path]
    calls: dict[str, Loaded] = field(default_factory=dict)
    reads: frozenset[str] | None = None


def load(path: Path, find: Finder | None = None, *, strict: bool = False) -> Loaded:
    """Load a directory or its `workflow.yaml`; raises `InputInvalid` with all problems if there is an error among them.

    With `strict`, an unknown field of a node is an error instead of a warning.
    """
    loader = _Loader(find, Findings(strict=strict))
    file = _file_of(path)
    first = loader.read(file, str(file))
    loader.follow()
    loader.check()
    found = loader.found
    if first is None or found.failed:
        raise InputInvalid(_ordered(found.problems))
    return loader.finish(first)


@dataclass(slots=True)
class _Item:
    file: Path
    shown: str
    compiled: Compiled
    files: WorkflowFiles
    calls: dict[str, Path] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.files.root


class _Loader:
    """Reads a workflow and, one by one, those it leads to; each directory once."""

    def __init__(self, find: Finder | None, found: Findings) -> None:
        self.find = find
        self.found = found
        self.items: dict[Path, _Item | None] = {}
        self.ahead: list[_Item] = []

    def read(self, file: Path, shown: str) -> _Item | None:
        """Read and compile one file; None, with the reasons noted, where that is not possible."""
        root = file.parent.resolve()
        if root in self.items:
            return self.items[root]
        self.items[root] = None
        if not file.resolve().is_relative_to(root):
            hint = "give the directory the file really lies in"
            self.found.error(codes.OUTSIDE, "the file is a link out of its directory", Place(shown), hint)
            return None
        try:
            value = read_workflow(file, shown, self.found.problems)
        except InputInvalid as error:
            self.found.problems += error.found
            return None
        compiled = compile_file(value, root.name, self.found)
        item = _Item(file, shown, compiled, WorkflowFiles(root, str(Path(shown).parent), self.found))
        item.files.pinned[file.name] = root / file.name
        self.items[root] = item
        self.ahead.append(item)
        return item

    def follow(self) -> None:
        """Read every workflow that is called, directly or not."""
        while self.ahead:
            item = self.ahead.pop()
            for name, node in item.compiled.nodes.items():
                if isinstance(node, Call) and node.workflow not in item.calls:
                    self._follow(item, node.workflow, item.compiled.ids[name].at("workflow"))

    def _follow(self, item: _Item, reference: str, place: Place) -> None:
        try:
            target = self._locate(item, reference)
        except PathRefused as refused:
            code = codes.OUTSIDE if refused.outside else codes.UNKNOWN_WORKFLOW
            self.found.error(code, refused.what, place, refused.hint)
            return
        file = _file_of(target)
        if not file.is_file():
            what = f"the called workflow {reference!r} has no {FILE}"
            self.found.error(codes.UNKNOWN_WORKFLOW, what, place, f"create {file.name} in {target.name}")
            return
        within = target.is_relative_to(item.root)
        shown = str(Path(item.shown).parent / file.relative_to(item.root)) if within else str(file)
        called = self.read(file, shown)
        if called is not None:
            item.calls[reference] = called.root

    def _locate(self, item: _Item, reference: str) -> Path:
        """The directory or file of a called workflow: inside the caller's directory, else whatever `find` knows."""
        inside = confine(item.root, reference)
        if inside.is_dir() or inside.name == FILE:
            return inside
        found = self.find(reference, item.root) if self.find is not None and "/" not in reference else None
        if found is None:
            hint = f"give a directory inside {item.root.name}, or the name of a workflow that `run` would find"
            raise PathRefused(f"there is no workflow {reference!r} to call", hint)
        return found

    def check(self) -> None:
        """Check each workflow with what is known of all, and the size of the whole."""
        items = [item for item in self.items.values() if item is not None]
        for item in items:
            returns = {name: self._returns(root) for name, root in item.calls.items()}
            _check(item.compiled, item.files, returns, self.found)
        size = pinned_size({path for item in items for path in item.files.pinned.values()})
        if size > MAX_PINNED and items:
            what = f"the workflow's files take {size:,} bytes, the most is {MAX_PINNED:,}"
            hint = "keep data out of prompts/ and scripts/"
            self.found.error(codes.PIN_TOO_LARGE, what, Place(items[0].shown), hint)

    def _returns(self, root: Path) -> tuple[str, ...]:
        item = self.items.get(root)
        return tuple(item.compiled.header.get("returns") or ()) if item is not None else ()

    def finish(self, first: _Item) -> Loaded:
        """The workflows as loaded, each once, whoever calls them."""
        loaded: dict[Path, Loaded] = {}
        for root, item in self.items.items():
            if item is not None:
                made = item.compiled
                loaded[root] = Loaded(made.graph(), [], root, dict(item.files.pinned), reads=made.reads)
        for root, item in self.items.items():
            if item is not None:
                loaded[root].calls = {name: loaded[target] for name, target in item.calls.items()}
        loaded[first.root].warnings = _ordered(self.found.problems)
        return loaded[first.root]


def _file_of(path: Path) -> Path:
    """The workflow file a person means by a directory or a file."""
    return path / FILE if path.is_dir() else path


def _ordered(problems: list[Problem]) -> list[Problem]:
    """Problems in the order of the files; of very many the first errors, and how many are left out."""
    files: dict[str, int] = {}
    for problem in problems:
        files.setdefault(problem.place.file if problem.place else "", len(files))

    def key(problem: Problem) -> tuple[int, int, int]:
        place = problem.place or Place("")
        return files[place.file], place.line, place.column

    kept = problems
    if len(problems) > MAX_PROBLEMS:
        kept = sorted(problems, key=lambda problem: problem.warning)[:MAX_PROBLEMS]
    kept = sorted(kept, key=key)
    if len(problems) > len(kept):
        what = f"{len(problems) - len(kept):,} more problems are not shown"
        kept.append(Problem(codes.TOO_MANY, what, kept[0].place, "correct these first", warning=True))
    return kept


def _check(compiled: Compiled, files: WorkflowFiles, returns: Mapping[str, tuple[str, ...]], found: Findings) -> None:
    """Note every problem of a compiled workflow; `returns` holds what each called workflow gives back, by reference."""
    owners = check_flow(compiled, found)
    files.scan()
    flow = DataFlow(compiled, files, returns, found)
    flow.check(owners)
    compiled.reads = None if flow.dynamic else frozenset(flow.reads)
