"""What the self-test tries from inside a sandbox. Sent there as text and run alone: it needs the standard library only.

The facts are one JSON object: a private `file` of the host, a directory `outside`, the `name` of a file to make there,
a `port` on which the host listens, and when our own process began (`start`). It prints which attempts got through.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys

_NEW_USER = 0x10000000
_CAPABILITIES = ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")
_SYSTEM = ("/", "/usr", "/etc", "/bin")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - alone with the standard library, for each process
            return file.read()
    except OSError:
        return b""


def _processes() -> list[str]:
    return [f"/proc/{name}" for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def _status(name: str) -> str:
    lines = _read("/proc/self/status").decode().splitlines()
    return next((line.split()[1] for line in lines if line.startswith(f"{name}:")), "0")


def reads_files(file: str) -> bool:
    """Whether a private file of the host, or its list of passwords, can be read."""
    return bool(_read(file) or _read("/etc/shadow"))


def writes_outside(outside: str, name: str) -> bool:
    """Whether a file can be made outside the tree, or the system be written."""
    try:
        with open(os.path.join(outside, name), "w"):  # noqa: PTH118, PTH123
            return True
    except OSError:
        return any(os.access(top, os.W_OK) for top in _SYSTEM)


def reads_variables() -> bool:
    """Whether a variable can be read that we were not given ourselves."""
    own = set(_read("/proc/self/environ").split(b"\0"))
    return any(set(_read(f"{process}/environ").split(b"\0")) - own - {b""} for process in _processes())


def sees_host(start: str) -> bool:
    """Whether the process that began at this moment can be seen."""
    return any(
        _read(f"{process}/stat").rpartition(b")")[2].split()[19:20] == [start.encode()] for process in _processes()
    )


def connects(port: int) -> bool:
    """Whether there is a way to other machines, or a service on the host's own loopback address answers."""
    if len(_read("/proc/net/route").splitlines()) > 1:
        return True
    with socket.socket() as line:
        line.settimeout(2.0)
        return line.connect_ex(("127.0.0.1", port)) == 0


def has_rights() -> bool:
    """Whether we are root, have a capability, or could gain one by executing something."""
    return os.getuid() == 0 or any(int(_status(c), 16) for c in _CAPABILITIES) or _status("NoNewPrivs") != "1"


def inherits(file: str) -> bool:
    """Whether a descriptor is open that leads to the private file."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            if os.readlink(f"/proc/self/fd/{name}") == file:  # noqa: PTH115
                return True
        except OSError:
            continue
    return False


def makes_namespaces() -> bool:
    """Whether a user namespace can be made, in which we would have every right."""
    return bool(ctypes.CDLL(None).unshare(_NEW_USER) == 0)


def stay_behind() -> None:
    """Leave a process in a session of its own that has no open files and does not mind TERM."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 3)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()


def main(text: str) -> None:
    """Make every attempt, print the outcome of each, leave a process behind."""
    facts = json.loads(text)
    got = {
        "files": reads_files(facts["file"]),
        "writes": writes_outside(facts["outside"], facts["name"]),
        "environment": reads_variables(),
        "processes": sees_host(facts["start"]),
        "network": connects(facts["port"]),
        "descriptors": inherits(facts["file"]),
        "rights": has_rights(),
        "system calls": _status("Seccomp") != "2",
        "namespaces": makes_namespaces(),
    }
    sys.stdout.write(json.dumps(got) + "\n")
    sys.stdout.flush()
    stay_behind()


if __name__ == "__main__":
    main(sys.argv[1])
