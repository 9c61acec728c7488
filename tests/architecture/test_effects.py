"""Effects have one place each: the environment in config, the wall clock in clock.py, none at all in pure modules."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.reading import PACKAGE, package_files, python_files, tree, uses, where

ENVIRONMENT = ("os.environ", "os.environb", "os.getenv", "os.putenv", "os.unsetenv", "os.path.expanduser")
INSIDE = PACKAGE / "gate" / "plugin"
"""Sent as text into the process of a test run, where there is no configuration to ask."""
WALL_CLOCK = (
    "time.time",
    "time.time_ns",
    "time.localtime",
    "time.gmtime",
    "time.ctime",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
)
IMPURE = {
    "apsw",
    "asyncio",
    "click",
    "httpx",
    "io",
    "jinja2",
    "logging",
    "os",
    "pathlib",
    "random",
    "rich",
    "secrets",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
    "yaml",
}


def _reads_environment(name: str) -> bool:
    return name.startswith(ENVIRONMENT) or name in ("pathlib.Path.home", "click.get_app_dir")


def test_only_config_reads_the_environment() -> None:
    """A value that comes from a variable has an origin that people can ask for; a stray read has none."""
    found = [
        f"{where(path, node)}: {name}"
        for path in package_files()
        if not path.is_relative_to(PACKAGE / "config") and not path.is_relative_to(INSIDE)
        for node, name in uses(path)
        if _reads_environment(name)
    ]
    assert found == []


def test_only_the_clock_module_reads_the_wall_clock() -> None:
    """Time that is not injected cannot be stood still by a test nor be the same in a replay."""
    found = [
        f"{where(path, node)}: {name}"
        for path in package_files()
        if path != PACKAGE / "clock.py"
        for node, name in uses(path)
        if name in WALL_CLOCK
    ]
    assert found == []


def test_pure_modules_import_nothing_that_acts() -> None:
    """The engine and each model.py give the same answer to the same input; they can't if they can reach the world."""
    pure = [path for path in package_files() if path.is_relative_to(PACKAGE / "engine") or path.name == "model.py"]
    found = [
        f"{where(path, node)}: {name}"
        for path in pure
        for node, name in uses(path)
        if isinstance(node, ast.Import | ast.ImportFrom) and name.split(".")[0] in IMPURE
    ]
    assert found == []
    assert pure, "the engine is where the pure modules are"


def _sleeping(path: Path) -> list[ast.Call]:
    names = {id(node): name for node, name in uses(path)}

    def sleeps(call: ast.Call) -> bool:
        name = names.get(id(call.func), "")
        zero = bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
        return name == "time.sleep" or (name == "asyncio.sleep" and not zero)

    return [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call) and sleeps(node)]


def test_no_test_sleeps() -> None:
    """A test that sleeps is slow on a good day and red on a busy machine."""
    found = [
        where(path, node)
        for path in python_files("tests")
        if "sleep" in path.read_text("utf-8")
        for node in _sleeping(path)
    ]
    assert found == []


def test_every_test_says_why_it_exists() -> None:
    """The name is the promise, the docstring the reason; without it nobody dares to change the test."""
    found = [
        f"{where(path, node)}: {node.name}"
        for path in python_files("tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert found == []
