"""The port that we listen on, and who has it when we can't."""

from __future__ import annotations

import errno
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from bailiwick.errors import NotReady, UsageError

IN_USE = "BW608"
NO_ADDRESS = "BW609"
_LISTENING: Final = "0A"
_PROC: Final = Path("/proc")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one. Raises `NotReady` with whoever holds the port."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
    except (OSError, UnicodeError) as error:
        what = f"there is no address '{host}' here: {getattr(error, 'strerror', None) or 'unknown name'}"
        raise UsageError(what, hint="--host 127.0.0.1, or an address of this machine", code=NO_ADDRESS) from error
    found = socket.socket(family, kind, socket.IPPROTO_TCP)  # named, or asyncio leaves small answers waiting for ACKs
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(2048)
    except OSError as error:
        found.close()
        raise _refused(host, port, error) from error
    found.setblocking(False)
    return found


def _refused(host: str, port: int, error: OSError) -> NotReady | UsageError:
    if error.errno == errno.EADDRINUSE:
        who = holder(port)
        by = f" by {who}" if who else ""
        hint = f"stop it, or choose another: bailiwick serve --port {port + 1 if port < 65535 else 0}"
        return NotReady(f"port {port} is in use{by}", hint=hint, code=IN_USE)
    if error.errno in (errno.EACCES, errno.EPERM):
        return NotReady(f"port {port} is reserved for root", hint="choose one above 1023", code=IN_USE)
    return UsageError(f"{host}:{port} can't be used: {error.strerror}", hint="--host 127.0.0.1", code=NO_ADDRESS)


def holder(port: int) -> str:
    """Who listens on a port: program and pid; "" where that can't be seen."""
    inodes = {inode for table in ("tcp", "tcp6") for inode in _listening(_PROC / "net" / table, port)}
    if not inodes:
        return ""
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and _holds(folder / "fd", inodes):
            return f"{_program(folder)} (pid {folder.name})"
    return "a process of another user"


def _listening(table: Path, port: int) -> list[str]:
    try:
        lines = table.read_text("ascii").splitlines()[1:]
    except (OSError, UnicodeDecodeError):
        return []
    fields = [line.split() for line in lines]
    return [one[9] for one in fields if len(one) > 9 and one[3] == _LISTENING and int(one[1].split(":")[1], 16) == port]


def _holds(folder: Path, inodes: set[str]) -> bool:
    with suppress(OSError):
        for handle in folder.iterdir():
            with suppress(OSError):
                target = str(handle.readlink())
                if target.startswith("socket:[") and target[8:-1] in inodes:
                    return True
    return False


def _program(folder: Path) -> str:
    with suppress(OSError):
        words = [word for word in (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0") if word]
        shown = " ".join(Path(word).name if number == 0 else word for number, word in enumerate(words[:4]))
        return "".join(letter if letter.isprintable() else "?" for letter in shown)[:120] or "a process"
    return "a process"
