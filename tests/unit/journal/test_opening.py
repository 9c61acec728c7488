"""Opening a database: made for its owner only, by any number of processes at once, never by an older version."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import apsw
import pytest

from bailiwick.clock import ManualClock
from bailiwick.errors import JournalCorrupt, StoreError, StoreTooNew, StoreUnavailable, UsageError
from bailiwick.journal import connection, mounts
from bailiwick.journal.queries import migrations
from bailiwick.journal.rows import Batch
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.testing.store_conformance.stage import event, held_run, new_run
from tests.unit.journal.contenders import contend

CLOCK = ManualClock()


async def opened(path: Path) -> SqliteStore:
    return await SqliteStore.open(path, now=CLOCK.now, busy_timeout=1)


async def made(path: Path) -> None:
    store = await opened(path)
    await store.create(new_run())
    await store.close()


def execute(path: Path, sql: str) -> list[tuple[object, ...]]:
    db = apsw.Connection(str(path))
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_directory_and_files_are_for_their_owner_only(tmp_path: Path) -> None:
    """The journal holds prompts, answers and whatever agents were shown."""
    path = tmp_path / "deep" / "state" / "journal.db"

    async def history() -> None:
        store = await opened(path)
        await store.create(new_run())
        assert mode(path.parent) == 0o700
        assert {mode(file) for file in path.parent.iterdir()} == {0o600}
        assert path.with_name("journal.db-wal").exists()
        await store.close()

    asyncio.run(history())


def test_the_database_is_set_up_for_durability(tmp_path: Path) -> None:
    """Without any one of these an acknowledged write may be lost or a reader may block."""

    async def history() -> None:
        store = await opened(tmp_path / "journal.db")
        names = ("journal_mode", "synchronous", "foreign_keys")
        found = await store._writer.do(lambda tx: [tx.db.pragma(name) for name in names])
        assert found == ["wal", 2, 1]
        await store.close()

    asyncio.run(history())


def test_the_schema_notes_when_it_was_changed(tmp_path: Path) -> None:
    """Support asks first which version made the database and when."""
    path = tmp_path / "journal.db"
    asyncio.run(made(path))
    numbers = [number for number, _ in migrations()]
    assert execute(path, "SELECT number, applied_at FROM migration") == [(n, CLOCK.now()) for n in numbers]
    assert execute(path, "SELECT schema, min_app FROM meta") == [(numbers[-1], 1)]


def test_four_processes_open_an_empty_directory_at_once(tmp_path: Path) -> None:
    """A worker, a service and two commands may be started by one script."""
    path = tmp_path / "state" / "journal.db"
    names = ["a", "b", "c", "d"]
    assert contend("open", path, names) == [[name] for name in names]
    assert execute(path, "SELECT id FROM run ORDER BY id") == [(name,) for name in names]


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """An older process would write what the newer one can't read."""
    path = tmp_path / "journal.db"
    asyncio.run(made(path))
    execute(path, "UPDATE meta SET schema = 99, min_app = 2")
    with pytest.raises(StoreTooNew, match="newer version"):
        asyncio.run(made(path))


def test_a_newer_schema_that_only_adds_is_used(tmp_path: Path) -> None:
    """Within a major version both versions may run side by side."""
    path = tmp_path / "journal.db"
    asyncio.run(made(path))
    execute(path, "ALTER TABLE run_fact ADD COLUMN colour TEXT")
    execute(path, "UPDATE meta SET schema = 99")
    asyncio.run(made(path))
    assert execute(path, "SELECT schema FROM meta") == [(99,)]


def test_a_running_process_stops_when_a_newer_version_takes_over(tmp_path: Path) -> None:
    """The upgrade happens while it works; its very next write has to notice."""
    path = tmp_path / "journal.db"

    async def history() -> None:
        store = await opened(path)
        row = await held_run(store)
        await asyncio.to_thread(execute, path, "UPDATE meta SET min_app = 2")
        for _ in range(2):
            with pytest.raises(StoreTooNew):
                await store.append("r1", row.epoch, Batch(after=0, events=(event(),)))
        assert await store.read("r1") == []
        await asyncio.to_thread(execute, path, "UPDATE meta SET min_app = 1")
        assert await store.append("r1", row.epoch, Batch(after=0, events=(event(),))) == 1
        await store.close()

    asyncio.run(history())


def test_a_network_file_system_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's locks do not reach the other machine."""
    table = tmp_path / "mountinfo"
    table.write_text("22 1 0:1 / / rw - nfs4 server:/ rw\n")

    def from_table(path: Path) -> None:
        mounts.refuse_network(path, table)

    monkeypatch.setattr(connection, "refuse_network", from_table)
    with pytest.raises(UsageError, match="network file system"):
        asyncio.run(opened(tmp_path / "state" / "journal.db"))
    assert not (tmp_path / "state").exists()


def test_a_file_that_is_no_database_is_named_as_damage(tmp_path: Path) -> None:
    """Overwriting it would destroy what might be repaired."""
    path = tmp_path / "journal.db"
    path.write_bytes(b"not a database at all" * 500)
    before = path.read_bytes()
    with pytest.raises(JournalCorrupt, match=r"journal\.db"):
        asyncio.run(opened(path))
    assert path.read_bytes() == before


def test_a_directory_that_can_not_be_made_is_unavailable(tmp_path: Path) -> None:
    """The same words as for a disk that is gone: it may come back."""
    (tmp_path / "state").write_text("a file is in the way")
    with pytest.raises(StoreUnavailable):
        asyncio.run(opened(tmp_path / "state" / "journal.db"))


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """Waiting for a thread that has ended would hang for ever."""

    async def history() -> None:
        store = await opened(tmp_path / "journal.db")
        await store.close()
        await store.close()
        with pytest.raises(StoreError, match="closed"):
            await store.create(new_run())
        with pytest.raises(StoreError, match="closed"):
            await store.run("r1")
        assert await store.wait_for_news() == await store.wait_for_news()

    asyncio.run(history())


def test_closing_finishes_what_is_queued(tmp_path: Path) -> None:
    """A command that ends right after its last write must not lose it."""
    path = tmp_path / "journal.db"

    async def history() -> None:
        store = await opened(path)
        queued = [asyncio.ensure_future(store.create(new_run(f"r{number}"))) for number in range(300)]
        await asyncio.sleep(0)
        await store.close()
        await asyncio.gather(*queued)

    asyncio.run(history())
    assert execute(path, "SELECT count(*) FROM run") == [(300,)]
