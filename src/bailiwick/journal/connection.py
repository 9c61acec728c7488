"""Connections to the database file: how they are opened and set up, and what their errors mean to us."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from bailiwick.errors import JournalCorrupt, StoreError, StoreTooNew, StoreUnavailable
from bailiwick.journal.lockers import find_locker
from bailiwick.journal.mounts import refuse_network
from bailiwick.journal.queries import migrations, query

CHUNK = 1 << 20
APP_LEVEL = 1
"""What this version can live with; a database whose `min_app` is higher is left alone."""

MEDIUM = (
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.ProtocolError,
    apsw.NoMemError,
    OSError,
)
"""Errors of the disk or of its other users: nothing was changed and a later try may work."""

STILL_GOOD = (apsw.FullError, apsw.BusyError, apsw.LockedError)
"""Of those, the ones after which the same connection goes on working."""

DAMAGE = (apsw.CorruptError, apsw.NotADBError)
"""What SQLite calls damage; a page that could not be read for a moment is called so too."""

TRIES = 3
"""How often something is tried that failed to be read."""

READ_WRITE = apsw.SQLITE_OPEN_READWRITE
CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE

Rows = list[tuple[Any, ...]]


def translate(error: Exception, path: Path) -> Exception:
    """The error of our tree that a database or file error stands for; others are given back as they are."""
    ours = _meaning(error, path)
    if ours is None:
        return error
    ours.__cause__ = error
    return ours


def _meaning(error: Exception, path: Path) -> StoreError | None:
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        locker = find_locker(path)
        return StoreUnavailable(
            f"{path}: {locker or 'another process'} keeps the database locked",
            hint=f"{locker.way if locker else 'see who uses it'}; nothing was changed, give the command again",
        )
    if isinstance(error, MEDIUM):
        return StoreUnavailable(
            f"{path}: the journal can't be written or read ({error})",
            hint="free disk space or repair the mount; nothing is lost, give the command again",
        )
    if isinstance(error, DAMAGE) and (refused := _unreadable(path)) is not None:
        return StoreUnavailable(
            f"{path}: the journal can't be read ({refused.strerror or refused})",
            hint="repair the disk or its mount, then run the same command again; nothing was changed",
        )
    if isinstance(error, DAMAGE):
        return JournalCorrupt(
            f"{path}: the database is damaged ({error})",
            hint="keep the directory as it is and restore the database from a backup; `bailiwick doctor` looks closer",
        )
    return None


def may_pass(error: Exception) -> bool:
    """Whether a new connection may get further at once: a page was not read, or not as it should be."""
    return isinstance(error, (*DAMAGE, apsw.IOError))


def _unreadable(path: Path) -> OSError | None:
    """What the system says when the database's files are read from end to end; None where they can be."""
    try:
        for file in (path, path.with_name(f"{path.name}-wal")):
            if file.exists():
                with file.open("rb", buffering=0) as stream:
                    while stream.read(CHUNK):
                        pass
    except OSError as error:
        return error
    return None


def connect(path: Path, busy_timeout: float, flags: int = READ_WRITE) -> apsw.Connection:
    """Open the file with our settings; it is not created unless `flags` say so."""
    db = apsw.Connection(str(path), flags=flags)
    db.set_busy_timeout(int(busy_timeout * 1000))
    for name, value in (("synchronous", "FULL"), ("foreign_keys", 1), ("temp_store", "MEMORY"), ("fullfsync", 1)):
        db.pragma(name, value)
    return db


def prepare(path: Path, busy_timeout: float, now: Callable[[], float]) -> apsw.Connection:
    """Open for writing: directory and file exist for their owner only, the mode is WAL, the schema is ours or newer.

    Safe to call from several processes at once on an empty directory.
    """
    refuse_network(path.parent)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size:
        db = connect(path, busy_timeout)
        if db.pragma("journal_mode") == "wal" and _schema(db) >= _newest():
            refuse_newer(db, path)
            return db
        db.close()
    with _alone(path.parent):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        db = connect(path, busy_timeout, CREATE)
        if db.pragma("journal_mode", "WAL") != "wal":
            raise StoreUnavailable(f"{path}: this file system can't do write-ahead logging", hint="use a local disk")
        _migrate(db, now())
        refuse_newer(db, path)
    return db


def refuse_newer(db: apsw.Connection, path: Path) -> None:
    """Raise `StoreTooNew` when a newer version has made the database its own."""
    row = db.execute(query("meta.read")).fetchone()
    if row is None:
        raise JournalCorrupt(f"{path}: the row that names the schema is gone")
    if row[1] > APP_LEVEL:
        raise StoreTooNew(
            f"{path}: a newer version (level {row[1]}, ours is {APP_LEVEL}) has taken this state directory over",
            hint="upgrade bailiwick, or use another BAILIWICK_HOME",
        )


class ReadConnection:
    """A connection that only reads, on the caller's thread. No read outlives its call, so none delays a checkpoint."""

    def __init__(self, path: Path, busy_timeout: float) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._db: apsw.Connection | None = None
        self._closed = False
        self._one = threading.Lock()

    def rows(self, sql: str, bindings: object = None) -> Rows:
        """Every row of a query. Threads take turns: the projector fetches blobs while the walk reads."""
        with self._one:
            return self._rows(sql, bindings)

    def _rows(self, sql: str, bindings: object) -> Rows:
        if self._closed:
            raise StoreError(f"{self._path}: the store is closed")
        for left in reversed(range(TRIES)):
            try:
                if self._db is None:
                    self._db = connect(self._path, self._busy_timeout)
                    self._db.pragma("query_only", 1)
                return self._db.execute(sql, bindings).fetchall()  # type: ignore[arg-type]
            except (apsw.Error, OSError) as error:
                if not isinstance(error, STILL_GOOD):
                    self._drop()
                if not left or not may_pass(error):
                    raise translate(error, self._path) from error
        raise StoreUnavailable(f"{self._path}: the journal can't be read")

    def close(self) -> None:
        """Let go of the file; reading afterwards is an error."""
        with self._one:
            self._closed = True
            self._drop()

    def _drop(self) -> None:
        if self._db is not None:
            self._db.close(True)
            self._db = None


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keep other processes from setting up the same directory; the lock goes with the process."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        os.fsync(handle)
    finally:
        os.close(handle)


def _newest() -> int:
    return max(number for number, _ in migrations())


def _schema(db: apsw.Connection) -> int:
    """The schema's number; 0 for an empty database."""
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").fetchone():
        return 0
    row = db.execute(query("meta.read")).fetchone()
    return int(row[0]) if row else 0


def _migrate(db: apsw.Connection, at: float) -> None:
    """Apply what is missing, all of it or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        have = _schema(db)
        for number, text in migrations():
            if number > have:
                db.execute(text)
                db.execute("UPDATE meta SET schema = ?", (number,))
                db.execute("INSERT INTO migration (number, applied_at) VALUES (?, ?)", (number, at))
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
