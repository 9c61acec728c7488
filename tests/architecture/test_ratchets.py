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
MOST_BARE_CALLS = 492
MOST_UNFORMATTED = {"src": 196, "tests": 217}
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


def test_calls_with_many_bare_arguments_become_fewer() -> None:
    """Name them: nobody knows by heart what the fourth of six is. Lower the number with each that goes."""
    found = [
        where(path, node)
        for path in package_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and len(node.args) >= BARE_ARGUMENTS
    ]
    assert len(found) <= MOST_BARE_CALLS


@pytest.mark.parametrize("folder", MOST_UNFORMATTED)
def test_lines_that_are_kept_out_of_the_format_become_fewer(folder: str) -> None:
    """A table may be; anything else is laid out as everything else. Lower the number with each that goes."""
    count = sum(path.read_text("utf-8").count(UNFORMATTED) for path in python_files(folder))
    assert count <= MOST_UNFORMATTED[folder]
