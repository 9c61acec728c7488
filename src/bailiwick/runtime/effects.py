"""Effects in flight: each one a task that makes one attempt and hands its result back to the walk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bailiwick import crashpoints
from bailiwick.clock import Clock
from bailiwick.engine.commands import StartEffect
from bailiwick.engine.events import Failure
from bailiwick.engine.graph import Definition, Node, Wait, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer, RenderFailed
from bailiwick.ids import Json, place
from bailiwick.processes.command import Command, Exit
from bailiwick.processes.proc import run_process
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, NodeKind
from bailiwick.runtime.supervise import Supervisor

Clean = Callable[[Json], Json]
"""Covers secrets in texts, lists and mappings."""


class KindTable:
    """Node kinds by name: ours from a static table, others' by entry point."""

    def __init__(self, own: dict[str, Callable[[], NodeKind]]) -> None:
        self._own = own
        self._made: dict[str, NodeKind] = {}

    def get(self, name: str) -> NodeKind:
        """A kind; raises `KeyError` for one that nobody brings."""
        if name not in self._made:
            self._made[name] = self._own[name]() if name in self._own else _plugin(name)
        return self._made[name]

    def preparer(self, renderer: Renderer) -> Callable[[Node, Lookup], Rendered]:
        """What the engine calls to make a request."""

        def prepare(node: Node, lookup: Lookup) -> Rendered:
            try:
                kind = self.get(kind_name(node))
            except KeyError as error:
                raise RenderFailed(f"no part for nodes of type '{kind_name(node)}' is installed") from error
            return kind.prepare(node, lookup, renderer)

        return prepare


def kind_name(node: Node) -> str:
    """The kind that carries out a node's effects."""
    match node:
        case Work():
            return node.type
        case Wait():
            return "poll"
        case _:
            return ""


def _plugin(name: str) -> NodeKind:
    from importlib.metadata import entry_points

    for point in entry_points(group="bailiwick.nodes", name=name):
        made: NodeKind = point.load()()
        return made
    raise KeyError(name)


@dataclass(frozen=True, slots=True)
class RunPaths:
    """What an effect needs to know of its run."""

    run: str
    root: str
    epoch: int
    pinned: Path
    live: Path
    workspace: Path
    definition: Definition


@dataclass(slots=True)
class Effects:
    """The running effects of one walk. `finished` holds results that the walk has not taken yet."""

    kinds: KindTable
    supervisor: Supervisor
    clock: Clock
    environment: Callable[[], dict[str, str]]
    wake: asyncio.Event
    on_line: Callable[[str, str, str], None]
    clean: Clean = lambda value: value
    finished: list[tuple[StartEffect, Done | Failed, float]] = field(default_factory=list)
    observed: list[tuple[str, str, dict[str, Json]]] = field(default_factory=list)
    _cancels: dict[str, asyncio.Event] = field(default_factory=dict)

    def start(self, start: StartEffect, around: RunPaths, node: Node) -> None:
        """Begin an attempt whose `started` is durable."""
        cancel = asyncio.Event()
        self._cancels[start.key] = cancel
        request = AttemptRequest(
            around.run,
            root=around.root,
            epoch=around.epoch,
            key=start.key,
            scope=start.scope,
            node=node,
            visit=start.visit,
            ordinal=start.ordinal,
            attempt=start.attempt,
            entry=start.entry,
            prepared=start.request,
            pinned=around.pinned,
            live=around.live,
            workspace=around.workspace,
            plan=start.plan,
            allowance=dict(start.units).get("usd"),
        )
        self.supervisor.start(self._attempt(start, request, cancel), f"effect {start.node}")

    async def _attempt(self, start: StartEffect, request: AttemptRequest, cancel: asyncio.Event) -> None:
        began = self.clock.monotonic()
        result: Done | Failed
        try:
            kind = self.kinds.get(kind_name(request.node))
            result = await kind.attempt(request, EffectIo(self, request, cancel))
        except asyncio.CancelledError:
            result = Failed(Failure("cancelled", "cut off"))
            raise
        except Exception as error:  # noqa: BLE001  a broken kind must not take the run down
            result = Failed(Failure("crashed", f"{type(error).__name__}: {error}"))
        finally:
            self._cancels.pop(start.key, None)
            self.finished.append((start, self._cleaned(result), round(self.clock.monotonic() - began, 3)))
            self.wake.set()

    def _cleaned(self, result: Done | Failed) -> Done | Failed:
        """A result whose secrets are kept out of the journal."""
        if isinstance(result, Done):
            return Done(self.clean(result.outputs), self.clean(result.log))
        failure = result.failure
        told = replace(failure, message=self.clean(failure.message), detail=self.clean(failure.detail))
        return Failed(told, self.clean(result.log))

    def cancel(self, keys: tuple[str, ...] | None = None) -> None:
        """End the processes of these effects, or of all: TERM, 5 s, KILL."""
        for key in list(self._cancels) if keys is None else keys:
            if key in self._cancels:
                self._cancels[key].set()

    @property
    def running(self) -> int:
        """How many attempts have not ended yet."""
        return len(self._cancels)

    async def drained(self) -> None:
        """Wait until every attempt has ended; the caller has cancelled them."""
        while self._cancels:
            await self.wake.wait()
            self.wake.clear()


class EffectIo:
    """What one attempt may do to the world."""

    def __init__(self, effects: Effects, request: AttemptRequest, cancel: asyncio.Event) -> None:
        self._effects = effects
        self._request = request
        self._cancel = cancel
        self._place = place(request.scope, request.node.id)

    async def run(self, command: Command) -> Exit:
        def on_line(stream: str, text: str) -> None:
            self._effects.on_line(self._place, stream, self._effects.clean(text))

        return await run_process(
            command, on_line=on_line, on_pid=lambda _pid: crashpoints.reach("effect.spawned"), cancel=self._cancel
        )

    def environment(self) -> dict[str, str]:
        request = self._request
        return {
            **self._effects.environment(),
            "BAILIWICK_RUN": request.run,
            "BAILIWICK_ROOT": request.root,
            "BAILIWICK_EPOCH": str(request.epoch),
            "BAILIWICK_EFFECT_KEY": request.key,
            "BAILIWICK_ATTEMPT": str(request.attempt),
            "BAILIWICK_NODE": request.node.id,
            "BAILIWICK_WORKSPACE": str(request.workspace),
            "BAILIWICK_WORKFLOW_DIR": str(request.pinned),
        }

    @property
    def cancel(self) -> asyncio.Event:
        return self._cancel

    def show(self, text: str) -> None:
        self._effects.on_line(self._place, "stdout", self._effects.clean(text))

    def observe(self, data: dict[str, Json]) -> None:
        self._effects.observed.append((self._request.scope, self._request.key, self._effects.clean(data)))
        self._effects.wake.set()
