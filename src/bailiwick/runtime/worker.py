"""A worker: claims ready runs, walks them side by side, keeps their leases, wakes them when something arrives."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bailiwick import crashpoints
from bailiwick.errors import BailiwickError, LeaseLost, NotFound, StoreUnavailable
from bailiwick.journal.rows import ClaimFilter, Message, Owner, RunFilter, RunRow
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.layout import read_bookmark
from bailiwick.runtime.supervise import Supervisor, wait_set
from bailiwick.runtime.walker import Walker

UPGRADE_CHECK, WHILE_BUSY = 0.5, 0.05
"""Seconds between two looks at whether the installed package is another one now: when idle, and with runs going on."""
DEAD_CHECK = 1.0


@dataclass(slots=True)
class Worker:
    """Takes what `which` allows. `run` returns when `finished` says so and nothing is being walked."""

    runtime: Runtime
    owner: Owner
    which: ClaimFilter
    concurrency: int = 4
    held: dict[str, Walker] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    draining: str = ""
    problem: BaseException | None = None
    _supervisor: Supervisor | None = None

    async def run(self, finished: Callable[[], Awaitable[bool]]) -> None:
        """Serve until `finished` (asked whenever nothing can be claimed) or until told to drain."""
        self._supervisor = Supervisor(self._crashed)
        self.runtime.wakers.add(self.nudge)
        self._supervisor.start(self._look_forever(), "wake-ups")
        try:
            if self.which.root_id is not None:
                await mend(self.runtime, self.which.root_id)
            while self.problem is None:
                claimed = not self.draining and await self._claim_some()
                if self.draining and not self.held:
                    return
                if not claimed and not self.held and not self.draining and await finished():
                    return
                await wait_set(self.wake, await self._pause())
            raise self.problem
        finally:
            self.runtime.wakers.discard(self.nudge)
            await self._let_go()

    def drain(self, why: str, *, now: bool) -> None:
        """Start nothing new; with `now` end the running attempts too, to be entered again by the next owner."""
        self.draining = why
        for walker in self.held.values():
            walker.interrupt = why
            if now:
                walker.effects.cancel()
            walker.wake.set()
        self.wake.set()

    def nudge(self) -> None:
        """Something was sent from this very process."""
        for walker in self.held.values():
            walker.inbox_maybe = True
            walker.wake.set()
        self.wake.set()

    async def _claim_some(self) -> bool:
        taken = False
        await self._wake_overdue()
        while len(self.held) < self.concurrency and not self.draining:
            row = await self._claim()
            if row is None:
                return taken
            taken = True
            try:
                await self._begin(row)
            except BailiwickError as error:
                self.runtime.leases.drop(row)
                self._broken(row, error)
        return taken

    async def _wake_overdue(self) -> None:
        """Make runs due whose span is over although the wall clock, which was set back, says otherwise."""
        now = self.runtime.clock.now()
        for run_id in self.runtime.deadlines.overdue():
            with contextlib.suppress(NotFound):
                await self.runtime.store.send(
                    Message(run_id, kind="wake", dedupe=f"span:{run_id}:{now!r}", body={}, at=now)
                )
            self.nudge()

    async def _claim(self) -> RunRow | None:
        try:
            return await self.runtime.leases.claim(self.owner, self.which)
        except StoreUnavailable as error:
            self.runtime.on_trouble("", error.what)
            return None

    async def _begin(self, row: RunRow) -> None:
        walker = await self.runtime.walker(row, self.owner, self._supervised())
        walker.interrupt = self.draining
        self.held[row.id] = walker
        self.runtime.leases.keep_for(row, walker)
        self._supervised().start(self._walk(walker), f"run {row.workflow} {row.run_key}")

    def _supervised(self) -> Supervisor:
        if self._supervisor is None:
            raise RuntimeError("the worker is not running")
        return self._supervisor

    async def _walk(self, walker: Walker) -> None:
        try:
            await walker.walk()
            crashpoints.reach("claim.released")
        except LeaseLost as error:
            await self._fenced(walker, error)
        except StoreUnavailable as error:
            self.runtime.on_trouble(walker.row.id, error.what)
            walker.sandboxes()
            await walker.effects.drained()
        except BailiwickError as error:
            walker.sandboxes()
            await walker.effects.drained()
            self._broken(walker.row, error)
        finally:
            self.held.pop(walker.row.id, None)
            self.runtime.projector.forget(walker.row.id)
            self.runtime.leases.drop(walker.row)
            self.wake.set()

    async def _fenced(self, walker: Walker, error: LeaseLost) -> None:
        walker.sandboxes()
        await walker.effects.drained()
        self._broken(walker.row, error)

    def _broken(self, row: RunRow, error: BailiwickError) -> None:
        """A run that can't be walked ends a worker that is there for it alone; others are served on."""
        self.runtime.on_trouble(row.id, error.what)
        if row.id in (self.which.run_id, self.which.root_id):
            self.problem = error

    async def _look_forever(self) -> None:
        seen = await self.runtime.store.wait_for_news()
        while True:
            news = await self.runtime.store.wait_for_news(seen, WHILE_BUSY if self.held else UPGRADE_CHECK)
            if news != seen:
                seen = news
                self.nudge()
            if not self.draining and self.runtime.replaced():
                self.drain("upgrade", now=False)

    async def _pause(self) -> float | None:
        """How long nothing can become due: until the next wake_at; a second where an owner may have died."""
        if self.draining or len(self.held) >= self.concurrency:
            return None
        now = self.runtime.clock.now()
        due = await self._next_wake()
        stale = [r for r in await self.runtime.store.held(now, self.which) if r.id not in self.held]
        limits = [max(0.0, due - now) + 0.001] if due is not None else []
        if stale or (due is not None and due <= now):
            limits = [DEAD_CHECK]
        if (left := self.runtime.deadlines.set_back()) is not None:
            limits.append(left + 0.001)
        return min(limits, default=None)

    async def _next_wake(self) -> float | None:
        if self.which.root_id is None:
            return await self.runtime.store.next_wake()
        tree = await self.runtime.store.runs(RunFilter(root_id=self.which.root_id, status=("ready",)))
        return min((r.wake_at for r in tree if r.wake_at is not None and r.owner is None), default=None)

    def _crashed(self, name: str, error: BaseException) -> None:
        self.problem = self.problem or error
        self.runtime.on_trouble("", f"{name}: {type(error).__name__}: {error}")
        self.wake.set()

    async def _let_go(self) -> None:
        for walker in self.held.values():
            walker.sandboxes()
        await self._supervised().close()
        await self.runtime.settle()


async def mend(runtime: Runtime, root_id: str) -> None:
    """Bring the directories of a tree's ended runs up to date: their walker may have died before writing them."""
    for row in await runtime.store.runs(RunFilter(root_id=root_id)):
        mark = read_bookmark(runtime.run_dir(row))
        if row.status in ("done", "failed") and (mark is None or (mark.uid, mark.seq) != (row.id, row.seq)):
            history = await runtime.library.history(row.id)
            runtime.projector.open(row, runtime.run_dir(row), runtime.library, history)
            runtime.projector.submit(row.id, history[-1:])
