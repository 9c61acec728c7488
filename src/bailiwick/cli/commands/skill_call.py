"""One call from the command line: options become arguments, progress goes to standard error, Ctrl-C cancels."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from bailiwick.config.person import person
from bailiwick.config.service import load_config
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.skills.arguments import bad_arguments, given
from bailiwick.skills.display import document, exit_code, lines, plain
from bailiwick.skills.model import Argument, Tool

BAD_ARGUMENTS = "BW296"
INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Typed:
    """What a person typed: the tool, its options, and how they want it."""

    tool: Tool
    options: Mapping[str, Json]
    models_file: Path | None = None
    as_json: bool = False


def run_call(typed: Typed) -> int:
    """Make a call and tell what came of it; gives the exit code. Raises `UsageError` with every bad option."""
    root = _root(typed)
    arguments = arguments_of(typed, root, Path.cwd())
    if faults := bad_arguments(typed.tool, arguments):
        hint = f"bailiwick skill {typed.tool.name} --help"
        raise UsageError("; ".join(_as_option(fault, typed.tool) for fault in faults), hint=hint, code=BAD_ARGUMENTS)
    told, cancelled = asyncio.run(_call(typed, given(typed.tool, arguments), root))
    if typed.as_json:
        click.echo(json.dumps(told, indent=2, ensure_ascii=True))
    else:
        for line in lines(told):
            click.echo(line)
    return INTERRUPTED if cancelled else exit_code(told)


async def _call(typed: Typed, arguments: Mapping[str, Json], root: Path) -> tuple[dict[str, Json], bool]:
    """What the call came to, and whether the person ended it."""
    from bailiwick.skills.calling import Caller

    cancel = asyncio.Event()
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        """The first time: ask it to stop, so that it is put on record. The second time: just end."""
        loop.remove_signal_handler(signal.SIGINT)
        cancel.set()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    from bailiwick.app.service import open_skills

    models = typed.models_file.absolute() if typed.models_file is not None else None
    try:
        async with open_skills(models) as skills:
            caller = Caller(by=person(), origin="cli", show=_show, cancel=cancel, models_file=models, roots=(root,))
            outcome = await skills.call(typed.tool.name, arguments, caller)
    finally:
        loop.remove_signal_handler(signal.SIGINT)
    return document(outcome), cancel.is_set()


def arguments_of(typed: Typed, root: Path, cwd: Path) -> dict[str, Json]:
    """The arguments that options stand for. Paths count from where the person is, and are told relative to `root`."""
    out: dict[str, Json] = {}
    for one in typed.tool.all_arguments:
        value = typed.options.get(one.name)
        if one.name == "project_root" and (one.required or value is not None):
            out[one.name] = str(root)
        elif value is not None and value != ():
            out[one.name] = _value(one, value, root, cwd)
    return out


def _value(one: Argument, value: Json, root: Path, cwd: Path) -> Json:
    if one.kind in ("paths", "texts"):
        items = [item.strip() for text in value for item in str(text).split(",") if item.strip()]
        return [_within(item, root, cwd) for item in items] if one.kind == "paths" else items
    if one.kind == "path":
        return _within(value, root, cwd)
    if one.kind == "text" and value == "-":
        return sys.stdin.read()
    return value


def _within(path: str, root: Path, cwd: Path) -> str:
    """A path as the project knows it; what lies elsewhere stays as it was typed, to be refused by name."""
    if not path or "\0" in path or not (os.path.isabs(path) or cwd.is_relative_to(root)):  # noqa: PTH117 - it is text
        return path
    full = Path(os.path.normpath(cwd / path))
    return str(full.relative_to(root)) if full.is_relative_to(root) else path


def _root(typed: Typed) -> Path:
    """The project: what the person named, else the repository they are in, else where they are."""
    named = typed.options.get("project_root")
    if named:
        return Path(str(named)).expanduser().resolve()
    repository = load_config(Path.cwd(), {}).repository
    return (repository.root if repository is not None else Path.cwd()).resolve()


def _as_option(fault: str, tool: Tool) -> str:
    """A fault in the words of the command line."""
    for one in tool.all_arguments:
        fault = fault.replace(f"'{one.name}'", f"--{one.name.replace('_', '-')}", 1)
    return fault


def _show(text: str) -> None:
    click.echo(f"  … {plain(text)}", err=True)
