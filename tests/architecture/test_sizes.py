"""Files and functions stay small enough to be read in one go."""

from __future__ import annotations

import ast

from tests.architecture.reading import CODE_FOLDERS, python_files, tree, where

LONGEST_FILE = 500
LONGEST_FUNCTION = 50


def test_no_file_is_longer_than_five_hundred_lines() -> None:
    """A longer file holds two subjects: split it where it hurts to name."""
    too_long = [
        f"{where(path, 1)}: {count} lines"
        for path in python_files(*CODE_FOLDERS)
        if (count := len(path.read_text("utf-8").splitlines())) > LONGEST_FILE
    ]
    assert too_long == []


def test_no_function_is_longer_than_fifty_lines() -> None:
    """A longer function cannot be held in the head; the count includes signature and docstring."""
    too_long = [
        f"{where(path, node)}: {node.name} has {lines} lines"
        for path in python_files(*CODE_FOLDERS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert too_long == []
