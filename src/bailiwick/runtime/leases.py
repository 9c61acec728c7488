"""What this process holds: claimed here, kept by a thread of its own, given up here.

The thread renews whatever the event loop is doing: a loop that is late, because of load or because the process was
stopped, loses no lease while nobody else has taken the run. And whoever claims in this process claims through here, so
that a run which is being walked is never claimed a second time by its own holder.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from bailiwick.clock import Clock
from bailiwick.errors import StoreError, StoreUnavailable
from bailiwick.journal.port import Store
from bailiwick.journal.rows import ClaimFilter, Owner, RunRow
from bailiwick.processes.owner import is_dead

LEASE = 15.0
RENEW = 5.0
MARGIN = 10.0
READER = 1


class Holder(Protocol):
    """Who walks under a lease, and hears on its event loop what becomes of it."""

    def taken_over(self) -> None:
        """Another process has the run."""

    def suspend(self) -> None:
        """The lease could not be renewed in time."""

    def go_on(self) -> None:
        """The lease is renewed."""


@dataclass(slots=True)
class Lease:
    """One run that this process holds."""

    run_id: str
    epoch: int
    until: float
    loop: asyncio.AbstractEventLoop
    holder: Holder | None = None


class Leases:
    """The leases of one process on one store."""

    def __init__(self, store: Store, clock: Clock, on_trouble: Callable[[str, str], None]) -> None:
        self._store = store
        self._clock = clock
        self._on_trouble = on_trouble
        self._held: dict[str, Lease] = {}
        self._one = asyncio.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    async def claim(self, owner: Owner, which: ClaimFilter) -> RunRow | None:
        """Take one run, from an owner proved dead too, but none that this process holds; it is renewed from now on."""
        async with self._one:
            which = replace(which, without=tuple(self._held))
            row = await self._claim(owner, which)
            if row is None:
                now = self._clock.now()
                stale = [r for r in await self._store.held(now, which) if r.id not in self._held]
                dead = tuple((r.id, r.epoch) for r in stale if r.owner and is_dead(r.owner, owner))
                row = await self._claim(owner, replace(which, dead=dead)) if dead else None
            if row is not None:
                self._held[row.id] = Lease(row.id, row.epoch, row.lease_until, asyncio.get_running_loop())
                self._start()
            return row

    async def _claim(self, owner: Owner, which: ClaimFilter) -> RunRow | None:
        now = self._clock.now()
        return await self._store.claim(owner, now, lease_until=now + LEASE, reader=READER, which=which)

    def keep_for(self, row: RunRow, holder: Holder) -> None:
        """Say who walks a claimed run."""
        self._held[row.id].holder = holder

    def drop(self, row: RunRow) -> None:
        """The run is not walked here any more: it is renewed no longer and may be claimed again."""
        lease = self._held.get(row.id)
        if lease is not None and lease.epoch == row.epoch:
            del self._held[row.id]

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="bailiwick-leases", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while not self._ended.wait(RENEW):
            self.renew()

    def renew(self) -> None:
        """Renew the lease of every run that is held, expired or not: only an epoch that has moved on is a loss."""
        leases = list(self._held.values())
        if not leases:
            return
        until = self._clock.now() + LEASE
        try:
            lost = self._store.renew({lease.run_id: lease.epoch for lease in leases}, until)
        except StoreUnavailable as error:
            self._late(leases, error)
            return
        except StoreError:  # it is closed, or a newer version's: whoever appends next is told
            return
        for lease in leases:
            if lease.run_id in lost:
                self._tell(lease, lambda holder: holder.taken_over())
            else:
                lease.until = until
                self._tell(lease, lambda holder: holder.go_on())

    def _late(self, leases: list[Lease], error: StoreUnavailable) -> None:
        now = self._clock.now()
        for lease in leases:
            self._call(lease, partial(self._on_trouble, lease.run_id, f"the lease could not be renewed: {error.what}"))
            if now >= lease.until - MARGIN:
                self._tell(lease, lambda holder: holder.suspend())

    def _tell(self, lease: Lease, what: Callable[[Holder], None]) -> None:
        """Tell the holder on its own loop, unless it has let go meanwhile."""

        def tell() -> None:
            if self._held.get(lease.run_id) is lease and lease.holder is not None:
                what(lease.holder)

        self._call(lease, tell)

    def _call(self, lease: Lease, what: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody walks any more
            lease.loop.call_soon_threadsafe(what)

    async def close(self) -> None:
        """End the thread; what is still held is left to its lease."""
        self._ended.set()
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
