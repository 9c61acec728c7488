"""The sandbox made by docker or podman: a container without network or rights, whose files are binds of the host's.

Its image is almost empty and made here, so no registry is needed and the same tools are seen as with bubblewrap. The
shim is process 1: it connects to a socket of the room, over which descriptors go in and listeners come out, and then it
watches that link. When it is closed (we leave the room, or are killed), the shim ends and with it the container.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Unpack

from bailiwick.errors import NotReady
from bailiwick.processes.command import Command
from bailiwick.processes.proc import EFFECT_MARK, run_process
from bailiwick.sandbox import system_view
from bailiwick.sandbox.backends import container_options as options
from bailiwick.sandbox.backends.container_engine import INSTALL, Engine, find_engine, told_variables
from bailiwick.sandbox.entered import EnteredSandbox, pack
from bailiwick.sandbox.listeners import ListenerChannel
from bailiwick.sandbox.ownership import hand_over, prepare_binds, uid_of
from bailiwick.sandbox.port import CommandOptions, OnDoor
from bailiwick.sandbox.spec import INNER, Bind, SandboxSpec, SandboxStatus, port_of


class ShimConnection:
    """Waits for one shim, gives it descriptors, then takes listeners from it and holds the link until `close`.

    Once the shim has come, all that was in the directory is gone: the program finds neither letter nor socket there.
    """

    def __init__(self, folder: Path, give: list[int], on_door: OnDoor | None) -> None:
        self._folder = folder
        self._give = give
        self._on_door = on_door or _refuse
        self._loop = asyncio.get_running_loop()
        self._link: ListenerChannel | None = None
        self._listener: socket.socket | None = _listen(folder)
        self._loop.add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            near, _ = self._listener.accept()
        except OSError:
            return
        self._stop_listening()
        try:
            socket.send_fds(near, [b"1"], self._give)
        except OSError:
            near.close()
            return
        self._link = ListenerChannel(near, self._on_door)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
            with suppress(OSError):
                for path in self._folder.iterdir():
                    path.unlink()

    def close(self) -> None:
        """Wait no longer and let go of the link: a shim that watches it ends its program."""
        self._stop_listening()
        if self._link is not None:
            self._link.close()
            self._link = None


def _listen(folder: Path) -> socket.socket:
    """A listener in a directory, however long its path is."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{at}/link")
        listener.listen(1)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(at)
    return listener


def _refuse(name: str, listener: socket.socket) -> None:
    """There is nobody behind a door that was not asked for."""
    listener.close()


_CHECK_TIME = 60.0
_LETTER = "letter"
_LINK = "link"


class ContainerBackend:
    """Fences processes in with containers.

    `scratch` is where the files of a room are made; `variables` say where the engine is, the operator's where not
    given; with `terminal` a program can use ours.
    """

    name = "container"

    def __init__(
        self, scratch: Path | None = None, variables: Mapping[str, str] | None = None, *, terminal: bool = False
    ) -> None:
        self._scratch = scratch
        self._variables = variables
        self._terminal = terminal
        self._ready: tuple[Engine, str] | None = None
        self._lock: asyncio.Lock | None = None

    async def check(self) -> SandboxStatus:
        try:
            engine, _ = await self._find()
            words = await self._try(engine)
        except NotReady as error:
            return SandboxStatus(ok=False, found=error.what, fix=error.hint)
        except OSError as error:
            return SandboxStatus(ok=False, found=f"the engine can't be started: {error}", fix=INSTALL)
        if words:
            found = f"{engine.kind} {engine.version} does not work here: {words}"
            return SandboxStatus(ok=False, found=found, fix="the engine has to run on this machine, and see its files")
        return SandboxStatus(ok=True, found=options.describe(engine), unprotected=options.unprotected(engine))

    async def _try(self, engine: Engine) -> str:
        """Start one container that writes a file; what went wrong, if anything did."""
        place = Path(tempfile.mkdtemp(prefix="check-", dir=self._scratch))
        try:
            async with self.enter(SandboxSpec("gate", (Bind(place, INNER, write=True),))) as room:
                env = {EFFECT_MARK: secrets.token_hex(8)}
                command = room.command(("/bin/sh", "-c", "echo here > written"), env, timeout=_CHECK_TIME)
                end = await run_process(command, cancel=asyncio.Event())
            if end.code == 0 and (place / "written").exists():
                return ""
            return end.stderr.decode("utf-8", "replace").strip().replace("\n", "; ") or "what is written inside is lost"
        finally:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)

    @asynccontextmanager
    async def enter(self, sandbox_spec: SandboxSpec, on_door: OnDoor | None = None) -> AsyncIterator[ContainerSandbox]:
        engine, image = await self._find()
        who = _identity(engine, sandbox_spec)
        await prepare_binds(sandbox_spec, who.owner)
        place = Path(tempfile.mkdtemp(prefix="room-", dir=self._scratch))
        room = ContainerSandbox(
            engine,
            image=image,
            sandbox_spec=sandbox_spec,
            who=who,
            place=place,
            on_door=on_door,
            terminal=self._terminal,
        )
        try:
            yield room
        finally:
            await room.leave()
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)

    async def _find(self) -> tuple[Engine, str]:
        """The engine with the image in it; looked for once."""
        if self._ready is not None:
            return self._ready
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if self._ready is None:
                engine = await find_engine(told_variables() if self._variables is None else self._variables)
                image, _ = await asyncio.gather(_bring_image(engine), engine.sweep())
                self._ready = engine, image
        return self._ready


async def _bring_image(engine: Engine) -> str:
    """Make the image, unless it is there from an earlier run."""
    content = await asyncio.to_thread(options.image_content)
    name = options.image_name(content)
    found = await engine.ask("image", "inspect", "--format", "{{.Id}}", name)
    if found.code != 0:
        made = await engine.ask("import", "-", name, stdin=content)
        if made.code != 0:
            words = made.stderr.decode("utf-8", "replace").strip()
            raise NotReady(f"the image of the sandbox can't be made: {words[:500]}", hint=INSTALL, code="BW401")
    return name


def _identity(engine: Engine, sandbox_spec: SandboxSpec) -> options.Identity:
    if os.geteuid() == 0 and not engine.rootless:
        own = uid_of(sandbox_spec)
        return options.Identity(own, own, own)
    if engine.rootless and engine.kind == "docker":
        return options.Identity(0, 0, None)  # the engine's root is nobody but us
    return options.Identity(os.geteuid(), os.getegid(), None)


@dataclass(slots=True)
class ContainerSandbox(EnteredSandbox):
    """An entered cage; each command gets a container of its own."""

    engine: Engine
    image: str
    sandbox_spec: SandboxSpec
    who: options.Identity
    place: Path
    on_door: OnDoor | None
    terminal: bool
    _name: str = field(default_factory=lambda: secrets.token_hex(8))
    _numbers: count[int] = field(default_factory=count)
    _meetings: list[ShimConnection] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._files.mkdir()
        options.write_files(self.who, self._files)

    @property
    def _files(self) -> Path:
        return self.place / "etc"

    def command(self, argv: tuple[str, ...], env: Mapping[str, str], **how: Unpack[CommandOptions]) -> Command:
        pass_fds = how.pop("pass_fds", ())
        told = 1 + max((2, *pass_fds))
        fields = [("arg", word) for word in argv] + [("env", f"{name}={value}") for name, value in env.items()]
        fields += [("take", str(number)) for number in (*pass_fds, told)] + [("ready", str(told))]
        fields += self._settings()
        letter = pack(fields)
        folder = self.place / str(next(self._numbers))
        ready, writer = self._descriptors.pipe()
        given = [self._descriptors.own(os.dup(number)) for number in pass_fds]
        self._meetings.append(ShimConnection(self._make_place(folder, letter), [*given, writer], self.on_door))
        self._hand_in(folder)
        line = self._line(folder, stdin=bool(how.get("stdin")))
        self._ready[line] = ready
        return Command(line, env={**self.engine.variables, **self._marks(env)}, cwd=Path("/"), **how)

    def _settings(self) -> list[tuple[str, str]]:
        """What every letter to the shim says: where, how much, which doors, and to end with us."""
        sandbox_spec = self.sandbox_spec
        fields = [("cwd", str(sandbox_spec.cwd)), ("link", str(options.ROOM / _LINK)), ("stay", "")]
        fields += [("limit", limit) for limit in options.rlimits(self.engine, sandbox_spec)]
        if self.on_door is not None:
            fields += [("door", f"{name}={port_of(name)}") for name in sandbox_spec.doors]
        return fields

    def _make_place(self, folder: Path, letter: bytes) -> Path:
        """The directory that the shim finds its letter in; the socket is made beside it."""
        folder.mkdir(mode=0o700)
        number = os.open(folder / _LETTER, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(letter)
        return folder

    def _hand_in(self, folder: Path) -> None:
        owner = self.who.owner
        if owner is not None:
            for path in (folder, *folder.iterdir()):
                os.chown(path, owner, owner)

    def _line(self, folder: Path, *, stdin: bool) -> tuple[str, ...]:
        words = [self.engine.program, *options.options(self.engine, self.sandbox_spec, self.who, self._name)]
        if stdin or self.terminal:
            words.append("--interactive")
        if self.terminal:
            words.append("--tty")
        words += options.mounts(self.engine, self.sandbox_spec, who=self.who, files=self._files, room=folder)
        python = str(system_view.find_interpreter().program)
        return (*words, self.image, python, "-I", "-S", str(options.GUARD), str(options.ROOM / _LETTER))

    def hand_over(self, path: Path) -> None:
        if self.who.owner is not None:
            hand_over(path, self.who.owner)

    def inner(self, path: Path) -> Path:
        return system_view.inner_path(self.sandbox_spec, path)

    async def leave(self) -> None:
        """End what is left inside and let go of everything."""
        for meeting in self._meetings:
            meeting.close()
        self._descriptors.close()
        if not self._meetings:
            return
        if not await self.engine.remove(self._name):
            await self._end_marked()
