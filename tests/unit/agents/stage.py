"""A turn without a process: what a backend would start is noted, what its program would print is given."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bailiwick.agents.port import AgentEvent, Turn
from bailiwick.processes.command import Exit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path

GOOD = Exit(0, b"", b"", 0.1)


@dataclass(frozen=True, slots=True)
class Call:
    """A program that a backend started."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path
    stdin: bytes

    def after(self, flag: str) -> str:
        """The argument that follows a flag."""
        return self.argv[self.argv.index(flag) + 1]


@dataclass(slots=True)
class FakeIo:
    """Prints `lines` and ends as told, or can't be started."""

    lines: Iterable[bytes] = ()
    end: Exit = GOOD
    error: OSError | None = None
    calls: list[Call] = field(default_factory=list)
    notes: list[Path] = field(default_factory=list)
    on_spawn: Callable[[Call], None] = lambda _call: None

    async def spawn(
        self, argv: tuple[str, ...], env: Mapping[str, str], cwd: Path, stdin: bytes, on_line: Callable[[bytes], None]
    ) -> Exit:
        self.calls.append(Call(argv, dict(env), cwd, stdin))
        self.on_spawn(self.calls[-1])
        if self.error is not None:
            raise self.error
        for line in self.lines:
            on_line(line)
        return self.end

    def note(self, path: Path) -> None:
        self.notes.append(path)


def make_turn(cwd: Path, **fields: Any) -> Turn:
    """A turn with what a test doesn't care about filled in."""
    given = {
        "key": "k1",
        "prompt": "Do {it}",
        "model": None,
        "cwd": cwd,
        "env": {"PATH": "", "HOME": str(cwd)},
        **fields,
    }
    return Turn(**given)


def play(verb: Callable[..., Awaitable[None]], turn: Turn, io: FakeIo) -> list[AgentEvent]:
    """The events of a turn or a compaction."""
    events: list[AgentEvent] = []

    async def go() -> None:
        await verb(turn, io, events.append)

    asyncio.run(go())
    return events


def ask(check: Callable[..., Awaitable[tuple[bool, str]]], io: FakeIo) -> tuple[bool, str]:
    """What a check says."""

    async def go() -> tuple[bool, str]:
        return await check({"PATH": ""}, io)

    return asyncio.run(go())
