"""Asks a backend one question and gathers what it tells."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.agents.port import AgentEvent, Backend, Turn
from bailiwick.agents.simulation import Script, read_script
from bailiwick.testing.model_server.server import ModelRequestSeen, ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bailiwick.ids import Json
    from bailiwick.processes.command import Exit

QUICK = {"silence": 30, "total": 30}
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


class NoProcesses:
    """What a backend may do to the world, for those that start no program."""

    async def spawn(
        self, argv: tuple[str, ...], env: Mapping[str, str], cwd: Path, stdin: bytes, on_line: Callable[[bytes], None]
    ) -> Exit:
        raise AssertionError(f"{argv} must not be started")

    def note(self, path: Path) -> None:
        raise AssertionError("there is no file to note")


def turn(**given: Json) -> Turn:
    """A turn that is like any other but for what is given."""
    plain = Turn(key="k" * 24, prompt="Say hello.", model="m", cwd=Path(), env={}, options=QUICK)
    return replace(plain, **given)


async def ask(backend: Backend, asked: Turn) -> list[AgentEvent]:
    """Every event of a turn, in order."""
    events: list[AgentEvent] = []
    await backend.turn(asked, NoProcesses(), events.append)
    return events


def ask_scripted(
    backend: Backend, scenario: str, asked: Turn | None = None
) -> tuple[list[AgentEvent], list[ModelRequestSeen]]:
    """Ask within a scenario of the scripted server; what it told, and the requests that were made."""

    async def go() -> tuple[list[AgentEvent], list[ModelRequestSeen]]:
        async with ModelServer() as server:
            given = asked or turn()
            events = await ask(backend, replace(given, base_url=server.url(scenario)))
            return events, server.requests

    return asyncio.run(go())


def script_of(tmp_path: Path, text: str) -> Script:
    """The script that a text is."""
    path = tmp_path / "script.yaml"
    path.write_text(text, "utf-8")
    return read_script(path)
