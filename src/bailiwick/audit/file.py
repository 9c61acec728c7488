"""The chain on disk: one line per entry, added under a lock and synced before anybody acts on it.

A crash can leave half a line at the end. Nobody was told that it was written, so it is no entry: the next writer takes
it off and says so in the chain. A whole line that only lacks its end is kept.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bailiwick.audit.model import LONGEST, AuditEntry, ChainHead, is_sealed, read_entry, read_head
from bailiwick.config.paths import make_private
from bailiwick.durable import sync_folder
from bailiwick.errors import NotReady, Place

UNAVAILABLE = "BW490"
BROKEN = "BW491"
BAD_KEY = "BW492"
KEY_BYTES = 32
_STEP = 64 << 10


class AuditUnavailable(NotReady):
    """Make the audit writable again; what it would have recorded did not happen."""

    default_code = UNAVAILABLE


def chain_file(state: Path) -> Path:
    """Where the entries are."""
    return state / "audit" / "audit.jsonl"


def head_file(state: Path) -> Path:
    """Where the head of the last append is, so that a file that got shorter is noticed on the spot."""
    return state / "audit" / "head"


def key_file(state: Path) -> Path:
    """Where the service's key is."""
    return state / "keys" / "audit.key"


@contextmanager
def locked(state: Path, *, write: bool) -> Iterator[int | None]:
    """The chain's file, alone (`write`, made if it isn't there) or beside other readers; None where there is none."""
    path = chain_file(state)
    try:
        if write:
            make_private(state)
            make_private(path.parent)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND if write else os.O_RDONLY
        handle = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _unavailable(path, error) from error
    except NotReady as error:
        raise AuditUnavailable(error.what, place=error.place, hint=error.hint) from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise AuditUnavailable("the audit is not a regular file", place=Place(str(path)), hint="move it away")
        fcntl.flock(handle, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        yield handle
    except OSError as error:
        raise _unavailable(path, error) from error
    finally:
        os.close(handle)


def _unavailable(path: Path, error: OSError) -> AuditUnavailable:
    return AuditUnavailable(
        f"the audit can't be used: {error.strerror or error}",
        place=Place(str(path)),
        hint="free disk space or repair the mount, then run the same command again; nothing was done",
        code=UNAVAILABLE,
    )


def read_key(state: Path) -> bytes | None:
    """The service's key, or None where none was made yet; raises `AuditUnavailable` for one that others can read."""
    path = key_file(state)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unavailable(path, error) from error
    try:
        mode = os.fstat(handle).st_mode
        key = os.read(handle, KEY_BYTES + 1) if stat.S_ISREG(mode) else b""
    except OSError as error:
        raise _unavailable(path, error) from error
    finally:
        os.close(handle)
    if stat.S_IMODE(mode) & 0o077:
        hint = f"chmod 600 {path}, and find out who could read it"
        raise AuditUnavailable("the audit's key is open to others", place=Place(str(path)), hint=hint, code=BAD_KEY)
    if len(key) != KEY_BYTES:
        hint = "restore it from a backup; a new key can't vouch for old entries"
        raise AuditUnavailable("this is not a key of the audit", place=Place(str(path)), hint=hint, code=BAD_KEY)
    return key


def ensure_key(state: Path, *, entries: bool) -> bytes:
    """The service's key, made at the first use. Only to be called under the lock; never beside old `entries`."""
    key = read_key(state)
    if key is not None:
        return key
    path = key_file(state)
    if entries:
        hint = "restore it from a backup; a new key can't vouch for old entries"
        raise AuditUnavailable("the audit's key is gone", place=Place(str(path)), hint=hint, code=BAD_KEY)
    try:
        make_private(path.parent)
    except NotReady as error:
        raise AuditUnavailable(error.what, place=error.place, hint=error.hint) from error
    key = os.urandom(KEY_BYTES)
    replace_file(path, key, sync=True)
    return key


def replace_file(path: Path, data: bytes, *, sync: bool) -> None:
    """Put a file of ours in place as a whole, readable for its owner alone."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    with suppress(FileNotFoundError):
        draft.unlink()
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _write(handle, data)
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)
    draft.replace(path)
    if sync:
        sync_folder(path.parent)


def last_line(handle: int) -> tuple[bytes, int]:
    """The last line that has an end (b"" where none has), and where the file goes on behind it."""
    size = os.fstat(handle).st_size
    tail = b""
    while len(tail) < size:
        start = max(0, size - len(tail) - _STEP)
        tail = os.pread(handle, size - len(tail) - start, start) + tail
        end = tail.rfind(b"\n")
        before = tail.rfind(b"\n", 0, end) if end > 0 else -1
        if before >= 0:
            return tail[before + 1 : end], size - len(tail) + end + 1
        if len(tail) > 3 * LONGEST:
            raise _broken("the end of the audit is a line that is longer than any entry")
    end = tail.rfind(b"\n")
    return (tail[:end], end + 1) if end >= 0 else (b"", 0)


def complete_lines(handle: int) -> Iterator[bytes]:
    """Every line that has an end, without it; one that is too long is cut, so that it can't pass for an entry."""
    size = last_line(handle)[1]
    with os.fdopen(os.dup(handle), "rb") as stream:
        stream.seek(0)
        cut = False
        while stream.tell() < size:
            line = stream.readline(LONGEST + 2)
            if not cut:
                yield line.removesuffix(b"\n")
            cut = not line.endswith(b"\n")


def mend(handle: int, key: bytes, known: ChainHead | None) -> int:
    """Set the end of the file right after a crash: how many bytes of half a line were taken off.

    Nothing is taken off a file whose last whole entry is not the one that we left there.
    """
    line, end = last_line(handle)
    size = os.fstat(handle).st_size
    if end == size:
        return 0
    rest = os.pread(handle, min(size - end, LONGEST + 1), end)
    entry, before = read_entry(rest), read_entry(line)
    follows = before.mac if before else ChainHead().mac
    if entry is not None and entry.prev == follows and is_sealed(key, entry):
        _write(handle, b"\n")
        os.fsync(handle)
        return 0
    current_head(handle, key, known)
    os.ftruncate(handle, end)
    os.fsync(handle)
    return size - end


def current_head(handle: int, key: bytes, known: ChainHead | None) -> ChainHead:
    """The head that the next entry follows; raises `AuditUnavailable` where the end is not as we left it."""
    line, _ = last_line(handle)
    entry = read_entry(line) if line else None
    head = entry.head if entry else ChainHead()
    sealed = entry is None or is_sealed(key, entry)
    if (line and entry is None) or not sealed:
        raise _broken("the last entry of the audit was changed, or sealed with another key")
    if known is not None and (head.count < known.count or (head.count == known.count and head.mac != known.mac)):
        raise _broken(f"the audit had {known.count} entries and has {head.count}: its end was cut off or written again")
    return head


def _broken(what: str) -> AuditUnavailable:
    return AuditUnavailable(
        what, hint="see what was done to it with `bailiwick audit verify`, and restore it from a backup", code=BROKEN
    )


def kept_head(state: Path) -> ChainHead | None:
    """The head of the last append, as far as it was kept."""
    try:
        return read_head(head_file(state).read_text("ascii", "replace")[:200])
    except OSError:
        return None


def add(handle: int, entry: AuditEntry) -> None:
    """Write an entry as a whole and sync it, or leave the file as it was and raise `OSError`."""
    size = os.fstat(handle).st_size
    try:
        _write(handle, entry.line())
        os.fsync(handle)
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, size)
        raise


def _write(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
