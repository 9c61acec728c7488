"""Learned routing at work: keeps the estimates of a process up to date with the store, and enters chains by them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.clock import Clock
from bailiwick.journal.port import Store
from bailiwick.journal.rows import AttemptRow
from bailiwick.routing.estimates import Estimates, records
from bailiwick.routing.learned import Aims, StartQuery, choose_start, start_chain
from bailiwick.routing.model import Chain, Job

MEMORY = 90 * 86_400.0
"""Seconds of record that are read at first."""
OVERLAP = 3_600.0
"""Seconds that are read again: attempts are on record only when their call has ended."""
FRESH = 60.0
"""Seconds for which what was read is good enough; a call or two change nothing."""
MOST_SIZE = 256 << 10
"""A task counts as no longer than this; more of its files is not shown to anybody."""


@dataclass(slots=True, kw_only=True)
class LearnedStarts:
    """Where each chain is entered, by all calls on record, other processes' too. One for a process."""

    store: Store
    clock: Clock
    aims: Aims = field(default_factory=Aims)
    _known: Estimates = field(default_factory=Estimates)
    _learnt: dict[str, float] = field(default_factory=dict)
    _newest: float | None = None
    _looked: float | None = None

    async def __call__(self, job: Job, chain: Chain, call: str) -> Chain:
        """The chain from where this call starts on, with the reason; as it was where too little is known."""
        if self._looked is None or self.clock.monotonic() - self._looked >= FRESH:
            self._looked = self.clock.monotonic()
            await self._catch_up()
        ask = StartQuery(call, job.skill, job_size(job), job.seconds)
        return start_chain(chain, choose_start(chain, self._known, ask, self.aims))

    async def _catch_up(self) -> None:
        """Learn from calls that ended since the last look, each once, in the order in which they began."""
        since = self.clock.now() - MEMORY if self._newest is None else self._newest - OVERLAP
        calls: dict[str, list[AttemptRow]] = {}
        for row in await self.store.attempts(since=since):
            if row.call not in self._learnt:
                calls.setdefault(row.call, []).append(row)
        if not calls:
            return
        sizes = {row.id: row.size for row in await self.store.calls(since=since - OVERLAP, limit=-1)}
        for name, rows in calls.items():
            if rows[0].attempt > 1:  # its beginning lies before what is read
                continue
            for record in records(rows[0].skill, sizes.get(name, rows[0].size), rows):
                self._known.learn(record)
            self._learnt[name] = rows[0].at
        newest = max(self._learnt.values(), default=since)
        self._learnt = {name: at for name, at in self._learnt.items() if at >= newest - 2 * OVERLAP}
        self._newest = newest


def job_size(job: Job) -> int:
    """How much a call is about, in characters: its task and the files that it names, as far as they are shown."""
    total = len(job.task)
    for name in job.files:
        try:
            total += Path(job.root, name).stat().st_size
        except OSError:
            continue
    return min(total, MOST_SIZE)
