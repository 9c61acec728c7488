"""Control groups for one sandbox: memory, processes and processors are bounded for all of it together.

Both versions are used as they are found, only where this process may make groups: with version 1 below its own group,
with version 2 in the nearest group above that hands the controllers on. What can't be had is left to rlimits.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bailiwick.processes.children import ChildProcess, is_alive, read_stat
from bailiwick.sandbox.spec import SandboxLimits

CONTROLLERS = ("memory", "pids", "cpu")
AROUND = 4
"""Processes of the sandbox itself, which are not the program's to count."""
CPU_PERIOD = 100_000
GONE_WAIT = 2.0
"""Seconds in which the kernel has to be done with a killed group."""
_OURS = re.compile(r"bailiwick-(\d+)-(\d+)-")
"""Begins with who made it: its pid, and when it was started, since pids are given out again."""
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class CgroupRoots:
    """Where groups can be made: the directory for each controller that there is. Empty: nowhere."""

    version: Literal[1, 2] = 2
    folders: Mapping[str, Path] | None = None

    @property
    def controllers(self) -> tuple[str, ...]:
        """What can be bounded here."""
        return tuple(self.folders or ())


def find_ground(mounts: str | None = None, own: str | None = None) -> CgroupRoots:
    """Look where this process may make groups; the texts are those of /proc/self/mountinfo and /proc/self/cgroup."""
    mounts = _read(Path("/proc/self/mountinfo")) if mounts is None else mounts
    own = _read(Path("/proc/self/cgroup")) if own is None else own
    lines = [line.split(":", 2) for line in own.splitlines() if line.count(":") >= 2]
    first: dict[str, Path] = {}
    for point, root, kind, options in _cgroup_mounts(mounts):
        for number, names, path in lines:
            if kind == "cgroup2" and number == "0" and not names:
                second = _delegated(point, _below(point, root, path))
                if second is not None:
                    return CgroupRoots(2, dict.fromkeys(_given(second), second))
            elif kind == "cgroup" and names and set(names.split(",")) <= set(options):
                folder = _below(point, root, path)
                first.update({n: folder for n in names.split(",") if n in CONTROLLERS and _usable(folder)})
    return CgroupRoots(1, {name: first[name] for name in CONTROLLERS if name in first})


def _cgroup_mounts(text: str) -> Iterator[tuple[Path, str, str, list[str]]]:
    """Mount point, root, type and options of every mount of control groups; version 2 first."""
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) > 4 and len(kind) > 2 and kind[0] in ("cgroup", "cgroup2"):
            found.append((Path(_plain(fields[4])), _plain(fields[3]), kind[0], kind[2].split(",")))
    yield from sorted(found, key=lambda mount: mount[2] != "cgroup2")


def _plain(field: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), field)


def _below(point: Path, root: str, path: str) -> Path:
    inside = path[len(root) :] if root != "/" and path.startswith(root) else path
    return point / inside.strip("/")


def _usable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _given(folder: Path) -> tuple[str, ...]:
    """The controllers that the groups below a group of version 2 have."""
    names = _read(folder / "cgroup.subtree_control").split()
    return tuple(name for name in CONTROLLERS if name in names)


def _delegated(point: Path, own: Path) -> Path | None:
    """The nearest group from our own upwards in which we may make others that can be bounded, and move ourselves."""
    for folder in (own, *own.parents):
        if not folder.is_relative_to(point) or not os.access(folder / "cgroup.procs", os.W_OK):
            return None
        if _usable(folder) and {"memory", "pids"} <= set(_given(folder)):
            return folder
    return None


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The groups of one sandbox, one directory for each hierarchy."""

    version: Literal[1, 2]
    folders: Mapping[str, Path]

    @property
    def entries(self) -> tuple[Path, ...]:
        """The files into which a process writes its number to be bounded, with all it will start."""
        return tuple(folder / "cgroup.procs" for folder in self._directories())

    def _directories(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys(self.folders.values()))

    def members(self) -> set[int]:
        """The processes in it."""
        return {int(pid) for folder in self._directories() for pid in _read(folder / "cgroup.procs").split()}

    def exceeded(self) -> tuple[str, ...]:
        """Which bounds were met so far, in words: memory (and something was killed for it), processes."""
        memory = "memory.events" if self.version == 2 else "memory.oom_control"
        found = []
        if "memory" in self.folders and _counted(self.folders["memory"] / memory, "oom_kill"):
            found.append("memory")
        if "pids" in self.folders and _counted(self.folders["pids"] / "pids.events", "max"):
            found.append("processes")
        return tuple(found)

    def kill(self) -> bool:
        """Kill everything in it; whether there was something."""
        there = self.members()
        for folder in self._directories() if there else ():
            with suppress(OSError):
                (folder / "cgroup.kill").write_text("1")
        for pid in there:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return bool(there)

    async def remove(self) -> bool:
        """Kill what is left and remove the directories; whether they are gone."""
        import asyncio

        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + GONE_WAIT, 0.001
        while not self._try_remove():
            if loop.time() > deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.05)
        return True

    def _try_remove(self) -> bool:
        self.kill()
        left = False
        for folder in self._directories():
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                left = True
        return not left


def make_group(ground: CgroupRoots, label: str, limits: SandboxLimits) -> Cgroup | None:
    """Make the groups of a sandbox, bounded; None where none can be made. Raises `OSError` where that fails midway."""
    if not ground.folders:
        return None
    own = read_stat(os.getpid())
    name = f"bailiwick-{os.getpid()}-{own.start if own else 0}-{label}"
    used = {n: folder / name for n, folder in ground.folders.items() if n != "cpu" or limits.cpus is not None}
    group = Cgroup(ground.version, used)
    try:
        for folder in dict.fromkeys(group.folders.values()):
            folder.mkdir()
        for controller, folder in group.folders.items():
            for file, value in _settings(group.version, controller, limits):
                if (folder / file).exists():
                    (folder / file).write_text(value)
    except OSError:
        group._try_remove()  # noqa: SLF001 - made here
        raise
    return group


def _settings(version: int, controller: str, limits: SandboxLimits) -> Iterator[tuple[str, str]]:
    match version, controller:
        case 1, "memory":
            yield "memory.limit_in_bytes", str(limits.memory)
            yield "memory.memsw.limit_in_bytes", str(limits.memory)
        case 2, "memory":
            yield "memory.max", str(limits.memory)
            yield "memory.swap.max", "0"
            yield "memory.oom.group", "0"
        case _, "pids":
            yield "pids.max", str(limits.processes + AROUND)
        case 1, "cpu" if limits.cpus is not None:
            yield "cpu.cfs_period_us", str(CPU_PERIOD)
            yield "cpu.cfs_quota_us", str(int(limits.cpus * CPU_PERIOD))
        case 2, "cpu" if limits.cpus is not None:
            yield "cpu.max", f"{int(limits.cpus * CPU_PERIOD)} {CPU_PERIOD}"
        case _:
            return


def sweep(ground: CgroupRoots) -> int:
    """Remove empty groups whose makers are gone: a maker that was killed could not. How many there were."""
    count = 0
    for folder in dict.fromkeys((ground.folders or {}).values()):
        for child in folder.glob("bailiwick-*"):
            if not is_made_by_living(child):
                with suppress(OSError):
                    child.rmdir()
                    count += 1
    return count


def is_made_by_living(group: Path) -> bool:
    """Whether the process that made a group still runs; true for what is not ours."""
    match = _OURS.match(group.name)
    return match is None or is_alive(ChildProcess(int(match[1]), int(match[2])))


def _counted(file: Path, name: str) -> int:
    for line in _read(file).splitlines():
        word, _, number = line.partition(" ")
        if word == name and number.strip().isdecimal():
            return int(number)
    return 0


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
