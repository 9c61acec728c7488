"""Importing does nothing and is light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from tests.architecture.reading import PACKAGE, module_name, package_files, tree, where

QUIET = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.Pass,
)
HEAVY = {"apsw", "asyncio", "click", "jinja2", "jsonschema_rs", "pydantic", "rich", "yaml"}
LIGHT = ("bailiwick", "bailiwick.__main__", "bailiwick.config", "bailiwick.errors", "bailiwick.ids", "bailiwick.clock")

IMPORT_ALL = """
import importlib, json, os, sys, threading
names = json.loads(sys.argv[1])
before = dict(os.environ)
for name in names:
    importlib.import_module(name)
print(json.dumps({
    "threads": threading.active_count(),
    "environment": dict(os.environ) == before,
    "files": os.listdir("."),
    "loaded": sorted(m for m in sys.modules if "." not in m),
}))
"""


def _is_quiet(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        test = ast.unparse(node.test)
        return test in ("TYPE_CHECKING", "__name__ == '__main__'") or test.startswith("sys.")
    return isinstance(node, QUIET)


def _import_in_a_fresh_process(names: list[str], cwd: Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", IMPORT_ALL, json.dumps(names)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_modules_only_define_at_the_top_level() -> None:
    """A loop, a call or a with block at the top of a module is work done by whoever merely imports it."""
    found = [where(path, node) for path in package_files() for node in tree(path).body if not _is_quiet(node)]
    assert found == []


def test_importing_every_module_leaves_no_trace(tmp_path: Path) -> None:
    """No output, no thread, no file, no changed variable: an import is no action. And pydantic is never paid for."""
    answer = _import_in_a_fresh_process([module_name(path) for path in package_files()], tmp_path)
    assert (answer["threads"], answer["environment"], answer["files"]) == (1, True, [])
    loaded = answer["loaded"]
    assert isinstance(loaded, list)
    assert "pydantic" not in loaded


def test_what_every_command_imports_is_light(tmp_path: Path) -> None:
    """`bailiwick --version` answers 30 ms after Python itself, so the modules on its way bring nothing heavy."""
    there = {module_name(path) for path in package_files()}
    answer = _import_in_a_fresh_process([name for name in LIGHT if name in there], tmp_path)
    loaded = answer["loaded"]
    assert isinstance(loaded, list)
    assert HEAVY.intersection(loaded) == set()
    assert PACKAGE.name in loaded
