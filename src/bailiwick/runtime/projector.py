"""Run directories off the walk: one thread for all runs of the process, fed after the commit, never in the way of it.

A run that gets too far behind is not queued any further: its events are in the journal, and its directory is made from
there as soon as the queue is empty. So memory is bounded and `submit` never waits.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.clock import SystemClock
from bailiwick.engine.events import Entry
from bailiwick.errors import Problem
from bailiwick.journal.rows import RunRow
from bailiwick.runtime.facts import RunFacts
from bailiwick.runtime.history import RunReader
from bailiwick.runtime.projection import LAZY, Projection, rebuild
from bailiwick.runtime.rendering import Redact, unredacted
from bailiwick.runtime.run_directory import History

if TYPE_CHECKING:
    import asyncio

__all__ = ["History", "Projection", "Projector", "RunFacts", "rebuild"]

LIMIT = 10_000
"""Queued events, of all runs, above which a run is left to its journal."""
LINGER = 0.05
"""Seconds that a batch waits for others before files are written; asking for them (`drain`, `forget`) does not wait."""
HURRY = 1_000
"""Queued events that are not waited with."""
RETRY = 5.0
"""Seconds between two tries to write a directory that could not be written."""


@dataclass(slots=True, eq=False)
class _Followed:
    """A run that is being followed; `behind` means that its directory waits for its journal to be read."""

    run_id: str
    projection: Projection
    upto: int = 0
    behind: bool = False
    due: float | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    """Events of a run to take in; None ends the following."""

    run: _Followed
    batch: Sequence[Entry] | None


class Projector:
    """Follows runs. All methods may be called from any thread; the thread starts with the first batch."""

    def __init__(
        self, monotonic: Callable[[], float] | None = None, *, limit: int = LIMIT, redact: Redact = unredacted
    ) -> None:
        self._monotonic = monotonic or SystemClock().monotonic
        self._limit = limit
        self._redact = redact
        self._ready = threading.Condition()
        self._runs: dict[str, _Followed] = {}
        self._resting: dict[str, _Followed] = {}
        self._queue: deque[_Job] = deque()
        self._queued = 0
        self._problems: dict[str, Problem] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        self._lingering = False
        self._fresh = True

    def open(self, row: RunRow, root: Path, library: RunReader, history: list[Entry]) -> None:
        """Follow a claimed run into `root`; `history` is its journal, to which its walker adds before `submit`."""

        def upto(last: int) -> list[Entry]:
            return [entry for entry in list(history) if entry[0] <= last]

        with self._ready:
            known = self._resting.pop(row.id, None)
        if known is not None and (known.upto, known.projection.root) == (history[-1][0], root):
            known.projection.resume(upto)
            self.follow(row.id, known.projection)
            return
        projection = Projection(
            root,
            library.definitions.graph,
            library.fetch,
            run=RunFacts(row.workflow, row.run_key, row.id, redact=self._redact),
            history=upto,
            monotonic=self._monotonic,
        )
        self.follow(row.id, projection)

    def keep(self, run_id: str, most: int) -> None:
        """When this run is forgotten, keep its image for whoever opens it next; of `most` runs at once."""
        with self._ready:
            run = self._runs.get(run_id)
            if run is not None and not run.behind:
                run.projection.kept = True
                self._resting[run_id] = run
            while len(self._resting) > most:
                del self._resting[next(iter(self._resting))]

    def follow(self, run_id: str, projection: Projection) -> None:
        """Follow a run with this projection, which is the projector's from now on; one before it is closed first."""
        self.forget(run_id)
        with self._ready:
            self._runs[run_id] = _Followed(run_id, projection)

    def submit(self, run_id: str, batch: Sequence[Entry]) -> None:
        """Hand over durable events of a run that was opened. Returns at once."""
        if not batch:
            return
        with self._ready:
            run = self._runs[run_id]
            run.upto = batch[-1][0]
            if self._closed or run.behind:
                return
            if self._queued + len(batch) > self._limit:
                self._leave_behind(run)
            else:
                self._put(_Job(run, batch))
            self._start()

    def forget(self, run_id: str) -> None:
        """Write everything of a run, then keep nothing of it in memory: it is over, parked or another's."""
        with self._ready:
            run = self._runs.pop(run_id, None)
            if run is not None and not self._closed:
                self._put(_Job(run, None))
                self._start()

    def problem(self, run_id: str) -> Problem | None:
        """Why a run's directory is not up to date, or None."""
        return self._problems.get(run_id)

    async def drain(self) -> None:
        """Return when everything submitted before is on disk, or could not be written."""
        if self._thread is not None and self._thread.is_alive():
            await self._signal()

    async def close(self) -> None:
        """Write everything, end the thread. What is submitted afterwards is left to the journal."""
        with self._ready:
            for run_id in list(self._runs):
                self._put(_Job(self._runs.pop(run_id), None))
            alive = self._thread is not None and not self._closed
            self._closed = True
        if alive and self._thread is not None:
            await self._signal()
            self._thread.join()

    async def _signal(self) -> None:
        import asyncio

        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._ready:
            self._waiting.append(done)
            self._ready.notify()
        await done

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="bailiwick-projector", daemon=True)
            self._thread.start()

    def _put(self, job: _Job) -> None:
        self._queue.append(job)
        self._queued += len(job.batch or ())
        if not self._lingering or self._queued > HURRY or job.batch is None:
            self._ready.notify()

    def _leave_behind(self, run: _Followed) -> None:
        """Drop what is queued of the run: its journal has it."""
        run.behind, run.due = True, self._monotonic()
        self._queue = deque(job for job in self._queue if job.run is not run)
        self._queued = sum(len(job.batch or ()) for job in self._queue)
        self._ready.notify()

    def _serve(self) -> None:
        while True:
            with self._ready:
                self._linger()
                job = self._next_job()
                due = self._due_runs()
                if not job and not due and not self._waiting:
                    self._ready.wait(self._pause())
                    continue
                waiting: list[asyncio.Future[None]] = []
                if not job:
                    waiting, self._waiting = self._waiting, waiting
                due = list(self._runs.values()) if waiting else due
                ended = self._closed and bool(waiting)
            if job:
                self._take(job)
            for run in due:
                self._settle(run, everything=bool(waiting))
            _wake(waiting)
            if ended:
                return

    def _linger(self) -> None:
        """Let a batch wait for the next ones: waking a thread for each commit costs the walk more than the files do."""
        if self._fresh and not self._waiting and not self._closed and 0 < self._queued <= HURRY:
            self._lingering = True
            self._ready.wait(LINGER)
            self._lingering = False
        self._fresh = not self._queue

    def _next_job(self) -> _Job | None:
        if not self._queue:
            return None
        job = self._queue.popleft()
        self._queued -= len(job.batch or ())
        return job

    def _due_runs(self) -> list[_Followed]:
        """Runs to look at now; one that is behind waits until the queue is empty."""
        now = self._monotonic()
        due = [run for run in self._runs.values() if run.due is not None and run.due <= now]
        return [run for run in due if not run.behind or not self._queue]

    def _pause(self) -> float | None:
        due = min((run.due for run in self._runs.values() if run.due is not None), default=None)
        return None if due is None else max(0.0, due - self._monotonic())

    def _take(self, job: _Job) -> None:
        """Take a batch in and write what is over. A directory that has to be read back waits: resuming goes first."""
        run, projection = job.run, job.run.projection
        if job.batch is None:
            self._settle(run, everything=True, last=True)
            return
        try:
            for seq, at, event in job.batch:
                projection.apply(seq, at, event)
            if not projection.stale:
                projection.flush()
        except Exception as error:  # noqa: BLE001  the thread serves every run; it is told to the person who asks
            projection.fail(error)
        self._note(run)

    def _settle(self, run: _Followed, *, everything: bool, last: bool = False) -> None:
        with self._ready:
            behind, upto, run.behind = run.behind, run.upto, False
        projection = run.projection
        try:
            if behind:
                projection.skip_to(upto)
            if last:
                projection.close()
            else:
                projection.flush(everything=everything)
        except Exception as error:  # noqa: BLE001  as above
            projection.fail(error)
        self._note(run)

    def _note(self, run: _Followed) -> None:
        """Keep the problem for whoever asks, and when to look at the run again."""
        projection = run.projection
        with self._ready:
            if projection.problem is None:
                self._problems.pop(run.run_id, None)
            else:
                self._problems[run.run_id] = projection.problem
            now = self._monotonic()
            if projection.settled and not run.behind:
                run.due = None
            elif run.due is None or run.due <= now:
                run.due = now + (RETRY if projection.problem is not None else LAZY)


def _wake(waiting: list[asyncio.Future[None]]) -> None:
    for future in waiting:
        try:
            future.get_loop().call_soon_threadsafe(_resolve, future)
        except RuntimeError:  # the loop is closed: nobody waits any more
            continue


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
