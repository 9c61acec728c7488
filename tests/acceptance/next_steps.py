"""What a command prints as the next step, taken out of its output and held against the command line and the disk.

A step is a command line that begins with `bailiwick` or `git` at a place where one is suggested. `unworkable` parses
each with the real parser and looks whether what it names is there; nothing that changes anything is run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from bailiwick.cli.root import root
from tests.acceptance.command import Person, Result
from tests.acceptance.shop import git

_COMMAND = re.compile(r"(?:^|(?<=[\s(:`]))((?:bailiwick|git) [a-z][^\n]*)")
_END = re.compile(r"\s+·\s+|\)\s*$|`|;\s|,\s+or\s|,\s|\s{2,}")
_PLACEHOLDERS = frozenset({"VALUE", "ISSUE", "DIR", "RUN", "NODE", "ID", "…", "TEXT", "PATH", "NAME"})
_RUNS = {"run", "reference", "what"}


def steps_in(text: str) -> list[str]:
    """Every command line that an output suggests, alternatives of an answer cut to the first."""
    found = []
    for line in text.splitlines():
        rest = line
        while match := _COMMAND.search(rest):
            whole = match[1]
            command = _END.split(whole, maxsplit=1)[0].split(" | ")[0].rstrip(".")
            found.append(command)
            rest = whole[len(command) :]
    return found


def unworkable(person: Person, text: str) -> list[str]:
    """What is wrong with the steps of an output: an empty list where each of them could be typed."""
    return [f"{step}: {problem}" for step in steps_in(text) if (problem := _problem(person, step))]


def _problem(person: Person, step: str) -> str:
    words = shlex.split(step)
    if words[0] == "git":
        return _git_problem(person, words[1:])
    try:
        context = parsed(words[1:])
    except click.ClickException as error:
        return error.format_message()
    return next(_missing(person, context), "")


def parsed(words: list[str]) -> click.Context:
    """The context of a command line as the real parser reads it; raises `click.ClickException` where it refuses."""
    command: click.Command = root
    context = command.make_context("bailiwick", list(words))
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest:
            break
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        context = command.make_context(name, rest, parent=context)
    return context


def _missing(person: Person, context: click.Context) -> Iterator[str]:
    """What a command names and is not there."""
    given = {name: value for name, value in context.params.items() if isinstance(value, str)}
    path = context.command_path.removeprefix("bailiwick ")
    for name, value in given.items():
        if value in _PLACEHOLDERS:
            continue
        if name in _RUNS and path != "run":
            yield from _fails(person, ("runs", "show", value), ("proposals", "show", value))
        elif name == "proposal":
            yield from _fails(person, ("proposals", "show", value))
        elif name == "workflow":
            yield from _fails(person, ("validate", value))
        elif name == "issue" and not (person.cwd / value).exists():
            yield f"there is no file {value}"
        elif name == "base":
            yield from _git_fails(person, "rev-parse", "--verify", value)


def _fails(person: Person, *ways: tuple[str, ...]) -> Iterator[str]:
    results: list[Result] = []
    for way in ways:
        results.append(person.runs(*way, timeout=600))
        if results[-1].code == 0:
            return
    yield results[0].err.strip()


def _git_problem(person: Person, words: list[str]) -> str:
    """A look is done as it stands; for what would change something only its names are looked up."""
    match words:
        case ["show" | "diff" | "log" | "branch", *rest] if "-D" not in rest:
            return next(_git_fails(person, *words), "")
        case ["switch", name] | ["branch", "-D", name]:
            return next(_git_fails(person, "rev-parse", "--verify", f"refs/heads/{name}"), "")
        case ["push", *rest]:
            remote = next(word for word in rest if not word.startswith("-"))
            return next(_git_fails(person, "remote", "get-url", remote), "")
        case ["worktree", "remove", folder]:
            return "" if Path(folder).is_dir() else f"there is no directory {folder}"
        case _:
            return ""


def _git_fails(person: Person, *words: str) -> Iterator[str]:
    try:
        git(person.cwd, *words)
    except Exception as error:  # noqa: BLE001  whatever git says, the step does not work
        yield str(error)
