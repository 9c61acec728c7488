# ruff: noqa: S101 - a conformance suite asserts
"""The stage of the suite: a sandbox, a tree, and how a program is run in them."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from bailiwick.processes.command import Command, Exit
from bailiwick.processes.proc import EFFECT_MARK, run_process
from bailiwick.sandbox.port import OnDoor, SandboxBackend
from bailiwick.sandbox.spec import INNER, Bind, SandboxLimits, SandboxSpec
from bailiwick.sandbox.system_view import find_interpreter

PATH = "/usr/local/bin:/usr/bin:/bin"
PATIENCE = 60.0
WORDS = ("plain", "", "two words", "--flag", "$HOME `id` $(id) %s {0} \\n", "line\nbreak", "Grüße 漢字 🙂", "'\"")
DAEMON = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 3)
        open("alive", "w").close()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True: signal.pause()
    os._exit(0)
while not os.path.exists("alive"): pass
"""
"""Leaves a process behind that is in a session of its own, has no open files and does not mind TERM."""


def python(code: str, *arguments: str) -> tuple[str, ...]:
    """A command line that runs some Python inside, with the interpreter that every sandbox has."""
    return (str(find_interpreter().program), "-I", "-S", "-c", code, *arguments)


class SandboxFixture:
    """What every part of the suite works with. `isolates` is False where there are no walls at all."""

    isolates = True
    bounds = True
    """Whether processes are bounded for the whole of a sandbox."""

    def sandbox(self, tmp_path: Path) -> SandboxBackend:
        """A sandbox; what it keeps on the host belongs into `tmp_path / "scratch"`, which is empty."""
        raise NotImplementedError

    def needs_walls(self) -> None:
        if not self.isolates:
            pytest.skip("without a sandbox this is not protected")

    def ready_sandbox(self, tmp_path: Path) -> SandboxBackend:
        (tmp_path / "scratch").mkdir(exist_ok=True)
        return self.sandbox(tmp_path)

    def tree(self, tmp_path: Path) -> Path:
        return folder(tmp_path / "tree")

    def sandbox_spec(self, tmp_path: Path, limits: SandboxLimits | None = None) -> SandboxSpec:
        return SandboxSpec("agent", (Bind(self.tree(tmp_path), INNER, write=True),), limits=limits or SandboxLimits())

    def play(self, tmp_path: Path, argv: tuple[str, ...], **how: object) -> Exit:
        """Run a program in a sandbox of its own and see how it ends."""
        given = how.pop("sandbox", None)
        sandbox = given if given is not None else self.ready_sandbox(tmp_path)
        limits = how.pop("limits", None)
        sandbox_spec = how.pop("sandbox_spec", None) or self.sandbox_spec(
            tmp_path, limits if isinstance(limits, SandboxLimits) else None
        )
        env = how.pop("env", None) or {"PATH": PATH}
        assert isinstance(sandbox_spec, SandboxSpec)
        assert isinstance(env, dict)
        env.setdefault(EFFECT_MARK, new_mark())
        return asyncio.run(run(sandbox, sandbox_spec, argv, env, **how))  # type: ignore[arg-type]


async def run(
    sandbox: SandboxBackend,
    sandbox_spec: SandboxSpec,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    *,
    on_door: OnDoor | None = None,
    **how: object,
) -> Exit:
    """Run a program in a fresh room to its end; `cancel_at` is the line at which it is cancelled."""
    cancel = asyncio.Event()
    word = how.pop("cancel_at", "\0")

    def on_line(_stream: str, line: str) -> None:
        if line == word:
            cancel.set()

    async with sandbox.enter(sandbox_spec, on_door) as room:
        command = room.command(argv, env, timeout=PATIENCE, **how)  # type: ignore[arg-type]
        return await run_process(command, on_line=on_line, cancel=cancel)


async def answer_once(listener: socket.socket) -> None:
    """Answer one connection of a listener."""
    loop = asyncio.get_running_loop()
    with listener:
        connection, _ = await loop.sock_accept(listener)
        with connection:
            await loop.sock_recv(connection, 9)
            await loop.sock_sendall(connection, b"pong")


def spawn(command: Command) -> subprocess.Popen[bytes]:
    """Start a command and leave it alone."""
    return subprocess.Popen(
        command.argv,
        env=dict(command.env),
        cwd=command.cwd,
        pass_fds=command.pass_fds,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )


def traces(tmp_path: Path) -> tuple[object, ...]:
    """What a sandbox could leave behind: mounts, control groups, temporary files, open descriptors."""
    groups = [str(p) for p in Path("/sys/fs/cgroup").rglob(f"bailiwick-{os.getpid()}-*")]
    scratch = sorted(str(p) for p in (tmp_path / "scratch").rglob("*"))
    return (Path("/proc/self/mounts").read_text(), groups, scratch, len(list(Path("/proc/self/fd").iterdir())))


def folder(path: Path) -> Path:
    """A directory that is there now."""
    path.mkdir(exist_ok=True)
    return path


def new_mark() -> str:
    """A mark that no other process has."""
    return f"conformance-{secrets.token_hex(8)}"
