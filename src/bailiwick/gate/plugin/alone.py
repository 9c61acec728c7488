"""Runs tests of the tree without any test tool, as far as they can be run so; sent as text, behind `standin`.

A test that passes under pytest and not like this is right only under test. Names that tell of tests are not to be seen:
the module and its code have others, and `pytest` is a stand-in that only the test file itself is given.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import shutil
import sys
import tempfile
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bailiwick.gate.plugin.standin import LeftOut, Patch, StandIn, rows_of  # noqa: TC004 - sent before this one

TOOLS = ("pytest", "_pytest", "pluggy")
GIVEN = frozenset({"monkeypatch", "tmp_path"})
"""Fixtures that tests run without their tool may have."""
HARMLESS = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Expr, ast.Assign,
    ast.AnnAssign,
)  # fmt: skip
MOST_ROWS = 60


def can_be_alone(item: Any) -> bool:
    """Whether a test asks for nothing that only its tool could give."""
    wanted = set(getattr(item, "fixturenames", ()))
    wanted -= {*getattr(getattr(item, "callspec", None), "params", {}), *GIVEN, "tmp_path_factory"}
    function: Any = getattr(item, "function", None)
    if function is None or hasattr(function, "hypothesis") or inspect.iscoroutinefunction(function):
        return False
    return all(name.lstrip("_").startswith("unittest_set") for name in wanted)


class Barrier:
    """Keeps test tools, or other packages, out of the process; `hit` says that somebody asked for one."""

    def __init__(self, names: Any = TOOLS) -> None:
        self.hit = False
        self._names = frozenset(names)

    def find_spec(self, name: str, *_: Any) -> None:
        """Refuse a tool, and know nothing of anything else."""
        if name.partition(".")[0] in self._names:
            self.hit = True
            raise ModuleNotFoundError(f"{name} is not to be had in this process")


class Alone:
    """Test files by their path below the root, each executed once. `hidden`: under names that tell of no test."""

    def __init__(self, root: str, *, hidden: bool) -> None:
        self._root = root
        self._hidden = hidden
        self._modules: dict[str, Any] = {}
        self._standin = StandIn()

    def run(self, test: str) -> str:
        """How a test ends: empty where it passes, what it raised, or `left out` and why."""
        path, *names = test.split("::")
        try:
            module = self._module(path)
        except BaseException as error:  # noqa: BLE001 - nothing is known about a file that can't be had like this
            return f"left out: {path}: {type(error).__name__}: {error}"[:300]
        try:
            self._call(module, names)
        except LeftOut as error:
            return f"left out: {error}"
        except BaseException as error:  # noqa: BLE001 - this is how a test fails
            return f"{type(error).__name__}: {error}"[:300]
        return ""

    def _module(self, path: str) -> Any:
        found = self._modules.get(path)
        if found is None:
            try:
                found = self._made(path)
            except BaseException as error:  # noqa: BLE001 - the same each time
                found = error
            self._modules[path] = found
        if isinstance(found, BaseException):
            raise found
        return found

    def _made(self, path: str) -> Any:
        self._look_at_conftests(path)
        full = os.path.join(self._root, *path.split("/"))  # noqa: PTH118 - also where pathlib is patched
        name = f"module_{len(self._modules)}"
        module = types.ModuleType(name)
        module.__file__ = full
        module.__package__ = ".".join(self._package(path))
        vars(module)["__builtins__"] = {**vars(builtins), "__import__": self._import}
        with open(full, "rb") as file:  # noqa: PTH123 - as above
            code = compile(file.read(), name if self._hidden else full, "exec", dont_inherit=True)
        sys.modules[name] = module
        exec(code, vars(module))  # noqa: S102 - it is the test
        return module

    def _look_at_conftests(self, path: str) -> None:
        """Leave out what a conftest prepares by being imported, or by hooks."""
        parts = path.split("/")[:-1]
        for depth in range(len(parts) + 1):
            full = os.path.join(self._root, *parts[:depth], "conftest.py")  # noqa: PTH118 - as above
            if not os.path.exists(full):  # noqa: PTH110 - as above
                continue
            with open(full, "rb") as file:  # noqa: PTH123 - as above
                body = ast.parse(file.read()).body
            for one in body:
                if (
                    _acts_at_once(one)
                    or not isinstance(one, HARMLESS)
                    or getattr(one, "name", "").startswith("pytest_")
                ):
                    raise LeftOut("its conftest.py does something")

    def _package(self, path: str) -> list[str]:
        parts = path.split("/")[:-1]
        first = len(parts)
        while first and os.path.exists(os.path.join(self._root, *parts[:first], "__init__.py")):  # noqa: PTH110, PTH118
            first -= 1
        return parts[first:]

    def _import(self, name: str, *rest: Any) -> Any:
        if name == "pytest":
            return self._standin
        if name.partition(".")[0] in TOOLS:
            raise LeftOut(f"it imports {name}")
        return builtins.__import__(name, *rest)

    def _call(self, module: Any, names: list[str]) -> None:
        if len(names) == 1:
            self._function(getattr(module, names[0]), ())
            return
        kind: Any = module
        for name in names[:-1]:
            kind = getattr(kind, name)
        if hasattr(kind, "assertEqual") and hasattr(kind, "run"):
            _run_case(kind, names[-1])
            return
        if any(hasattr(kind, name) for name in ("setup_method", "setup_class", "setup", "__test__")):
            raise LeftOut("it is set up")
        self._function(inspect.getattr_static(kind, names[-1]), (kind(),))

    def _function(self, function: Any, args: Any) -> None:
        function = getattr(function, "__func__", function)
        if not isinstance(function, types.FunctionType) or hasattr(function, "hypothesis"):
            raise LeftOut("it is no plain function")
        if self._hidden:
            plain = inspect.unwrap(function)
            names = {name: "run" for name in ("co_name", "co_qualname") if hasattr(plain.__code__, name)}
            plain.__code__ = plain.__code__.replace(**names)
        rows = rows_of(function)
        wanted = [*inspect.signature(function).parameters][len(args) :]
        for row in rows[:MOST_ROWS]:
            _with_fixtures(function, args, {**row}, [name for name in wanted if name not in row])


def _acts_at_once(statement: Any) -> bool:
    """Whether a statement does more than to give a name to a value."""
    if not isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)):
        return False
    acting = (ast.Call, ast.Subscript, ast.Attribute) if isinstance(statement, ast.Assign) else (ast.Call,)
    return any(isinstance(part, acting) for part in ast.walk(statement))


def _with_fixtures(function: Any, args: Any, row: dict[str, Any], wanted: list[str]) -> None:
    if not GIVEN.issuperset(wanted):
        raise LeftOut("it asks for a fixture")
    patch, folder = Patch(), ""
    try:
        if "monkeypatch" in wanted:
            row["monkeypatch"] = patch
        if "tmp_path" in wanted:
            import pathlib

            folder = tempfile.mkdtemp()
            row["tmp_path"] = pathlib.Path(os.path.realpath(folder))
        made = function(*args, **row)
        if inspect.iscoroutine(made) or inspect.isgenerator(made):
            made.close()
            raise LeftOut("it has to be driven")
    finally:
        patch.undo()
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _run_case(kind: Any, name: str) -> None:
    import unittest

    result = unittest.TestResult()
    unittest.TestSuite([kind(name)]).run(result)
    if result.skipped or result.expectedFailures or result.unexpectedSuccesses:
        raise LeftOut("it is skipped")
    for _, text in (*result.errors, *result.failures):
        raise AssertionError(text.strip().rpartition("\n")[2])


def twice_alone(root: str, tests: Any, *, hidden: bool) -> Any:
    """Each test twice: its id, and how it ended both times."""
    alone = Alone(root, hidden=hidden)
    for test in tests:
        ends = [alone.run(test)]
        yield test, ends if ends[0].startswith("left out") else [*ends, alone.run(test)]


def alone_main(root: str, tests: Any, tell: Any) -> None:
    """Run tests in this process, in which no test tool was ever imported."""
    barrier = Barrier()
    finders: list[Any] = sys.meta_path
    finders.insert(0, barrier)
    for test, ends in twice_alone(root, tests, hidden=True):
        tell({"test": test, "ends": ["left out: a test tool was asked for"] if barrier.hit else ends})
        barrier.hit = False
