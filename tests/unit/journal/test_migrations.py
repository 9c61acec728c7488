"""Databases of earlier versions: what they hold is there after the upgrade, and what is derived from it is right."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw

from bailiwick.clock import ManualClock
from bailiwick.journal.queries import migrations
from bailiwick.journal.rows import RunFilter
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.testing.store_conformance.calls import call
from bailiwick.testing.store_conformance.stage import new_run

RUN = """
INSERT INTO run VALUES (:id, 'w', 'k' || :id, :status, 0, 0, NULL, 0, NULL, 0, :id, NULL, 'd', 1);
INSERT INTO run_fact (run_id, source, runs_dir, generation, created_at) VALUES (:id, '', '', 0, 10);
"""


def older(path: Path, schema: int, sql: str = "") -> None:
    """A database as the version with this schema left it."""
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "WAL")
    for number, text in migrations()[:schema]:
        db.execute(text)
        db.execute("UPDATE meta SET schema = ?", (number,))
        db.execute("INSERT INTO migration (number, applied_at) VALUES (?, 0)", (number,))
    for name, status in (("going", "ready"), ("failed", "failed"), ("done", "done")):
        db.execute(RUN, {"id": name, "status": status})
    if sql:
        db.execute(sql)
    db.close()


def opened(path: Path, look: Callable[[SqliteStore], Awaitable[None]]) -> None:
    """Open it with the version of now, and look."""

    async def scene() -> None:
        store = await SqliteStore.open(path, now=ManualClock().now)
        try:
            await look(store)
        finally:
            await store.close()

    asyncio.run(scene())


def test_a_database_of_before_calls_gets_their_tables_and_keeps_its_runs(tmp_path: Path) -> None:
    """People upgrade with runs in flight."""
    older(tmp_path / "journal.db", 2)

    async def look(store: SqliteStore) -> None:
        await store.create(new_run())
        await store.begin_call(call())
        assert [row.id for row in await store.runs()] == ["r1", "done", "failed", "going"]
        assert [row.id for row in await store.calls()] == ["c-1"]

    opened(tmp_path / "journal.db", look)


def test_runs_of_before_are_known_to_have_ended_when_they_did(tmp_path: Path) -> None:
    """Their summary says when; without one it is not later than they were made."""
    older(tmp_path / "journal.db", 5, """INSERT INTO run_summary VALUES ('done', '{"ended_at": 90.5}')""")

    async def look(store: SqliteStore) -> None:
        for since, names in ((90, ["done"]), (91, []), (10, ["done", "failed"])):
            assert [row.id for row in await store.runs(RunFilter(ended_since=since))] == names

    opened(tmp_path / "journal.db", look)
