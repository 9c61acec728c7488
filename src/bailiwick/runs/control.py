"""Steering a run: every verb is a message; where nobody walks the run, this process attends to it for a moment."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bailiwick.engine import events as ev
from bailiwick.engine.state import Phase, State
from bailiwick.engine.visits import ended_attempts, visits
from bailiwick.errors import HeldByAnother, UsageError
from bailiwick.ids import Json, run_uid
from bailiwick.journal.codec import decode
from bailiwick.journal.rows import ClaimFilter, Message, Owner, RunRow
from bailiwick.processes.owner import current_owner, is_dead, shown
from bailiwick.runs.find import name_of
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.creation import NewRunPlace, forked_run
from bailiwick.runtime.pins import pin_all
from bailiwick.runtime.supervise import Supervisor

if TYPE_CHECKING:
    from bailiwick.lang.load import Loaded

PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class ControlResult:
    """What a message came to: the events it caused, or the reason it was refused."""

    row: RunRow
    events: tuple[ev.Event, ...]
    refused: str = ""
    taken: bool = True


@dataclass(frozen=True, slots=True)
class Point:
    """A visit of a node, and the seq before it; `effects` finished after it and are not undone."""

    node: str
    visit: int
    upto: int
    effects: tuple[str, ...]


class Control:
    """The verbs. `by` names the person for the journal."""

    def __init__(self, runtime: Runtime, by: str) -> None:
        self._runtime = runtime
        self._by = by

    async def send(self, row: RunRow, kind: str, body: dict[str, Json]) -> ControlResult:
        """Send a message and wait until the holder has taken it; attend to it here when there is no holder."""
        store, now = self._runtime.store, self._runtime.clock.now()
        message = Message(row.id, kind=kind, dedupe=f"{kind}:{row.seq}:{now!r}", body={**body, "by": self._by}, at=now)
        await store.send(message)
        owner = current_owner("bailiwick")
        deadline = self._runtime.clock.monotonic() + PATIENCE
        while await self._waits(row.id, now, kind):
            if not await self._attend(row.id, owner):
                if self._runtime.clock.monotonic() > deadline:
                    return ControlResult(row, (), taken=False)
                await asyncio.sleep(0.05)
        rows = await store.read(row.id, row.seq)
        found = [decode(r) for r in rows]
        refused = next((e.reason for e in found if isinstance(e, ev.SignalRejected) and e.kind == kind), "")
        return ControlResult(await self._fresh(row), tuple(found), refused)

    async def _waits(self, run_id: str, at: float, kind: str) -> bool:
        return any(r.kind == kind and r.at == at for r in await self._runtime.store.inbox(run_id))

    async def _fresh(self, row: RunRow) -> RunRow:
        return await self._runtime.store.run(row.id) or row

    async def _attend(self, run_id: str, owner: Owner) -> bool:
        """Take the run for a moment if nobody alive holds it."""
        row = await self.claim(run_id, owner)
        if row is None:
            return False
        supervisor = Supervisor(lambda name, error: self._runtime.on_trouble(run_id, f"{name}: {error}"))
        try:
            walker = await self._runtime.walker(row, owner, supervisor)
            await walker.attend()
            await self._runtime.settle()
        finally:
            self._runtime.projector.forget(run_id)
            self._runtime.leases.drop(row)
        return True

    async def claim(self, run_id: str, owner: Owner) -> RunRow | None:
        """Claim one run, from a dead owner too."""
        return await self._runtime.leases.claim(owner, ClaimFilter(run_id=run_id))

    async def stop(self, row: RunRow, *, now: bool) -> ControlResult:
        """Stop at the next node boundary, or now."""
        return await self.send(row, "stop", {"now": now})

    async def resume(self, row: RunRow) -> ControlResult:
        """Let a stopped or failed run go on; somebody has to walk it."""
        return await self.send(row, "resume", {})

    async def answer(self, row: RunRow, value: Json, wait: str = "") -> ControlResult:
        """Answer an open question. Refuses here what the question would refuse."""
        body: dict[str, Json] = {"value": value}
        return await self.send(row, "answer", {**body, "wait": wait} if wait else body)

    async def raise_budget(self, row: RunRow, unit: str, limit: float) -> ControlResult:
        """Set a new ceiling."""
        return await self.send(row, "budget", {"unit": unit, "limit": limit})

    async def reload(self, row: RunRow, loaded: Loaded) -> ControlResult:
        """Adopt the files as they are now, if every live node still exists with its type."""
        digest, pinned = pin_all(loaded)
        for item in pinned:
            await self._runtime.pin(item)
        return await self.send(row, "reload", {"definition": digest})

    async def point(self, row: RunRow, node: str, visit: int | None) -> Point:
        """A visit in the run's own scope, the last one when no number is given."""
        history = await self._runtime.library.history(row.id)
        return find_point(history, node, visit, name_of(row))

    async def rewind(self, row: RunRow, point: Point) -> ControlResult:
        """Go back to before a visit; what happened after it is not undone."""
        body: dict[str, Json] = {"upto": point.upto, "node": point.node, "visit": point.visit}
        return await self.send(row, "rewind", body)

    async def fork(
        self, row: RunRow, point: Point, values: dict[str, Json], key: str, limits: dict[str, Json] | None = None
    ) -> RunRow:
        """A new run that shares this one's journal up to a visit; `limits` are the ceilings any new run gets."""
        if point.upto < 1:
            raise UsageError("that visit belongs to the run this one was forked from", hint="fork that run instead")
        store, now = self._runtime.store, self._runtime.clock.now()
        if await store.find(row.workflow, key) is not None:
            raise UsageError(f"run '{row.workflow}-{key}' exists already", hint="choose another --run-id")
        uid = run_uid(row.workflow, key, 0, f"fork:{row.id}:{now!r}")
        place = NewRunPlace(
            id=uid,
            key=key,
            root=uid,
            workspace=self._runtime.workspace(uid),
            definition=row.definition,
            source=row.source,
            runs_dir=row.runs_dir,
            limits=limits or {},
        )
        await self._runtime.library.define(row.definition)
        graph = self._runtime.library.definitions.graph(row.definition)
        return await store.create(
            forked_run(graph, values, origin=(row.id, point.upto, point.node), place=place, now=now)
        )


def read_point(text: str) -> tuple[str, int | None]:
    """The node and the visit in `NODE` or `NODE@VISIT`; raises `UsageError`."""
    node, at, number = text.partition("@")
    if not node or (at and not (number.isascii() and number.isdigit() and len(number) < 10 and int(number) > 0)):
        raise UsageError(f"'{text}' names no visit", hint="write NODE or NODE@VISIT, such as build@2", code="BW242")
    return node, int(number) if at else None


def find_point(history: list[ev.Entry], node: str, visit: int | None, run: str) -> Point:
    """The first event of a visit in the run's own scope."""
    made = [one for one in visits(history) if not one.terminal]
    firsts = {one.number: one.seq for one in made if one.node == node and not one.scope}
    if not firsts:
        if inside := {one.scope.split("/")[0].split("[")[0].split(".")[0] for one in made if one.node == node}:
            outer = ", ".join(sorted(inside))
            raise UsageError(
                f"'{node}' is inside {outer}", hint=f"only the whole construct can be gone back to: {outer}"
            )
        raise UsageError(f"run '{run}' has not visited '{node}'", hint=f"bailiwick runs show {run} lists the visits")
    wanted = max(firsts) if visit is None else visit
    if wanted not in firsts:
        raise UsageError(f"'{node}' has no visit {wanted}", hint=f"visits: {', '.join(map(str, sorted(firsts)))}")
    seq = firsts[wanted]
    later = [
        one.place
        for one, tried in ended_attempts(made)
        if isinstance(tried.end, ev.EffectFinished) and tried.end_seq >= seq and not tried.end.failure
    ]
    return Point(node, wanted, seq - 1, tuple(later))


def standing_point(entries: list[ev.Entry], state: State, name: str) -> Point:
    """Where a run stands: before the visit it is in or failed at, or before a node that it has not entered yet."""
    root = state.scopes[""]
    if state.status == "done" or state.ended:
        raise UsageError(
            f"run '{name}' has ended at '{root.cursor}': say where to fork it",
            hint=f"--at NODE[@VISIT]; bailiwick runs show {name} lists the visits",
            code="BW243",
        )
    entered = root.visit or state.status == "failed"
    if not entered and root.phase in (Phase.READY, Phase.CLOSED):
        return Point(root.cursor, root.visits.get(root.cursor, 0) + 1, entries[-1][0], ())
    return find_point(entries, root.cursor, root.visit or None, name)


def refuse_if_held(row: RunRow, owner: Owner, now: float) -> None:
    """Raise `HeldByAnother` when a live process walks the run."""
    if row.owner is not None and row.lease_until > now and not is_dead(row.owner, owner):
        raise HeldByAnother(
            f"run '{name_of(row)}' is being run by {shown(row.owner)}",
            hint=f"bailiwick runs logs -f {name_of(row)}, or bailiwick runs stop {name_of(row)}",
        )
