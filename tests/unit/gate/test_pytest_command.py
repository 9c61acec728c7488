"""Which interpreter runs pytest, and with which arguments."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from bailiwick.gate.backends.pytest_command import PytestCommand, PytestPython, find_interpreter, read_call
from bailiwick.gate.port import CheckContext
from bailiwick.sandbox.spec import INNER, Bind
from bailiwick.sandbox.toolchains import Toolchains
from tests.unit.gate.pytest_stage import OpenFence, OpenSandbox, PytestCheckSetup

UNDERSTOOD = {
    "pytest -q": PytestCommand("pytest", ("-q",)),
    "py.test": PytestCommand("pytest", ()),
    ".venv/bin/pytest tests": PytestCommand("pytest", ("tests",)),
    "python -m pytest -x": PytestCommand("python", ("-x",), as_module=True),
    "python3.12 -W error -X dev -m pytest": PytestCommand(
        "python3.12", (), ("-W", "error", "-X", "dev"), as_module=True
    ),
    "uv run pytest -q": PytestCommand("pytest", ("-q",)),
    "uv run --frozen --extra test python -m pytest": PytestCommand("python", (), as_module=True),
    "poetry run pytest": PytestCommand("pytest", ()),
    "coverage run --source x -m pytest -q": PytestCommand("python", ("-q",), as_module=True),
}


@pytest.mark.parametrize("command", UNDERSTOOD)
def test_the_ways_to_start_pytest_are_understood(command: str) -> None:
    """The command of a check is what a person would type."""
    assert read_call(command.split()) == UNDERSTOOD[command]


@pytest.mark.parametrize(
    "command", ["", "tox", "python tests.py", "python -m unittest", "make test", "uv run tox", "uv run"]
)
def test_other_commands_are_not_guessed(command: str) -> None:
    """What is not pytest can't be heard test by test."""
    assert read_call(command.split()) is None


def _program(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def _bench(place: Path, *, sandbox: str = "bwrap", environment: tuple[Bind, ...] = ()) -> CheckContext:
    sandboxes = OpenFence(place, OpenSandbox(sandbox), Toolchains(path=str(place / "tools")))
    return replace(PytestCheckSetup(place, {}, {}).context(), sandboxes=cast("Any", sandboxes), environment=environment)


def _find(command: str, context: CheckContext, tree: Path, tracked: tuple[str, ...] = ()) -> PytestPython | None:
    call = read_call(command.split())
    assert call is not None
    return find_interpreter(call, context, tree, tracked)


def test_the_prepared_environment_comes_first(tmp_path: Path) -> None:
    """Its Python is called by its path inside."""
    for name in ("pytest", "python"):
        _program(tmp_path / "made" / "bin" / name)
        _program(tmp_path / "tools" / name, "#!/somewhere/python\n")
    context = _bench(tmp_path, environment=(Bind(tmp_path / "made", INNER / ".venv"),))
    wanted = PytestPython("/workspace/.venv/bin/python", ("/workspace/.venv",))
    assert _find("pytest", context, tmp_path) == wanted
    assert _find("python -m pytest", context, tmp_path) == wanted


def test_pytest_as_a_tool_of_the_operator_runs_by_its_own_interpreter(tmp_path: Path) -> None:
    """A tool that was installed alone has an environment of its own, named in its first line."""
    _program(tmp_path / "made" / "bin" / "python")
    _program(tmp_path / "tools" / "pytest", "#!/opt/tools/pytest/bin/python3\n")
    context = _bench(tmp_path, environment=(Bind(tmp_path / "made", INNER / ".venv"),))
    assert _find("pytest", context, tmp_path) == PytestPython("/opt/tools/pytest/bin/python3", ("/workspace/.venv",))
    _program(tmp_path / "tools" / "pytest", "#!/usr/bin/env python3\n")
    python = _program(tmp_path / "tools" / "python3")
    assert _find("pytest", context, tmp_path) == PytestPython(str(python), ("/workspace/.venv",))


def test_an_environment_that_the_tree_brings_along_is_never_used(tmp_path: Path) -> None:
    """Whoever could write it could choose the pytest."""
    tree = tmp_path / "tree"
    for name in ("pytest", "python"):
        _program(tree / ".venv" / "bin" / name)
    assert _find("pytest", _bench(tmp_path), tree) is None
    unfenced = _bench(tmp_path, sandbox="none")
    assert _find("pytest", unfenced, tree, (".venv/bin/pytest", "a.py")) is None
    made = str(tree / ".venv")
    assert _find("pytest", unfenced, tree, ("a.py",)) == PytestPython(f"{made}/bin/python", (made,))


def test_no_python_at_all_is_said(tmp_path: Path) -> None:
    """The check fails with the remedy instead of with an exception."""
    from bailiwick.gate.backends.pytest import PytestCheck
    from bailiwick.gate.spec import CheckSpec

    result = asyncio.run(PytestCheck().run(CheckSpec("tests", "pytest", ("pytest",)), _bench(tmp_path)))
    assert (result.outcome, [f.code for f in result.findings]) == ("failed", ["missing-tool"])
