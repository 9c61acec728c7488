"""No sandbox: a clean environment, closed descriptors and a home of its own, and nothing else.

The program runs with the operator's rights. Paths inside are the host's, so there are no doors to make.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Unpack

from bailiwick.processes.command import Command
from bailiwick.sandbox import system_view
from bailiwick.sandbox.entered import EnteredSandbox, pack
from bailiwick.sandbox.port import CommandOptions, OnDoor
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


class UnprotectedSandbox(EnteredSandbox):
    """A cage without walls: `place` holds its home, where it has no other, and its temporary files."""

    def __init__(self, sandbox_spec: SandboxSpec, place: Path) -> None:
        super().__init__()
        self._sandbox_spec = sandbox_spec
        self._home = sandbox_spec.home or _folder(place / "home")
        self._tmp = _folder(place / "tmp")

    def command(self, argv: tuple[str, ...], env: Mapping[str, str], **how: Unpack[CommandOptions]) -> Command:
        given = how.get("pass_fds", ())
        limits = self._sandbox_spec.limits.rlimits(memory=True, processes=False)
        fields = [("arg", word) for word in argv]
        fields += [("env", f"{name}={self._here(name, value)}") for name, value in env.items()]
        fields += [("keep", str(number)) for number in given]
        fields += [("limit", limit) for limit in limits] + [("cwd", str(self._outer(self._sandbox_spec.cwd)))]
        ready, told = self._descriptors.pipe()
        letter = self._descriptors.content(pack([*fields, ("ready", str(told))]))
        program = (str(system_view.find_interpreter().program), "-I", "-S", str(system_view.shim_file()), str(letter))
        self._ready[program] = ready
        how["pass_fds"] = (*given, letter, told)
        return Command(program, env=self._marks(env), cwd=Path("/"), **how)

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

    async def leave(self) -> None:
        """End what is left of the programs and let go of everything."""
        self._descriptors.close()
        await self._end_marked()


def _folder(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path
