"""Keeps the machine awake while something works: sleep would cut it off. The inhibitor ends with this process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

TRIAL = 10.0
"""Seconds that an inhibitor gets to say whether it works."""
Which = Callable[[str], str | None]


def inhibitor(pid: int, which: Which = shutil.which) -> list[str] | None:
    """The command that keeps this machine awake until process `pid` ends; None where there is none."""
    if which("caffeinate"):
        return ["caffeinate", "-i", "-s", "-w", str(pid)]
    if which("systemd-inhibit") and which("tail"):
        why = "--why=an agent works"
        watch = ["tail", f"--pid={pid}", "-f", "/dev/null"]
        return ["systemd-inhibit", "--what=sleep:idle", "--who=bailiwick", why, "--mode=block", *watch]
    return None


def can_inhibit(command: list[str]) -> bool:
    """Whether the machine lets itself be kept awake: a program that is there may have nobody to talk to."""
    head = command[: command.index("tail")] if "tail" in command else ["caffeinate", "-i"]
    try:
        done = subprocess.run(
            [*head, "true"], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, timeout=TRIAL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


class Awake:
    """Holds one inhibitor while at least one holder is there."""

    def __init__(self, command: list[str] | None) -> None:
        self._command = command
        self._holders = 0
        self._process: Process | None = None

    @classmethod
    def here(cls, *, wanted: bool) -> Awake:
        """For this process; `wanted`: whether the machine is to be kept awake at all."""
        return cls(inhibitor(os.getpid()) if wanted else None)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Keep the machine awake meanwhile. What can't be inhibited is no error: doctor says so."""
        self._holders += 1
        try:
            if self._holders == 1 and self._command is not None:
                with contextlib.suppress(OSError):
                    self._process = await asyncio.create_subprocess_exec(
                        *self._command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
                    )
            yield
        finally:
            self._holders -= 1
            if not self._holders and self._process is not None:
                process, self._process = self._process, None
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()
