"""A stage for walks inside the test's own process: the real store, walker and worker; kinds of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.clock import Clock, SystemClock
from bailiwick.engine import graph as g
from bailiwick.engine.events import Failure
from bailiwick.engine.render import Lookup, Rendered, Renderer
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.ids import Json
from bailiwick.journal.rows import RunRow
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.lang.load import Loaded
from bailiwick.processes.owner import current_owner
from bailiwick.runs.foreground import Foreground, RunExit
from bailiwick.runs.start import StartRequest, start
from bailiwick.runtime.assemble import KINDS, Runtime, Watch
from bailiwick.runtime.effects import KindTable
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io, NodeKind
from bailiwick.runtime.worker import Worker

Answer = Callable[[AttemptRequest], Awaitable[dict[str, Json] | Failure]]


@dataclass
class Scripted:
    """A kind whose attempts do what the test says."""

    answer: Answer
    seen: list[AttemptRequest] = field(default_factory=list)

    def prepare(self, node: g.Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        """Nothing of the context is needed."""
        return Rendered(None)

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        """Ask the test."""
        self.seen.append(request)
        result = await self.answer(request)
        return Failed(result) if isinstance(result, Failure) else Done(result)


@dataclass
class Calm:
    """No signal ever comes."""

    worker: Worker | None = None
    caught: str = ""
    hands_over: bool = False


async def at_once(_request: AttemptRequest) -> dict[str, Json]:
    """An attempt that is done at once."""
    return {}


@dataclass
class RuntimeSetup:
    """A state directory and one kind, `work`, which counts as an agent call when `type` is `agent`."""

    home: Path
    kind: Scripted
    clock: Clock = field(default_factory=SystemClock)
    troubles: list[str] = field(default_factory=list)
    agent: Callable[[Runtime], NodeKind] | None = None
    policy: Callable[[g.Work], RetryPolicy] = lambda _node: RetryPolicy()
    signals: Calm = field(default_factory=Calm)

    async def runtime(self) -> Runtime:
        """Open the state directory."""
        store = await SqliteStore.open(self.home / "bailiwick.db", now=self.clock.now)
        table = KindTable({**KINDS, "work": lambda: self.kind, "agent": lambda: self.kind})
        watch = Watch(trouble=lambda _run, text: self.troubles.append(text))
        runtime = Runtime(store, self.clock, self.home, dict, kinds=table, watch=watch, policy=self.policy)
        if self.agent is not None:
            maker = self.agent
            runtime.kinds = KindTable({**KINDS, "work": lambda: self.kind, "agent": lambda: maker(runtime)})
        return runtime

    def loaded(self, graph: g.Graph) -> Loaded:
        """A workflow without files."""
        root = self.home / "flow"
        root.mkdir(exist_ok=True)
        return Loaded(graph=graph, warnings=[], root=root, files={}, calls={})

    async def walk(self, runtime: Runtime, graph: g.Graph, *, no_wait: bool = False, **limits: Json) -> RunExit:
        """Start or go on with the run of a graph, as `run` does."""
        started = await start(runtime, StartRequest(self.loaded(graph), limits=limits))
        foreground = Foreground(runtime, current_owner("test"), no_wait=no_wait)
        row = await foreground.prepare(started.row, "tester")
        return await foreground.walk(row, self.signals)

    def play(self, scene: Callable[[Runtime], Awaitable[None]]) -> None:
        """Run a scene on an open state directory."""

        async def whole() -> None:
            runtime = await self.runtime()
            try:
                await scene(runtime)
            finally:
                await runtime.close()

        asyncio.run(whole())


def chain(*nodes: g.Node, **facts: Json) -> g.Graph:
    """A graph of these nodes in a row, ending well."""
    ids = [node.id for node in nodes] + ["done"]
    linked = {n.id: _next(n, ids[i + 1]) for i, n in enumerate(nodes)}
    return g.Graph(name="flow", start=ids[0], nodes={**linked, "done": g.End(id="done")}, **facts)


def _next(node: g.Node, target: str) -> g.Node:
    from dataclasses import replace

    return node if node.next else replace(node, next=target)


def work(name: str, kind: str = "work", **fields: Json) -> g.Work:
    """A node of the test's kind."""
    return g.Work(id=name, type=kind, **fields)


async def types(runtime: Runtime, row: RunRow) -> list[str]:
    """The journal, by event types."""
    return [stored.type for stored in await runtime.store.read(row.id)]
