"""What a shell completes: runs, nodes, workflows, proposals, skills, keys and, everywhere else, file names.

Values get their completion when a command is loaded for a shell, by the name of the parameter, so that commands need
not know of it. Whatever goes wrong, nothing is completed: a shell is no place for an error.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

Found = Iterable[tuple[str, str]]
"""Names with what they are."""
Finder = Callable[[click.Context], Found]
NEWEST = 100
"""Runs that are offered at most, the newest first."""
HELP = 60
_FILES = frozenset({"FILE", "DIR", "PATH", "A,B"})
"""Metavars of options that name files."""


class Completed(click.types.StringParamType):
    """Text that a shell completes with names, beside or instead of files."""

    def __init__(self, finder: Finder | None, *, files: bool) -> None:
        self._finder = finder
        self._files = files

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that fit; files too where both are meant, by the shell itself where no name fits."""
        names = _names(self._finder, ctx) if self._finder is not None else []
        items = [CompletionItem(name, help=_short(about)) for name, about in names if name.startswith(incomplete)]
        if not self._files:
            return items
        if not items:
            return [CompletionItem(incomplete, type="file")]
        return [*items, *(CompletionItem(name) for name in _files(incomplete))]


def _short(text: str) -> str:
    return " ".join(text.split())[:HELP]


def _names(finder: Finder, ctx: click.Context) -> list[tuple[str, str]]:
    try:
        return list(finder(ctx))
    except Exception:  # noqa: BLE001  see the module
        return []


def _files(incomplete: str) -> list[str]:
    """The files and directories that begin like this, as a shell lists them."""
    folder, _, start = incomplete.rpartition("/")
    shown = f"{folder}/" if "/" in incomplete else ""
    try:
        entries = sorted(os.scandir(Path(shown or ".").expanduser()), key=lambda entry: entry.name)
    except OSError:
        return []
    fitting = [e for e in entries if e.name.startswith(start) and (start.startswith(".") or not e.name.startswith("."))]
    return [f"{shown}{entry.name}{'/' if entry.is_dir() else ''}" for entry in fitting]


def attach(command: click.Command, path: str) -> click.Command:
    """Give the parameters of a command, and of those below it, what a shell completes for them."""
    for param in command.params:
        if type(param.type) is click.types.StringParamType and param.name is not None:
            finder, files = _finder(path, param)
            if finder is not None or files:
                param.type = Completed(finder, files=files)
    if isinstance(command, click.Group):
        _attach_below(command, path)
    return command


def _attach_below(group: click.Group, path: str) -> None:
    """The same for the commands of a group, also those that it makes when they are named."""
    inner = group.get_command

    def get_command(ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = inner(ctx, cmd_name)
        return attach(found, f"{path} {cmd_name}") if found is not None else None

    group.get_command = get_command  # type: ignore[method-assign]


def _finder(path: str, param: click.Parameter) -> tuple[Finder | None, bool]:
    """How a parameter is completed: by which names, and whether by files."""
    own = _OWN.get((path, param.name or ""))
    if own is not None:
        return own, False
    found = _SHARED.get(param.name or "")
    if found is not None:
        return found
    metavar = param.metavar or "" if isinstance(param, click.Option) else "PATH"
    return None, metavar in _FILES or "SCRIPT" in metavar


def _state() -> Path:
    from bailiwick.config.paths import find_paths

    return find_paths().state


def _person() -> Path:
    from bailiwick.config.paths import find_paths

    return find_paths().config


def _store_rows(read: Callable[[Any], Any]) -> Any:
    """What a store has to say; it is not made where there is none."""
    from bailiwick.clock import SystemClock
    from bailiwick.journal.opening import database_of, opened_store

    state = _state()
    if not database_of(state).exists():
        return []

    async def ask() -> Any:
        async with opened_store(state, SystemClock()) as store:
            return await read(store)

    return asyncio.run(ask())


def _runs(_: click.Context) -> Found:
    async def read(store: Any) -> list[tuple[str, str]]:
        from bailiwick.journal.rows import RunFilter
        from bailiwick.runs.query import facts, state_of

        rows = await store.runs(RunFilter(called=False), limit=NEWEST)
        return [(f"{r.workflow}-{r.run_key}", f"{state_of(r)} at {facts(r).get('node', '')}") for r in rows]

    found: list[tuple[str, str]] = _store_rows(read)
    return found


def _nodes(ctx: click.Context) -> Found:
    """The nodes of the run that stands before on the command line, of the newest one where none does."""
    named = next((ctx.params[key] for key in ("run", "reference", "what") if ctx.params.get(key)), None)

    async def read(store: Any) -> list[tuple[str, str]]:
        from bailiwick.engine.graph import from_json, kind_of
        from bailiwick.runs.find import find_run

        row = await find_run(store, str(named)) if named else (await store.runs(limit=1))[0]
        nodes = from_json(await store.definition(row.definition)).graph.nodes
        return [(name, kind_of(node)) for name, node in nodes.items()]

    found: list[tuple[str, str]] = _store_rows(read)
    return found


def _subjects(ctx: click.Context) -> Found:
    """What `why` explains: a run, or a node of the newest one."""
    return [*_runs(ctx), *_nodes(click.Context(ctx.command))]


def _workflows(_: click.Context) -> Found:
    from bailiwick.workflows.service import listed

    return [(one.name, one.description) for one in listed(Path.cwd(), _person()) if one.label != "here"]


def _proposals(_: click.Context) -> Found:
    from bailiwick.proposals.store import ProposalStore

    async def read(store: Any) -> list[tuple[str, str]]:
        return [(one.id, f"{one.status}: {one.title}") for one in await ProposalStore(store, _state()).all()]

    found: list[tuple[str, str]] = _store_rows(read)
    return found


def _skills(_: click.Context) -> Found:
    from bailiwick.config.service import load_config
    from bailiwick.skills.folders import find_skills

    library = find_skills(load_config(Path.cwd(), {}))
    return [(name, skill.description) for name, skill in library.skills.items()]


def _keys(_: click.Context) -> Found:
    from bailiwick.config.keys import keys_by_name

    return [(name, key.doc) for name, key in keys_by_name().items()]


def _backends(_: click.Context) -> Found:
    from bailiwick.agents.registry import names

    return [(name, "") for name in names()]


def _templates(_: click.Context) -> Found:
    from bailiwick.cli.commands.workflows import templates

    return list(templates().items())


def _commands(ctx: click.Context) -> Found:
    from bailiwick.cli.table import COMMANDS

    return [(name, entry.help) for name, entry in COMMANDS.items() if not entry.hidden]


_SHARED: dict[str, tuple[Finder | None, bool]] = {
    "run": (_runs, False),
    "reference": (_runs, False),
    "resume_run": (_runs, True),
    "node": (_nodes, False),
    "point": (_nodes, False),
    "workflow": (_workflows, True),
    "proposal": (_proposals, False),
    "backend": (_backends, False),
    "template": (_templates, False),
    "key": (_keys, False),
    "words": (_commands, False),
    "value": (None, False),
    "text": (None, False),
}
"""By the name of a parameter, wherever it stands."""
_OWN: dict[tuple[str, str], Finder] = {
    ("why", "what"): _subjects,
    ("skill show", "name"): _skills,
    ("skill new", "like"): _skills,
}
"""By the command too, where the name alone says too little."""
