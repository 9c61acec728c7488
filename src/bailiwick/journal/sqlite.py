"""The SQLite store: one file, one writer thread per process, readers that never hold it back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import apsw

from bailiwick.clock import SystemClock
from bailiwick.errors import JournalCorrupt, StoreUnavailable
from bailiwick.ids import Json
from bailiwick.journal import appends, calls, documents, inbox, lists, runs
from bailiwick.journal.blobs import checked, keep_definition, missing, read_file
from bailiwick.journal.columns import checked_event, decode, inbox_row, run_row, spend_row, wait_row
from bailiwick.journal.connection import ReadConnection, translate
from bailiwick.journal.marks import Loss, find_losses, record_losses
from bailiwick.journal.port import EVERY_RUN, EVERY_WAIT, Store
from bailiwick.journal.queries import query, runs_where
from bailiwick.journal.rows import (
    AttemptRow,
    Batch,
    CallRow,
    ClaimFilter,
    Document,
    InboxRow,
    Message,
    NewRun,
    Owner,
    PinnedFile,
    Reservation,
    RunClaim,
    RunFilter,
    RunRow,
    Spender,
    SpendRow,
    StoredEvent,
    WaitFilter,
    WaitRow,
)
from bailiwick.journal.slots import FileSlots
from bailiwick.journal.transaction import Transaction
from bailiwick.journal.writer import Operation, T, Writer

PATIENCE = 60.0
"""Seconds that a command waits for another process that writes, before it gives up; holders wait for ever."""
BUSY_TIMEOUT = 5.0
"""Seconds to wait for other processes before a write counts as failed; below what a lease leaves for renewing."""

LOOK = 0.05
"""Seconds between two looks at whether another process has written; twice as many after so many without news."""
QUIET = 100
END = 2**63 - 1


class SqliteStore(Store):
    """Keeps journals in a SQLite file. Writes go to the writer thread, reads happen at once on the caller's."""

    def __init__(self, path: Path, writer: Writer, reader: ReadConnection) -> None:
        self.path = path
        self._writer = writer
        self._reader = reader
        self._quiet = 0
        self.losses: tuple[Loss, ...] = ()
        """What was missing when the store was opened; told once."""

    @classmethod
    async def open(cls, path: Path, *, now: Callable[[], float], busy_timeout: float = BUSY_TIMEOUT) -> SqliteStore:
        """Open the store of this file and make it if it is not there; `now` dates the changes of its schema."""
        writer = Writer(path, busy_timeout=busy_timeout, now=now)
        try:
            losses = await patiently(writer, lambda tx: find_losses(tx, writer.marks, now()))
        except BaseException:
            await writer.close()
            raise
        store = cls(path, writer, ReadConnection(path, busy_timeout))
        store.losses = losses
        record_losses(path, losses, now())
        writer.marks.forget(loss.slot for loss in losses)
        return store

    async def create(self, run: NewRun, claim: RunClaim | None = None, batch: Batch | None = None) -> RunRow:
        return await patiently(self._writer, lambda tx: appends.create(tx, run, claim, batch))

    async def run(self, run_id: str) -> RunRow | None:
        rows = self._reader.rows(runs_where("run.by_id"), {"id": run_id})
        return run_row(rows[0]) if rows else None

    async def find(self, workflow: str, run_key: str) -> RunRow | None:
        rows = self._reader.rows(runs_where("run.by_name"), {"workflow": workflow, "run_key": run_key})
        return run_row(rows[0]) if rows else None

    async def runs(
        self, which: RunFilter = EVERY_RUN, *, limit: int | None = None, before: str | None = None
    ) -> list[RunRow]:
        place = self._reader.rows(query("run.listed_at"), (before,)) if before is not None else []
        if before is not None and not place:
            return []
        return [run_row(row) for row in self._reader.rows(*lists.runs(which, limit, place[0] if place else None))]

    async def claim(
        self, owner: Owner, now: float, lease_until: float, reader: int, which: ClaimFilter
    ) -> RunRow | None:
        return await self._writer.do(
            lambda tx: runs.claim(tx, owner, times=(now, lease_until), reader=reader, which=which)
        )

    async def held(self, now: float, which: ClaimFilter) -> list[RunRow]:
        bindings = {"now": now, "run_id": which.run_id, "root_id": which.root_id}
        return [run_row(row) for row in self._reader.rows(runs_where("run.held"), bindings)]

    async def seize(self, run_id: str, epoch: int, claim: RunClaim) -> RunRow | None:
        return await self._writer.do(lambda tx: runs.seize(tx, run_id, epoch, claim))

    def renew(self, leases: Mapping[str, int], lease_until: float) -> set[str]:
        return self._writer.do_blocking(lambda tx: runs.renew(tx, leases, lease_until))

    async def release(self, run_id: str, epoch: int, wake_at: float | None) -> bool:
        return await self._writer.do(lambda tx: runs.release(tx, run_id, epoch, wake_at))

    async def append(self, run_id: str, epoch: int, batch: Batch) -> int:
        return await self._writer.do(lambda tx: appends.append(tx, run_id, epoch, batch))

    async def read(self, run_id: str, after: int = 0, upto: int | None = None) -> list[StoredEvent]:
        bindings = (run_id, after, END if upto is None else upto)
        return [checked_event(run_id, row) for row in self._reader.rows(query("event.read"), bindings)]

    def blob(self, digest: str) -> bytes:
        rows = self._reader.rows(query("blob.read"), (digest,))
        if not rows:
            raise missing(digest)
        if rows[0][0] is not None:
            return checked(digest, rows[0][0])
        try:
            return checked(digest, read_file(self.path.parent, digest))
        except OSError as error:
            raise translate(error, self.path) from error

    async def send(self, message: Message) -> bool:
        return await patiently(self._writer, lambda tx: inbox.send(tx, message))

    async def inbox(self, run_id: str) -> list[InboxRow]:
        return [inbox_row(row) for row in self._reader.rows(query("inbox.read"), (run_id,))]

    async def define(self, digest: str, body: Json, files: Sequence[PinnedFile] = ()) -> None:
        known = self._reader.rows(query("definition.read"), (digest,))
        if not known or len(self._reader.rows(query("definition.files"), (digest,))) < len(files):
            await patiently(self._writer, lambda tx: keep_definition(tx, digest, body, files))

    async def definition_files(self, digest: str) -> list[PinnedFile]:
        rows = self._reader.rows(query("definition.files"), (digest,))
        return [PinnedFile(name, self.blob(content), bool(executable)) for name, content, executable in rows]

    async def definition(self, digest: str) -> Json:
        rows = self._reader.rows(query("definition.read"), (digest,))
        if not rows:
            raise JournalCorrupt(f"definition {digest} is gone", hint="restore the state directory from a backup")
        return decode(rows[0][0])

    async def waits(
        self, which: WaitFilter = EVERY_WAIT, *, limit: int | None = None, after: WaitRow | None = None
    ) -> list[WaitRow]:
        return [wait_row(row) for row in self._reader.rows(*lists.waits(which, limit, after))]

    async def spend(self, scope: str) -> list[SpendRow]:
        return [spend_row(row) for row in self._reader.rows(query("spend.read"), (scope,))]

    async def spenders(self, scope: str) -> list[Spender]:
        return [Spender(*row) for row in self._reader.rows(query("spend.spenders"), {"scope": scope})]

    async def bucket_take(self, name: str, now: float, patience: float) -> float:
        if not self._reader.rows(query("bucket.read"), (name,)):
            return 0.0
        return await self._writer.do(lambda tx: _take_bucket(tx, name, now, patience))

    async def bucket_until(self, name: str) -> float:
        return max(
            (float(until) for row in self._reader.rows(query("bucket.read"), (name,)) for until in row), default=0.0
        )

    async def bucket_report(self, name: str, blocked_until: float | None) -> None:
        if blocked_until is None and not self._reader.rows(query("bucket.read"), (name,)):
            return
        await self._writer.do(lambda tx: _report_bucket(tx, name, blocked_until))

    async def begin_call(self, row: CallRow, reserve: Sequence[Reservation] = ()) -> None:
        await self._writer.do(lambda tx: calls.begin(tx, row, reserve))

    async def end_call(
        self, row: CallRow, attempts: Sequence[AttemptRow], spent: Mapping[str, float | None] | None = None
    ) -> None:
        await self._writer.do(lambda tx: calls.end(tx, row, attempts, spent or {}))

    async def calls(
        self,
        *,
        since: float | None = None,
        session: str | None = None,
        id: str | None = None,  # noqa: A002 - the column's name
        limit: int = 1_000,
    ) -> list[CallRow]:
        rows = self._reader.rows(*lists.calls(since=since, session=session, id=id, limit=limit))
        return [calls.call_row(row) for row in rows]

    async def attempts(self, *, since: float | None = None, call: str | None = None) -> list[AttemptRow]:
        bindings = {"since": _beginning(since)}
        if call is None:
            rows = self._reader.rows(query("attempt.listed"), bindings)
        else:
            rows = self._reader.rows(query("attempt.of_call"), {**bindings, "call": call})
        return [calls.attempt_row(row) for row in rows]

    async def cooldown(self, name: str) -> tuple[int, float]:
        rows = self._reader.rows(query("cooldown.read"), (name,))
        return rows[0] if rows else (0, 0.0)

    async def cooldown_report(self, name: str, failures: int, until: float) -> None:
        if failures or self._reader.rows(query("cooldown.read"), (name,)):
            await self._writer.do(lambda tx: calls.report(tx, name, failures, until))

    async def document(self, kind: str, id: str) -> Document | None:  # noqa: A002
        rows = self._reader.rows(query("document.read"), {"kind": kind, "id": id})
        return documents.row(rows[0]) if rows else None

    async def documents(self, kind: str, *, limit: int | None = None, after: str = "") -> list[Document]:
        bindings = {"kind": kind, "after": after, "most": END if limit is None else limit}
        return [documents.row(columns) for columns in self._reader.rows(query("document.listed"), bindings)]

    async def put_document(self, kind: str, id: str, body: Json, version: int = 0) -> Document:  # noqa: A002
        return await patiently(self._writer, lambda tx: documents.put(tx, Document(kind, id, version, body)))

    async def drop_document(self, kind: str, id: str, version: int) -> None:  # noqa: A002
        await patiently(self._writer, lambda tx: documents.drop(tx, kind, id, version))

    def slot(self, endpoint: str, most: int) -> AbstractAsyncContextManager[None]:
        return FileSlots(self.path.parent / "endpoints").hold(endpoint, most)

    async def archive(self, run_id: str) -> None:
        await self._writer.do(lambda tx: runs.archive(tx, run_id))

    async def delete(self, run_id: str) -> None:
        await self._writer.do(lambda tx: runs.delete(tx, run_id))

    async def next_wake(self) -> float | None:
        rows = self._reader.rows(query("run.next_wake"))
        return float(rows[0][0]) if rows else None

    async def wait_for_news(self, seen: int | None = None, timeout: float | None = None) -> int:
        monotonic = SystemClock().monotonic
        until = None if timeout is None else monotonic() + timeout
        while True:
            news = self._writer.news()
            self._quiet = self._quiet + 1 if news == seen else 0
            if news != seen or (until is not None and monotonic() >= until):
                return news
            await asyncio.sleep(LOOK if self._quiet < QUIET else 2 * LOOK)

    async def close(self) -> None:
        self._reader.close()
        await self._writer.close()


async def patiently(writer: Writer, operation: Operation[T]) -> T:
    """Carry out what a command asks for; while another process is in the middle of a write, it is tried again."""
    monotonic = SystemClock().monotonic
    deadline = monotonic() + PATIENCE
    while True:
        try:
            return await writer.do(operation)
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, apsw.BusyError | apsw.LockedError) or monotonic() >= deadline:
                raise


def _beginning(since: float | None) -> float:
    return 0.0 if since is None else since


def _take_bucket(tx: Transaction, name: str, now: float, patience: float) -> float:
    """0 to go ahead, else the seconds to wait. After a window the first that asks probes for `patience` seconds."""
    if tx.one("bucket.probe", {"name": name, "now": now, "until": now + patience}) is not None:
        return 0.0
    blocked, probed = tx.one("bucket.read", (name,)) or (0.0, 0.0)
    return max(0.0, float(blocked if blocked > now else probed) - now)


def _report_bucket(tx: Transaction, name: str, blocked_until: float | None) -> None:
    """A limit closes the bucket until then; None opens it."""
    if blocked_until is None:
        tx.do("bucket.clear", (name,))
    else:
        tx.do("bucket.block", (name, blocked_until))
