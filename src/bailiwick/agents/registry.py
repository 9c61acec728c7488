"""Backends by name: ours from a static table, others' by entry point. Nothing is imported before it is asked for."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from bailiwick.agents.port import Backend, Turn
from bailiwick.agents.settings import AgentSettings
from bailiwick.errors import UsageError

TABLE: dict[str, str] = {
    "claude": "bailiwick.agents.backends.claude:ClaudeBackend",
    "codex": "bailiwick.agents.backends.codex:CodexBackend",
    "copilot": "bailiwick.agents.backends.copilot:CopilotBackend",
    "openai": "bailiwick.agents.backends.openai:OpenaiBackend",
    "ollama": "bailiwick.agents.backends.ollama:OllamaBackend",
    "command": "bailiwick.agents.backends.command:CommandBackend",
    "simulate": "bailiwick.agents.backends.simulate:SimulateBackend",
}
GROUP = "bailiwick.agents"
PROGRAMS = {"claude": "claude", "codex": "codex", "copilot": "copilot"}
"""Backends that drive a program which has to be installed."""
SERVERS = frozenset({"openai", "ollama"})
"""Backends that talk to a server from our own process and start no program."""


def names() -> list[str]:
    """The backends there are, others' included."""
    from importlib.metadata import entry_points

    return sorted({*TABLE, *(point.name for point in entry_points(group=GROUP))})


def find(name: str, settings: AgentSettings) -> Backend:
    """A backend, made for these settings. Raises `UsageError` that names the known ones."""
    if settings.allowed is not None and name not in settings.allowed:
        raise UsageError(
            f"backend '{name}' is not among the allowed ones: {', '.join(settings.allowed) or 'none'}",
            hint="ask the author of the policy, or choose one of these",
            code="BW251",
        )
    return _maker(name)(settings)


def require(name: str, settings: AgentSettings) -> None:
    """Refuse a backend that can't be used here, before anything starts and anything is spent."""
    find(name, settings)
    program = PROGRAMS.get(name)
    if program is not None and shutil.which(program) is None:
        raise UsageError(
            f"backend '{name}' needs the program '{program}', which is not on the PATH",
            hint=f"install it, choose another (known: {', '.join(names())}), set AGENT_CMD, or use --simulate",
            code="BW252",
        )


def program_files(name: str, turn: Turn, settings: AgentSettings) -> tuple[str, tuple[Path, ...]]:
    """The program that a turn will start, and the files of this machine that it needs to see."""
    search = turn.env.get("PATH", "")
    if name in PROGRAMS:
        program = import_module(f"bailiwick.agents.backends.{name}").PROGRAM.path(turn.env)
        return program, (Path(program),)
    if name != "command":
        return "", ()
    from bailiwick.agents.backends.command import split_template

    try:
        first, *others = split_template(settings.command or "")
    except ValueError:
        return "", ()
    found = shutil.which(first, path=search)
    given = [Path(word) for word in others if word.startswith("/")]
    return found or first, tuple(path for path in (Path(found or first), *given) if path.exists())


def _maker(name: str) -> Callable[[AgentSettings], Backend]:
    if name in TABLE:
        module, attribute = TABLE[name].split(":")
        ours: Callable[[AgentSettings], Backend] = getattr(import_module(module), attribute).for_settings
        return ours
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=name):
        theirs: Callable[[AgentSettings], Backend] = point.load().for_settings
        return theirs
    near = difflib.get_close_matches(name, names(), 1)
    guess = f"did you mean '{near[0]}'? " if near else ""
    raise UsageError(
        f"no agent backend '{name}'",
        hint=f"{guess}known: {', '.join(names())}; AGENT_CMD runs any program, --simulate needs none",
        code="BW250",
    )
