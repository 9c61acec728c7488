"""No sandbox: a clean environment, closed descriptors and a home of its own, and nothing else.

The program runs with the operator's rights. Paths inside are the host's, so there are no doors to make.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from bailiwick.processes import children
from bailiwick.processes.command import Command
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.sandbox import system_view
from bailiwick.sandbox.descriptors import Descriptors
from bailiwick.sandbox.port import OnDoor
from bailiwick.sandbox.shim import pack
from bailiwick.sandbox.spec import HOME, SandboxSpec, SandboxStatus

UNPROTECTED = (
    "nothing is protected from the program: it runs with your rights",
    "it can read your files, your keys and Bailiwick's own state, and write wherever you can",
    "it can reach every host that you can reach",
    "memory and processes are not bounded, but for a limit on each process",
)
_INSIDE_TMP = "/tmp"  # noqa: S108 - how the other sandboxes call it


class NoSandboxBackend:
    """Runs processes as they are. `scratch` is where homes that last for one room are made."""

    name = "none"

    def __init__(self, scratch: Path | None = None) -> None:
        self._scratch = scratch

    async def check(self) -> SandboxStatus:
        return SandboxStatus(
            ok=True,
            found="no sandbox: a clean environment and a home of its own, nothing more",
            fix="install bubblewrap or docker, and leave sandbox.profile at auto",
            unprotected=UNPROTECTED,
        )

    @asynccontextmanager
    async def enter(
        self, sandbox_spec: SandboxSpec, on_door: OnDoor | None = None
    ) -> AsyncIterator[UnprotectedSandbox]:
        place = Path(tempfile.mkdtemp(prefix="room-", dir=self._scratch))
        sandbox = UnprotectedSandbox(sandbox_spec, place)
        try:
            yield sandbox
        finally:
            await sandbox.leave()
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


class UnprotectedSandbox:
    """A cage without walls: `place` holds its home, where it has no other, and its temporary files."""

    def __init__(self, sandbox_spec: SandboxSpec, place: Path) -> None:
        self._sandbox_spec = sandbox_spec
        self._home = sandbox_spec.home or _folder(place / "home")
        self._tmp = _folder(place / "tmp")
        self._descriptors = Descriptors()
        self._keys: set[str] = set()
        self._ready: dict[int, int] = {}

    def command(
        self,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        *,
        timeout: float | None = None,
        keep: int = 1 << 20,
        stdin: bytes = b"",
        pass_fds: tuple[int, ...] = (),
    ) -> Command:
        limits = self._sandbox_spec.limits
        fields = [("arg", word) for word in argv]
        fields += [("env", f"{name}={self._here(name, value)}") for name, value in env.items()]
        fields += [("keep", str(number)) for number in pass_fds]
        fields += [("limit", limit) for limit in (f"nofile={limits.open_files}", f"fsize={limits.file_size}", "core=0")]
        fields += [("limit", f"data={limits.memory}"), ("cwd", str(self._outer(self._sandbox_spec.cwd)))]
        try:
            ready, told = self._descriptors.pipe()
            letter = self._descriptors.content(pack([*fields, ("ready", str(told))]))
        except ValueError as error:
            raise OSError(errno.EINVAL, f"an argument or a variable can't be passed to a process: {error}") from error
        marks = {EFFECT_MARK: env[EFFECT_MARK]} if EFFECT_MARK in env else {}
        self._keys.update(marks.values())
        self._ready[letter] = ready
        program = (str(system_view.find_interpreter().program), "-I", "-S", str(system_view.shim_file()), str(letter))
        return Command(
            program,
            env=marks,
            cwd=Path("/"),
            timeout=timeout,
            keep=keep,
            stdin=stdin,
            pass_fds=(*pass_fds, letter, told),
        )

    def _here(self, name: str, value: str) -> str:
        """What a variable says where there is no inside."""
        if name == "HOME" and value == str(HOME):
            return str(self._home)
        return str(self._tmp) if name in ("TMPDIR", "TMP", "TEMP") and value == _INSIDE_TMP else value

    def _outer(self, path: Path) -> Path:
        """The host's name of a path that the cage calls by its inner one."""
        for bind in reversed(self._sandbox_spec.binds):
            if path.is_relative_to(bind.target):
                return bind.source / path.relative_to(bind.target)
        return self._home if path == HOME else path

    def hand_over(self, path: Path) -> None:
        """Everything is shared here."""

    def inner(self, path: Path) -> Path:
        return Path(os.path.realpath(path))

    def entered(self, command: Command) -> bool:
        """Whether the program of a command was reached."""
        return self._descriptors.said(self._ready.get(int(command.argv[-1]), -1))

    def exceeded(self) -> tuple[str, ...]:
        """Nothing bounds the whole of it."""
        return ()

    async def leave(self) -> None:
        """End what is left of the programs and let go of everything."""
        self._descriptors.close()
        for key in self._keys:
            await children.end_children({EFFECT_MARK: key}, 0.0)


def _folder(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path
