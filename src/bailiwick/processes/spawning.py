"""The worker's side of `spawner.py`: one spawner per process, started with the first process of an effect.

What it starts is guarded: no descendant gets away from its guard, however it hides, and all of them end when the worker
does. Where there is none (no Linux, an old kernel), `forked.py` starts processes and finds them by their marks.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import marshal
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from bailiwick.processes import children
from bailiwick.processes.command import Command
from bailiwick.processes.guards import EFFECT_MARK, guard_name
from bailiwick.processes.spawner import CONTROL, FRAME, frame

PROGRAM = Path(__file__).with_name("spawner.py")
TRIES = 3
"""How often a spawner is started before this system is taken to have none."""
FULL = 0.005
"""Seconds to wait when too many requests are on their way."""


class Lost(Exception):
    """The guard is gone and has not said that its processes are."""


class Spawned:
    """A guarded process. `exited` is done when it has ended, `gone` when nothing that it started is left."""

    def __init__(self, line: socket.socket, command: Command) -> None:
        self.loop = asyncio.get_running_loop()
        self.pid = 0
        self.status: int | None = None
        self.exited: asyncio.Future[None] = self.loop.create_future()
        self.gone: asyncio.Future[bool] = self.loop.create_future()
        self._begun: asyncio.Future[tuple[bytes, int]] = self.loop.create_future()
        self._line = line
        self._command = command
        self._raw = b""
        line.setblocking(False)
        self.loop.add_reader(line.fileno(), self._read)

    @property
    def code(self) -> int:
        """The exit code; a process that not even KILL ended in time, or whose guard was killed, counts as killed."""
        return -signal.SIGKILL if self.status is None else os.waitstatus_to_exitcode(self.status)

    async def begin(self, request: bytes) -> None:
        """Have the guard start the process; raises `OSError` when it can't, `Lost` when there is no guard."""
        raw = len(request).to_bytes(8, "little") + request
        try:
            await self.loop.sock_sendall(self._line, raw)
        except OSError as error:
            raise Lost from error
        letter, number = await self._begun
        command = self._command
        if letter == b"P":
            self.pid = number
        elif letter == b"C":
            raise OSError(number, os.strerror(number), str(command.cwd))
        elif letter == b"E":
            raise OSError(number, os.strerror(number), command.argv[0])
        else:
            raise Lost

    def _read(self) -> None:
        try:
            data = self._line.recv(16 * FRAME)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._raw += data
        while len(self._raw) >= FRAME:
            letter, number = self._raw[:1], int.from_bytes(self._raw[1:FRAME], "little", signed=True)
            self._raw = self._raw[FRAME:]
            self._hear(letter, number)
        if not data:
            self._hear(b"", 0)
            self.loop.remove_reader(self._line.fileno())

    def _hear(self, letter: bytes, number: int) -> None:
        if letter in (b"P", b"C", b"E", b"") and not self._begun.done():
            self._begun.set_result((letter, number))
        if letter == b"X":
            self.status = number
        if letter in (b"X", b"") and not self.exited.done():
            self.exited.set_result(None)
        if letter in (b"G", b"") and not self.gone.done():
            self.gone.set_result(letter == b"G")

    async def settle(self, deadline: float, _drained: bool) -> bool:
        """Wait until `deadline` for what the process left to end by itself, then end it; whether there was nothing."""
        if not self.gone.done():
            await asyncio.wait([self.gone], timeout=max(0.0, deadline - self.loop.time()))
        if self.gone.done() and self.gone.result():
            return True
        await self.end(children.GRACE)
        return False

    async def end(self, grace: float) -> None:
        """End the process and all that it started: TERM, `grace` seconds, KILL."""
        with contextlib.suppress(OSError):
            self._line.send(frame(b"T", int(grace * 1000)))
        if not self.gone.done():
            await asyncio.wait([self.gone], timeout=grace + 5 * children.KILL_WAIT)
        if not (self.gone.done() and self.gone.result()) and self.pid:
            await children.end_children(marks_of(self._command.env), grace, group=self.pid)

    def close(self) -> None:
        """Let go of the guard, which ends what there still is."""
        self.loop.remove_reader(self._line.fileno())
        self._line.close()
        self._hear(b"", 0)


class Spawner:
    """The spawner of this process; made again when it died, or when this process is a fork of the one that had it."""

    def __init__(self) -> None:
        self._one = threading.Lock()
        self._control: socket.socket | None = None
        self._owner = 0
        self._pid = 0
        self._failures = 0

    @property
    def usable(self) -> bool:
        """Whether this system can do it: subreapers, handles of processes, and a spawner that starts."""
        if sys.platform != "linux" or self._failures >= TRIES:
            return False
        try:
            os.close(os.pidfd_open(os.getpid()))
        except (AttributeError, OSError):
            return False
        return True

    async def start(self, command: Command, files: Sequence[tuple[int, int]]) -> Spawned:
        """Start a process with these files of ours under these numbers of its own; raises `OSError`, or `Lost`."""
        request = _request(command, [target for _, target in files])
        while True:
            ours, theirs = socket.socketpair()
            spawned = Spawned(ours, command)
            try:
                with theirs:
                    await self._hand_over([theirs.fileno(), *(file for file, _ in files)], command)
                await spawned.begin(request)
            except Lost:
                spawned.close()
                self._dropped()
                if not self.usable:
                    raise
            except BaseException:
                await spawned.end(0.0)
                spawned.close()
                raise
            else:
                self._failures = 0
                return spawned

    async def _hand_over(self, files: list[int], command: Command) -> None:
        while True:
            control = self._ready(command.env)
            try:
                socket.send_fds(control, [b"r"], files)
                return
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.ETOOMANYREFS, errno.ENOBUFS):
                    raise Lost from error
            await asyncio.sleep(FULL)

    def _ready(self, environment: Mapping[str, str]) -> socket.socket:
        with self._one:
            if self._control is None or self._owner != os.getpid():
                self._control, self._owner = self._launch(environment), os.getpid()
            return self._control

    def _launch(self, environment: Mapping[str, str]) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            high = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, CONTROL + 1)
            nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(CONTROL)]
            library = {name: environment[name] for name in ("LD_LIBRARY_PATH",) if name in environment}
            try:
                self._pid = os.posix_spawn(
                    sys.executable,
                    [sys.executable, "-I", "-S", str(PROGRAM)],
                    library,
                    file_actions=[*nothing, (os.POSIX_SPAWN_DUP2, high, CONTROL)],
                    setsid=True,
                )
            finally:
                os.close(high)
        children.claim(self._pid)
        return ours

    def _dropped(self) -> None:
        """The spawner is gone: reap it, and start another one next time."""
        with self._one:
            self._failures += 1
            if self._control is not None:
                self._control.close()
                self._control = None
            if self._owner == os.getpid():
                children.disclaim(self._pid)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(self._pid, os.WNOHANG)


async def is_guarding(environment: Mapping[str, str]) -> bool:
    """Whether processes can be guarded on this system, tried with one that does nothing."""
    if not spawner.usable:
        return False
    command = Command((sys.executable, "-I", "-S", "-c", ""), dict(environment), Path("/"))
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        spawned = await spawner.start(command, [(nothing, number) for number in range(3)])
    except (Lost, OSError):
        return False
    finally:
        os.close(nothing)
    try:
        await spawned.exited
        return await spawned.settle(spawned.loop.time() + children.GRACE, _drained=True)
    finally:
        spawned.close()


def marks_of(env: Mapping[str, str]) -> dict[str, str]:
    """By which the descendants of a process are known where they kept their environment."""
    key = env.get(EFFECT_MARK)
    return {EFFECT_MARK: key} if key else {}


def _request(command: Command, targets: list[int]) -> bytes:
    """What a guard needs to know. Raises `OSError` for what can't be passed to a process."""
    program, env = command.argv[0], command.env
    folders = [] if os.path.dirname(program) else os.get_exec_path(env)  # noqa: PTH120 - as `exec` decides it
    try:
        paths = [_passed(os.path.join(folder, program)) for folder in folders]  # noqa: PTH118 - as above
        request = {
            "paths": paths or [_passed(program)],
            "argv": [_passed(word) for word in command.argv],
            "env": {_passed(name, b"\0="): _passed(value) for name, value in env.items()},
            "cwd": _passed(str(command.cwd)),
            "targets": targets,
            "grace": children.GRACE,
            "name": guard_name(env) if EFFECT_MARK in env else "",
        }
    except ValueError as error:
        raise OSError(errno.EINVAL, f"an argument or a variable can't be passed to a process: {error}") from error
    return marshal.dumps(request)


def _passed(text: str, forbidden: bytes = b"\0") -> bytes:
    """A text as the system takes it; raises `ValueError` for a lone surrogate or what would end the text early."""
    raw = os.fsencode(text)
    if any(character in raw for character in forbidden):
        raise ValueError(f"{text[:60]!r} has a character that ends it")
    return raw


spawner = Spawner()
"""The one of this process."""
