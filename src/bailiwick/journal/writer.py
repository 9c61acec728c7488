"""The one writer of a process: a thread that puts what is queued into one transaction, so that many pay one fsync.

On a quick disk an operation that comes alone is carried out where it was asked for: waking a thread and being woken by
it would cost as much as the commit. A commit that took long, another process that writes, or others in the queue send
operations to the thread again, so the event loop is never held up for longer than a quick commit takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw

from bailiwick.clock import SystemClock
from bailiwick.crashpoints import reach
from bailiwick.errors import StoreError
from bailiwick.journal.blobs import remove_file
from bailiwick.journal.connection import (
    DAMAGE,
    MEDIUM,
    STILL_GOOD,
    TRIES,
    connect,
    may_pass,
    prepare,
    refuse_newer,
    translate,
)
from bailiwick.journal.marks import Marks
from bailiwick.journal.queries import query
from bailiwick.journal.transaction import Transaction

T = TypeVar("T")

GROUP = 256
"""The most operations in one transaction."""
QUICK = 0.005
"""Seconds a commit may take for the next one to be made without the thread."""
WARY = 50
"""Operations that go to the thread after a commit that took longer."""


Operation = Callable[[Transaction], T]


@dataclass(slots=True)
class _Job:
    operation: Operation[Any]
    future: asyncio.Future[Any] | Future[Any]


@dataclass(frozen=True, slots=True)
class _Outcome:
    result: Any = None
    error: Exception | None = None


class Writer:
    """Carries out operations in the order they came; each is atomic, and one that raises takes only itself back."""

    def __init__(self, path: Path, *, busy_timeout: float, now: Callable[[], float]) -> None:
        self._path = path
        self._busy_timeout = busy_timeout
        self._now = now
        self._db: apsw.Connection | None = None
        self._prepared = False
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._guard = threading.Lock()
        self._closed = False
        self._queued = 0
        self._wary = 0
        self._monotonic = SystemClock().monotonic
        self._version = 0
        self._foreign = 0
        self._committing = False
        self.marks = Marks(path)
        self._thread = threading.Thread(target=self._serve, name="bailiwick-journal", daemon=True)
        self._thread.start()

    async def do(self, operation: Operation[T]) -> T:
        """Carry out one operation; durable when this returns. A caller that is cancelled does not take it back."""
        if self._closed:
            raise StoreError(f"{self._path}: the store is closed")
        if (outcome := self._at_once(operation)) is not None:
            if outcome.error is not None:
                raise outcome.error
            done: T = outcome.result
            return done
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queued += 1
        self._queue.put(_Job(operation, future))
        return await future

    def do_blocking(self, operation: Operation[T]) -> T:
        """Carry out one operation for a thread that has no event loop and waits for it."""
        if self._closed:
            raise StoreError(f"{self._path}: the store is closed")
        future: Future[T] = Future()
        self._queued += 1
        self._queue.put(_Job(operation, future))
        return future.result()

    def _at_once(self, operation: Operation[T]) -> _Outcome | None:
        """Carry an operation out here and now, if nobody else writes and the disk was quick of late; else None."""
        if self._db is None or self._queued or not self._guard.acquire(blocking=False):
            return None
        try:
            if self._wary > 0 or not self._begun_alone(self._db):
                self._wary -= 1
                return None
            return self._settled([operation])[0]
        finally:
            self._guard.release()

    def _begun_alone(self, db: apsw.Connection) -> bool:
        """Begin a transaction without waiting; False when another process is writing, or the file can't be written."""
        db.set_busy_timeout(0)
        try:
            db.execute("BEGIN IMMEDIATE")
        except apsw.Error:
            return False
        finally:
            db.set_busy_timeout(int(self._busy_timeout * 1000))
        return True

    def news(self) -> int:
        """How often another connection than the writer's was seen to have committed. Cheap, and never waits."""
        if self._guard.acquire(blocking=False):
            try:
                if self._db is not None:
                    self._notice(self._db)
            except apsw.Error as error:
                raise translate(error, self._path) from error
            finally:
                self._guard.release()
        return self._foreign

    async def close(self) -> None:
        """Carry out what is queued, then end the thread and close the file."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _serve(self) -> None:
        while (first := self._queue.get()) is not None:
            jobs = [first]
            ended = False
            while len(jobs) < GROUP and not self._queue.empty():
                job = self._queue.get()
                if job is None:
                    ended = True
                    break
                jobs.append(job)
            _answer(jobs, self._carry_out(jobs))
            if ended:
                break
        self._drop()
        self.marks.close()

    def _carry_out(self, jobs: Sequence[_Job]) -> list[_Outcome]:
        """One transaction for all jobs. An error of the medium is the answer to each of them."""
        with self._guard:
            self._queued -= len(jobs)
            error = self._begin()
            if error is not None:
                return [_Outcome(error=translate(error, self._path)) for _ in jobs]
            return self._settled([job.operation for job in jobs])

    def _begin(self) -> Exception | None:
        """Begin a transaction; one that can't even be read for a moment is tried again. Gives what stood in the way."""
        for left in reversed(range(TRIES)):
            try:
                self._connection().execute("BEGIN IMMEDIATE")
            except Exception as error:  # noqa: BLE001 - not swallowed: it is every caller's answer
                self._recover(error)
                if not left or not may_pass(error):
                    return error
            else:
                return None
        return None

    def _settled(self, operations: Sequence[Operation[Any]]) -> list[_Outcome]:
        """Carry out operations in the transaction that was begun, and commit it.

        What fails before the commit for a reason that may pass has changed nothing, and is done again.
        """
        began = self._monotonic()
        for left in reversed(range(TRIES)):
            self._committing = False
            try:
                transaction = Transaction(self._connection(), self._path.parent)
                outcomes = self._commit(transaction, operations)
                break
            except Exception as failed:  # noqa: BLE001 - not swallowed: it is every caller's answer
                self._recover(failed)
                error: Exception | None = failed
                if left and not self._committing and may_pass(failed):
                    error = self._begin()
                if error is not None:
                    return [_Outcome(error=translate(error, self._path)) for _ in operations]
        if self._monotonic() - began > QUICK:
            self._wary = WARY
        self.marks.note(transaction.advanced)
        for point in transaction.points:
            reach(point)
        self._discard(transaction)
        return outcomes

    def _commit(self, transaction: Transaction, operations: Sequence[Operation[Any]]) -> list[_Outcome]:
        db = transaction.db
        refuse_newer(db, self._path)
        self._notice(db)
        outcomes = [self._attempt(transaction, operation) for operation in operations]
        self.marks.place(transaction, (run_id for run_id, _ in transaction.advanced))
        if transaction.removed:
            self.marks.forget(transaction.removed)
        if "append.after_commit" in transaction.points:
            reach("append.before_commit")
        self._committing = True
        db.execute("COMMIT")
        return outcomes

    def _attempt(self, transaction: Transaction, operation: Operation[Any]) -> _Outcome:
        db, before = transaction.db, transaction.lengths()
        db.execute("SAVEPOINT operation")
        try:
            result = operation(transaction)
        except Exception as error:
            if _ends_transaction(error) or not db.in_transaction:
                raise
            db.execute("ROLLBACK TO operation")
            db.execute("RELEASE operation")
            transaction.cut(before)
            return _Outcome(error=translate(error, self._path))
        db.execute("RELEASE operation")
        return _Outcome(result)

    def _connection(self) -> apsw.Connection:
        if self._db is None:
            if self._prepared:
                self._db = connect(self._path, self._busy_timeout)
                self._foreign += 1
            else:
                self._db = prepare(self._path, self._busy_timeout, self._now)
                self._prepared = True
            self._version = self._db.pragma("data_version")
        return self._db

    def _recover(self, error: Exception) -> None:
        """Leave a connection that works: roll back, or let go so that the next transaction opens a new one."""
        if self._db is None:
            return
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except apsw.Error:
            self._drop()
        if isinstance(error, MEDIUM + DAMAGE) and not isinstance(error, STILL_GOOD):
            self._drop()

    def _drop(self) -> None:
        if self._db is not None:
            with contextlib.suppress(apsw.Error):
                self._db.close(True)
            self._db = None

    def _notice(self, db: apsw.Connection) -> None:
        version = db.pragma("data_version")
        if version != self._version:
            self._version = version
            self._foreign += 1

    def _discard(self, transaction: Transaction) -> None:
        """Remove files of deleted blobs, unless one came back meanwhile. What can't be removed is only space."""
        if not transaction.discarded:
            return
        db = transaction.db
        with contextlib.suppress(apsw.Error, OSError):
            db.execute("BEGIN IMMEDIATE")
            for digest in transaction.discarded:
                if db.execute(query("blob.known"), (digest,)).fetchone() is None:
                    remove_file(transaction.directory, digest)
        with contextlib.suppress(apsw.Error):
            if db.in_transaction:
                db.execute("COMMIT")


def _ends_transaction(error: Exception) -> bool:
    """Whether the database, not just this operation, is in trouble; a failed blob file concerns its batch alone."""
    return isinstance(error, MEDIUM + DAMAGE) and not isinstance(error, OSError)


def _answer(jobs: Sequence[_Job], outcomes: Sequence[_Outcome]) -> None:
    """Wake each event loop once, with all its answers, and each thread that waits by itself."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], _Outcome]]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        if isinstance(job.future, Future):
            _resolve([(job.future, outcome)])
            continue
        by_loop.setdefault(job.future.get_loop(), []).append((job.future, outcome))
    for loop, answers in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, answers)


def _resolve(answers: Sequence[tuple[asyncio.Future[Any] | Future[Any], _Outcome]]) -> None:
    for future, outcome in answers:
        if future.done():
            continue
        if outcome.error is not None:
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome.result)
