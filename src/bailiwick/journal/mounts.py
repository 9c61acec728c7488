"""Which file systems can't carry a SQLite journal: those whose locks and memory maps stop at one machine."""

from __future__ import annotations

import re
from pathlib import Path

from bailiwick.errors import UsageError

NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "lustre", "afs"})
"""Types as the kernel names them; FUSE drivers of the same systems are matched by their last part."""

MOUNTINFO = Path("/proc/self/mountinfo")


def filesystem_of(mountinfo: str, path: Path) -> str | None:
    """The type of the file system that holds an absolute path, by a mountinfo text; None when it doesn't say."""
    best: tuple[int, str] | None = None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if len(fields) < 5 or not kinds:
            continue
        point = Path(_unescape(fields[4]))
        if path.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = (len(point.parts), kinds[0])
    return best[1] if best else None


def network_filesystem(mountinfo: str, path: Path) -> str | None:
    """The type of the file system of `path` if it is a network one, else None."""
    kind = filesystem_of(mountinfo, path)
    if kind is None:
        return None
    return kind if kind in NETWORK or kind.removeprefix("fuse.") in NETWORK else None


def refuse_network(path: Path, mountinfo: Path = MOUNTINFO) -> None:
    """Raise `UsageError` when `path` would put a journal on a network file system; unknown ones are let pass."""
    try:
        text = mountinfo.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = network_filesystem(text, path.resolve())
    if kind:
        raise UsageError(
            f"{path} is on a network file system ({kind}); several machines could write the journal at once",
            hint="set BAILIWICK_HOME to a directory on a local disk",
            code="BW230",
        )


def _unescape(field: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
