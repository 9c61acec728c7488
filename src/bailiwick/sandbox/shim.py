"""The first process inside a sandbox: opens the doors, sets limits, closes what it inherited, becomes the program.

It runs as `python -I -S shim.py LETTER` with the standard library alone, and at every start: so it imports little, and
of `socket` and `signal` the parts in C: their Python parts would double the time that it takes.
LETTER is a descriptor's number or a file, written by `pack`: fields `tag=value` between NUL bytes.

    arg     an argument of the program, the first is its name      env     a variable, NAME=value; there are no others
    cwd     where the program starts                               limit   name=number, such as nofile=4096
    door    name=port: a listener on 127.0.0.1, sent over `link`   link    the socket to the host: descriptor or path
    keep    a descriptor that the program gets                     take    one that `link` brings and the program gets
    stay    end the program when the host closes `link`; made for a shim that is process 1 of its namespace
    ready   a descriptor that gets one byte when all is done and only the program is left to start

Doors are sent one by one with their names; after that the link is closed unless `stay` keeps it. Whatever can't be done
ends the shim with a word on standard error: 127 where the program is missing, 126 where something can't be done.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

MISSING, UNUSABLE, LOST = 127, 126, 137
BACKLOG = 128
_NUMBER = 4
"""Bytes of a descriptor's number in a message."""
_IGNORED = ("SIGTERM", "SIGINT", "SIGPIPE", "SIGXFSZ")
"""Signals that what stands around us or Python itself ignores, and the program must not."""


class ShimError(Exception):
    """The program can't be started: why, and with which code the shim ends."""

    def __init__(self, what: str, code: int = UNUSABLE) -> None:
        super().__init__(what)
        self.code = code


def unpack(letter: bytes) -> dict[str, list[bytes]]:
    """The values of a letter by their tags, in order."""
    fields: dict[str, list[bytes]] = {}
    for field in letter.split(b"\0") if letter else ():
        tag, _, value = field.partition(b"=")
        fields.setdefault(tag.decode("ascii", "replace"), []).append(value)
    return fields


def main(arguments: list[str]) -> int:
    """Become the program of the letter; what comes back is the code of a failure, or of a program it stayed for."""
    try:
        fields = unpack(_read(arguments[0]))
        link = _open_link(fields)
        taken = _take(link, fields)
        if link is not None:
            _open_doors(link, fields)
        if "stay" in fields and link is not None:
            child = os.fork()
            if child:
                return _stay(link, child, taken)
        if link is not None:
            link.close()
        _become(fields, taken)
    except ShimError as stop:
        return _say(str(stop), stop.code)
    except (OSError, ValueError, LookupError, AttributeError) as error:
        return _say(f"the sandbox could not be made ready: {error}", UNUSABLE)
    return UNUSABLE


def _say(what: str, code: int) -> int:
    sys.stderr.write(f"bailiwick-shim: {what}\n")
    sys.stderr.flush()
    return code


def _read(place: str) -> bytes:
    with open(int(place) if place.isdecimal() else place, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
        return file.read()


def _open_link(fields: dict[str, list[bytes]]) -> socket | None:
    if "link" not in fields:
        return None
    import _socket

    place = os.fsdecode(fields["link"][0])
    if place.isdecimal():
        return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, int(place))
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    link.connect(place)
    return link


def _take(link: socket | None, fields: dict[str, list[bytes]]) -> dict[int, int]:
    """The descriptors that came over the link: number to have inside → number here."""
    wanted = [int(number) for number in fields.get("take", ())]
    if not wanted or link is None:
        return {}
    import _socket

    got: list[int] = []
    while len(got) < len(wanted):
        data, parts, _, _ = link.recvmsg(1, _socket.CMSG_SPACE(_NUMBER * len(wanted)))
        for _, _, raw in parts:
            whole = len(raw) - len(raw) % _NUMBER
            got += [int.from_bytes(raw[at : at + _NUMBER], sys.byteorder) for at in range(0, whole, _NUMBER)]
        if not data:
            raise ShimError("the host closed the link")
    return dict(zip(wanted, got, strict=True))


def _open_doors(link: socket, fields: dict[str, list[bytes]]) -> None:
    import _socket

    for door in fields.get("door", ()):
        name, _, port = door.rpartition(b"=")
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", int(port)))
        listener.listen(BACKLOG)
        number = listener.fileno().to_bytes(_NUMBER, sys.byteorder)
        link.sendmsg([name + b"\n"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
        listener.close()


def _become(fields: dict[str, list[bytes]], taken: dict[int, int]) -> None:
    """Replace this process by the program."""
    import _signal  # type: ignore[import-not-found]

    kept = {int(number) for number in fields.get("keep", ())}
    ready = [int(number) for number in fields.get("ready", ())]
    _place(taken)
    _close_others({0, 1, 2, *kept, *taken, *ready})
    for number in kept:
        os.set_inheritable(number, True)
    for name in _IGNORED:
        _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
    os.umask(0o022)
    cwd = fields["cwd"][0]
    try:
        os.chdir(cwd)
    except OSError as error:
        raise ShimError(f"{os.fsdecode(cwd)}: can't be entered: {error.strerror}") from error
    _limit(fields)
    for number in ready:
        os.write(number, b"1")
        os.close(number)
    _execute(fields["arg"], dict(_split(variable) for variable in fields.get("env", ())))


def _place(taken: dict[int, int]) -> None:
    """Give the descriptors that came over the link their numbers, whatever lies there now."""
    high = 1 + max([2, *taken, *taken.values()])
    spare = {number: os.dup2(source, high + step) for step, (number, source) in enumerate(taken.items())}
    for number, source in spare.items():
        os.dup2(source, number)


def _close_others(kept: set[int]) -> None:
    low = 0
    for number in [*sorted(kept), max(os.sysconf("SC_OPEN_MAX"), *kept) + 1]:
        if low < number:  # Python takes the empty range from 0 to 0 for all there are
            os.closerange(low, number)
        low = number + 1


def _split(variable: bytes) -> tuple[bytes, bytes]:
    name, _, value = variable.partition(b"=")
    return name, value


def _limit(fields: dict[str, list[bytes]]) -> None:
    import resource

    for field in fields.get("limit", ()):
        name, _, number = field.decode().partition("=")
        kind = getattr(resource, f"RLIMIT_{name.upper()}")
        _, hard = resource.getrlimit(kind)
        most = int(number) if hard == resource.RLIM_INFINITY else min(int(number), hard)
        resource.setrlimit(kind, (most, most))


def _execute(arguments: list[bytes], env: dict[bytes, bytes]) -> None:
    name = os.fsdecode(arguments[0])
    try:
        os.execvpe(arguments[0], arguments, env)  # noqa: S606 - this is what the shim is for
    except FileNotFoundError as error:
        if b"/" in arguments[0] and os.path.exists(arguments[0]):  # noqa: PTH110 - pathlib is slow to import
            raise ShimError(f"{name}: the interpreter that it names was not found", MISSING) from error
        raise ShimError(f"{name}: not found", MISSING) from error
    except NotADirectoryError as error:
        raise ShimError(f"{name}: not found", MISSING) from error
    except OSError as error:
        raise ShimError(f"{name}: can't be executed: {error.strerror}") from error


def _stay(link: socket, child: int, taken: dict[int, int]) -> int:
    """Wait for the program, reap what is handed to us, pass TERM on; end it all when the host is gone."""
    import select
    import signal

    for number in taken.values():
        os.close(number)
    awake, ring = os.pipe()
    os.set_blocking(ring, False)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    poll = select.poll()
    poll.register(awake, select.POLLIN)
    poll.register(link.fileno(), select.POLLIN | select.POLLHUP)
    while True:
        code = _reap(child)
        if code is not None:
            return code
        for number, _ in poll.poll():
            if number == awake:
                os.read(awake, 512)
            elif not link.recv(1):
                os.kill(child, signal.SIGKILL)  # the end of process 1 ends all others
                return LOST


def _reap(child: int) -> int | None:
    """Take in every ended process; the exit code of the program when it was among them."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return LOST
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if pid == 0:
            return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
