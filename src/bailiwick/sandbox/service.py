"""The sandbox of a process: which sandbox it uses, what is seen inside by everybody, and how a command is run there."""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from bailiwick.clock import SystemClock
from bailiwick.config.paths import Paths, make_private
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.egress.relay import Address, RelayServer
from bailiwick.errors import NotReady, Place, UsageError
from bailiwick.processes.command import Command, Exit, Why
from bailiwick.processes.proc import EFFECT_MARK, OnLine, run_process
from bailiwick.removal import sweep
from bailiwick.sandbox.disk import reclaim, watch_disk
from bailiwick.sandbox.port import Sandbox, SandboxBackend
from bailiwick.sandbox.spec import HOME, INNER, OURS, Bind, Role, SandboxLimits, SandboxSpec, SandboxStatus
from bailiwick.sandbox.system_view import USER
from bailiwick.sandbox.toolchains import Toolchains, find_toolchains

if TYPE_CHECKING:
    from bailiwick.egress.proxy import EgressProxy


FOLDER = "scratch"
TRIES = 10
"""A directory that is made but not locked yet may be taken for one that was left; then another is made."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_held: dict[Path, tuple[Path, int]] = {}
"""This process's own directory in each cache, with the descriptor that holds its lock."""


def own_scratch(cache: Path) -> Path:
    """The directory of this process in a cache; the same each time. It is gone when the process ends by itself."""
    top = make_private(make_private(cache) / FOLDER)
    known = _held.get(top)
    if known is not None and _is_at(known[0], known[1]):
        return known[0]
    for _ in range(TRIES):
        path = make_private(top / f"{os.getpid()}-{secrets.token_hex(4)}")
        handle = _locked(path)
        if handle is not None:
            break
    else:
        handle = os.open(path, _OPEN)  # a file system without locks: then nobody can take it for left behind either
    _held[top] = (path, handle)
    atexit.register(_leave, path, os.getpid())
    return path


def sweep_scratch(cache: Path) -> int:
    """Remove what processes left that ended without a chance to; how many directories that were."""
    top, count = cache / FOLDER, 0
    if not top.is_dir():
        return 0
    for path in sorted(top.iterdir()):
        if _held.get(top, (None,))[0] == path:
            continue
        handle = _locked(path)
        if handle is None:
            continue
        try:
            with suppress(OSError):  # what resists stays for the next one
                sweep(path)
                count += 1
        finally:
            os.close(handle)
    return count


def _locked(path: Path) -> int | None:
    """The descriptor of a directory that is ours alone from now on; None where it is somebody's, or gone."""
    try:
        handle = os.open(path, _OPEN)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    if _is_at(path, handle):
        return handle
    os.close(handle)
    return None


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except OSError:
        return False


def _leave(path: Path, pid: int) -> None:
    if os.getpid() == pid:
        with suppress(OSError):
            sweep(path)


PROFILES = ("bwrap", "container", "none")
NO_SANDBOX = "BW401"
UNWATCHED = "BW402"
NOT_ENTERED = "BW403"
BAD_MOUNT = "BW405"
_NOTHING: Mapping[str, str] = {}


class SandboxOptions(TypedDict, total=False):
    """What a cage may have besides its tree; see `Sandboxes.cage` and `SandboxSpec`."""

    home: Path | None
    environment: tuple[Bind, ...]
    reads: tuple[Bind, ...]
    doors: tuple[str, ...]
    limits: SandboxLimits | None


@dataclass(frozen=True, slots=True)
class Sandboxes:
    """Builds cages and runs commands in them. `scratch` is a private directory of the host; `mounts` all cages show.

    `relay` names the containers that tests talk to by their doors, which each cage of the gate gets.
    """

    sandbox: SandboxBackend
    toolchains: Toolchains
    scratch: Path
    mounts: tuple[Bind, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    relay: Mapping[str, Address] | None = None
    standing: SandboxStatus | None = None
    """What was found when the sandbox was tried at the opening."""
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    """What every cage may use that is given no limits of its own."""

    async def look(self) -> SandboxStatus:
        """How the sandbox stands here: as it was found at the opening, tried now where nobody has."""
        return self.standing or await self.sandbox.check()

    def sandbox_spec(self, role: Role, tree: Path | None, **also: Unpack[SandboxOptions]) -> SandboxSpec:
        """A cage around a tree, which is at `INNER` inside, and writable.

        In this order: tools, `reads`, tree, `environment`. Without a sandbox there is no inside, and no `INNER`.
        """
        inner = INNER if self.sandbox.name != "none" or tree is None else tree
        own = () if tree is None else (Bind(tree, inner, write=True),)
        binds = (*self.toolchains.binds, *self.mounts, *also.get("reads", ()), *own, *also.get("environment", ()))
        return SandboxSpec(
            role,
            binds,
            cwd=inner if tree is not None else HOME,
            home=also.get("home"),
            doors=(*also.get("doors", ()), *(self.relay if self.relay and role == "gate" else ())),
            limits=also.get("limits") or self.limits,
        )

    def env(self, extra: Mapping[str, str] = _NOTHING) -> dict[str, str]:
        """A clean environment for a program inside: none of the operator's variables, then `extra`."""
        return {
            "PATH": self.toolchains.path,
            "HOME": str(HOME),
            "TMPDIR": "/tmp",  # noqa: S108
            "USER": USER,
            "LOGNAME": USER,
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "SHELL": "/bin/sh",
            **self.marks,
            **extra,
        }

    async def run(  # noqa: PLR0913  what a process can be given, by name
        self,
        sandbox_spec: SandboxSpec,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        cancel: asyncio.Event | None = None,
        on_line: OnLine | None = None,
        keep: int = 1 << 20,
        stdin: bytes = b"",
        pass_fds: tuple[int, ...] = (),
        egress: EgressProxy | None = None,
    ) -> Exit:
        """Run a command inside to its end; nothing of it is left. A missing program exits with 127.

        Raises `NotReady` where the sandbox can't be entered. One that uses more disk than its cage allows is ended,
        with `why` "disk"; that, and any other limit of the whole sandbox, is said at the end of its standard error.
        What a command of the gate, or one that prepares, wrote too much is removed: their trees are copies of ours.
        """
        variables = {EFFECT_MARK: secrets.token_hex(8), **(self.env() if env is None else env)}
        doorman = _Doorman(egress, RelayServer(self.relay) if self.relay else None)
        async with self.sandbox.enter(sandbox_spec, doorman) as sandbox:
            command = sandbox.command(argv, variables, timeout=timeout, keep=keep, stdin=stdin, pass_fds=pass_fds)
            alarm: asyncio.Future[Why] = asyncio.get_running_loop().create_future()
            notes, since = list[str](), SystemClock().now()
            watch = asyncio.ensure_future(watch_disk(sandbox_spec.written, sandbox_spec.limits, _ringer(alarm, notes)))
            try:
                stop = cancel or asyncio.Event()
                end = await run_process(command, on_line=on_line, cancel=stop, alarm=alarm)
            finally:
                watch.cancel()
                alarm.cancel()
                await doorman.settle()
            notes += _told(sandbox, command, end)
        if end.why == "disk" and sandbox_spec.role != "agent":
            await asyncio.to_thread(reclaim, sandbox_spec.written, sandbox_spec.limits, since)
        return replace(end, stderr=end.stderr + "".join(f"{OURS}{n}\n" for n in notes).encode()) if notes else end


@dataclass(slots=True)
class _Doorman:
    """Gives the doors that a command may have to the proxy with the list of hosts, and to the containers for tests."""

    egress: EgressProxy | None
    passage: RelayServer | None
    tasks: list[asyncio.Future[None]] = field(default_factory=list)

    def __call__(self, name: str, listening: socket.socket) -> None:
        if name == "egress" and self.egress is not None:
            self.tasks.append(asyncio.ensure_future(self.egress.serve(listening)))
        elif self.passage is not None:
            self.tasks.append(asyncio.ensure_future(self.passage.serve(name, listening)))
        else:
            listening.close()

    async def settle(self) -> None:
        """Wait until every door has found its owner; the way to containers ends with the command."""
        try:
            for task in self.tasks:
                with suppress(OSError):
                    await task
        finally:
            if self.passage is not None:
                await self.passage.close()


def _ringer(alarm: asyncio.Future[Why], notes: list[str]) -> Callable[[str], None]:
    def ring(why: str) -> None:
        notes.append(why)
        if not alarm.done():
            alarm.set_result("disk")

    return ring


def _told(sandbox: Sandbox, command: Command, end: Exit) -> list[str]:
    """Which limits a room met, where it can tell; raises `NotReady` where the program was never reached."""
    if end.why == "exited" and not sandbox.entered(command):
        words = end.stderr.decode("utf-8", "replace").strip().replace("\n", "; ") or f"it ended with code {end.code}"
        raise NotReady(
            f"the sandbox could not be entered: {words}",
            hint="`bailiwick sandbox check` says what works here; nothing was run without a sandbox",
            code=NOT_ENTERED,
        )
    return [f"the sandbox met its limit of {what}" for what in sandbox.exceeded()]


def make_sandbox(name: str, scratch: Path | None = None, *, terminal: bool = False) -> SandboxBackend:
    """A sandbox by the name of its profile; with `terminal` its programs can use ours."""
    if name == "bwrap":
        return _bwrap(terminal=terminal)
    if name == "container":
        from bailiwick.sandbox.backends.container import ContainerBackend

        return ContainerBackend(scratch, terminal=terminal)
    from bailiwick.sandbox.backends.none import NoSandboxBackend

    return NoSandboxBackend(scratch)


@cache
def _bwrap(*, terminal: bool) -> SandboxBackend:
    """One for the whole process: what it found out about the machine holds."""
    from bailiwick.sandbox.backends.bwrap import BwrapBackend

    return BwrapBackend(terminal=terminal)


async def open_sandboxes(
    config: Config, *, attended: bool, marks: Mapping[str, str] = _NOTHING, environment: Environment | None = None
) -> Sandboxes:
    """The sandbox that the configuration asks for. Raises `NotReady` where it can't be had; it is never left out.

    `auto` takes the first sandbox that works. To go without one is a person's decision who watches, or the operator's.
    """
    env = environment or Environment()
    paths = config.paths
    scratch = own_scratch(paths.cache)
    await asyncio.to_thread(sweep_scratch, paths.cache)
    sandbox, standing = await _choose(config, scratch, attended=attended)
    tools = find_toolchains(
        env.text("PATH") or "", env.home(), hidden=_hidden(paths), variables=env.child_environment({})
    )
    limits = SandboxLimits(disk=int(config.get("sandbox.disk")), inodes=int(config.get("sandbox.files")))
    mounts = tuple(_mount(Path(path), paths, env.home()) for path in config.get("sandbox.mounts") or ())
    return Sandboxes(
        sandbox, toolchains=tools, scratch=scratch, mounts=mounts, marks=dict(marks), standing=standing, limits=limits
    )


async def _choose(config: Config, scratch: Path, *, attended: bool) -> tuple[SandboxBackend, SandboxStatus | None]:
    """The sandbox, and how it stands where it was tried."""
    profile = str(config.get("sandbox.profile"))
    if profile == "none":
        return _unfenced(config, scratch, attended=attended), None
    tried: list[SandboxStatus] = []
    for name in ("bwrap", "container") if profile == "auto" else (profile,):
        sandbox = make_sandbox(name, scratch)
        standing = await sandbox.check()
        if standing.ok:
            return sandbox, standing
        tried.append(standing)
    if profile == "auto" and (attended or config.get("sandbox.unattended_none")):
        return make_sandbox("none", scratch), None
    why = "; ".join(standing.found for standing in tried)
    raise NotReady(
        f"no sandbox can be used here: {why}", hint=tried[0].fix or "bailiwick sandbox check", code=NO_SANDBOX
    )


def _unfenced(config: Config, scratch: Path, *, attended: bool) -> SandboxBackend:
    if not attended and not config.get("sandbox.unattended_none"):
        raise NotReady(
            "sandbox.profile is none, and no person is watching",
            hint="install bubblewrap and leave sandbox.profile at auto; or: "
            "bailiwick config set sandbox.unattended_none true",
            code=UNWATCHED,
        )
    return make_sandbox("none", scratch)


def _hidden(paths: Paths) -> tuple[Path, ...]:
    return (paths.state, paths.config, paths.cache, paths.run)


def _mount(path: Path, paths: Paths, home: Path) -> Bind:
    """A directory that the operator shows to every sandbox; never one around our own, or a whole home."""
    real = path.resolve()
    covered = [*(place.resolve() for place in _hidden(paths)), home.resolve()]
    if not real.exists() or any(place.is_relative_to(real) or real.is_relative_to(place) for place in covered[:-1]):
        what = "is not there" if not real.exists() else "holds Bailiwick's own files, or lies among them"
        raise UsageError(f"sandbox.mounts: {path} {what}", place=Place(str(path)), hint="name another", code=BAD_MOUNT)
    if covered[-1].is_relative_to(real):
        hint = "name the directory that is needed, not all of a home"
        raise UsageError(f"sandbox.mounts: {path} holds a home", place=Place(str(path)), hint=hint, code=BAD_MOUNT)
    return Bind(real, real)
