"""A host with something to steal, and a sandbox on it in which an attacker's program is run."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bailiwick.ids import Json
from bailiwick.processes import children
from bailiwick.processes.command import Exit
from bailiwick.processes.proc import EFFECT_MARK, run_process
from bailiwick.sandbox.port import SandboxBackend
from bailiwick.sandbox.spec import INNER, MB, Bind, SandboxLimits, SandboxSpec
from tests.security.escapes import PRELUDE, Attempt

TIGHT = SandboxLimits(memory=192 * MB, processes=64, open_files=256, file_size=64 * MB, tmp=64 * MB)
PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How an attempt ended, and what it did to the host."""

    end: Exit
    knocked: bool
    left: bool

    @property
    def text(self) -> str:
        """What it printed."""
        return (self.end.stdout + self.end.stderr).decode("utf-8", "replace")


class Host:
    """What an attacker is after: files, a process, listeners; each made for one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.secret = f"s3cr3t-{secrets.token_hex(8)}"
        self.state, self.tree = folder / "state", folder / "tree"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.abstract = socket.socket(socket.AF_UNIX)
        self.name = f"bailiwick-{secrets.token_hex(8)}"
        self.nap = f"987.{secrets.randbelow(10**9):09}"
        self.door = socket.socket(socket.AF_UNIX)

    def furnish(self) -> None:
        """Put everything in its place."""
        for path in ("state/keys/audit.key", "state/bailiwick.db", "config/config.yaml", "other/tree/file"):
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.secret)
        for path in ("canary", "tree", "environment"):
            (self.folder / path).mkdir()
        (self.folder / "canary/canary").write_text("whole")
        self.abstract.bind(f"\0{self.name}")
        self.door.bind(str(self.state / "s"))
        for line in (self.listener, self.abstract, self.door):
            line.listen()
            line.setblocking(False)

    def facts(self) -> dict[str, Json]:
        """What the attacker is told."""
        return {
            "secret": self.secret,
            "key": str(self.state / "keys/audit.key"),
            "database": str(self.state / "bailiwick.db"),
            "config": str(self.folder / "config/config.yaml"),
            "other": str(self.folder / "other/tree/file"),
            "canary": str(self.folder / "canary/canary"),
            "environment": f"{INNER}/.venv",
            "pid": os.getpid(),
            "port": self.listener.getsockname()[1],
            "abstract": self.name,
            "socket": str(self.state / "s"),
            "nap": self.nap,
            "comm": Path("/proc/self/comm").read_text().strip(),
            "hostname": socket.gethostname(),
        }

    def knocked(self) -> bool:
        """Whether anybody reached one of our listeners."""
        for line in (self.listener, self.abstract, self.door):
            try:
                line.accept()[0].close()
            except BlockingIOError:
                continue
            return True
        return False

    def close(self) -> None:
        """Let go of the listeners."""
        for line in (self.listener, self.abstract, self.door):
            line.close()


@asynccontextmanager
async def open_host(folder: Path) -> AsyncIterator[Host]:
    """A furnished host."""
    host = Host(folder)
    host.furnish()
    try:
        yield host
    finally:
        host.close()


async def attempt(host: Host, sandbox: SandboxBackend, tried: Attempt) -> Verdict:
    """Run an attempt inside; the secret is also in an open file of ours that children would inherit."""
    mark = secrets.token_hex(8)
    venv = host.tree / ".venv"
    venv.mkdir(exist_ok=True)
    sandbox_spec = SandboxSpec(
        "agent", (Bind(host.tree, INNER, write=True), Bind(host.folder / "environment", INNER / ".venv")), limits=TIGHT
    )
    handle = os.open(host.state / "keys/audit.key", os.O_RDONLY)
    os.set_inheritable(handle, True)
    try:
        async with sandbox.enter(sandbox_spec) as room:
            argv = ("python3", "-I", "-c", PRELUDE + tried.code, json.dumps(_public(host.facts(), tried)))
            env = {"PATH": PATH, EFFECT_MARK: mark, "HOME": "/home/agent"}
            end = await run_process(room.command(argv, env, timeout=600), cancel=asyncio.Event())
    finally:
        os.close(handle)
    return Verdict(end, host.knocked(), bool(children.has_orphans({EFFECT_MARK: mark}, -1)) or _sleepers(host.nap) > 0)


def _public(facts: dict[str, Json], tried: Attempt) -> dict[str, Json]:
    """The secret is told as halves: an argument list that holds it whole would be its own find."""
    secret = str(facts["secret"])
    return {**facts, "secret": [secret[:10], secret[10:]]} if tried.name else facts


def _sleepers(nap: str) -> int:
    """Processes that only an attempt to survive would have started."""
    wanted = f"sleep\0{nap}\0".encode()
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += (entry / "cmdline").read_bytes() == wanted
            except OSError:
                continue
    return found
