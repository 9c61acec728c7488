"""A process without a guard, for systems that have no subreapers: its descendants are found by group and marks."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from bailiwick.processes import children
from bailiwick.processes.command import Command


class ForkedRun:
    """A child of ours, watched through a pidfd; where there are none, looked at every 10 ms."""

    def __init__(self, popen: subprocess.Popen[bytes], marks: Mapping[str, str]) -> None:
        self.loop = asyncio.get_running_loop()
        self.pid = popen.pid
        self.exited: asyncio.Future[None] = self.loop.create_future()
        self._popen = popen
        self._marks = marks
        self._handle = -1
        children.claim(popen.pid)
        self._watch()

    @property
    def code(self) -> int:
        """The exit code; a process that not even KILL ended in time counts as killed."""
        return -signal.SIGKILL if self._popen.returncode is None else self._popen.returncode

    def _watch(self) -> None:
        try:
            self._handle = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            self.loop.call_later(0.01, self._look_again)
        else:
            self.loop.add_reader(self._handle, self._ended)

    def _look_again(self) -> None:
        if not self.exited.done() and self._popen.poll() is None:
            self.loop.call_later(0.01, self._look_again)
        else:
            self._over()

    def _ended(self) -> None:
        self._popen.poll()
        self._unwatch()
        self._over()

    def _over(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def _unwatch(self) -> None:
        if self._handle >= 0:
            self.loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1

    async def settle(self, deadline: float, drained: bool) -> bool:
        """Wait until `deadline` for what the process left to end by itself, then end it; whether there was nothing."""
        orphans = children.has_orphans(self._marks, self.pid)
        if drained and not orphans and not children.group_exists(self.pid):
            return True
        if not await children.linger(self._marks, self.pid, deadline - self.loop.time()):
            await self.end(children.GRACE)
        else:
            children.has_orphans(self._marks, self.pid)
        return False

    async def end(self, grace: float) -> None:
        """End the process and its children: TERM, `grace` seconds, KILL; reaped."""
        await children.end_children(self._marks, grace, group=self.pid)
        if not self.exited.done():
            await asyncio.wait([self.exited], timeout=children.KILL_WAIT)
        children.has_orphans(self._marks, self.pid)

    def close(self) -> None:
        """Let go of the handle."""
        self._unwatch()
        self._popen.poll()
        self._over()
        children.disclaim(self.pid)


def fork(command: Command, files: Sequence[tuple[int, int]], marks: Mapping[str, str]) -> ForkedRun:
    """Start a process with these files of ours as its first three, an empty input where there is none."""
    own = {target: file for file, target in files if target <= 2}
    try:
        popen = subprocess.Popen(
            command.argv,
            stdin=own.get(0, subprocess.DEVNULL),
            stdout=own[1],
            stderr=own[2],
            close_fds=True,
            pass_fds=command.pass_fds,
            cwd=command.cwd,
            env=command.env,
            start_new_session=True,
        )
    except ValueError as error:  # a NUL or a lone surrogate in an argument or a variable
        raise OSError(errno.EINVAL, f"an argument or a variable can't be passed to a process: {error}") from error
    return ForkedRun(popen, marks)


def start_background(argv: list[str]) -> int:
    """Start a worker of its own session, with no terminal, that outlives this command; gives its pid."""
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    process.returncode = 0
    return process.pid
