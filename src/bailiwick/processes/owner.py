"""Who we are, and whether another owner of a lease is dead. Only a proof frees a lease before its time."""

from __future__ import annotations

import os
from pathlib import Path

from bailiwick.ids import digest
from bailiwick.journal.rows import Owner
from bailiwick.processes.children import read_stat

_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def host_id() -> str:
    """What names this host: a digest of the machine id, or of the host name where a system has none."""
    for path in _MACHINE_IDS:
        text = _line(path)
        if text and text != "uninitialized":
            return digest(f"machine\0{text}")[:16]
    return digest(f"hostname\0{os.uname().nodename}")[:16]


def current_owner(name: str) -> Owner:
    """This process as an owner; `name` says to people what it is, for instance `bailiwick run`."""
    pid = os.getpid()
    stat = read_stat(pid)
    return Owner(
        host=host_id(),
        boot=_line("/proc/sys/kernel/random/boot_id"),
        pidns=_pid_namespace(),
        pid=pid,
        start=stat.start if stat else 0,
        name=name,
    )


def is_dead(owner: Owner, me: Owner) -> bool | None:
    """True: proved dead. False: alive. None: can't be told from here (another host or pid namespace)."""
    if owner.host != me.host:
        return None
    if owner.boot != me.boot:
        return True if owner.boot and me.boot else None
    if owner.pidns != me.pidns:
        return None
    if not owner.start:
        return _is_pid_free(owner.pid)
    stat = read_stat(owner.pid)
    return stat is None or stat.dead or stat.start != owner.start


def shown(owner: Owner) -> str:
    """The owner as people read it in a message."""
    text = recorded(owner)
    return text.replace(f"on host {owner.host[:12]}", "on this host") if owner.host == host_id() else text


def recorded(owner: Owner) -> str:
    """The owner as the journal keeps it: the same words on every machine that reads them."""
    what = f" ({owner.name})" if owner.name else ""
    return f"pid {owner.pid} on host {owner.host[:12]}{what}"


def _is_pid_free(pid: int) -> bool:
    """Without start times (no /proc) a pid in use counts as its first owner: late is better than wrong."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def _line(path: str) -> str:
    """The text of a small system file, empty where there is none."""
    try:
        return Path(path).read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""
