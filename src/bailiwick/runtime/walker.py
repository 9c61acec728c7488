"""Walking one run: decide, append, act, wait. The holder of the lease and the only appender of the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from bailiwick import crashpoints
from bailiwick.clock import Clock, day
from bailiwick.engine import commands as co
from bailiwick.engine import events as ev
from bailiwick.engine.decide import decide
from bailiwick.engine.evolve import rewound
from bailiwick.engine.rules import Rules
from bailiwick.engine.state import State
from bailiwick.errors import BudgetExceeded, JournalCorrupt, LeaseLost, StoreUnavailable
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Reservation, RunRow, Settlement
from bailiwick.processes.children import end_children
from bailiwick.runtime import ceilings, money
from bailiwick.runtime import event_builders as happenings
from bailiwick.runtime.attempt_rows import attempt_rows
from bailiwick.runtime.deadlines import Deadlines
from bailiwick.runtime.effects import Effects, RunPaths
from bailiwick.runtime.facts import Cost
from bailiwick.runtime.history import RunReader
from bailiwick.runtime.inbox import apply_message
from bailiwick.runtime.kinds import Failed
from bailiwick.runtime.record import Pending, record
from bailiwick.runtime.run_tree import RunTree
from bailiwick.runtime.supervise import wait_set

IN_PLACE = 5.0
FLUSH_EVENTS = 500
FLUSH_SECONDS = 0.1
RETRY_STORE = 5.0

Listener = Callable[[State, list[ev.Entry]], None]


@dataclass(slots=True)
class Tools:
    """What every walk of a process shares."""

    store: Store
    library: RunReader
    clock: Clock
    zone: str | None
    app: str
    on_durable: Listener
    on_sent: Callable[[], None]
    on_left: Callable[[State, list[ev.Entry], int], None]
    on_trouble: Callable[[str, str], None]
    deadlines: Deadlines


@dataclass(slots=True)
class RunSetup:
    """What a walk takes from the run's definition: rules, files, run tree. Made again when a definition is adopted."""

    rules: Rules
    around: RunPaths
    run_tree: RunTree


@dataclass(slots=True)
class Walker:
    """One claimed run. `walk` returns when the run is over, stopped, or sleeps so long that its slot is freed."""

    tools: Tools
    row: RunRow
    state: State
    history: list[ev.Entry]
    setup: RunSetup
    refit: Callable[[State], Awaitable[RunSetup]]
    effects: Effects
    wake: asyncio.Event
    owner: str
    seq: int = 0
    pending: Pending = field(default_factory=Pending)
    starting: list[co.StartEffect] = field(default_factory=list)
    interrupt: str = ""
    inbox_maybe: bool = True
    suspended: bool = False
    lost: bool = False
    booked: dict[str, list[str]] = field(default_factory=dict)
    _last_flush: float = 0.0
    work: ceilings.WorkClock = field(init=False)

    def __post_init__(self) -> None:
        self.work = ceilings.WorkClock(self.tools.clock)

    async def walk(self) -> None:
        """Go on until there is nothing to do here."""
        self._record(ev.OwnerChanged(self.row.epoch, self.owner, self.tools.app))
        await self._recover()
        while True:
            if self.lost:
                raise LeaseLost(f"run {self.row.id} was taken over")
            await self._turn()
            leave, wake_at = self._leaving()
            if leave and await self._flush(release=True, wake_at=wake_at):
                self.tools.on_left(self.state, self.history, self.seq)
                return
            if self.pending:
                await self._flush()
            await wait_set(self.wake, self._pause())

    def _leaving(self) -> tuple[bool, float | None]:
        """Whether this process has nothing more to do for the run, and when somebody has."""
        if self.starting or self.state.running or self.effects.running or self.effects.finished:
            return False, None
        if self.interrupt:
            return True, self._now() if self.state.status == "running" else None
        if self.state.status != "running":
            return True, None
        if self.inbox_maybe or self.suspended:
            return False, None
        left = self._due_in()
        return left is None or left > IN_PLACE, self._next_due()

    async def attend(self) -> None:
        """Only take what lies in the inbox and let go again: starts nothing, for commands on a run nobody walks."""
        await self._recover()
        await self._drain_inbox()
        while self.state.stopping and await self._advance():
            pass
        ready = bool(decide(self.state, self.setup.rules))
        await self._flush(release=True, wake_at=self._now() if ready else self._next_due())

    async def _turn(self) -> None:
        """One turn: take what arrived and decide until nothing is left."""
        await self._drain_inbox()
        self._take_results()
        self._close_due()
        if (reached := self.work.reached(self.state, self.setup.run_tree.time(self.state))) is not None:
            self._record(reached)
        while await self._advance():
            pass

    def _now(self) -> float:
        return self.tools.clock.now()

    def _record(self, event: ev.Event) -> None:
        at = self._now()
        if isinstance(event, ev.Rewound):
            self.state = rewound(self.state, [e for e in self.history if e[0] <= event.upto], event, at)
            self.pending.note(self.state.run, event, at)
        else:
            record(self.state, self.pending, event, at)

    async def _recover(self) -> None:
        """Effects with only `started`: prove their processes gone, then let the engine decide again."""
        flights = self.state.flights()
        if not flights:
            return
        left = await end_children({"BAILIWICK_RUN": self.row.id})
        if left:
            pids = ", ".join(str(child.pid) for child in left)
            raise StoreUnavailable(f"processes of an earlier owner will not end: {pids}", hint="end them, then go on")
        for scope, flight in flights:
            units = self.setup.rules.units(scope, self.state.graph.nodes[scope.cursor])
            self._settle(money.unknown(flight.key, units))
            self._record(ev.EffectLost(scope.path, flight.key, "crash"))

    def _settle(self, spent: list[money.Spent]) -> None:
        """Turn what was set aside for an effect into what it came to, in every scope it was set aside in."""
        for one in spent:
            scopes = self.booked.get(one.key) or self.setup.run_tree.scopes(day(self._now()))
            self.pending.settle += [
                Settlement(scope, key=one.key, unit=one.unit, amount=one.amount, known=one.known) for scope in scopes
            ]
        for one in spent:
            self.booked.pop(one.key, None)

    async def _drain_inbox(self) -> None:
        if not self.inbox_maybe:
            return
        self.inbox_maybe = False
        taken = set(self.pending.consumed)
        for row in await self.tools.store.inbox(self.row.id):
            if row.id in taken:  # read before, and not durable yet: a reservation did not fit
                continue
            graphs = {}
            if row.kind == "reload":
                name = str(row.body["definition"])
                await self.tools.library.define(name)
                graphs[name] = self.tools.library.definitions.graph(name)
            before = self.state.waits() if row.kind == "rewind" else []
            found = apply_message(self.state, row, graphs)
            for event in found:
                self._record(event)
                self._family_follows(event)
            if any(isinstance(e, ev.Rewound) for e in found):
                self.pending.closed += [wait.id for _, wait in before]
                self.pending.messages += [
                    self.setup.run_tree.stop(w.id, self._now()) for _, w in before if w.kind == "child"
                ]
            if any(isinstance(e, ev.DefinitionAdopted) for e in found):
                self.setup = await self.refit(self.state)
            self.pending.consumed.append(row.id)
        if self.pending.consumed:
            crashpoints.reach("inbox.drained")
        if self.state.stopping == "now":
            self.effects.cancel()

    def _family_follows(self, event: ev.Event) -> None:
        if isinstance(event, ev.RunResumed):
            children = [wait.id for _, wait in self.state.waits() if wait.kind == "child"]
            self.pending.messages += [self.setup.run_tree.resume(child, self._now()) for child in children]

    def _take_results(self) -> None:
        for scope, key, data in self.effects.observed:
            self._record(ev.EffectObserved(scope, key, data))
        self.effects.observed.clear()
        for start, result, seconds in self.effects.finished:
            self._settle(money.settled(start, result, self.history))
            cut = isinstance(result, Failed) and result.failure.kind == "cancelled"
            if cut and (self.state.stopping == "now" or self.interrupt or self.suspended):
                why = self.interrupt or ("lease" if self.suspended else "stopped")
                self._record(ev.EffectLost(start.scope, start.key, why))
                continue
            self._record(happenings.finished(start, result, seconds))
            crashpoints.reach("effect.finished_before_commit")
        self.effects.finished.clear()

    def _close_due(self) -> None:
        for scope, wait in self.state.waits():
            if wait.due_at is None or self.state.status != "running":
                continue
            if self.tools.deadlines.left(self.row.id, wait.id, wait.due_at) == 0.0:
                self._record(ev.WaitClosed(scope.path, wait.id, "due"))
                self.tools.deadlines.drop(self.row.id, wait.id)

    async def _advance(self) -> bool:
        """Carry out one decision; flush when enough is pending. False when there is nothing to decide."""
        if self.interrupt or self.suspended:
            return False
        actions = decide(self.state, self.setup.rules)
        for action in actions:
            match action:
                case co.StartEffect():
                    await self._start(action)
                case co.OpenWait():
                    self._open(action)
                case co.StartChild():
                    await self._call(action)
                case co.CancelEffects():
                    self.effects.cancel(action.keys)
                case co.StopChild():
                    self.pending.messages.append(self.setup.run_tree.stop(action.child, self._now()))
                case _:
                    self._decided(action)
        count = len(self.pending.events)
        if count >= FLUSH_EVENTS or (count >= 32 and self._now() - self._last_flush > FLUSH_SECONDS):
            await self._flush()
            await asyncio.sleep(0)
        return bool(actions)

    def _open(self, wait: co.OpenWait) -> None:
        now = self._now()
        for event in happenings.opened(wait, now, self.tools.zone):
            self._record(event)
            is_span = wait.seconds is not None or wait.until.startswith("+")
            if isinstance(event, ev.WaitOpened) and event.due_at is not None and is_span:
                self.tools.deadlines.note(self.row.id, event.id, event.due_at)

    def _decided(self, event: ev.Event) -> None:
        if isinstance(event, ev.RunStopped):
            children = [wait.id for _, wait in self.state.waits() if wait.kind == "child"]
            self.pending.messages += [self.setup.run_tree.stop(child, self._now()) for child in children]
        self._record(event)
        if isinstance(event, ev.RunFinished):
            self.pending.messages += self.setup.run_tree.ended(self.state, self._cost(), self._now())
        if isinstance(event, ev.StepDone) and event.node in self.state.scopes[event.scope].writes:
            crashpoints.reach("scope.joined")

    def _cost(self) -> dict[str, Json]:
        """What the agents of this run and of those it called cost; asked for once, at its end."""
        if self.row.parent is None:
            return {}
        cost = Cost()
        for event in (*(event for _, _, event in self.history), *(event for event, _ in self.pending.events)):
            cost.count(event, self.state.graph)
        return cost.to_json()

    async def _start(self, start: co.StartEffect) -> None:
        """Journal an attempt and set aside what it may use: of money at most what is left."""
        units = []
        for unit, wanted in start.units:
            node = self.state.graph.nodes[start.node]
            limits = self.setup.run_tree.limits(unit, node, self.state, day(self._now()))
            amount = await money.cut(self.tools.store, unit, wanted=wanted, limits=limits, pending=self.pending)
            units.append((unit, amount))
            self.booked[start.key] = [scope for scope, _ in limits]
            self.pending.reserve += [
                Reservation(s, key=start.key, unit=unit, amount=amount, limit=limit) for s, limit in limits
            ]
        self._record(happenings.started(start))
        self.starting.append(replace(start, units=tuple(units)))

    async def _call(self, call: co.StartChild) -> None:
        made = await self.setup.run_tree.child(call, self.state, self._now())
        self._record(
            ev.ChildStarted(
                call.scope, node=call.node, visit=call.visit, key=call.key, child=made.id, params=call.params
            )
        )
        if made.run is not None:
            self.pending.children.append(made.run)
        else:
            result = {"status": "failed", "reason": made.problem}
            self._record(ev.WaitClosed(call.scope, made.id, "child", result, cost=Cost().to_json()))

    async def _flush(self, *, release: bool = False, wake_at: float | None = None) -> bool:
        """Append what is pending, tell the listeners, begin what is durably started. False: over a budget."""
        crashpoints.reach("effect.before_start_commit")
        pending, starting = self.pending, self.starting
        attempts = attempt_rows(self.row.id, self.seq, pending.events, self.history)
        tried = False
        while True:
            batch = replace(pending.batch(self.seq, self.state, release=release, wake_at=wake_at), attempts=attempts)
            try:
                self.seq = await self.tools.store.append(self.row.id, self.row.epoch, batch)
                break
            except StoreUnavailable as error:
                tried = True
                self.tools.on_trouble(self.row.id, f"{error.what}; nothing is lost, trying again every 5 s")
                await asyncio.sleep(RETRY_STORE)
            except JournalCorrupt:
                if tried and await self._landed(pending):
                    self.seq += len(pending.events)
                    break
                raise
            except BudgetExceeded as error:
                self._over_budget(error)
                return False
        self.pending, self.starting = Pending(), []
        self._last_flush = self._now()
        self._published(pending, starting)
        return True

    async def _landed(self, pending: Pending) -> bool:
        """Whether an append that reported an error is in the journal after all."""
        rows = await self.tools.store.read(self.row.id, self.seq)
        batch = pending.batch(self.seq, self.state, release=False, wake_at=None)
        return [(r.type, r.body) for r in rows] == [(e.type, e.body) for e in batch.events]

    def _published(self, pending: Pending, starting: list[co.StartEffect]) -> None:
        first = self.seq - len(pending.events) + 1
        entries: list[ev.Entry] = [(first + i, at, event) for i, (event, at) in enumerate(pending.events)]
        self.history += entries
        pending.reach_points()
        self.tools.on_durable(self.state, entries)
        if pending.messages or pending.children:
            self.tools.on_sent()
        for start in starting:
            crashpoints.reach("effect.after_start_commit")
            self.effects.start(start, self.setup.around, self.state.graph.nodes[start.node])

    def _over_budget(self, error: BudgetExceeded) -> None:
        """A reservation did not fit: take back the starts that count, keep everything else, and say so."""
        kept = self.pending
        refused = {s.key for s in self.starting if s.units}
        self.state = self.tools.library.replay(list(self.history))
        self.pending = Pending(
            consumed=kept.consumed, children=kept.children, messages=kept.messages, settle=kept.settle
        )
        for event, at in kept.events:
            if not (isinstance(event, ev.EffectStarted) and event.key in refused):
                record(self.state, self.pending, event, at)
        self.starting = [s for s in self.starting if not s.units]
        kind = error.scope.partition(":")[0]
        unit = f"{kind}.{error.unit}" if kind in ("day", "credential") else error.unit
        self._record(ev.BudgetReached(unit, error.limit))
        self.wake.set()

    def _next_due(self) -> float | None:
        dues = [wait.due_at for _, wait in self.state.waits() if wait.due_at is not None]
        return min(dues, default=None)

    def _due_in(self) -> float | None:
        """Seconds until the first wait is over."""
        deadlines, run = self.tools.deadlines, self.row.id
        waits = [(wait.id, wait.due_at) for _, wait in self.state.waits() if wait.due_at is not None]
        return min((deadlines.left(run, name, due_at) for name, due_at in waits), default=None)

    def _time_over(self) -> float | None:
        return self.work.due(self.state, self.setup.run_tree.time(self.state))

    def _pause(self) -> float | None:
        if self.effects.finished:
            return 0.0
        ceiling = self._time_over()
        limits = [self._due_in(), None if ceiling is None else max(0.0, ceiling - self._now())]
        return min((limit for limit in limits if limit is not None), default=None)

    def sandboxes(self) -> None:
        """The run is another's: end our children, append nothing."""
        self.pending, self.starting = Pending(), []
        self.effects.cancel()

    def taken_over(self) -> None:
        """Another process has claimed the run."""
        self.lost = True
        self.sandboxes()
        self.wake.set()

    def suspend(self) -> None:
        """The lease could not be renewed in time: end the children and decide nothing until it is."""
        self.suspended = True
        self.effects.cancel()
        self.wake.set()

    def go_on(self) -> None:
        """The lease is ours again."""
        if self.suspended:
            self.suspended = False
            self.wake.set()
