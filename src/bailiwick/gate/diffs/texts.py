"""Texts in product code that name test tools, tests or what frames are made of, however they are put together."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from bailiwick.gate.diffs import conduct_tables as tables
from bailiwick.gate.diffs.facilities import Use
from bailiwick.gate.diffs.folding import ConstantFolder, NotConstant
from bailiwick.gate.diffs.syntax import FUNCTIONS, is_docstring, nodes_of

_TOOL = re.compile(
    r"(?<![a-z0-9])_?py\.?test(?![a-z])|(?<![a-z0-9])unittest(?![a-z])|testcase\b|conftest", re.IGNORECASE
)
_PATTERN = re.compile(r"test_?[*]|[*]_?test|\^?test_(?:\.\*|\\w)|tests?/[*]")
_SETUP = re.compile(r"(?:.*/)?(?:setup|noxfile|tasks|fabfile|conf|_version|versioneer)\.py")
"""Files that say what a project needs for its tests: there the names of tools are notes."""
_ABOUT_TESTS = re.compile(r"test", re.IGNORECASE)


class TestNames:
    """The names by which a text can mean a test: functions, classes, files, modules."""

    __test__ = False

    def __init__(self, sources: Mapping[str, bytes]) -> None:
        self._sources = sources

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders that hold tests."""
        return frozenset(path.rpartition("/")[0] for path in self._sources if "/" in path)

    @cached_property
    def names(self) -> frozenset[str]:
        """Everything that a test is called."""
        found: set[str] = set()
        for path, source in self._sources.items():
            found |= {path, path.rpartition("/")[2]}
            if path.endswith(".py"):
                found |= {path.removesuffix(".py").replace("/", "."), path.rpartition("/")[2].removesuffix(".py")}
                found |= set(_tests_in(source))
        return frozenset(name for name in found if _ABOUT_TESTS.search(name) and name not in ("test", "tests"))

    def means(self, text: str) -> bool:
        """Whether a text is the name of a test, or a path in a folder of tests."""
        if not _ABOUT_TESTS.search(text):
            return False
        bare = text.removeprefix("./").lstrip("/")
        return bare in self.names or any(bare.startswith(f"{folder}/") for folder in self.folders)


def _tests_in(source: bytes) -> Iterator[str]:
    for node in nodes_of(source):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name.lower().startswith("test"):
            yield node.name


def text_uses(module: ast.Module, folder: ConstantFolder, path: str, names: TestNames) -> tuple[Use, ...]:
    """The texts of a file that tell of tests; docstrings are left out."""
    found: dict[tuple[str, int], Use] = {}
    for text, line in texts_in(module, folder):
        use = _judged(text, line, path, names)
        if use is not None:
            found.setdefault((use.name, line), use)
    return tuple(found.values())


def texts_in(module: ast.AST, folder: ConstantFolder) -> Iterator[tuple[str, int]]:
    """Every text of a file with its line: as it is written, and as it is when it has been put together."""
    for node in ast.iter_child_nodes(module):
        if isinstance(node, ast.stmt) and is_docstring(node):
            continue
        if isinstance(node, ast.expr):
            for text in _texts_of(node, folder):
                yield text, node.lineno
        yield from texts_in(node, folder)


def _texts_of(node: ast.expr, folder: ConstantFolder) -> Iterator[str]:
    if isinstance(node, ast.Name | ast.Attribute | ast.Lambda):
        return
    try:
        value = folder.fold(node)
    except NotConstant:
        return
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str) and value:
        yield value


def _judged(text: str, line: int, path: str, names: TestNames) -> Use | None:
    if text in tables.FRAME_WORDS:
        return Use(tables.FRAMES, text, line, parks=True)
    if not _ABOUT_TESTS.search(text):
        return None
    tool = _TOOL.search(text)
    if tool is not None:
        told = len(text.split()) > 1 or _SETUP.fullmatch(path) is not None
        return Use(tables.TOOLS, f"the text {tool[0]!r}", line, parks=not told)
    if names.means(text) or _PATTERN.search(text):
        return Use(tables.TOOLS, f"the text {text[:60]!r}", line, parks=len(text.split()) == 1)
    return Use(tables.TOOLS, f"the text {text!r}", line, parks=False) if text == "test_" else None
