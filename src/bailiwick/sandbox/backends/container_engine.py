"""The engine of containers, docker or podman, as this machine has it; asked through its command line.

The command line gets a small environment of its own: where the engine is, and nothing else of the operator's.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bailiwick.config.variables import Environment
from bailiwick.errors import NotReady
from bailiwick.processes.command import Command, Exit
from bailiwick.processes.owner import current_owner, is_dead
from bailiwick.processes.proc import run_process

PROGRAMS = ("docker", "podman")
VARIABLES = (
    *("HOME", "PATH", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
    *("DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_API_VERSION", "CONTAINER_HOST", "CONTAINERS_CONF"),
    "CONTAINERS_STORAGE_CONF",
)
"""What the command line of an engine is told of the operator's environment."""
INSTALL = "apt-get install docker.io (or podman), and start it"
LABEL = "bailiwick.room"
OWNER = "bailiwick.owner"
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_ASK_TIME = 30.0
_GONE_TIME = 15.0
_LOOK = 0.05
_FAILURES = 3


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that answers: its command line, and what it can do here."""

    program: str
    kind: str
    version: str
    variables: Mapping[str, str]
    rootless: bool = False
    remapped: bool = False
    memory: bool = True
    swap: bool = True
    processes: bool = True
    processors: bool = True
    seccomp: bool = True

    async def ask(
        self, *words: str, stdin: bytes = b"", timeout: float = _ASK_TIME, cancel: asyncio.Event | None = None
    ) -> Exit:
        """Run one of its commands to the end, which `cancel` brings about earlier."""
        command = Command((self.program, *words), dict(self.variables), Path("/"), timeout=timeout, stdin=stdin)
        try:
            return await run_process(command, cancel=cancel or asyncio.Event())
        except OSError as error:
            what = f"{Path(self.program).name} can't be started: {error}"
            raise NotReady(what, hint=INSTALL, code="BW401") from error

    async def remove(self, room: str) -> bool:
        """Remove every container of a room, however far it got; whether none is left. A dead engine can't tell."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _GONE_TIME
        failures = 0
        while failures < _FAILURES and loop.time() < deadline:
            found = await self.ask("ps", "--all", "--quiet", "--filter", f"label={LABEL}={room}")
            names = found.stdout.decode().split()
            if found.code == 0 and not names:
                return True
            failures += found.code != 0
            if names:
                await self.ask("rm", "--force", "--volumes", *names)
            await asyncio.sleep(_LOOK)
        return False

    async def sweep(self) -> None:
        """Remove containers that a dead process of ours has left: one that was killed could not do it."""
        left = await self.left("ps", "--all")
        if left:
            await self.ask("rm", "--force", "--volumes", *left)

    async def left(self, *listing: str) -> list[str]:
        """The ids in a listing of the engine's that carry the label of a dead process of ours."""
        label = f'.Label "{OWNER}"' if self.kind == "docker" else f'index .Labels "{OWNER}"'
        form = "{{.ID}} {{" + label + "}}"
        found = await self.ask(*listing, "--filter", f"label={OWNER}", "--format", form)
        lines = [line.split(" ", 1) for line in found.stdout.decode("utf-8", "replace").splitlines()]
        return [line[0] for line in lines if len(line) == 2 and _owner_is_dead(line[1])]


def told_variables() -> Mapping[str, str]:
    """What the operator's environment says about where the engine is."""
    environment = Environment()
    return {name: value for name in VARIABLES if (value := environment.text(name))}


def owner_label() -> str:
    """This process, as a label that tells later whether it still lives."""
    me = current_owner("")
    return f"{me.host}/{me.boot}/{me.pidns}/{me.pid}/{me.start}"


def _owner_is_dead(label: str) -> bool:
    me = current_owner("")
    parts = label.strip().split("/")
    if len(parts) != 5 or not parts[3].isdecimal() or not parts[4].isdecimal():
        return False
    host, boot, pidns = parts[:3]
    owner = type(me)(host=host, boot=boot, pidns=pidns, pid=int(parts[3]), start=int(parts[4]), name="")
    return is_dead(owner, me) is True


async def find_engine(variables: Mapping[str, str], programs: tuple[str, ...] = PROGRAMS) -> Engine:
    """The first engine that answers; raises `NotReady` with what stands in the way of the others."""
    own = {name: variables[name] for name in VARIABLES if variables.get(name)}
    own.setdefault("PATH", _PATH)
    troubles: list[NotReady] = []
    for name in programs:
        program = shutil.which(name, path=own["PATH"]) or shutil.which(name, path=_PATH)
        if program is None:
            troubles.append(NotReady(f"{name} is not installed", hint=INSTALL, code="BW401"))
            continue
        try:
            return await _look(program, own)
        except NotReady as error:
            troubles.insert(0, error)
    if all(trouble.hint == INSTALL for trouble in troubles):
        raise NotReady(f"neither {' nor '.join(programs)} is installed", hint=INSTALL, code="BW401")
    raise troubles[0]


async def _look(program: str, variables: Mapping[str, str]) -> Engine:
    name = Path(program).name
    asked = Engine(program, "", "", variables)
    version, answer = await asyncio.gather(asked.ask("--version"), asked.ask("info", "--format", "{{json .}}"))
    kind = "podman" if b"podman" in version.stdout.lower() else "docker"
    try:
        found = json.loads(answer.stdout)
    except ValueError:
        found = {}
    if not isinstance(found, dict) or answer.code != 0 or found.get("ServerErrors"):
        words = answer.stderr.decode("utf-8", "replace").strip() or "; ".join(found.get("ServerErrors") or ())
        what = f"the engine of {name} does not answer: {words[:500]}"
        fix = f"start it (systemctl start {name}) and make sure that this user may use it; DOCKER_HOST says where it is"
        raise NotReady(what, hint=fix, code="BW401")
    return _docker(program, variables, found) if kind == "docker" else _podman(program, variables, found)


def _docker(program: str, variables: Mapping[str, str], found: Mapping[str, Any]) -> Engine:
    security = " ".join(str(option) for option in found.get("SecurityOptions") or ())
    return Engine(
        program,
        "docker",
        str(found.get("ServerVersion") or "?"),
        variables,
        rootless="name=rootless" in security,
        remapped="name=userns" in security,
        memory=bool(found.get("MemoryLimit", True)),
        swap=bool(found.get("SwapLimit", True)),
        processes=bool(found.get("PidsLimit", True)),
        processors=bool(found.get("CpuCfsQuota", found.get("CPUCfsQuota", True))),
        seccomp="name=seccomp" in security,
    )


def _podman(program: str, variables: Mapping[str, str], found: Mapping[str, Any]) -> Engine:
    host = found.get("host") or {}
    security = host.get("security") or {}
    controllers = host.get("cgroupControllers") or []
    rootless = bool(security.get("rootless", os.geteuid() != 0))
    return Engine(
        program,
        "podman",
        str((found.get("version") or {}).get("Version", "?")),
        variables,
        rootless=rootless,
        memory=not rootless or "memory" in controllers,
        swap=not rootless or "memory" in controllers,
        processes=not rootless or "pids" in controllers,
        processors=not rootless or "cpu" in controllers,
        seccomp=bool(security.get("seccompEnabled", True)),
    )
