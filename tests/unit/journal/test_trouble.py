"""A medium that fails: said in words, nothing half written, and used again as soon as it works."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
import pytest

from bailiwick.clock import ManualClock
from bailiwick.errors import JournalCorrupt, StoreUnavailable
from bailiwick.ids import digest
from bailiwick.journal.blobs import file_of
from bailiwick.journal.rows import Batch, EncodedEvent
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.testing.store_conformance.stage import NOW, event, held_run, new_run, sure
from tests.unit.journal.contenders import contend, start

BIG = EncodedEvent("Grew", 1, '"' + "x" * 100_000 + '"', NOW)
DATA = b"b" * 2_000_000


def play(tmp_path: Path, scene: Callable[[SqliteStore], Awaitable[None]]) -> None:
    async def history() -> None:
        store = await SqliteStore.open(tmp_path / "journal.db", now=ManualClock().now, busy_timeout=0.01)
        try:
            await scene(store)
        finally:
            await store.close()

    asyncio.run(history())


async def pragma(store: SqliteStore, name: str, value: int) -> int:
    found: int = await store._writer.do(lambda tx: tx.db.pragma(name, value))
    return found


def test_a_full_disk_is_unavailable_and_then_works_again(tmp_path: Path) -> None:
    """The holder stops dispatching, says so and tries the same batch again: it has to be still missing."""

    async def scene(store: SqliteStore) -> None:
        row = await held_run(store)
        before = await sure(store)
        pages = await store._writer.do(lambda tx: tx.db.pragma("page_count"))
        await pragma(store, "max_page_count", pages + 2)
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match=r"journal\.db") as caught:
                await store.append("r1", row.epoch, Batch(after=0, events=(event(), BIG)))
            assert "disk space" in caught.value.hint
        assert await sure(store) == before
        assert await store.read("r1") == []
        await pragma(store, "max_page_count", 1_000_000)
        assert await store.append("r1", row.epoch, Batch(after=0, events=(event(), BIG))) == 2

    play(tmp_path, scene)


def test_a_full_disk_fails_everything_in_the_same_commit(tmp_path: Path) -> None:
    """Whoever shared the commit must not believe it happened."""

    async def scene(store: SqliteStore) -> None:
        row, other = await held_run(store), await held_run(store, "r2")
        pages = await store._writer.do(lambda tx: tx.db.pragma("page_count"))
        await pragma(store, "max_page_count", pages + 2)
        small, big = await asyncio.gather(
            store.append("r1", row.epoch, Batch(after=0, events=(event(),))),
            store.append("r2", other.epoch, Batch(after=0, events=(BIG,))),
            return_exceptions=True,
        )
        assert isinstance(big, StoreUnavailable)
        assert isinstance(small, StoreUnavailable) is (await store.read("r1") == [])
        assert await store.read("r2") == []

    play(tmp_path, scene)


def test_a_read_only_medium_is_unavailable_and_then_works_again(tmp_path: Path) -> None:
    """A kernel remounts a failing disk read-only; an operator remounts it back."""

    async def scene(store: SqliteStore) -> None:
        row = await held_run(store)
        writer = store._writer
        db = writer._db
        assert db is not None
        with writer._guard:
            db.pragma("query_only", 1)
        with pytest.raises(StoreUnavailable):
            await store.append("r1", row.epoch, Batch(after=0, events=(event(),)))
        assert await store.read("r1") == []
        assert await store.append("r1", row.epoch, Batch(after=0, events=(event(),))) == 1

    play(tmp_path, scene)


def test_an_input_output_error_is_unavailable_and_then_works_again(tmp_path: Path) -> None:
    """The kernel refuses to let the file grow: a real error from a real write, in a process of its own."""
    ((said, seen, seq),) = contend("overflow", tmp_path / "journal.db", ["r1"])
    assert "can't be written" in str(said)
    assert (seen, seq) == (0, 1)


def test_a_database_locked_for_too_long_is_unavailable(tmp_path: Path) -> None:
    """Another process hangs in a transaction; ours may not hang with it."""

    async def scene(store: SqliteStore) -> None:
        row = await held_run(store)
        other = apsw.Connection(str(tmp_path / "journal.db"))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="keeps the database locked"):
            await store.append("r1", row.epoch, Batch(after=0, events=(event(),)))
        other.execute("ROLLBACK")
        other.close()
        assert await store.append("r1", row.epoch, Batch(after=0, events=(event(),))) == 1

    play(tmp_path, scene)


def test_a_blob_file_that_can_not_be_written_concerns_its_batch_alone(tmp_path: Path) -> None:
    """Another run that needs no file goes on; the one that does may try again."""

    async def scene(store: SqliteStore) -> None:
        row, other = await held_run(store), await held_run(store, "r2")
        in_the_way = tmp_path / "blobs"
        in_the_way.write_text("a file")
        bad, good = await asyncio.gather(
            store.append("r1", row.epoch, Batch(after=0, events=(event(),), blobs={digest(DATA): DATA})),
            store.append("r2", other.epoch, Batch(after=0, events=(event(),))),
            return_exceptions=True,
        )
        assert isinstance(bad, StoreUnavailable)
        assert good == 1
        assert await store.read("r1") == []
        in_the_way.unlink()
        await store.append("r1", row.epoch, Batch(after=0, events=(event(),), blobs={digest(DATA): DATA}))
        assert store.blob(digest(DATA)) == DATA

    play(tmp_path, scene)


def test_a_big_blob_is_a_file_beside_the_database_written_once(tmp_path: Path) -> None:
    """An unchanged value that is megabytes long costs nothing the second time."""

    async def scene(store: SqliteStore) -> None:
        row = await held_run(store)
        batch = Batch(after=0, events=(event(),), blobs={digest(DATA): DATA})
        await store.append("r1", row.epoch, batch)
        file = tmp_path / "blobs" / digest(DATA)[:2] / digest(DATA)
        first = file.stat()
        assert (first.st_size, first.st_mode & 0o777) == (len(DATA), 0o600)
        await store.append("r1", row.epoch, Batch(after=1, blobs=batch.blobs))
        assert file.stat() == first
        assert list(file.parent.iterdir()) == [file]
        await store.append("r1", row.epoch, Batch(after=1, status="done", release=True))
        await store.delete("r1")
        assert not file.exists()

    play(tmp_path, scene)


def test_a_big_blob_whose_file_is_gone_is_corruption(tmp_path: Path) -> None:
    """Somebody cleaned up in the state directory."""

    async def scene(store: SqliteStore) -> None:
        row = await held_run(store)
        await store.append("r1", row.epoch, Batch(after=0, blobs={digest(DATA): DATA}))
        file_of(tmp_path, digest(DATA)).unlink()
        with pytest.raises(JournalCorrupt, match="gone"):
            store.blob(digest(DATA))

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("point", "events"), [("blob.written", 0), ("append.before_commit", 0), ("append.after_commit", 1)]
)
def test_a_process_killed_around_a_commit_leaves_all_of_it_or_nothing(tmp_path: Path, point: str, events: int) -> None:
    """And whoever takes over can write the same batch as if nothing had been."""
    child = start("crash", tmp_path / "journal.db", point)
    child.communicate("go\n")
    assert child.returncode == -signal.SIGKILL

    async def scene(store: SqliteStore) -> None:
        assert len(await store.read("r1")) == events
        if events:
            assert store.blob(digest(DATA)) == DATA
            return
        with pytest.raises(JournalCorrupt):
            store.blob(digest(DATA))
        await store.append("r1", 1, Batch(after=0, events=(event(),), blobs={digest(DATA): DATA}))
        assert store.blob(digest(DATA)) == DATA

    play(tmp_path, scene)


def test_four_processes_writing_at_once_lose_nothing(tmp_path: Path) -> None:
    """Four are supported on one machine: every acknowledged event and message is there, in order."""
    path = tmp_path / "journal.db"
    names = ["a", "b", "c", "d"]
    contend("open", path, ["shared"])
    contend("write", path, names)

    async def scene(store: SqliteStore) -> None:
        for name in names:
            assert [json.loads(one.body) for one in await store.read(name)] == list(range(40))
        arrived = [row.body for row in await store.inbox("shared")]
        for name in names:
            assert [body for body in arrived if body[0] == name] == [[name, number] for number in range(40)]

    play(tmp_path, scene)


def test_four_processes_claiming_at_once_never_share_a_run(tmp_path: Path) -> None:
    """Every run is walked, by one of them."""
    path = tmp_path / "journal.db"
    runs = [f"r{number}" for number in range(40)]

    async def prepare(store: SqliteStore) -> None:
        await asyncio.gather(*(store.create(new_run(run_id)) for run_id in runs))

    play(tmp_path, prepare)
    taken = contend("walk", path, ["a", "b", "c", "d"])
    assert sorted(str(run_id) for one in taken for run_id in one) == sorted(runs)

    async def check(store: SqliteStore) -> None:
        assert {row.status for row in await store.runs()} == {"done"}
        assert {row.epoch for row in await store.runs()} == {1}

    play(tmp_path, check)
