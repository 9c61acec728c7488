"""The options of one start of bubblewrap: namespaces, rights, and all that is seen inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bailiwick.sandbox import system_view
from bailiwick.sandbox.cgroups import CgroupRoots
from bailiwick.sandbox.spec import HOME, SandboxSpec

VAR_SIZE = 64 * 1024**2
_RIGHTS = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
"""What `setpriv` needs to give up the rest."""

Content = Callable[[bytes], int]
"""Makes a descriptor from which some bytes can be read."""


@dataclass(frozen=True, slots=True)
class BwrapFeatures:
    """What this machine has to make such a sandbox with."""

    bwrap: str
    version: str
    options: frozenset[str]
    setpriv: str | None
    ground: CgroupRoots
    seccomp: bytes | None
    as_root: bool
    """Whether we are root, and the sandbox gets a uid of its own."""


def options(
    means: BwrapFeatures, sandbox_spec: SandboxSpec, uid: int, content: Content, *, terminal: bool = False
) -> Iterator[str]:
    """Everything that `bwrap` has to be told but the program. With `terminal` it stays in our session."""
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--hostname", system_view.HOSTNAME, "--clearenv", "--cap-drop", "ALL")
    if not terminal:
        yield "--new-session"
    if means.as_root:
        yield from (word for right in _RIGHTS for word in ("--cap-add", right))
    else:
        yield "--unshare-user"
        if "--disable-userns" in means.options:
            yield "--disable-userns"
    if means.seccomp is not None:
        yield from ("--seccomp", str(content(means.seccomp)))
    yield from _system(uid, uid if means.as_root else os.getegid(), content)
    yield from _inside(sandbox_spec)


def _system(uid: int, gid: int, content: Content) -> Iterator[str]:
    """The machine, read-only."""
    view = system_view.system_view(uid, gid)
    files = (*view.files, (system_view.COMPILED_SHIM, system_view.compile_shim()))
    yield from _parents([*(b.target for b in view.binds), *(p for p, _ in view.links), *(p for p, _ in files)])
    for bind in view.binds:
        yield from ("--ro-bind", str(bind.source), str(bind.target))
    for place, says in view.links:
        yield from ("--symlink", says, str(place))
    for place, text in files:
        yield from ("--perms", "0444", "--file", str(content(text)), str(place))


def _inside(sandbox_spec: SandboxSpec) -> Iterator[str]:
    """What is empty at first, and what the cage shows; at last the root directory is closed."""
    size = sandbox_spec.limits.tmp
    yield from ("--proc", "/proc", "--dev", "/dev", *_tmpfs(size, "/dev/shm"), "--remount-ro", "/dev")  # noqa: S108
    yield from (*_tmpfs(size, "/tmp"), *_tmpfs(VAR_SIZE, "/var"), "--perms", "1777", "--dir", "/var/tmp")  # noqa: S108
    yield from _parents([HOME])
    if sandbox_spec.home is None:
        yield from _tmpfs(size, str(HOME))
    shown: list[Path] = [Path("/usr")]
    for bind in sandbox_spec.shown:
        if not any(place in bind.target.parents for place in shown):
            yield from _parents([bind.target])
        shown.append(bind.target)
        yield from ("--bind" if bind.write else "--ro-bind", os.path.realpath(bind.source), str(bind.target))
    yield from ("--remount-ro", "/")


def _parents(places: Iterable[Path]) -> Iterator[str]:
    """Directories that everybody may pass; those that bwrap makes by itself are closed to all but root."""
    for parent in dict.fromkeys(parent for place in places for parent in (*reversed(place.parents[:-1]),)):
        if parent not in (Path("/tmp"), HOME):  # noqa: S108 - everybody may write there, and it stays so
            yield from ("--perms", "0755", "--dir", str(parent))


def _tmpfs(size: int, place: str) -> tuple[str, ...]:
    return ("--perms", "1777", "--size", str(size), "--tmpfs", place)


def rlimits(means: BwrapFeatures, sandbox_spec: SandboxSpec, bounded: Container[str]) -> tuple[str, ...]:
    """What is bounded for each process; `bounded` are the controllers that bound the whole sandbox."""
    processes = means.as_root or "pids" not in bounded
    return sandbox_spec.limits.rlimits(memory="memory" not in bounded, processes=processes)


def describe(means: BwrapFeatures) -> str:
    """What such a sandbox is made of here, in words."""
    parts = [f"bwrap {means.version}", "a uid of its own" if means.as_root else "your uid, in a user namespace"]
    parts.append("a seccomp filter" if means.seccomp is not None else "no seccomp filter")
    words = {"memory": "memory", "pids": "processes", "cpu": "processors"}
    bounded = [words[name] for name in means.ground.controllers]
    if bounded:
        parts.append(f"{', '.join(bounded)} limited by cgroup v{means.ground.version}")
    left = [word for word in ("memory", "processes") if word not in bounded]
    if left:
        parts.append(f"{', '.join(left)} limited by rlimits")
    return "; ".join(parts)


def unprotected(means: BwrapFeatures) -> tuple[str, ...]:
    """What it does not protect here."""
    found = [
        "the kernel is shared: a kernel exploit escapes",
        "disk usage is checked every second, not limited by the file system",
    ]
    if "memory" not in means.ground.controllers:
        found.append("memory is bounded for each process alone: there is no control group for it")
    if means.seccomp is None:
        found.append("system calls are not filtered on this kind of processor")
    if not means.as_root and "--disable-userns" not in means.options:
        found.append("this bwrap can't forbid nested user namespaces: only the seccomp filter does")
    return tuple(found)
