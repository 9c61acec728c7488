"""Starts the processes of effects and sees all of their descendants to their end, even when its worker is killed.

A program of its own, run as `python -I -S spawner.py` with a socket to its worker as file 3; it imports nothing of the
package and as little as it can of the library, because every command that runs a script starts it. It keeps one
forked copy of itself waiting, a guard. A guard takes one request, starts one process and is the subreaper of it: what
the process leaves behind, whatever its session or environment, becomes the guard's own child. So `waitpid` proves that
all of them are gone. When the worker's end of the guard's socket closes, by `kill -9` too, the guard ends them all.

A guard listens on an abstract socket that names its run and its effect, so that the next owner of the run finds it,
has it end its processes, and sees the connection close when they are gone. `spawning.py` is the other side.
"""

from __future__ import annotations

import fcntl
import gc
import marshal
import os
import select
import sys
import time
from _socket import (
    AF_UNIX,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    SO_PEERCRED,
    SOCK_CLOEXEC,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
    socketpair,
)

TYPE_CHECKING = False  # the module of that name takes longer to import than all the others here
if TYPE_CHECKING:
    from typing import Any, NoReturn

CONTROL = 3
"""The file that is the socket to the worker."""
FRAME = 9
"""Bytes of a message between guard and worker: a letter and a number."""
GRACE = 5.0
KILL_AFTER_GUARD = 2.0
"""Seconds in which the processes of a killed guard have to be gone before the spawner looks after others again."""
IDLE, FIRST, LAST = 5.0, 0.002, 0.1
"""Seconds between two looks: while the process runs, and while what it left is waited for."""
TERM, KILL, PIPE, XFSZ = 15, 9, 13, 25
SET_CHILD_SUBREAPER = 36
_CLOSED = select.POLLHUP | select.POLLERR | select.POLLRDHUP


def become_subreaper() -> bool:
    """Let the orphans among our descendants become our children; False where the system can't."""
    import ctypes  # of the workers only those need it that walk runs

    return sys.platform == "linux" and int(ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0


def frame(letter: bytes, number: int = 0) -> bytes:
    """A message between guard and worker."""
    return letter + number.to_bytes(8, "little", signed=True)


def descendants(root: int, leave: frozenset[int] = frozenset()) -> list[tuple[int, int]]:
    """Every living process below `root` as (pid, start time), but none at or below those in `leave`."""
    below: dict[int, list[tuple[int, int, bool]]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - this program imports no more than it has to
        if name.isdecimal() and (stat := _stat(int(name))) is not None:
            parent, start, dead = stat
            below.setdefault(parent, []).append((int(name), start, dead))
    found, todo = [], [root]
    while todo:
        for pid, start, dead in below.get(todo.pop(), ()):
            if pid not in leave:
                todo.append(pid)
                if not dead:
                    found.append((pid, start))
    return found


def _stat(pid: int) -> tuple[int, int, bool] | None:
    """Parent, start time and whether it only waits to be reaped; None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - as above
            raw = file.read()
    except OSError:
        return None
    fields = raw[raw.rindex(b")") + 2 :].split()
    return int(fields[1]), int(fields[19]), fields[0] in (b"Z", b"X", b"x")


def send(pid: int, start: int, number: int) -> None:
    """Signal exactly this process or nobody."""
    stat = _stat(pid)
    if stat is not None and stat[1] == start:
        try:
            os.kill(pid, number)
        except OSError:
            return


class GuardedProcess:
    """One process and everything that comes of it."""

    def __init__(self, line: socket) -> None:
        self.line = line
        self.listener: socket | None = None
        self.askers: list[socket] = []
        self.pid = 0
        self.exited = False
        self.since: float | None = None
        self.grace = GRACE
        self.told: set[tuple[int, int]] = set()
        self.pause = FIRST
        self.poll = select.poll()

    def serve(self, files: list[int]) -> None:
        """Take the request, start its process, and stay until nothing of it is left."""
        request = self._read()
        if request is None:
            return
        self.grace = request["grace"]
        if request["name"]:
            self._listen(request["name"])
        if self._abandoned():  # looked at after the name is there: a next owner either finds us, or we start nothing
            return
        if not self._begin(request, files):
            return
        for file in files:
            os.close(file)
        os.chdir("/")
        handle = os.pidfd_open(self.pid)
        self.poll.register(handle, select.POLLIN)
        self.poll.register(self.line.fileno(), select.POLLIN | _CLOSED)
        while self._reap():
            if self.exited and handle >= 0:
                self.poll.unregister(handle)
                handle = -1
            self._act()
            self._hear(self.poll.poll(self._wait() * 1000))
        self._say(frame(b"G"))

    def _read(self) -> dict[str, Any] | None:
        raw = b""
        while len(raw) < 8 or len(raw) < 8 + int.from_bytes(raw[:8], "little"):
            data = self.line.recv(1 << 20)
            if not data:
                return None
            raw += data
        request: dict[str, Any] = marshal.loads(raw[8:])  # noqa: S302 - written by our own worker
        return request

    def _listen(self, name: str) -> None:
        """Be found by the run's next owner; where such sockets are refused, only the marks are left to find us by."""
        try:
            self.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC)
            self.listener.bind(f"\0{name}/{os.getpid()}".encode())
            self.listener.listen(8)
            self.poll.register(self.listener.fileno(), select.POLLIN)
        except OSError:
            self.listener = None

    def _abandoned(self) -> bool:
        look = select.poll()
        look.register(self.line.fileno(), _CLOSED)
        return bool(look.poll(0))

    def _begin(self, request: dict[str, Any], files: list[int]) -> bool:
        """Start the process, or say why not: the letter tells whether the directory or the program is to blame."""
        try:
            os.chdir(request["cwd"])
        except OSError as error:
            self._say(frame(b"C", error.errno or 0))
            return False
        targets = request["targets"]
        above = max(targets) + 1
        actions = [
            (os.POSIX_SPAWN_DUP2, fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, above), target)
            for file, target in zip(files, targets, strict=True)
        ]
        problem = 0
        for path in request["paths"]:
            try:
                self.pid = os.posix_spawn(
                    path, request["argv"], request["env"], file_actions=actions, setsid=True, setsigdef=[PIPE, XFSZ]
                )
                break
            except OSError as error:
                problem = problem if problem and error.errno in (2, 20) else error.errno or 0
            except ValueError:
                problem = 22
        for _, source, _ in actions:
            os.close(source)
        self._say(frame(b"P", self.pid) if self.pid else frame(b"E", problem))
        return bool(self.pid)

    def _say(self, message: bytes) -> None:
        try:
            self.line.send(message)
        except OSError:  # the worker is gone, which the next look at the socket tells
            return

    def _reap(self) -> bool:
        """Wait for whoever has ended; False when nobody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.exited = True
                self._say(frame(b"X", status))

    def _act(self) -> None:
        """When told to end them: TERM once for each, and KILL after the grace, again and again until none is left."""
        if self.since is None:
            return
        late = time.monotonic() >= self.since + self.grace
        for child in descendants(os.getpid()):
            if late:
                send(*child, KILL)
            elif child not in self.told:
                self.told.add(child)
                send(*child, TERM)

    def _wait(self) -> float:
        if not self.exited and self.since is None:
            return IDLE
        pause, self.pause = self.pause, min(self.pause * 2, LAST)
        return pause

    def _hear(self, events: list[tuple[int, int]]) -> None:
        for file, what in events:
            if self.listener is not None and file == self.listener.fileno():
                self._admit(self.listener)
            elif file == self.line.fileno():
                self._told(self.line, what)
            else:
                for asker in self.askers:
                    if asker.fileno() == file:
                        self._told(asker, what)

    def _admit(self, listener: socket) -> None:
        """A next owner wants the processes gone; only the same user is heard."""
        file, _ = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - all there is below `socket`
        asker = socket(fileno=file)
        credentials = asker.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)
        if int.from_bytes(credentials[4:8], sys.byteorder) != os.getuid():
            asker.close()
            return
        self.askers.append(asker)
        self.poll.register(file, select.POLLIN)

    def _told(self, line: socket, what: int) -> None:
        """`T` and the grace in milliseconds, or the end of the connection to the worker: everything has to go."""
        data = line.recv(FRAME) if what & select.POLLIN else b""
        if len(data) == FRAME:
            self._end(int.from_bytes(data[1:], "little", signed=True) / 1000)
            return
        self.poll.unregister(line.fileno())
        if line is self.line:
            self._end(self.grace)

    def _end(self, grace: float) -> None:
        """Begin to end them, or do it sooner than before."""
        now = time.monotonic()
        left = grace if self.since is None else min(grace, self.since + self.grace - now)
        self.since, self.grace, self.pause = now, max(0.0, left), FIRST


def take(control: socket, parent: socket) -> None:
    """Be a guard: wait for a request, say that it is taken, and serve it."""
    look = select.poll()
    look.register(control.fileno(), select.POLLIN)
    look.register(parent.fileno(), _CLOSED)
    events = dict(look.poll())
    if parent.fileno() in events:
        return
    data, more, _, _ = control.recvmsg(1, CMSG_SPACE(4 * 253), MSG_CMSG_CLOEXEC)
    control.close()
    parent.send(b"t")
    parent.close()
    files = [number for _, _, raw in more for number in memoryview(raw).cast("i")]
    if data and files:
        GuardedProcess(socket(fileno=files[0])).serve(files[1:])


class GuardKeeper:
    """Keeps a guard waiting, and clears up after one that was killed."""

    def __init__(self, control: socket) -> None:
        self.control = control
        self.mine, self.theirs = socketpair(AF_UNIX, SOCK_STREAM)
        self.guards: dict[int, int] = {}
        self.poll = select.poll()
        self.poll.register(control.fileno(), select.POLLHUP)
        self.poll.register(self.mine.fileno(), select.POLLIN)

    def serve(self) -> None:
        """Make guards until the worker is gone, then wait for them."""
        spare, serving = 0, True
        while serving or self.guards:
            if serving and spare not in self.guards.values():
                spare = self._fork()
            for file, _ in self.poll.poll():
                if file == self.mine.fileno():
                    self.mine.recv(1 << 10)
                    spare = 0
                elif file == self.control.fileno():
                    serving = False
                    self.poll.unregister(file)
                else:
                    self._ended(file)
        self._sweep(None)

    def _fork(self) -> int:
        pid = os.fork()
        if pid == 0:
            self.mine.close()
            for file in self.guards:
                os.close(file)
            _as_guard(self.control, self.theirs)
        handle = os.pidfd_open(pid)
        self.guards[handle] = pid
        self.poll.register(handle, select.POLLIN)
        return pid

    def _ended(self, handle: int) -> None:
        self.poll.unregister(handle)
        os.close(handle)
        _, status = os.waitpid(self.guards.pop(handle), 0)
        if status:
            self._sweep(KILL_AFTER_GUARD)

    def _sweep(self, seconds: float | None) -> None:
        """Kill what a dead guard left to us; without a limit, until nothing is left."""
        guards = frozenset(self.guards.values())
        deadline = None if seconds is None else time.monotonic() + seconds
        while left := descendants(os.getpid(), guards):
            for child in left:
                send(*child, KILL)
            if deadline is not None and time.monotonic() > deadline:
                return
            time.sleep(FIRST)
            self._reap_orphans(guards)

    def _reap_orphans(self, guards: frozenset[int]) -> None:
        for pid in _children():
            if pid not in guards:
                os.waitpid(pid, os.WNOHANG)


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children", "rb", buffering=0) as file:  # noqa: PTH123 - as above
        return [int(pid) for pid in file.read().split()]


def _as_guard(control: socket, parent: socket) -> NoReturn:
    code = 1
    try:
        if become_subreaper():
            take(control, parent)
            code = 0
    finally:
        os._exit(code)


def main() -> None:
    """Be the spawner of the worker at the other end of file 3."""
    os.closerange(CONTROL + 1, os.sysconf("SC_OPEN_MAX"))
    os.set_inheritable(CONTROL, False)
    os.chdir("/")
    if become_subreaper():
        gc.disable()
        gc.freeze()
        GuardKeeper(socket(fileno=CONTROL)).serve()


if __name__ == "__main__":
    main()
