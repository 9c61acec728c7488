"""Runs a process of an effect to its end, its children included. The only place that starts processes for nodes.

Processes are started by the spawner, which keeps hold of everything that comes of them; where there is none they are
children of ours. Output is read as it comes and kept within fixed bounds.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import IO, TypeVar

from bailiwick.processes import children
from bailiwick.processes.command import Command, Exit, Why
from bailiwick.processes.forked import ForkedRun, fork
from bailiwick.processes.guards import EFFECT_MARK
from bailiwick.processes.pipes import FirstBytes, Lines, OnLine, Tail, plain_line
from bailiwick.processes.spawner import become_subreaper
from bailiwick.processes.spawning import Lost, Spawned, marks_of, spawner

_CHUNK = 256 * 1024


class StdinWriter:
    """The standard input of one process. A process that closes it early has read what it wanted."""

    def __init__(self, loop: asyncio.AbstractEventLoop, file: IO[bytes], data: bytes) -> None:
        self._loop = loop
        self._file = file
        self._left = memoryview(data)
        self._is_closed = False
        os.set_blocking(file.fileno(), False)
        loop.add_writer(file.fileno(), self._write)

    def _write(self) -> None:
        try:
            written = os.write(self._file.fileno(), self._left[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        self._left = self._left[written:]
        if not self._left:
            self.close()

    def close(self) -> None:
        """Write no more; a second time does nothing."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_writer(self._file.fileno())
            self._file.close()


__all__ = ["EFFECT_MARK", "OnData", "OnLine", "become_subreaper", "plain_line", "run_process"]

STDERR_KEPT = 64 * 1024
PIPE_GRACE = 1.0
"""Seconds that grandchildren get to close the pipes after the process itself has ended."""

OnData = Callable[[str, bytes], None]
StartedProcess = Spawned | ForkedRun
"""A process that was started, with whatever it starts itself."""
_T = TypeVar("_T")


async def run_process(
    command: Command,
    *,
    on_line: OnLine | None = None,
    on_data: OnData | None = None,
    on_pid: Callable[[int], None] | None = None,
    cancel: asyncio.Event,
    alarm: asyncio.Future[Why] | None = None,
) -> Exit:
    """Run a process in its own session to its end; on timeout, `cancel` or `alarm` end it and all its children.

    `on_line(stream, text)` sees lines as they come, at most some twenty a second; `on_data(stream, bytes)` sees every
    byte. Whoever resolves `alarm` says why. Raises `OSError` if it can't start.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    if cancel.is_set():
        return Exit(-signal.SIGTERM, b"", b"", 0.0, cancelled=True, why="cancelled")
    running = await _start(command, on_line, on_data)
    try:
        if on_pid is not None:
            on_pid(running.process.pid)
        why = await running.wait(cancel, command.timeout, alarm)
        if why == "exited":
            await running.settle()
        elif why == "disk":
            await running.abandon()  # whoever fills the disk gets no time to go on with it
        else:
            await running.end()
    except BaseException:
        await running.abandon()
        raise
    finally:
        running.close()
    return Exit(
        code=running.process.code,
        stdout=bytes(running.out.kept),
        stderr=bytes(running.err.kept[-STDERR_KEPT:]),
        seconds=loop.time() - began,
        timed_out=why in ("silence", "total"),
        cancelled=why == "cancelled",
        truncated=running.out.truncated,
        why=why,
    )


class _Ends:
    """Our ends of a process's pipes, and its own, which are closed once it has them."""

    def __init__(self, command: Command) -> None:
        self.ours: list[int] = []
        self.theirs: list[tuple[int, int]] = []
        if command.stdin:
            theirs, ours = os.pipe()
            self._add(ours, theirs, 0)
        for target in (1, 2):
            ours, theirs = os.pipe()
            self._add(ours, theirs, target)
        self.files = [*self.theirs, *((number, number) for number in command.pass_fds)]

    def _add(self, ours: int, theirs: int, target: int) -> None:
        self.ours.append(ours)
        self.theirs.append((theirs, target))

    def hand_over(self) -> None:
        """Close the ends that the process has."""
        for file, _ in self.theirs:
            os.close(file)
        self.theirs = []

    def close(self) -> None:
        """Close everything: there is no process."""
        self.hand_over()
        for file in self.ours:
            os.close(file)


async def _start(command: Command, on_line: OnLine | None, on_data: OnData | None) -> _Running:
    ends = _Ends(command)
    try:
        process = await _begin(command, ends)
    except BaseException:
        ends.close()
        raise
    ends.hand_over()
    return _Running(process, files=ends.ours, command=command, on_line=on_line, on_data=on_data)


async def _begin(command: Command, ends: _Ends) -> StartedProcess:
    if spawner.usable:
        try:
            return await spawner.start(command, ends.files)
        except Lost:  # this system does not let it live: what there was before it has to do
            pass
    return fork(command, ends.files, marks_of(command.env))


class _Running:
    """A started process with its pipes."""

    def __init__(
        self,
        process: StartedProcess,
        files: list[int],
        command: Command,
        on_line: OnLine | None,
        on_data: OnData | None,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.process = process
        self.drained: asyncio.Future[None] = self.loop.create_future()
        self.lines = None if on_line is None else Lines(self.loop, on_line)
        self.on_data = on_data
        *first, out, err = files
        self.feed = StdinWriter(self.loop, os.fdopen(first[0], "wb", 0), command.stdin) if first else None
        self.out = FirstBytes(os.fdopen(out, "rb", 0), command.keep, partial(self._received, "stdout"), self._closed)
        self.err = Tail(os.fdopen(err, "rb", 0), STDERR_KEPT, partial(self._received, "stderr"), self._closed)

    def _received(self, stream: str, data: bytes) -> None:
        """A pipe gave some bytes."""
        if self.on_data is not None:
            self.on_data(stream, data)
        if self.lines is not None:
            self.lines.feed(stream, data)

    def _closed(self) -> None:
        """A pipe reached its end."""
        if self.out.is_closed and self.err.is_closed:
            _resolve(self.drained, None)

    async def wait(self, cancel: asyncio.Event, seconds: float | None, alarm: asyncio.Future[Why] | None) -> Why:
        """Wait for the first of: the end of the process, the timeout, the cancel, the alarm."""
        first: asyncio.Future[Why] = self.loop.create_future()
        watch = self.loop.create_task(cancel.wait())
        watch.add_done_callback(lambda task: None if task.cancelled() else _resolve(first, "cancelled"))
        self.process.exited.add_done_callback(lambda _: _resolve(first, "exited"))
        timer = None if seconds is None else self.loop.call_later(seconds, _resolve, first, "total")
        if alarm is not None:
            alarm.add_done_callback(lambda done: None if done.cancelled() else _resolve(first, done.result()))
        try:
            return await first
        finally:
            watch.cancel()
            if timer is not None:
                timer.cancel()

    async def settle(self) -> None:
        """After the process has ended: let its pipes close and its children go, then end what is left of them."""
        deadline = self.loop.time() + PIPE_GRACE
        await self._within(self.drained, PIPE_GRACE)
        if not await self.process.settle(deadline, self.drained.done()):
            await self._within(self.drained, PIPE_GRACE)

    async def end(self) -> None:
        """Kill on timeout, cancel or alarm: TERM to the process and its children, after 5 s KILL."""
        await self.process.end(children.GRACE)
        await self._within(self.drained, PIPE_GRACE)

    async def abandon(self) -> None:
        """Kill the process and its children at once: the task that ran it is being cancelled, or it fills the disk."""
        await self.process.end(0.0)
        await self._within(self.drained, PIPE_GRACE)

    async def _within(self, future: asyncio.Future[None], seconds: float) -> None:
        if not future.done():
            await asyncio.wait([future], timeout=seconds)

    def close(self) -> None:
        """Let go of the pipes and the process, and say the last lines."""
        if self.feed is not None:
            self.feed.close()
        self.out.close()
        self.err.close()
        self.process.close()
        if self.lines is not None:
            self.lines.close()


def _resolve(future: asyncio.Future[_T], value: _T) -> None:
    if not future.done():
        future.set_result(value)
