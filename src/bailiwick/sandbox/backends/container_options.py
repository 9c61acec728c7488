"""The options of one container: no network, no rights, bounds, and all that is seen inside."""

from __future__ import annotations

import csv
import io
import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bailiwick.ids import digest
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.sandbox import system_view
from bailiwick.sandbox.backends import container_guard
from bailiwick.sandbox.backends.container_engine import LABEL, OWNER, Engine, owner_label
from bailiwick.sandbox.seccomp import build_filter
from bailiwick.sandbox.spec import HOME, Bind, SandboxLimits, SandboxSpec

NAME = "bailiwick-sandbox"
INSIDE = system_view.SHIM.parent
"""Where the shim and its letters are inside."""
ROOM = INSIDE / "room"
GUARD = INSIDE / "guard.py"
VAR_SIZE = 64 * 1024**2
_EMPTY = ("/tmp", "/var", "/var/tmp")  # noqa: S108 - inside
_RESOLVER = Path("/etc/resolv.conf")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a sandbox runs as: inside, and on the host."""

    user: int
    group: int
    owner: int | None
    """The uid that owns its files on the host, where that is not our own."""


def image_content() -> bytes:
    """The image of every sandbox, as a tar file: links of the system, the shim and its guard. The rest is bound."""
    view = system_view.system_view(0, 0)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder in (INSIDE, ROOM, Path("/etc")):
            entry = _entry(folder, tarfile.DIRTYPE, 0o755)
            tar.addfile(entry)
        for place, says in view.links:
            link = _entry(place, tarfile.SYMTYPE, 0o777)
            link.linkname = says
            tar.addfile(link)
        for place, content in _programs():
            file = _entry(place, tarfile.REGTYPE, 0o444)
            file.size = len(content)
            tar.addfile(file, io.BytesIO(content))
    return buffer.getvalue()


def image_name(content: bytes) -> str:
    """The name that an image of this content has here."""
    return f"{NAME}:{digest(content.hex())[:16]}"


def _programs() -> Iterator[tuple[Path, bytes]]:
    yield system_view.SHIM, system_view.read_shim()
    yield GUARD, Path(container_guard.__file__).read_bytes()
    lines = build_filter()
    if lines is not None:
        yield INSIDE / container_guard.FILTER, lines


def _entry(place: Path, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(str(place).lstrip("/"))
    entry.type, entry.mode, entry.mtime = kind, mode, 0
    return entry


def options(engine: Engine, sandbox_spec: SandboxSpec, who: Identity, room: str) -> Iterator[str]:
    """Everything that `run` has to be told but mounts, image and program."""
    yield from ("run", "--rm", "--log-driver", "none", "--pull", "never", "--network", "none")
    yield from ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--ipc", "private")
    yield from ("--hostname", system_view.HOSTNAME, "--user", f"{who.user}:{who.group}", "--workdir", "/")
    yield from ("--label", f"{LABEL}={room}", "--label", f"{OWNER}={owner_label()}", "--env", EFFECT_MARK)
    if engine.kind == "podman":
        yield from ("--read-only-tmpfs=false", "--no-hosts", "--security-opt", "mask=/sys:/run")
        if engine.rootless:
            yield "--userns=keep-id"
    elif engine.remapped:
        yield "--userns=host"
    if Path("/sys/fs/selinux/enforce").exists():
        yield from ("--security-opt", "label=disable")
    yield from bounds(engine, sandbox_spec.limits)


def bounds(engine: Engine, limits: SandboxLimits) -> Iterator[str]:
    """What a container may use at most, as far as the engine can bound it."""
    if engine.memory:
        yield from ("--memory", str(limits.memory))
        if engine.swap:
            yield from ("--memory-swap", str(limits.memory))
    if engine.processes:
        yield from ("--pids-limit", str(limits.processes))
    if engine.processors and limits.cpus is not None:
        yield from ("--cpus", f"{limits.cpus:g}")
    yield from ("--shm-size", str(limits.tmp))


def rlimits(engine: Engine, sandbox_spec: SandboxSpec) -> tuple[str, ...]:
    """What the shim bounds for each process."""
    return sandbox_spec.limits.rlimits(memory=not engine.memory, processes=not engine.processes)


def mounts(engine: Engine, sandbox_spec: SandboxSpec, who: Identity, files: Path, room: Path) -> Iterator[str]:
    """The machine, what is empty at first, and what the cage shows. `files` and `room` are directories of ours."""
    size = sandbox_spec.limits.tmp
    for place in _EMPTY:
        yield from _tmpfs(place, VAR_SIZE if place == "/var" else size)
    if engine.kind == "docker":
        yield from ("--tmpfs", "/sys:ro,size=4k,mode=0555")
    if sandbox_spec.home is None:
        yield from _tmpfs(str(HOME), size)
    view = system_view.system_view(who.user, who.group)
    own = [Bind(files / place.name, place) for place, _ in (*view.files, (_RESOLVER, b""))]
    for bind in layout((*view.binds, *own, Bind(room, ROOM), *sandbox_spec.shown)):
        yield from ("--mount", _mount(bind))


def write_files(who: Identity, into: Path) -> None:
    """Write the small files of /etc that a sandbox of this user sees."""
    view = system_view.system_view(who.user, who.group)
    for place, content in (*view.files, (_RESOLVER, b"")):
        (into / place.name).write_bytes(content)
        (into / place.name).chmod(0o644)


def _tmpfs(place: str, size: int) -> tuple[str, str]:
    return ("--tmpfs", f"{place}:rw,exec,nosuid,nodev,mode=1777,size={size}")


def _mount(bind: Bind) -> str:
    """A mount as an engine reads it: a line of comma-separated values, so a path may hold a comma."""
    words = ["type=bind", f"source={os.path.realpath(bind.source)}", f"target={bind.target}"]
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(words if bind.write else [*words, "readonly"])
    return text.getvalue()


def layout(binds: tuple[Bind, ...]) -> tuple[Bind, ...]:
    """The binds that can be seen when later ones lie on top, the outer ones first, as engines mount them.

    An engine makes only the mount itself read-only: what is mounted below it on the host is bound again, read-only.
    """
    seen: list[Bind] = []
    for bind in binds:
        seen = [other for other in seen if not other.target.is_relative_to(bind.target)]
        seen.append(bind)
    targets = {bind.target for bind in seen}
    for bind in [bind for bind in seen if not bind.write]:
        below = (
            (Bind(place, bind.target / place.relative_to(os.path.realpath(bind.source))))
            for place in _below(bind.source)
        )
        seen += [inner for inner in below if inner.target not in targets]
    return tuple(sorted(seen, key=lambda bind: len(bind.target.parts)))


def _below(source: Path) -> list[Path]:
    """Where something is mounted below a directory of the host."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return []
    places = (Path(os.fsdecode(re.sub(rb"\\([0-7]{3})", _octal, line.split()[4]))) for line in lines)
    real = Path(os.path.realpath(source))
    return sorted({place for place in places if real in place.parents})


def _octal(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8)])


def describe(engine: Engine) -> str:
    """What such a sandbox is made of here, in words."""
    filtered = "the engine's seccomp filter and ours" if engine.seccomp else "our seccomp filter"
    parts = [f"{engine.kind} {engine.version}{', rootless' if engine.rootless else ''}"]
    parts.append("a uid of its own" if os.geteuid() == 0 and not engine.rootless else "your uid, without rights")
    parts.append(filtered if build_filter() is not None else "the engine's seccomp filter")
    words = {"memory": engine.memory, "processes": engine.processes, "processors": engine.processors}
    bounded = [word for word, there in words.items() if there]
    return "; ".join([*parts, f"{', '.join(bounded)} limited by the engine" if bounded else "limited by rlimits"])


def unprotected(engine: Engine) -> tuple[str, ...]:
    """What it does not protect here."""
    found = [
        "the kernel is shared: a kernel exploit escapes",
        "disk usage is checked every second, not limited by the file system",
        "starting takes half a second, ten times as long as with bubblewrap",
    ]
    if not engine.memory:
        found.append("memory is bounded for each process alone: the engine can't bound the whole")
    if not engine.seccomp and build_filter() is None:
        found.append("system calls are not filtered")
    return tuple(found)
