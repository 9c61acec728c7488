"""Starts the programs of a turn and ends them: clocks, cancellation, bounded output, temporary files."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Self

from bailiwick.agents.port import AgentEvent, Emit, ToolBegan, ToolEnded
from bailiwick.agents.settings import TurnTimeouts
from bailiwick.agents.streams import LineSplitter, OutputBounds
from bailiwick.processes.command import Command, Exit, Why
from bailiwick.processes.proc import run_process
from bailiwick.sandbox.port import Sandbox
from bailiwick.sandbox.spec import OURS

SPAWN_TRIES = 4
SPAWN_PAUSE = 0.1
"""Seconds between tries to start a program that is just being replaced by its own update."""


class Launcher:
    """What a backend may do to the world in one turn. A context: at its end the turn's temporary files are gone.

    `marks` go into the environment of every program, so that its descendants are found wherever they hide. Once
    it has entered a sandbox every program runs in there, in the directory of the sandbox and not the one asked for.
    """

    def __init__(
        self,
        clocks: TurnTimeouts,
        cancel: asyncio.Event,
        *,
        marks: Mapping[str, str] | None = None,
        bounds: OutputBounds | None = None,
        on_pid: Callable[[int], None] | None = None,
    ) -> None:
        self._room: Sandbox | None = None
        self._clocks = clocks
        self._cancel = cancel
        self._marks = dict(marks or {})
        self._bounds = bounds or OutputBounds()
        self._on_pid = on_pid
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + clocks.total
        self._tools: set[str] = set()
        self._notes: list[Path] = []
        self._ended: Why | None = None
        self._words = ""
        self._program: _Watched | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def watching(self, emit: Emit) -> Emit:
        """An `emit` for the backend that lets the silence clock know of open tool calls, and passes all events on."""

        def emit_watched(event: AgentEvent) -> None:
            match event:
                case ToolBegan(id=name):
                    self._tools.add(name)
                case ToolEnded(id=name):
                    self._tools.discard(name)
                case _:
                    pass
            emit(event)

        return emit_watched

    def end(self, why: Why, words: str = "") -> None:
        """End what runs, now and later in this turn: its money is spent, or nobody wants it any more.

        `words` are put at the end of its standard error.
        """
        if self._ended is None:
            self._ended, self._words = why, words
        if self._program is not None:
            self._program.ring(why)

    async def spawn(
        self, argv: tuple[str, ...], env: Mapping[str, str], cwd: Path, stdin: bytes, on_line: Callable[[bytes], None]
    ) -> Exit:
        """Run a program to its end, children included; what `on_line` raises ends it too and is raised from here.

        Raises `OSError` where it can't be started, after short tries while it is being replaced.
        """
        seconds = max(0.0, self._deadline - self._loop.time())
        command = Command(argv, {**env, **self._marks}, cwd, timeout=seconds, keep=0, stdin=stdin)
        for _ in range(SPAWN_TRIES - 1):
            watched = self._watch(on_line)
            try:
                return await self._run(self._inside(command), watched)
            except OSError as error:
                if watched.pid or not _is_passing(error, command):
                    raise
            await asyncio.sleep(SPAWN_PAUSE)
        return await self._run(self._inside(command), self._watch(on_line))

    def _inside(self, command: Command) -> Command:
        """The command as it is started: in the room, where there is one."""
        if self._room is None:
            return command
        if shutil.which(command.argv[0], path=command.env.get("PATH", "")) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command.argv[0])
        for path in self._notes:
            self._room.hand_over(path)
        return self._room.command(
            command.argv, command.env, timeout=command.timeout, keep=command.keep, stdin=command.stdin
        )

    def enter(self, sandbox: Sandbox) -> None:
        """Start the programs of this turn in a sandbox from now on."""
        self._room = sandbox

    def _watch(self, on_line: Callable[[bytes], None]) -> _Watched:
        return _Watched(self._loop, LineSplitter(on_line, self._bounds), self._clocks.silence, self._tools)

    async def _run(self, command: Command, watched: _Watched) -> Exit:
        if self._ended is not None:
            return self._said(Exit(-signal.SIGTERM, b"", b"", 0.0, why=self._ended))
        self._program = watched
        try:
            end = await run_process(
                command, on_data=watched.hear, on_pid=self._started, cancel=self._cancel, alarm=watched.alarm
            )
            watched.finish()
        finally:
            self._program = None
            self._tools.clear()
            watched.close()
        return self._said(replace(end, truncated=False))

    def _said(self, end: Exit) -> Exit:
        """The end of a program with our words on it."""
        if not self._words or end.why != self._ended:
            return end
        return replace(end, stderr=end.stderr + f"\n{OURS}{self._words}\n".encode())

    def _started(self, pid: int) -> None:
        if self._program is not None:
            self._program.pid = pid
        if self._on_pid is not None:
            self._on_pid(pid)

    def note(self, path: Path) -> None:
        """A temporary file or directory of this turn, removed when it is over."""
        self._notes.append(path)

    def close(self) -> None:
        """Remove the temporary files; what is already gone is fine."""
        while self._notes:
            path = self._notes.pop()
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


class _Watched:
    """One running program: its lines, and the clock that runs while it is silent."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lines: LineSplitter, silence: float, tools: set[str]) -> None:
        self.alarm: asyncio.Future[Why] = loop.create_future()
        self.pid = 0
        self._loop = loop
        self._lines = lines
        self._silence = silence
        self._tools = tools
        self._heard = loop.time()
        self._error: Exception | None = None
        self._timer = loop.call_later(silence, self._look)

    def ring(self, why: Why) -> None:
        """End the program; the first reason counts."""
        if not self.alarm.done():
            self.alarm.set_result(why)

    def hear(self, stream: str, data: bytes) -> None:
        """Take what the program printed. Standard error is no event: it says nothing about progress."""
        if stream != "stdout" or self._error is not None:
            return
        try:
            ended = self._lines.feed(data)
        except Exception as error:  # noqa: BLE001  raised again by finish: the event loop would only log it
            self._error = error
            self.ring("cancelled")
            return
        if ended:
            self._heard = self._loop.time()

    def _look(self) -> None:
        if self._tools:
            self._heard = self._loop.time()
        left = self._heard + self._silence - self._loop.time()
        if left <= 0:
            self.ring("silence")
        else:
            self._timer = self._loop.call_later(left, self._look)

    def finish(self) -> None:
        """The program has ended: pass on its last lines; raise what reading it raised."""
        if self._error is None:
            self._lines.close()
        else:
            raise self._error

    def close(self) -> None:
        """Stop the clock."""
        self._timer.cancel()
        self.alarm.cancel()


def _is_passing(error: OSError, command: Command) -> bool:
    """Whether a program could not be started because it is just being replaced; a missing directory is none of that."""
    if error.errno == errno.ETXTBSY:
        return True
    return error.errno == errno.ENOENT and command.cwd.is_dir()
