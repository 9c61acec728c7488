"""The SQLite store keeps every promise of the port."""

from __future__ import annotations

from pathlib import Path

from bailiwick.clock import ManualClock
from bailiwick.journal.port import Store
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.testing.store_conformance import StoreConformance


class TestSqlite(StoreConformance):
    """The suite, on a file in a directory of its own."""

    async def open(self, tmp_path: Path) -> Store:
        return await SqliteStore.open(tmp_path / "state" / "journal.db", now=ManualClock().now)
