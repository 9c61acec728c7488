"""One run of an agent's program: what it says goes to a reader, how it ended becomes the turn's last event."""

from __future__ import annotations

import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

from bailiwick.agents.port import Answered, Compacted, Emit, ProcessEnded, Trouble, Turn, TurnIo
from bailiwick.agents.programs import Program
from bailiwick.agents.settings import AgentSettings
from bailiwick.agents.streams import read_object
from bailiwick.ids import Json
from bailiwick.processes.command import Exit

SPAWN = "spawn"
"""The type of a trouble that kept a program from starting: nothing was asked and nothing spent."""
STDERR_TAIL = 4000
PLAIN_LINES, PLAIN_LINE = 8, 250
"""The last lines that are no JSON, and the bytes of each, that are kept of a program that writes JSON."""
_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Invocation:
    """A program with its arguments, its whole environment, where it runs and what it reads."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    prompt: str = ""

    @property
    def stdin(self) -> bytes:
        """The prompt in bytes; half of a surrogate pair, which no text has, becomes a question mark."""
        return self.prompt.encode("utf-8", "replace")


class ProgramBackend:
    """A backend that drives a program of its vendor's; a turn brings all it needs."""

    name: str
    program: ClassVar[Program]

    @classmethod
    def for_settings(cls, _settings: AgentSettings) -> Self:
        """This backend, whatever is set."""
        return cls()

    async def compact(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        emit(Compacted(False, f"{self.name} has no compaction that can be asked for"))

    async def check(self, env: Mapping[str, str], io: TurnIo) -> tuple[bool, str]:
        return await check_version(self.program, self.program.path(env), env, io)


def session_id(turn: Turn) -> str:
    """The id under which a turn begins a session: the same when the same attempt is entered again."""
    import uuid

    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{turn.key}/{turn.attempt}"))


def write_file(turn: Turn, io: TurnIo, data: bytes, *, prefix: str, suffix: str) -> Path:
    """A temporary file of a turn, for its program to read."""
    handle, name = tempfile.mkstemp(suffix, prefix, turn.env.get("TMPDIR") or None)
    io.note(Path(name))
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return Path(name)


async def invoke(call: Invocation, io: TurnIo, see: Callable[[dict[str, Json]], None]) -> Exit | Trouble:
    """Run a program whose output is a JSON object per line; `see` gets the objects.

    Other lines are no part of what the agent said: of a program that failed they count as its standard error.
    """
    plain: deque[bytes] = deque(maxlen=PLAIN_LINES)

    def on_line(line: bytes) -> None:
        event = read_object(line)
        if event is not None:
            see(event)
        elif line.strip() and not line.lstrip().startswith(b"{"):
            plain.append(line[:PLAIN_LINE])

    end = await run(call, io, on_line)
    if isinstance(end, Exit) and end.code != 0 and plain:
        return replace(end, stderr=b"\n".join([*plain, end.stderr]))
    return end


async def run(call: Invocation, io: TurnIo, on_line: Callable[[bytes], None]) -> Exit | Trouble:
    """Run a program to its end; the trouble where it could not be started."""
    try:
        return await io.spawn(call.argv, call.env, cwd=call.cwd, stdin=call.stdin, on_line=on_line)
    except OSError as error:
        return not_started(call, error)


def not_started(call: Invocation, error: OSError) -> Trouble:
    """What to tell about a program that could not be started."""
    if not call.cwd.is_dir():
        return Trouble(f"the directory {call.cwd} does not exist", type=SPAWN)
    return Trouble(f"'{call.argv[0]}' could not be started: {error.strerror or error}", type=SPAWN)


def conclude(end: Exit | Trouble, outcome: Answered | Trouble | None, emit: Emit) -> None:
    """Emit the turn's last event. An error that a program reports while we end it is our doing, not news."""
    match end, outcome:
        case Trouble(), _:
            emit(end)
        case Exit(why="disk"), _:
            emit(ended(end))
        case Exit(), Answered():
            emit(outcome)
        case Exit(why="exited"), Trouble():
            emit(outcome)
        case Exit(), _:
            emit(ended(end))


def ended(end: Exit) -> ProcessEnded:
    """The end of a process as an event."""
    return ProcessEnded(end.code, last_words(end), end.why)


def last_words(end: Exit) -> str:
    """The end of what a program wrote to standard error."""
    return end.stderr.decode("utf-8", "replace").strip()[-STDERR_TAIL:]


async def check_version(program: Program, path: str, env: Mapping[str, str], io: TurnIo) -> tuple[bool, str]:
    """Whether a program answers to `--version`, in one line that names an untested version as such."""
    said: list[str] = []

    def on_line(line: bytes) -> None:
        if len(said) < 20:
            said.append(line[:500].decode("utf-8", "replace"))

    end = await run(Invocation((path, "--version"), env, Path("/")), io, on_line)
    if isinstance(end, Trouble):
        return False, f"{program.name}: {end.message}; install it with: npm install -g {program.package}"
    found = _VERSION.search("\n".join(said))
    if end.code or found is None:
        return False, f"{program.name}: {path} --version ended with code {end.code} and named no version"
    note = "" if found[0] == program.tested else f" (untested: {program.tested} was tested)"
    return True, f"{program.name} {found[0]} at {path}{note}"
