"""A process that is stopped in the middle of a write: the others wait, and then say who and what to do."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bailiwick.clock import SystemClock
from bailiwick.errors import StoreUnavailable
from bailiwick.journal import sqlite
from bailiwick.journal.lockers import find_locker
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.testing.store_conformance.stage import new_run

WRITE = (
    "import apsw, sys; db = apsw.Connection(sys.argv[1]); db.execute('BEGIN IMMEDIATE'); print('in', flush=True); "
    "input()"
)
NOW = SystemClock().now


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database that exists."""
    path = tmp_path / "bailiwick.db"
    asyncio.run(_once(path))
    return path


async def _once(path: Path) -> None:
    await (await SqliteStore.open(path, now=NOW)).close()


@pytest.fixture
def writer(database: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is stopped in the middle of a transaction."""
    argv = [sys.executable, "-c", WRITE, str(database)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        yield process
        process.kill()


def test_the_process_that_locks_is_named_with_what_to_do(
    database: Path, writer: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words end with what works, and claim nothing that the command does not do."""
    if not Path("/proc/locks").exists():
        pytest.skip("this system does not tell who locks a file")
    monkeypatch.setattr(sqlite, "PATIENCE", 0.0)

    async def go() -> None:
        with pytest.raises(StoreUnavailable) as caught:
            await SqliteStore.open(database, now=NOW, busy_timeout=0.05)
        (problem,) = caught.value.problems()
        assert f"process {writer.pid}, which is stopped" in str(problem)
        assert f"kill -CONT {writer.pid}" in str(problem)
        assert "tried again" not in str(problem)

    asyncio.run(go())
    assert find_locker(database.with_name("other.db")) is None


def test_a_command_waits_until_the_other_has_written(database: Path, writer: subprocess.Popen[str]) -> None:
    """Nothing is damaged and nothing is refused: it only takes longer."""

    async def go() -> None:
        opening = asyncio.ensure_future(SqliteStore.open(database, now=NOW, busy_timeout=0.05))
        done, _ = await asyncio.wait([opening], timeout=0.5)
        assert not done, "it did not wait"
        writer.send_signal(signal.SIGCONT)
        writer.kill()
        async with asyncio.timeout(600):
            store = await opening
        row = await store.create(new_run("r1"))
        assert (await store.run("r1")) == row
        await store.close()

    asyncio.run(go())
    assert find_locker(database) is None
