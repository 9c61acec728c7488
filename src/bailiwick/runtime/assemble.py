"""Putting a walk together: the state directory's store, pins and projector, and what a run needs of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick import __version__
from bailiwick.clock import Clock
from bailiwick.engine.events import Entry
from bailiwick.engine.graph import Definition, Work
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.engine.rules import Rules, plain_policy
from bailiwick.engine.state import State
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Owner, RunRow
from bailiwick.lang.templates import Templates
from bailiwick.processes.owner import recorded
from bailiwick.runtime.deadlines import Deadlines
from bailiwick.runtime.effects import Clean, Effects, KindTable, RunPaths
from bailiwick.runtime.history import RunReader
from bailiwick.runtime.kinds import NodeKind
from bailiwick.runtime.leases import Leases
from bailiwick.runtime.pins import Pinned, Pins
from bailiwick.runtime.projector import Projector
from bailiwick.runtime.run_tree import Purse, RunTree, no_purse
from bailiwick.runtime.supervise import Supervisor
from bailiwick.runtime.upgrade import Installed
from bailiwick.runtime.walker import RunSetup, Tools, Walker


def _script() -> NodeKind:
    from bailiwick.runtime.script import ScriptKind

    return ScriptKind()


def _poll() -> NodeKind:
    from bailiwick.runtime.script import PollKind

    return PollKind()


UNITS = ("agent_calls", "usd", "tokens", "wall")
"""What a root run has ceilings for that hold for its whole tree."""
RESTING = 8
"""Runs that wait for children and whose state is kept in memory, so that their journals are not read for each child."""
KINDS: dict[str, Callable[[], NodeKind]] = {"script": _script, "poll": _poll}


@dataclass(slots=True)
class Watch:
    """What surfaces want to hear: durable events with the state after them, lines of running processes, trouble."""

    durable: Callable[[RunRow, State, list[Entry]], None] = lambda _row, _state, _entries: None
    line: Callable[[str, str, str, str], None] = lambda _run, _place, _stream, _text: None
    trouble: Callable[[str, str], None] = lambda _run, _text: None


@dataclass(slots=True)
class Runtime:
    """One process's view of a state directory."""

    store: Store
    clock: Clock
    state_dir: Path
    environment: Callable[[], dict[str, str]]
    zone: str | None = None
    kinds: KindTable = field(default_factory=lambda: KindTable(KINDS))
    policy: Callable[[Work], RetryPolicy] = plain_policy
    daily: dict[str, float | None] = field(default_factory=dict)
    purse: Purse = no_purse
    watch: Watch = field(default_factory=Watch)
    clean: Clean = lambda value: value
    wakers: set[Callable[[], None]] = field(default_factory=set)
    """Of each worker of this process what makes it look for work."""
    require_room: Callable[[], None] = lambda: None
    library: RunReader = field(init=False)
    pins: Pins = field(init=False)
    projector: Projector = field(init=False)
    leases: Leases = field(init=False)
    deadlines: Deadlines = field(init=False)
    _installed: Installed = field(default_factory=Installed)
    _laid_out: set[str] = field(default_factory=set)
    _resting: dict[str, tuple[int, list[Entry], State]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.library = RunReader(self.store)
        self.pins = Pins(self.state_dir / "pins")
        self.projector = Projector(self.clock.monotonic)
        self.deadlines = Deadlines(self.clock)
        self.leases = Leases(self.store, self.clock, self.on_trouble)

    def nudge(self) -> None:
        """Another run of this process may have got something: its own commits are no news to its workers."""
        for wake in tuple(self.wakers):
            wake()

    def on_trouble(self, run_id: str, text: str) -> None:
        """Tell whoever watches."""
        self.watch.trouble(run_id, text)

    def replaced(self) -> bool:
        """Whether the installed package changed under us."""
        return self._installed.replaced()

    def workspace(self, run_id: str) -> str:
        """A run's own directory for its files."""
        return str(self.state_dir / "workspaces" / run_id)

    async def pin(self, pinned: Pinned) -> None:
        """Keep a definition with its files: here, where scripts run from, and in the store for every other machine."""
        self.pins.materialise(pinned)
        await self.store.define(pinned.digest, pinned.body, pinned.files)
        self._laid_out.add(pinned.digest)

    async def _lay_out(self, digest: str) -> None:
        """Make sure that the files of a definition are here and in the store: each can be made from the other."""
        if digest in self._laid_out:
            return
        definition = self.library.definitions.get(digest)
        body, kept = await self.store.definition(digest), await self.store.definition_files(digest)
        if kept:
            self.pins.materialise(Pinned(digest, body, tuple(kept)))
        elif definition.files and self.pins.is_whole(digest, definition.files):
            await self.store.define(digest, body, self.pins.read(digest, definition.files))
        self._laid_out.add(digest)

    def run_dir(self, row: RunRow) -> Path:
        """Where a run is projected to; a run that was set aside keeps its directory under a number."""
        base = Path(row.runs_dir or self.state_dir / "runs")
        return base / f"{row.workflow}-{row.run_key}"

    async def walker(self, row: RunRow, owner: Owner, supervisor: Supervisor) -> Walker:
        """A walker for a claimed run, its state read from the journal."""
        history, state = await self._read(row)
        Path(state.workspace).mkdir(parents=True, exist_ok=True, mode=0o700)
        wake = asyncio.Event()

        async def refit(state: State) -> RunSetup:
            return await self._setup(row, state)

        walker = Walker(
            tools=self._tools(row),
            row=row,
            state=state,
            history=history,
            setup=await refit(state),
            refit=refit,
            effects=Effects(
                self.kinds,
                supervisor=supervisor,
                clock=self.clock,
                environment=self.environment,
                wake=wake,
                on_line=self._liner(row),
                clean=self.clean,
            ),
            wake=wake,
            owner=recorded(owner),
            seq=row.seq,
        )
        self.projector.open(row, self.run_dir(row), self.library, history)
        return walker

    async def _read(self, row: RunRow) -> tuple[list[Entry], State]:
        """The journal and the state of a claimed run: as this process left them, if nobody has appended since."""
        seq, history, state = self._resting.pop(row.id, (0, [], None))
        if state is not None and seq == row.seq:
            return history, state
        history = await self.library.history(row.id)
        return history, self.library.replay(history)

    def _rest(self, row: RunRow, state: State, history: list[Entry], seq: int) -> None:
        """Keep what was read of a run that waits for its children: it is back with the end of each of them."""
        if state.status != "running" or not any(wait.kind == "child" for _, wait in state.waits()):
            return
        self._resting[row.id] = (seq, history, state)
        while len(self._resting) > RESTING:
            del self._resting[next(iter(self._resting))]
        self.projector.keep(row.id, RESTING)

    async def _setup(self, row: RunRow, state: State) -> RunSetup:
        definition = self.library.definitions.get(state.definition)
        await self._lay_out(state.definition)
        renderer = Templates(self.pins.path(state.definition), strict=definition.graph.strict)
        rules = Rules(renderer, self.kinds.preparer(renderer), policy=self.policy)
        return RunSetup(rules, self._around(row, definition, state), await self._run_tree(row, definition))

    def _tools(self, row: RunRow) -> Tools:
        def durable(state: State, entries: list[Entry]) -> None:
            self.projector.submit(row.id, entries)
            self.watch.durable(row, state, entries)

        def left(state: State, history: list[Entry], seq: int) -> None:
            self._rest(row, state, history, seq)

        return Tools(
            store=self.store,
            library=self.library,
            clock=self.clock,
            zone=self.zone,
            app=__version__,
            on_durable=durable,
            on_sent=self.nudge,
            on_left=left,
            on_trouble=self.on_trouble,
            deadlines=self.deadlines,
        )

    def _liner(self, row: RunRow) -> Callable[[str, str, str], None]:
        return lambda place, stream, text: self.watch.line(row.id, place, stream, text)

    def _around(self, row: RunRow, definition: Definition, state: State) -> RunPaths:
        pinned = self.pins.path(state.definition)
        live = Path(row.source) if row.source and Path(row.source).is_dir() else pinned
        return RunPaths(
            row.id,
            root=row.root_id,
            epoch=row.epoch,
            pinned=pinned,
            live=live,
            workspace=Path(state.workspace),
            definition=definition,
        )

    async def _run_tree(self, row: RunRow, definition: Definition) -> RunTree:
        ceilings: dict[str, float | None] = {}
        if row.root_id != row.id:
            root = await self.store.run(row.root_id)
            if root is not None:
                await self.library.define(root.definition)
                budget = self.library.definitions.graph(root.definition).budget
                raised = (root.summary or {}).get("limits", {})
                ceilings = {unit: raised.get(unit, getattr(budget, unit)) for unit in UNITS}
                if (most := ceilings["wall"]) is not None:
                    ceilings["wall"] = max(0.0, most - float((root.summary or {}).get("work", 0.0)))
        return RunTree(
            row,
            definition=definition,
            library=self.library,
            workspaces=self.workspace,
            roots=ceilings,
            daily=self.daily,
            purse=self.purse,
        )

    async def settle(self) -> None:
        """Finish projecting what is durable."""
        await self.projector.drain()

    async def close(self) -> None:
        """Let go of the projector, the leases and the store."""
        await self.leases.close()
        await self.projector.close()
        await self.store.close()
