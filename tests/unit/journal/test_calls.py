"""Routed calls in the SQLite store: what a killed process leaves, what several at once may not do."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bailiwick.clock import ManualClock
from bailiwick.journal.calls import KEPT
from bailiwick.journal.rows import CallRow, SpendRow
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.testing.store_conformance.calls import DAY, attempt, call, ended

SCRIPT = """
import asyncio, os, signal, sys
from pathlib import Path
from bailiwick.clock import ManualClock
from bailiwick.errors import BudgetExceeded
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.journal.rows import CallRow, Owner, Reservation

PRICE = [Reservation("day:2023-11-14", "", "usd", 3.0, 10.0)]
ME = Owner("h", "b", "n", os.getpid(), 1)

async def main(path, names, die):
    store = await SqliteStore.open(Path(path), now=ManualClock().now, busy_timeout=30)
    print("ready", flush=True)
    sys.stdin.readline()
    for name in names:
        try:
            await store.begin_call(CallRow(name, *["x"] * 9, 1.0, owner=ME), PRICE)
        except BudgetExceeded:
            pass
    if die:
        os.kill(os.getpid(), signal.SIGKILL)
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[3:], sys.argv[2] == "die"))
"""


def started(path: Path, how: str, names: Sequence[str]) -> subprocess.Popen[str]:
    """A process that is ready to begin calls as soon as it gets a line."""
    command = [sys.executable, "-c", SCRIPT, str(path), how, *names]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def found(path: Path) -> tuple[list[CallRow], list[SpendRow]]:
    async def look() -> tuple[list[CallRow], list[SpendRow]]:
        store = await SqliteStore.open(path, now=ManualClock().now)
        try:
            return await store.calls(), await store.spend(DAY)
        finally:
            await store.close()

    return asyncio.run(look())


def test_a_killed_process_leaves_its_call_open_and_paid_for(tmp_path: Path) -> None:
    """The model may have answered: the money counts, and people see that somebody was cut off."""
    path = tmp_path / "journal.db"
    child = started(path, "die", ["c-1"])
    child.communicate("go\n")
    assert child.returncode == -9
    rows, ledger = found(path)
    assert [(row.id, row.status, row.owner is not None) for row in rows] == [("c-1", "open", True)]
    assert [(line.reserved, line.settled) for line in ledger] == [(3.0, None)]


def test_processes_that_call_at_once_share_the_days_ceiling(tmp_path: Path) -> None:
    """Three dollars each of ten: three calls, whoever comes first."""
    path = tmp_path / "journal.db"
    children = [started(path, "live", [f"c-{who}-{n}" for n in range(4)]) for who in range(3)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    assert [child.wait(600) for child in children] == [0, 0, 0]
    for child in children:
        child.communicate()
    rows, ledger = found(path)
    assert sorted(row.id for row in rows) == [line.key for line in ledger]
    assert [line.reserved for line in ledger] == [3.0, 3.0, 3.0]


def test_of_a_long_runner_output_its_end_is_kept(tmp_path: Path) -> None:
    """The summary of what failed comes last; megabytes of dots would make every statistic slow."""

    async def look() -> None:
        store = await SqliteStore.open(tmp_path / "journal.db", now=ManualClock().now)
        await store.begin_call(call())
        await store.end_call(ended(call()), [attempt(runner_output="." * KEPT + "1 failed")])
        (row,) = await store.attempts(call="c-1")
        assert len(row.runner_output) == KEPT
        assert row.runner_output.endswith("1 failed")
        await store.close()

    asyncio.run(look())
