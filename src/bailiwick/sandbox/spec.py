"""What a fenced process may see and do: data only, no I/O here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

INNER = Path("/workspace")
"""Where the tree is inside every sandbox, so that an environment prepared once fits the agent and the gate."""
HOME = Path("/home/agent")
"""The home directory inside."""
MODEL_PORT = 8801
"""The loopback port inside, behind which the broker of models listens."""
EGRESS_PORT = 8802
"""The loopback port inside, behind which the proxy with the list of allowed hosts listens."""
DOORS = {"model": MODEL_PORT, "egress": EGRESS_PORT}
"""The loopback listeners that can be made inside, with their ports: the network there is private, so they are free."""
SERVICE_DOOR = "service-"
"""How the names of doors begin behind which a container for tests is; the rest of the name is the port."""

OURS = "bailiwick: "
"""How a line of ours begins at the end of a program's standard error: which limit it met."""

MB = 1024**2
GB = 1024**3

Role = Literal["agent", "gate", "prepare"]


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or directory of the host as it is seen inside."""

    source: Path
    target: Path
    write: bool = False


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What a sandbox may use at most: bytes of memory, processes, open files, bytes in one file, of /tmp and in all."""

    memory: int = 4 * GB
    processes: int = 512
    open_files: int = 4096
    file_size: int = 4 * GB
    tmp: int = 1 * GB
    disk: int = 20 * 10**9
    inodes: int = 500_000
    cpus: float | None = None

    def rlimits(self, *, memory: bool, processes: bool) -> tuple[str, ...]:
        """What the shim bounds for each process; memory and processes where nothing bounds them for all together."""
        also = ((f"nproc={self.processes}", processes), (f"data={self.memory}", memory))
        always = (f"nofile={self.open_files}", f"fsize={self.file_size}", "core=0")
        return (*always, *(limit for limit, wanted in also if wanted))


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """One sandbox: what is bound into it (later binds lie on top), where its process starts, which doors it has.

    `home` is a directory of the host that is its HOME; without one the home is empty and gone at the end. `doors` are
    names that `port_of` knows; without any there is no network at all. As root the writable binds are given to a uid of
    the sandbox's own, which follows from `owner`, or from the first of them: cages that share one name the same owner.
    """

    role: Role
    binds: tuple[Bind, ...] = ()
    cwd: Path = INNER
    home: Path | None = None
    doors: tuple[str, ...] = ()
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    owner: str = ""

    @property
    def shown(self) -> tuple[Bind, ...]:
        """All that is bound, its home first."""
        home = () if self.home is None else (Bind(self.home, HOME, write=True),)
        return (*home, *self.binds)

    @property
    def written(self) -> tuple[Path, ...]:
        """What of the host it can write to, its home last."""
        return (*(bind.source for bind in self.binds if bind.write), *((self.home,) if self.home else ()))


def service_door(port: int) -> str:
    """The name of the door behind which a container for tests is, at this port inside."""
    return f"{SERVICE_DOOR}{port}"


def port_of(door: str) -> int:
    """The loopback port inside of a door; raises `KeyError` for a name that is none."""
    number = door.removeprefix(SERVICE_DOOR)
    return int(number) if number != door and number.isdecimal() else DOORS[door]


@dataclass(frozen=True, slots=True)
class SandboxStatus:
    """Whether a kind of sandbox can be used here, in words; what it does not protect; how to get it."""

    ok: bool
    found: str
    fix: str = ""
    unprotected: tuple[str, ...] = ()
