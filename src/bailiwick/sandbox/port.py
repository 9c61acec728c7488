"""The port of sandboxes: a cage in, a room out in which one process after another can be started."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, TypedDict, Unpack

from bailiwick.processes.command import Command
from bailiwick.sandbox.spec import SandboxSpec, SandboxStatus

OnDoor = Callable[[str, socket.socket], None]
"""Takes a listening socket that was made inside, by the name of its door. Whoever takes it closes it."""


class CommandOptions(TypedDict, total=False):
    """How a command is run, as `Command` has it."""

    timeout: float | None
    keep: int
    stdin: bytes
    pass_fds: tuple[int, ...]


class Sandbox(Protocol):
    """An entered cage."""

    def command(self, argv: tuple[str, ...], env: Mapping[str, str], **how: Unpack[CommandOptions]) -> Command:
        """What `run_process` has to start on the host, so that `argv` runs inside with exactly `env` (marks included).

        A descriptor in `pass_fds` has the same number inside. Each command is started at most once.
        """

    def hand_over(self, path: Path) -> None:
        """Let the processes inside read and write a file or directory of ours that lies in a bind of theirs."""

    def inner(self, path: Path) -> Path:
        """Where a path of the host is inside; raises `ValueError` for one that can't be seen there."""

    def entered(self, command: Command) -> bool:
        """Whether the program of a command was reached: if not, what it printed is about the sandbox."""

    def exceeded(self) -> tuple[str, ...]:
        """Which limits the whole of it met so far, where it can tell: memory, processes."""


class SandboxBackend(Protocol):
    """A way to keep processes in a sandbox. It never falls back to another way."""

    name: str

    async def check(self) -> SandboxStatus:
        """Whether it works here, by trying; cheap enough for the start of a run."""

    def enter(self, sandbox_spec: SandboxSpec, on_door: OnDoor | None = None) -> AbstractAsyncContextManager[Sandbox]:
        """Make a cage ready. `on_door` gets each listener as soon as a process of the room has made it.

        At the end nothing of it is left: no process, no mount, no cgroup, no temporary file.
        """
