"""A yard of containers: each has no network but its own loopback, and all are gone when the yard is left.

What is in it carries the labels of this process: what one that was killed has left is removed by the next.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.processes.command import Exit
from bailiwick.processes.proc import plain_line
from bailiwick.sandbox.backends.container_engine import LABEL, OWNER, Engine, owner_label
from bailiwick.sandbox.backends.container_options import bounds
from bailiwick.sandbox.failures import EnvironmentFailed
from bailiwick.sandbox.spec import GB, MB, SandboxLimits

FAILED = "BW453"
LIMITS = SandboxLimits(memory=2 * GB, processes=512, tmp=256 * MB)
"""What one container may use at most."""
PULL_SECONDS = 15 * 60.0
"""How long the fetching of an image may take."""
_LINES = 40
_DROPPED = ("NET_RAW", "MKNOD", "AUDIT_WRITE")
_LOG = {
    "docker": ("--log-driver", "json-file", "--log-opt", "max-size=1m", "--log-opt", "max-file=1"),
    "podman": ("--log-driver", "k8s-file", "--log-opt", "max-size=1mb"),
}


@dataclass(frozen=True, slots=True)
class ContainerState:
    """How a container is: its first process while it runs, and with what it has ended."""

    running: bool
    code: int = 0
    pid: int = 0


@dataclass(frozen=True, slots=True)
class ContainerGroup:
    """An open yard. What the engine refuses is an `EnvironmentFailed` with its words."""

    engine: Engine
    room: str
    cancel: asyncio.Event
    _networks: list[int] = field(default_factory=list)

    async def fetch(self, image: str) -> tuple[str, ...]:
        """Have an image here, fetched only if it is missing; gives what it exposes, such as `5432/tcp`."""
        found = await self._exposed(image)
        if found is None:
            end = await self.engine.ask("pull", "--quiet", image, timeout=PULL_SECONDS, cancel=self.cancel)
            found = await self._exposed(image) if end.code == 0 else None
            if found is None:
                why = "ran out of time" if end.timed_out else words(end)
                raise EnvironmentFailed(
                    f"the image {image} is not here and can't be fetched: {why}",
                    hint=f"{self.engine.kind} pull {image}; or name an image in the gate file that is here",
                    code=FAILED,
                )
        return found

    async def _exposed(self, image: str) -> tuple[str, ...] | None:
        end = await self.engine.ask("image", "inspect", "--format", "{{json .Config.ExposedPorts}}", image)
        if end.code != 0:
            return None
        try:
            return tuple(json.loads(end.stdout) or ())
        except ValueError:
            return ()

    async def start(self, name: str, image: str, env: Mapping[str, str]) -> str:
        """Start the container of a service; gives its id. It reaches nothing, and no port of the host leads to it."""
        line = ["run", "--detach", "--pull", "never", "--network", "none"]
        line += ["--label", f"{LABEL}={self.room}", "--label", f"{OWNER}={owner_label()}"]
        line += [word for right in _DROPPED for word in ("--cap-drop", right)]
        line += ["--security-opt", "no-new-privileges", *_LOG[self.engine.kind], *bounds(self.engine, LIMITS)]
        line += [word for variable, value in env.items() for word in ("--env", f"{variable}={value}")]
        end = await self.engine.ask(*line, image)
        if end.code != 0:
            raise EnvironmentFailed(
                f"the container of {name} can't be started: {words(end)}",
                hint=f"try it by hand: {self.engine.kind} run --rm {image}",
                code=FAILED,
            )
        return end.stdout.decode("ascii", "replace").strip()

    async def state(self, container: str) -> ContainerState:
        """How a container is; one that is gone does not run."""
        end = await self.engine.ask("inspect", "--format", "{{json .State}}", container)
        try:
            found = json.loads(end.stdout)
            return ContainerState(bool(found["Running"]), int(found["ExitCode"]), int(found["Pid"]))
        except (ValueError, LookupError, TypeError):
            return ContainerState(running=False)

    def network(self, container: str, pid: int) -> int | None:
        """An open file of a container's network, as long as the yard is open; nothing where `pid` is not of it here.

        The file is opened first: a number that another process has got by now is then found out by its groups.
        """
        process = Path("/proc") / str(pid)
        try:
            opened = os.open(process / "ns/net", os.O_RDONLY)
        except OSError:
            return None
        self._networks.append(opened)
        try:
            groups = (process / "cgroup").read_text("utf-8", "replace")
            apart = not os.path.samestat(os.fstat(opened), Path("/proc/self/ns/net").stat())
        except OSError:
            return None
        return opened if apart and container and container in groups else None

    def leave_networks(self) -> None:
        """Close the files of the networks."""
        while self._networks:
            os.close(self._networks.pop())

    async def execute(self, container: str, argv: tuple[str, ...], seconds: float) -> Exit:
        """Run a command in a container to its end."""
        return await self.engine.ask("exec", container, *argv, timeout=seconds, cancel=self.cancel)

    async def last_words(self, container: str) -> str:
        """What a container printed last, as lines that are safe to show."""
        end = await self.engine.ask("logs", "--tail", str(_LINES), container)
        lines = (end.stdout + end.stderr).splitlines() if end.code == 0 else []
        return "\n".join(plain_line(line) for line in lines[-_LINES:])


@asynccontextmanager
async def open_group(engine: Engine, cancel: asyncio.Event) -> AsyncIterator[ContainerGroup]:
    """A yard on an engine, whatever happens in it removed at the end; first what dead processes of ours have left."""
    await engine.sweep()
    group = ContainerGroup(engine, secrets.token_hex(8), cancel)
    try:
        yield group
    finally:
        group.leave_networks()
        await engine.remove(group.room)


def words(end: Exit) -> str:
    """What the engine said, in one line."""
    lines = [plain_line(line) for line in (end.stderr.strip() or end.stdout.strip()).splitlines()]
    said = [line for line in lines if line and not line.startswith("Run 'docker")]
    return "; ".join(said)[:1000] or f"it ended with code {end.code}"
