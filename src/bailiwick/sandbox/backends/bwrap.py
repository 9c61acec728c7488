"""The sandbox made by bubblewrap: namespaces, a view of the machine made of binds, a filter of system calls.

On the host one line of shell enters the control groups and becomes `bwrap`, which has an empty environment but for the
mark by which its processes are found, and takes its options from a descriptor: nothing secret is in an argument list.
Inside, `setpriv` gives up root where we are root, and the shim becomes the program.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from bailiwick.errors import NotReady
from bailiwick.processes.command import Command
from bailiwick.processes.proc import EFFECT_MARK, run_process
from bailiwick.sandbox import system_view
from bailiwick.sandbox.backends.bwrap_options import BwrapFeatures, describe, options, rlimits, unprotected
from bailiwick.sandbox.cgroups import Cgroup, CgroupRoots, find_ground, make_group, sweep
from bailiwick.sandbox.entered import EnteredSandbox, pack
from bailiwick.sandbox.listeners import ListenerChannel
from bailiwick.sandbox.ownership import hand_over, not_entered, prepare_binds, uid_of
from bailiwick.sandbox.port import CommandOptions, OnDoor
from bailiwick.sandbox.seccomp import build_filter
from bailiwick.sandbox.spec import SandboxSpec, SandboxStatus, port_of

INSTALL = "apt-get install bubblewrap (or your system's package of it)"
_ENTER = (
    "trap '' TERM; unset PWD OLDPWD SHLVL; n=$1; shift; "
    'while [ "$n" -gt 0 ]; do echo $$ > "$1" || exit 126; shift; n=$((n - 1)); done; exec "$@"'
)
"""TERM is for the program inside, which the shim lets have it; `bwrap` would take it all down at once."""
_NEEDED = ("--args", "--size", "--perms", "--seccomp", "--file", "--die-with-parent")
_CHECK_TIME = 20.0


class BwrapBackend:
    """Fences processes in with bubblewrap.

    `ground` is where control groups may be made, found where not given; with `terminal` a program can use ours.
    """

    name = "bwrap"

    def __init__(self, ground: CgroupRoots | None = None, program: str = "bwrap", *, terminal: bool = False) -> None:
        self._ground = ground
        self._terminal = terminal
        self._program = program
        self._means: BwrapFeatures | None = None
        self._standing: SandboxStatus | None = None

    async def check(self) -> SandboxStatus:
        if self._standing is None:
            self._standing = await self._try()
        return self._standing

    async def _try(self) -> SandboxStatus:
        """Find out by starting one; what was found holds for as long as this object."""
        try:
            means = await self._find()
            async with self.enter(SandboxSpec("gate", cwd=Path("/"))) as sandbox:
                command = sandbox.command(("true",), {EFFECT_MARK: secrets.token_hex(8)}, timeout=_CHECK_TIME)
                end = await run_process(command, cancel=asyncio.Event())
        except NotReady as error:
            return SandboxStatus(ok=False, found=error.what, fix=error.hint)
        except OSError as error:
            return SandboxStatus(ok=False, found=f"bwrap can't be started: {error}", fix=INSTALL)
        if end.code != 0:
            words = end.stderr.decode("utf-8", "replace").strip().replace("\n", "; ")
            return SandboxStatus(ok=False, found=f"bwrap {means.version} does not work here: {words}", fix=_fix(words))
        return SandboxStatus(ok=True, found=describe(means), unprotected=unprotected(means))

    @asynccontextmanager
    async def enter(self, sandbox_spec: SandboxSpec, on_door: OnDoor | None = None) -> AsyncIterator[BwrapSandbox]:
        means = await self._find()
        uid = uid_of(sandbox_spec) if means.as_root else os.geteuid()
        await prepare_binds(sandbox_spec, uid if means.as_root else None)
        label = secrets.token_hex(6)
        try:
            group = make_group(means.ground, label, sandbox_spec.limits)
        except OSError as error:
            raise not_entered(f"the control groups can't be made: {error}") from error
        sandbox = BwrapSandbox(
            means, sandbox_spec=sandbox_spec, uid=uid, group=group, on_door=on_door, terminal=self._terminal
        )
        try:
            yield sandbox
        finally:
            await sandbox.leave()

    async def _find(self) -> BwrapFeatures:
        if self._means is None:
            self._means = await self._look()
        return self._means

    async def _look(self) -> BwrapFeatures:
        bwrap = shutil.which(self._program, path=_SYSTEM_PATH) or shutil.which(self._program)
        if bwrap is None:
            raise NotReady("bwrap is not installed", hint=INSTALL, code="BW401")
        setpriv = shutil.which("setpriv", path=_SYSTEM_PATH)
        if os.geteuid() == 0 and setpriv is None:
            raise NotReady("setpriv is missing, which gives up root", hint="apt-get install util-linux", code="BW401")
        texts = [await _ask(bwrap, option) for option in ("--help", "--version")]
        known = frozenset(word for word in texts[0].split() if word.startswith("--"))
        missing = [option for option in _NEEDED if option not in known]
        if missing:
            what = f"this bwrap is too old: it has no {', '.join(missing)}"
            raise NotReady(what, hint="install bubblewrap 0.8 or newer", code="BW401")
        ground = find_ground() if self._ground is None else self._ground
        sweep(ground)
        version = texts[1].split()[-1] if texts[1] else "?"
        return BwrapFeatures(
            bwrap,
            version=version,
            options=known,
            setpriv=setpriv,
            ground=ground,
            seccomp=build_filter(),
            as_root=os.geteuid() == 0,
        )


_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin"


async def _ask(program: str, option: str) -> str:
    command = Command((program, option), {"LC_ALL": "C"}, Path("/"), timeout=_CHECK_TIME)
    try:
        end = await run_process(command, cancel=asyncio.Event())
    except OSError as error:
        raise NotReady(f"bwrap can't be started: {error}", hint=INSTALL, code="BW401") from error
    return end.stdout.decode("utf-8", "replace")


@dataclass(slots=True)
class BwrapSandbox(EnteredSandbox):
    """An entered cage; each command gets namespaces of its own."""

    means: BwrapFeatures
    sandbox_spec: SandboxSpec
    uid: int
    group: Cgroup | None
    on_door: OnDoor | None
    terminal: bool
    _links: list[ListenerChannel] = field(default_factory=list)

    def command(self, argv: tuple[str, ...], env: Mapping[str, str], **how: Unpack[CommandOptions]) -> Command:
        marks = self._marks(env)
        given, handed = how.get("pass_fds", ()), list[int]()

        def content(data: bytes) -> int:
            handed.append(self._descriptors.content(data))
            return handed[-1]

        fields = [("arg", word) for word in argv] + [("env", f"{name}={value}") for name, value in env.items()]
        fields += [("keep", str(number)) for number in given] + self._settings(handed)
        ready, told = self._descriptors.pipe()
        handed.append(told)
        letter = content(pack([*fields, ("ready", str(told))]))
        words = [*options(self.means, self.sandbox_spec, self.uid, content, terminal=self.terminal)]
        words += [word for name, value in marks.items() for word in ("--setenv", name, value)]
        listed = content(b"".join(os.fsencode(word) + b"\0" for word in words))
        line = (*self._entrance(), self.means.bwrap, "--args", str(listed), "--", *self._program(letter))
        self._ready[line] = ready
        how["pass_fds"] = (*given, *handed)
        return Command(line, env=marks, cwd=Path("/"), **how)

    def _settings(self, handed: list[int]) -> list[tuple[str, str]]:
        """What every letter to the shim says: where, how much, and which doors."""
        sandbox_spec, on_door = self.sandbox_spec, self.on_door
        bounded = () if self.group is None else tuple(self.group.folders)
        fields = [("cwd", str(sandbox_spec.cwd))]
        fields += [("limit", limit) for limit in rlimits(self.means, sandbox_spec, bounded)]
        if sandbox_spec.doors and on_door is not None:
            near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            self._links.append(ListenerChannel(near, on_door))
            handed.append(self._descriptors.own(far.detach()))
            fields += [("link", str(handed[-1])), *(("door", f"{name}={port_of(name)}") for name in sandbox_spec.doors)]
        return fields

    def _entrance(self) -> tuple[str, ...]:
        """What goes first on the host."""
        group = self.group
        entries = () if group is None else tuple(map(str, group.entries))
        return ("/bin/sh", "-c", _ENTER, "bailiwick-enter", str(len(entries)), *entries)

    def _program(self, letter: int) -> tuple[str, ...]:
        """What bwrap starts inside."""
        shim = (str(system_view.find_interpreter().program), "-I", "-S", str(system_view.COMPILED_SHIM), str(letter))
        means, uid = self.means, self.uid
        if not means.as_root or means.setpriv is None:
            return shim
        who = (f"--reuid={uid}", f"--regid={uid}", "--clear-groups")
        rights = ("--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all")
        return (means.setpriv, *who, *rights, "--", *shim)

    def hand_over(self, path: Path) -> None:
        if self.means.as_root:
            hand_over(path, self.uid)

    def inner(self, path: Path) -> Path:
        return system_view.inner_path(self.sandbox_spec, path)

    def exceeded(self) -> tuple[str, ...]:
        """Which limits of the whole sandbox were met so far."""
        return () if self.group is None else self.group.exceeded()

    async def leave(self) -> None:
        """End what is left inside and let go of everything."""
        for link in self._links:
            link.close()
        self._descriptors.close()
        if self.group is not None:
            await self.group.remove()
            return
        await self._end_marked()


def _fix(words: str) -> str:
    if "uid map" in words or "user namespace" in words or "Operation not permitted" in words:
        return (
            "allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
            "kernel.apparmor_restrict_unprivileged_userns=0), or set sandbox.profile: container"
        )
    return "`bwrap --unshare-all --ro-bind / / true` shows the same trouble; or set sandbox.profile: container"
