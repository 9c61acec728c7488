"""What only shrinks: names that stand for two things, long lists of bare arguments, lines kept out of the format."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.architecture.reading import package_files, python_files, tree, where

BARE_ARGUMENTS = 5
"""So many positional arguments of one call can't be told apart by a reader."""
VARIADIC = {
    "out",
    "run",
    "line",
    "ask",
    "git",
    "_git",
    "text",
    "dig",
    "add",
    "gather",
    "pack",
    "prctl",
    "_ask",
    "_rules",
}
"""What takes any number of the same thing: the words of a command, the keys of a path, rows of a table."""
UNFORMATTED = "# fmt: " + "skip"


def _shared(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Public classes at the top of modules whose name several have, with where they are."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(where(path, node))
    return {name: places for name, places in found.items() if len(places) > 1}


def test_a_public_class_has_a_name_of_its_own() -> None:
    """Whoever searches for a name finds one thing."""
    assert _shared(package_files()) == {}


def test_a_helper_of_the_tests_has_a_name_of_its_own() -> None:
    """The same for those who read tests."""
    assert _shared(python_files("tests", "benchmarks")) == {}


def _tables(module: ast.Module) -> list[ast.stmt]:
    """What a module or a class names once, where rows may be laid out as a table."""
    bodies = [module.body, *(node.body for node in module.body if isinstance(node, ast.ClassDef))]
    return [node for body in bodies for node in body if isinstance(node, ast.Assign | ast.AnnAssign)]


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def test_no_call_has_many_bare_arguments() -> None:
    """Name them: nobody knows by heart what the fourth of six is. A row of a table has its columns above it."""
    found = [
        where(path, node)
        for path in package_files()
        for module in [tree(path)]
        for rows in [{id(node) for table in _tables(module) for node in ast.walk(table)}]
        for node in ast.walk(module)
        if isinstance(node, ast.Call) and len(node.args) >= BARE_ARGUMENTS
        if id(node) not in rows and _called(node) not in VARIADIC
    ]
    assert found == []


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks"])
def test_only_tables_are_kept_out_of_the_format(folder: str) -> None:
    """Anything else is laid out as everything else is."""
    found = [
        f"{path}:{number}"
        for path in python_files(folder)
        for ends in [{node.end_lineno for node in _tables(tree(path))}]
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if line.endswith(UNFORMATTED) and number not in ends
    ]
    assert found == []
