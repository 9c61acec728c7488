"""What a check's command means: which interpreter runs pytest, and with which arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.environments.recipes import VENVS
from bailiwick.sandbox.toolchains import resolve_program

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext
    from bailiwick.sandbox.toolchains import Toolchains

_RUNNERS = ("uv", "poetry", "pdm", "hatch", "pipenv", "rye")
_PYTEST = ("pytest", "py.test")
_PYTHON = re.compile(r"python(?:\d(?:\.\d+)?)?")
_FLAGS_WITH_VALUE = ("-W", "-X")
_FLAGS = ("-b", "-bb", "-u", "-B", "-s", "-q")


@dataclass(frozen=True, slots=True)
class PytestCommand:
    """A call of pytest. `flags` are the interpreter's; `as_module` puts the tree first on the module path."""

    program: str
    args: tuple[str, ...]
    flags: tuple[str, ...] = ()
    as_module: bool = False


def read_call(run: Sequence[str]) -> PytestCommand | None:
    """What a command asks of pytest; None for one that does not simply start it.

    Understood: `pytest …`, `python -m pytest …`, both behind `uv run` and its kin, and `coverage run -m pytest …`, of
    which only pytest is run.
    """
    words = list(run)
    if len(words) > 2 and words[0] in _RUNNERS and words[1] == "run":
        words = _from_program(words[2:])
    if words[:2] == ["coverage", "run"] and "-m" in words:
        words = ["python", *words[words.index("-m") :]]
    if not words:
        return None
    program = words[0].rpartition("/")[2]
    if program in _PYTEST:
        return PytestCommand("pytest", tuple(words[1:]))
    if not _PYTHON.fullmatch(program):
        return None
    flags, rest = _split_flags(words[1:])
    if rest[:2] not in (["-m", "pytest"], ["-m", "py.test"]):
        return None
    return PytestCommand(program, tuple(rest[2:]), tuple(flags), as_module=True)


def _from_program(words: list[str]) -> list[str]:
    """The words from the program on, behind the options of the runner."""
    for index, word in enumerate(words):
        if word in (*_PYTEST, "coverage") or _PYTHON.fullmatch(word):
            return words[index:]
    return []


def _split_flags(words: list[str]) -> tuple[list[str], list[str]]:
    flags: list[str] = []
    while words:
        if words[0] in _FLAGS_WITH_VALUE and len(words) > 1:
            flags += words[:2]
            words = words[2:]
        elif words[0] in _FLAGS or words[0].startswith(_FLAGS_WITH_VALUE):
            flags.append(words[0])
            words = words[1:]
        else:
            break
    return flags, words


@dataclass(frozen=True, slots=True)
class PytestPython:
    """A Python as it is called inside, and the directories below the tree that are the environment's."""

    path: str
    environment: tuple[str, ...] = ()


def find_interpreter(
    call: PytestCommand, context: CheckContext, tree: Path, tracked: Iterable[str]
) -> PytestPython | None:
    """The Python of the prepared environment, else of the operator's tools; never one that the tree brings along."""
    environment = _environments(context, tree, tracked)
    inside = tuple(str(inner) for _, inner in environment)
    wanted = "pytest" if call.program == "pytest" else "python"
    for folder, inner in environment:
        if _is_there(folder / "bin" / wanted) and _is_there(folder / "bin" / "python"):
            return PytestPython(str(inner / "bin" / "python"), inside)
    program = _from_tools(call.program, context.sandboxes.toolchains)
    if program is not None:
        return PytestPython(str(program), inside)
    for folder, inner in environment:
        if _is_there(folder / "bin" / "python"):
            return PytestPython(str(inner / "bin" / "python"), inside)
    return None


def _environments(context: CheckContext, tree: Path, tracked: Iterable[str]) -> list[tuple[Path, Path]]:
    """Virtual environments on the host and inside; without a sandbox: those in the tree that are not its own."""
    if context.sandboxes.sandbox.name == "none":
        own = {path.partition("/")[0] for path in tracked}
        return [(tree / name, tree / name) for name in VENVS if name not in own and (tree / name).is_dir()]
    found = {bind.target.name: bind for bind in context.environment if not bind.write}
    return [(found[name].source, found[name].target) for name in VENVS if name in found]


def _is_there(path: Path) -> bool:
    """Whether a program is there; a link may lead to where only the sandbox has something."""
    return path.is_symlink() or path.is_file()


def _from_tools(name: str, toolchains: Toolchains) -> Path | None:
    """The interpreter behind a program of the operator's PATH; that of the script for `pytest`."""
    if name != "pytest":
        return resolve_program(name, toolchains)
    script = resolve_program("pytest", toolchains)
    if script is not None and (found := _shebang(script, toolchains)) is not None:
        return found
    return resolve_program("python3", toolchains) or resolve_program("python", toolchains)


def _shebang(script: Path, toolchains: Toolchains) -> Path | None:
    try:
        with script.open("rb") as opened:
            first = opened.readline(512)
    except OSError:
        return None
    words = first[2:].decode("utf-8", "replace").split() if first.startswith(b"#!") else []
    if words and words[0].endswith("/env"):
        return resolve_program(words[-1], toolchains)
    name = words[0].rpartition("/")[2] if words else ""
    return Path(words[0]) if _PYTHON.fullmatch(name) else None
