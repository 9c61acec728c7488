"""Finds the processes of an effect by what their environment says, ends them, and proves that they are gone.

A child that left our process group, or whose parent crashed, still carries the marks it was started with. A process is
named by pid and start time together: a pid alone may belong to somebody else a moment later.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bailiwick.errors import NotReady
from bailiwick.processes.guards import end_guarded

GRACE = 5.0
"""Seconds between TERM and KILL."""
EXEC_WAIT = 0.25
"""Seconds after which a process without a readable environment is taken to have none; an exec is over by then."""
KILL_WAIT = 2.0
"""Seconds in which the kernel has to be done with a killed process."""
ZOMBIE_AGE = 5.0
"""Seconds after which a dead child that nobody waited for is taken to be an orphan that was handed to us."""

_DEAD = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """A process that was alive when it was seen; `start` is in clock ticks since the boot."""

    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class Stat:
    """What the kernel says about a process."""

    state: str
    group: int
    session: int
    start: int
    size: int = 0

    @property
    def dead(self) -> bool:
        """Whether it only waits to be reaped."""
        return self.state in _DEAD


Seen = tuple[ChildProcess, Stat]


def read_stat(pid: int) -> Stat | None:
    """What the kernel says about a process, None where there is no such process."""
    raw = _read(f"/proc/{pid}/stat")
    if not raw:
        return None
    fields = raw[raw.rindex(b")") + 2 :].split()  # the name before it may hold spaces and brackets
    group, session, start, size = (int(fields[index]) for index in (2, 3, 19, 20))
    return Stat(fields[0].decode(), group=group, session=session, start=start, size=size)


def is_alive(child: ChildProcess) -> bool:
    """Whether exactly this process still runs; a zombie does not."""
    stat = read_stat(child.pid)
    return stat is not None and stat.start == child.start and not stat.dead


def find_children(marks: Mapping[str, str]) -> list[ChildProcess]:
    """Every living process but ourselves that was started with all of these environment variables."""
    if not marks:
        raise ValueError("without a mark every process would match")
    look = _look(marks, None)
    for _ in range(5):
        if not look.unsettled:
            break
        time.sleep(0.001)  # some process is in the middle of an exec: a matter of microseconds
        look = _look(marks, None)
    return [child for child, _ in look.found]


async def end_children(
    marks: Mapping[str, str], grace: float = GRACE, *, group: int | None = None
) -> list[ChildProcess]:
    """End the processes with these marks and those of the process group: TERM, up to `grace` seconds, KILL.

    A guard with these marks ends what it guards, which may have hidden from us; then we look for ourselves. Gives back
    those that could not be proved gone; an empty list is the proof.
    """
    if not marks and group is None:
        raise ValueError("without a mark or a group every process would match")
    stuck = await end_guarded(marks, grace)
    told: set[ChildProcess] = set()
    groups: set[int] = set()

    def ask(found: list[Seen]) -> None:
        _signal_all([seen for seen in found if seen[0] not in told], signal.SIGTERM, groups)
        told.update(child for child, _ in found)

    left = await _until_gone(marks, group, ask, grace)
    if left:
        left = await _until_gone(marks, group, lambda found: _signal_all(found, signal.SIGKILL, set()), KILL_WAIT)
    return left + [ChildProcess(pid, stat.start) for pid in stuck if (stat := read_stat(pid)) is not None]


async def linger(marks: Mapping[str, str], group: int, seconds: float) -> bool:
    """Wait up to `seconds` for the processes of an effect to end by themselves; whether they did."""
    return not await _until_gone(marks, group, lambda _: None, seconds)


async def _until_gone(
    marks: Mapping[str, str],
    group: int | None,
    act: Callable[[list[Seen]], None],
    seconds: float,
) -> list[ChildProcess]:
    """Look, act on what is there, look again: two empty looks in a row are the proof, as one can miss a fork."""
    import asyncio

    loop = asyncio.get_running_loop()
    since = loop.time()
    deadline = since + seconds
    pause, empty = 0.002, 0
    while True:
        look = _look(marks, group)
        act(look.found)
        now = loop.time()
        since = now if look.found else since
        if look.found and now >= deadline:
            return [child for child, _ in look.found]
        there = look.found or (look.unsettled and now < since + EXEC_WAIT)
        empty = 0 if there else empty + 1
        if empty == 2:
            return []
        if there:
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.1)


@dataclass(slots=True)
class _Look:
    """What one look at all processes showed; `unsettled` are those whose environment could not be read yet."""

    found: list[Seen] = field(default_factory=list)
    unsettled: list[Seen] = field(default_factory=list)


def _look(marks: Mapping[str, str], group: int | None) -> _Look:
    """Living processes with all marks, of the group, or (where we may not look inside) of a marked one's session."""
    if not Path("/proc/self/stat").exists():
        return _look_without_proc(marks, group)
    wanted = _wanted(marks)
    look, hidden = _Look(), []
    for pid in _pids():
        stat = read_stat(pid)
        if stat is None or stat.dead:
            continue
        seen = (ChildProcess(pid, stat.start), stat)
        if group is not None and stat.group == group:
            look.found.append(seen)
            continue
        match _marked(pid, wanted):
            case "yes":
                look.found.append(seen)
            case "unsettled":
                look.unsettled.append(seen)
            case "hidden":
                hidden.append(seen)
            case "no":
                pass
    sessions = {stat.session for _, stat in look.found} - {os.getsid(0)}
    look.found += [seen for seen in hidden if seen[1].session in sessions]
    return look


def _look_without_proc(marks: Mapping[str, str], group: int | None) -> _Look:
    if group is None:
        raise NotReady(
            f"this system has no /proc: processes marked {', '.join(marks)} can't be found",
            hint="make sure that no process of the interrupted step runs, then resume",
        )
    return _Look([(ChildProcess(group, 0), Stat("R", group, group, 0))] if group_exists(group) else [])


def _wanted(marks: Mapping[str, str]) -> list[bytes]:
    return [b"\0" + os.fsencode(f"{name}={value}") + b"\0" for name, value in marks.items()]


def _marked(pid: int, wanted: list[bytes]) -> Literal["yes", "no", "hidden", "unsettled"]:
    """Whether a process was started with all of `wanted`, as far as we may and can know now."""
    if not wanted:
        return "no"
    environment = _read(f"/proc/{pid}/environ")
    if environment is None:
        return "hidden"
    if environment:
        return "yes" if all(mark in b"\0" + environment for mark in wanted) else "no"
    stat = read_stat(pid)  # no memory: a part of the kernel; else started with no environment, or just in an exec
    return "no" if stat is None or stat.dead or stat.size == 0 else "unsettled"


def _pids() -> Iterator[int]:
    own = os.getpid()
    for name in os.listdir("/proc"):  # noqa: PTH208 - a Path for each process costs more than the look at it
        if name.isdecimal() and int(name) != own:
            yield int(name)


def _read(path: str) -> bytes | None:
    """A small file of the kernel, None where it is gone or not for us."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - read for every process there is
            return file.read()
    except OSError:
        return None


def group_exists(group: int) -> bool:
    """Whether a process group has a member, dead ones that nobody waited for included."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal_all(found: list[Seen], number: signal.Signals, groups: set[int]) -> None:
    """Signal whole groups, but none of `groups` again and never our own: there each process is signalled alone."""
    alone = groups | {os.getpgrp()}
    for child, stat in found:
        if stat.group in alone:
            _signal(child, number)
        elif stat.group not in groups and (child.start == 0 or is_alive(child)):
            groups.add(stat.group)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(stat.group, number)


def _signal(child: ChildProcess, number: signal.Signals) -> None:
    """Signal exactly this process or nobody."""
    try:
        handle = os.pidfd_open(child.pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):
        if is_alive(child):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child.pid, number)
        return
    try:
        if is_alive(child):
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


# Orphans: a subreaper is handed the children of its dead children, and has to wait for them or they stay as zombies.

_started: set[int] = set()
"""The pids that `proc` waits for itself."""
_zombies: dict[ChildProcess, float] = {}
"""Dead children that nobody has waited for yet, and when they were first seen."""


def claim(pid: int) -> None:
    """Say that a child of ours has somebody who waits for it."""
    _started.add(pid)


def disclaim(pid: int) -> None:
    """Say that a child was waited for."""
    _started.discard(pid)


def has_orphans(marks: Mapping[str, str], group: int) -> bool:
    """Whether a living orphan in our care is, or may be, of this effect.

    Dead ones of the group are reaped on the way, dead ones of unknown origin once they are old enough.
    """
    raw = _read(f"/proc/self/task/{os.getpid()}/children")
    wanted = _wanted(marks)
    alive = [pid for pid in map(int, (raw or b"").split()) if pid not in _started and not _reap_if_dead(pid, group)]
    return any(_marked(pid, wanted) in ("yes", "unsettled") for pid in alive)


def _reap_if_dead(pid: int, group: int) -> bool:
    """Whether this child is dead; an orphan is reaped, what somebody else of this process started is left to them."""
    stat = read_stat(pid)
    if stat is None or not stat.dead:
        return stat is None
    child = ChildProcess(pid, stat.start)
    if stat.group == group or _is_old(child, stat):
        _zombies.pop(child, None)
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return True


def _is_old(child: ChildProcess, stat: Stat) -> bool:
    """Whether a dead child has waited so long that whoever started it is not among us."""
    now = time.monotonic()
    for gone in [seen for seen, since in _zombies.items() if now - since > 60 * ZOMBIE_AGE]:
        del _zombies[gone]
    return stat.group != os.getpgrp() and now - _zombies.setdefault(child, now) >= ZOMBIE_AGE
