"""Names: what the package offers, and words that say nothing."""

from __future__ import annotations

import ast
import re

from tests.architecture.reading import PACKAGE, package_files, text_files, tree, where

PUBLIC = {"__version__"}
EMPTY_WORDS = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
MARKER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")


def _top_level_names(module: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in module.body:
        match node:
            case ast.Assign(targets=targets):
                names.update(target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names.update(alias.asname or alias.name for alias in imported)
    return {name for name in names if not name.startswith("_") or name == "__version__"} - {"annotations"}


def test_the_package_offers_exactly_its_public_names() -> None:
    """A public name is a promise: adding or losing one is a decision, made by changing this list."""
    assert _top_level_names(tree(PACKAGE / "__init__.py")) == PUBLIC


def test_no_module_is_named_by_an_empty_word() -> None:
    """A drawer without a subject collects everything."""
    found = [where(path, 1) for path in package_files() if EMPTY_WORDS.intersection(path.with_suffix("").parts)]
    assert found == []


def test_no_file_carries_a_marker_for_later() -> None:
    """What is left to do is an issue or isn't left; a marker in the code is neither."""
    found = [
        where(path, number)
        for path in text_files()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if MARKER.search(line)
    ]
    assert found == []
