"""Runs a process of an effect to its end, its children included. The only place that starts processes for nodes.

A plain `Popen` watched through a pidfd costs a twentieth more than a bare spawn (asyncio's own transports: a third)
and needs no thread and no child watcher. Output is read as it comes and kept within fixed bounds.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TypeVar, cast

from bailiwick.runtime import children
from bailiwick.runtime.feed import Feed
from bailiwick.runtime.kinds import Command, Exit, Why

STDERR_KEPT = 64 * 1024
PIPE_GRACE = 1.0
"""Seconds that grandchildren get to close the pipes after the process itself has ended."""
LINE_LENGTH = 2000
LINES_PER_SECOND = 20
EFFECT_MARK = "BAILIWICK_EFFECT_KEY"

OnLine = Callable[[str, str], None]
OnData = Callable[[str, bytes], None]
_T = TypeVar("_T")

_CHUNK = 64 * 1024
_PARTIAL = 4 * LINE_LENGTH
_SEQUENCES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x9b[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]?"
)
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain_line(raw: bytes, length: int = LINE_LENGTH) -> str:
    """A line of output as text that is safe to show: no terminal sequences or control characters, of bounded length."""
    text = raw[: 4 * length].decode("utf-8", "replace")
    text = _CONTROLS.sub("", _SEQUENCES.sub("", text)).replace("\t", " ").strip()
    return text if len(text) <= length else text[: length - 1] + "…"


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
    running = _Running(_spawn(command), command, on_line, on_data)
    try:
        if on_pid is not None:
            on_pid(running.popen.pid)
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
        code=running.code,
        stdout=bytes(running.out.kept),
        stderr=bytes(running.err.kept[-STDERR_KEPT:]),
        seconds=loop.time() - began,
        timed_out=why in ("silence", "total"),
        cancelled=why == "cancelled",
        truncated=running.out.truncated,
        why=why,
    )


def become_subreaper() -> bool:
    """Let orphans among our descendants be handed to us instead of to init; False where the system can't."""
    if sys.platform != "linux":
        return False
    import ctypes

    set_child_subreaper = 36
    failed: int = ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)
    return not failed


def _spawn(command: Command) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command.argv,
            bufsize=0,
            stdin=subprocess.PIPE if command.stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            close_fds=True,
            pass_fds=command.pass_fds,
            cwd=command.cwd,
            env=command.env,
            start_new_session=True,
        )
    except ValueError as error:  # a NUL or a lone surrogate in an argument or a variable
        raise OSError(errno.EINVAL, f"an argument or a variable can't be passed to a process: {error}") from error


class _Running:
    """A started process with its pipes."""

    def __init__(
        self, popen: subprocess.Popen[bytes], command: Command, on_line: OnLine | None, on_data: OnData | None
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.popen = popen
        key = command.env.get(EFFECT_MARK)
        self.marks = {EFFECT_MARK: key} if key else {}
        self.exited: asyncio.Future[None] = self.loop.create_future()
        self.drained: asyncio.Future[None] = self.loop.create_future()
        self.handle = -1
        children.claim(popen.pid)
        self.lines = None if on_line is None else _Lines(self.loop, on_line)
        self.on_data = on_data
        self.feed = None if popen.stdin is None else Feed(self.loop, popen.stdin, command.stdin)
        self.out = _Head("stdout", cast("IO[bytes]", popen.stdout), self, command.keep)
        self.err = _Tail("stderr", cast("IO[bytes]", popen.stderr), self, STDERR_KEPT)
        self._watch()

    @property
    def code(self) -> int:
        """The exit code; a process that not even KILL ended in time counts as killed."""
        return -signal.SIGKILL if self.popen.returncode is None else self.popen.returncode

    def _watch(self) -> None:
        """Have the event loop tell when the process has ended; where there are no pidfds, look every 10 ms."""
        try:
            self.handle = os.pidfd_open(self.popen.pid)
        except (AttributeError, OSError):
            self.loop.call_later(0.01, self._look_again)
        else:
            self.loop.add_reader(self.handle, self._ended)

    def _look_again(self) -> None:
        if not self.exited.done() and self.popen.poll() is None:
            self.loop.call_later(0.01, self._look_again)
        else:
            _resolve(self.exited, None)

    def _ended(self) -> None:
        self.popen.poll()
        self._unwatch()
        _resolve(self.exited, None)

    def _unwatch(self) -> None:
        if self.handle >= 0:
            self.loop.remove_reader(self.handle)
            os.close(self.handle)
            self.handle = -1

    def received(self, stream: str, data: bytes) -> None:
        """A pipe gave some bytes."""
        if self.on_data is not None:
            self.on_data(stream, data)
        if self.lines is not None:
            self.lines.feed(stream, data)

    def closed(self) -> None:
        """A pipe reached its end."""
        if self.out.is_closed and self.err.is_closed:
            _resolve(self.drained, None)

    async def wait(self, cancel: asyncio.Event, seconds: float | None, alarm: asyncio.Future[Why] | None) -> Why:
        """Wait for the first of: the end of the process, the timeout, the cancel, the alarm."""
        first: asyncio.Future[Why] = self.loop.create_future()
        watch = self.loop.create_task(cancel.wait())
        watch.add_done_callback(lambda task: None if task.cancelled() else _resolve(first, "cancelled"))
        self.exited.add_done_callback(lambda _: _resolve(first, "exited"))
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
        orphans = children.has_orphans(self.marks, self.popen.pid)
        if self.drained.done() and not orphans and not children.group_exists(self.popen.pid):
            return
        if not await children.linger(self.marks, self.popen.pid, deadline - self.loop.time()):
            await children.end_children(self.marks, children.GRACE, group=self.popen.pid)
        await self._finish()

    async def end(self) -> None:
        """End the process and its children: TERM, 5 s, KILL; reaped."""
        await children.end_children(self.marks, children.GRACE, group=self.popen.pid)
        await self._finish()

    async def abandon(self) -> None:
        """Kill the process and its children at once: the task that ran it is being cancelled, or it fills the disk."""
        if not self.exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.popen.pid, signal.SIGKILL)
        await children.end_children(self.marks, 0.0, group=self.popen.pid)
        await self._finish()

    async def _finish(self) -> None:
        """Everything is gone: take the last bytes from the pipes and reap what was left to us."""
        await self._within(self.exited, children.KILL_WAIT)
        await self._within(self.drained, PIPE_GRACE)
        children.has_orphans(self.marks, self.popen.pid)

    async def _within(self, future: asyncio.Future[None], seconds: float) -> None:
        if not future.done():
            await asyncio.wait([future], timeout=seconds)

    def close(self) -> None:
        """Let go of the pipes and the handle, and say the last lines."""
        if self.feed is not None:
            self.feed.close()
        self.out.close()
        self.err.close()
        self._unwatch()
        self.popen.poll()
        _resolve(self.exited, None)
        children.disclaim(self.popen.pid)
        if self.lines is not None:
            self.lines.close()


class _Pipe:
    """One of the two outputs: read whenever there is something, kept within a bound."""

    def __init__(self, stream: str, file: IO[bytes], owner: _Running, bound: int) -> None:
        self.kept = bytearray()
        self.truncated = False
        self.is_closed = False
        self._stream = stream
        self._file = file
        self._owner = owner
        self._bound = bound
        os.set_blocking(file.fileno(), False)
        owner.loop.add_reader(file.fileno(), self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._file.fileno(), _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._keep(data)
            self._owner.received(self._stream, data)
        else:
            self.close()
            self._owner.closed()

    def _keep(self, data: bytes) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Stop reading; a second time does nothing."""
        if not self.is_closed:
            self.is_closed = True
            self._owner.loop.remove_reader(self._file.fileno())
            self._file.close()


class _Head(_Pipe):
    """Keeps the first bytes."""

    def _keep(self, data: bytes) -> None:
        room = self._bound - len(self.kept)
        self.truncated = self.truncated or len(data) > room
        if room > 0:
            self.kept += data[:room]


class _Tail(_Pipe):
    """Keeps the last bytes; twice the bound in between, so that bytes are moved seldom."""

    def _keep(self, data: bytes) -> None:
        self.kept += data
        if len(self.kept) > 2 * self._bound:
            del self.kept[: -self._bound]


class _Lines:
    """Passes lines on, some twenty a second; of those that come faster the last one is passed on a little later."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_line: OnLine) -> None:
        self._loop = loop
        self._on_line = on_line
        self._partial = {"stdout": b"", "stderr": b""}
        self._held: tuple[str, bytes] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._left = float(LINES_PER_SECOND)
        self._since = loop.time()

    def feed(self, stream: str, data: bytes) -> None:
        """Take some bytes of a stream; a carriage return ends a line too, as progress bars write them."""
        room = self._room()
        *lines, partial = (self._partial[stream] + data.replace(b"\r", b"\n")).rsplit(b"\n", room + 2)
        self._partial[stream] = partial[:_PARTIAL]
        if len(lines) > room + 1:
            del lines[0]  # what is before the last lines, however many lines that is
        if len(lines) > room:
            self._hold(stream, lines[-1])
            lines = lines[:room]
        for line in lines:
            self._pass_on(stream, line)

    def _room(self) -> int:
        now = self._loop.time()
        self._left = min(LINES_PER_SECOND, self._left + (now - self._since) * LINES_PER_SECOND)
        self._since = now
        return int(self._left)

    def _hold(self, stream: str, line: bytes) -> None:
        self._held = (stream, line[:_PARTIAL])
        if self._timer is None:
            self._timer = self._loop.call_later(1 / LINES_PER_SECOND, self._release)

    def _release(self) -> None:
        self._timer = None
        if self._held is not None:
            (stream, line), self._held = self._held, None
            self._pass_on(stream, line)

    def _pass_on(self, stream: str, line: bytes) -> None:
        text = plain_line(line)
        if text:
            self._left -= 1
            self._on_line(stream, text)

    def close(self) -> None:
        """Say what is still held, and the last lines that no newline ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._release()
        for stream, line in self._partial.items():
            self._pass_on(stream, line)


def _resolve(future: asyncio.Future[_T], value: _T) -> None:
    if not future.done():
        future.set_result(value)
