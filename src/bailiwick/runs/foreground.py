"""A foreground run: this process is the worker of one tree and stays for timers and children, not for people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from bailiwick.journal.rows import ClaimFilter, Owner, RunFilter, RunRow
from bailiwick.runs.control import Control, refuse_if_held
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.worker import Worker, mend

DONE, FAILED, WAITS, DEGRADED, BUDGET, HANDOFF, TIME, STOPPED = 0, 1, 3, 4, 5, 6, 7, 130


CONCURRENCY = 64


class Interrupts(Protocol):
    """Where signals of this process are heard."""

    worker: Worker | None
    caught: str

    @property
    def hands_over(self) -> bool:
        """Whether the run goes on in the background."""


@dataclass(frozen=True, slots=True)
class RunExit:
    """How a command that walks or waits for a run ends: the row as it is, and the exit code."""

    row: RunRow
    code: int


def leaf_state(rows: list[RunRow]) -> str:
    """What a whole tree does: its members' states, where a run that only waits for its children says what they say."""
    states = [str((row.summary or {}).get("state", "running")) for row in rows if row.status == "ready"]
    for state in ("sleeping", "waiting"):
        if state in states:
            return state
    return "running" if states else "over"


def exit_code(root: RunRow, tree: list[RunRow]) -> int:
    """The code for a run as it is now."""
    match root.status:
        case "done":
            return DEGRADED if (root.summary or {}).get("degraded") else DONE
        case "failed":
            return HANDOFF if (root.summary or {}).get("handoff") else FAILED
        case "stopped":
            return STOPPED
        case _:
            if any((row.summary or {}).get("budget") for row in tree if row.status == "ready"):
                return BUDGET
            return TIME if leaf_state(tree) == "sleeping" else WAITS


class Foreground:
    """Walks one tree. With `wait` it stays for people too; with `no_wait` it leaves when only time is missing."""

    def __init__(self, runtime: Runtime, owner: Owner, *, wait: bool = False, no_wait: bool = False) -> None:
        self._runtime = runtime
        self._owner = owner
        self._wait = wait
        self._no_wait = no_wait
        self.replaced = False

    def refuse_if_held(self, row: RunRow) -> None:
        """Raise `HeldByAnother` where somebody walks the run."""
        refuse_if_held(row, self._owner, self._runtime.clock.now())

    async def prepare(self, row: RunRow, by: str) -> RunRow:
        """Make a run walkable: refuse one that is held, resume one that stopped, failed, or was about to stop."""
        self.refuse_if_held(row)
        if await self._rests(row):
            await Control(self._runtime, by).resume(row)
        return await self._runtime.store.run(row.id) or row

    async def _rests(self, row: RunRow) -> bool:
        if row.status == "ready":
            return await self._stopping(row)
        return row.status == "stopped" or (row.status == "failed" and not await self._ended(row))

    async def _stopping(self, row: RunRow) -> bool:
        """Whether a stop came that nobody carried out: who asked for it, or who was to do it, was killed.

        One that the journal sent because it lost events is new, and is carried out first.
        """
        stops = [message for message in await self._runtime.store.inbox(row.id) if message.kind == "stop"]
        if stops:
            return not any(message.body.get("lost") for message in stops)
        return bool((await self._runtime.library.state(row.id)).stopping)

    async def _ended(self, row: RunRow) -> bool:
        return (await self._runtime.library.state(row.id)).ended

    async def walk(self, row: RunRow, signals: Interrupts) -> RunExit:
        """Walk the tree of a root run until it is over or waits for what we don't stay for."""
        if row.status == "ready":
            worker = Worker(self._runtime, self._owner, ClaimFilter(root_id=row.root_id), CONCURRENCY)
            signals.worker = worker
            await worker.run(self._finished_of(row.root_id))
            self.replaced = worker.draining == "upgrade"
        else:
            await mend(self._runtime, row.root_id)
        verdict = await self.verdict(row)
        if signals.caught and not signals.hands_over and verdict.row.status == "ready":
            await Control(self._runtime, signals.caught).stop(verdict.row, now=True)
            return await self.verdict(row)
        return verdict

    def _finished_of(self, root_id: str) -> Callable[[], Awaitable[bool]]:
        async def finished() -> bool:
            tree = await self._runtime.store.runs(RunFilter(root_id=root_id))
            state = leaf_state(tree)
            if state == "waiting":
                return not self._wait
            return state == "over" or (state == "sleeping" and self._no_wait)

        return finished

    async def verdict(self, row: RunRow) -> RunExit:
        """The run as it is, with the exit code that says so."""
        tree = await self._runtime.store.runs(RunFilter(root_id=row.root_id))
        fresh = await self._runtime.store.run(row.id) or row
        return RunExit(fresh, exit_code(fresh, tree))
