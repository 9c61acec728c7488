"""Which process keeps the database locked, as far as the system tells."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

WRITE_LOCK = 120
"""The byte of the shared-memory file whose lock is the right to write, in SQLite's write-ahead logging."""
_LOCKS = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class Locker:
    """A process in the middle of a write; `stopped` when it was suspended there and will not go on by itself."""

    pid: int
    stopped: bool

    def __str__(self) -> str:
        return f"process {self.pid}" + (", which is stopped in the middle of a write," if self.stopped else "")

    @property
    def way(self) -> str:
        """What to do about it."""
        return f"let it go on: kill -CONT {self.pid}" if self.stopped else f"see what it does: ps -p {self.pid}"


def find_locker(path: Path) -> Locker | None:
    """The process that holds the right to write to this database; None where nobody does or nothing is told.

    Only read: to open the file and close it again would give up the locks that this process itself has on it.
    """
    try:
        inode = Path(f"{path}-shm").stat().st_ino
        lines = _LOCKS.read_text("ascii", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if len(fields) == 8 and fields[1:4] == ["POSIX", "ADVISORY", "WRITE"]:
            pid, file, first, last = fields[4:]
            covers = first.isdecimal() and int(first) <= WRITE_LOCK and (last == "EOF" or int(last) >= WRITE_LOCK)
            if covers and file.rpartition(":")[2] == str(inode) and int(pid) > 0:
                return Locker(int(pid), _is_stopped(int(pid)))
    return None


def _is_stopped(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("T", "t")
