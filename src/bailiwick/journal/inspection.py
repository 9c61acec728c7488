"""Looks at all of a database: SQLite's own checks, then the digests of blobs and the checksums of events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw

from bailiwick.errors import BailiwickError
from bailiwick.journal.blobs import checked, read_file
from bailiwick.journal.columns import checked_event
from bailiwick.journal.connection import connect, translate
from bailiwick.journal.queries import query

MOST = 5
"""So many problems are told; one is enough to know."""
BUSY = 5.0


def inspect(path: Path) -> list[str]:
    """What is wrong with a database, in words; empty where nothing is. Changes nothing.

    Raises `StoreUnavailable` where it can't be read at all.
    """
    problems: list[str] = []
    try:
        db = connect(path, BUSY)
        try:
            db.pragma("query_only", 1)
            for problem in _problems(db, path.parent):
                problems.append(problem)
                if len(problems) == MOST:
                    break
        finally:
            db.close(True)
    except (apsw.Error, OSError) as error:
        meant = translate(error, path)
        if isinstance(meant, BailiwickError) and meant.exit_code != DAMAGED:
            raise meant from error
        problems.append(str(error))
    return problems


DAMAGED = 70


def _problems(db: apsw.Connection, directory: Path) -> Iterator[str]:
    for (text,) in db.execute(f"PRAGMA integrity_check({MOST})"):
        if text != "ok":
            yield from str(text).splitlines()
    yield from _of_events(db)
    for digest, data in db.execute(query("blob.every")):
        try:
            checked(digest, read_file(directory, digest) if data is None else data)
        except BailiwickError as error:
            yield error.what


def _of_events(db: apsw.Connection) -> Iterator[str]:
    """Events that are not what was written, and journals that do not go from 1 to where their row says."""
    ends: dict[str, int] = {}
    for run_id, *columns in db.execute(query("event.every")):
        try:
            event = checked_event(run_id, columns)
        except BailiwickError as error:
            yield error.what
            continue
        finally:
            ends[run_id] = ends.get(run_id, 0) + 1
        if event.seq != ends[run_id]:
            yield f"run {run_id}: event {ends[run_id]} is missing"
            ends[run_id] = event.seq
    for _, run_id, seq in db.execute(query("run.reached")):
        if ends.get(run_id, 0) != seq:
            yield f"run {run_id}: its journal has {ends.get(run_id, 0)} events and its row says {seq}"
