"""Walking runs in this process as the command line does, with a node kind that needs no process where one is wanted."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bailiwick.clock import SystemClock
from bailiwick.config.variables import Environment
from bailiwick.engine.graph import Node
from bailiwick.engine.render import Lookup, Rendered, Renderer
from bailiwick.ids import Json
from bailiwick.journal.rows import RunRow
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.lang.load import load
from bailiwick.processes.owner import current_owner
from bailiwick.runs.foreground import Foreground
from bailiwick.runs.start import StartRequest, start
from bailiwick.runtime.assemble import KINDS, Runtime
from bailiwick.runtime.effects import KindTable
from bailiwick.runtime.kinds import AttemptRequest, Done, Io, NodeKind
from bailiwick.runtime.worker import Worker
from benchmarks.measure import Stopwatch, Timed, environment


async def _nothing(_request: AttemptRequest) -> None:
    """An effect that does nothing."""


@dataclass(slots=True)
class QuickKind:
    """Takes the place of `script`: a durable effect without a process. Its output `n` is the visit's number."""

    act: Callable[[AttemptRequest], Awaitable[None]] = _nothing

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        return Rendered(None)

    async def attempt(self, request: AttemptRequest, io: Io) -> Done:
        await self.act(request)
        return Done({"n": request.visit})


@dataclass(slots=True)
class NoSignals:
    """A walk that nobody interrupts."""

    worker: Worker | None = None
    caught: str = ""
    hands_over: bool = False


@asynccontextmanager
async def open_state(folder: Path, script: NodeKind | None = None) -> AsyncIterator[Runtime]:
    """A state directory below `folder`, the same that `BAILIWICK_HOME=folder` means; `script` replaces that kind."""
    state = folder / "state"
    clock, around = SystemClock(), Environment()
    store = await SqliteStore.open(state / "bailiwick.db", now=clock.now)
    kinds = {**KINDS, "script": lambda: script} if script is not None else KINDS
    runtime = Runtime(store, clock, state, lambda: around.child_environment({}), kinds=KindTable(kinds))
    try:
        yield runtime
    finally:
        await runtime.close()


def write_workflow(folder: Path, name: str, body: dict[str, Json], script: str = "echo '{\"n\": 1}'\n") -> Path:
    """A workflow directory with `scripts/step.sh` and `scripts/step.py`; JSON is YAML too."""
    root = folder / name
    (root / "scripts").mkdir(parents=True)
    (root / "scripts" / "step.sh").write_text(script, "utf-8")
    (root / "scripts" / "step.py").write_text("print('{\"n\": 1}')\n", "utf-8")
    (root / "workflow.yaml").write_text(json.dumps({"version": 1, "name": name, **body}), "utf-8")
    return root


def chain(count: int, script: str = "scripts/step.sh") -> dict[str, Json]:
    """A chain of script nodes."""
    names = [f"step_{number}" for number in range(count)] + ["done"]
    nodes: list[Json] = [
        {"id": here, "type": "script", "script": script, "outputs": [{"key": "n"}], "next": after}
        for here, after in pairwise(names)
    ]
    return {"start": names[0], "nodes": [*nodes, {"id": "done", "type": "terminal"}]}


def loop(count: int, context: dict[str, Json] | None = None) -> dict[str, Json]:
    """One script node visited `count` times, with a branch that leaves the loop."""
    leave = {"op": ">=", "value": str(count), "next": "done"}
    return {
        "start": "step",
        "vars": context or {},
        "nodes": [
            {
                "id": "step",
                "type": "script",
                "script": "scripts/step.sh",
                "outputs": [{"key": "n"}],
                "next": "more",
                "max_visits": count,
            },
            {
                "id": "more",
                "type": "branch",
                "path": "n",
                "conditions": [leave],
                "default": "step",
                "max_visits": count,
            },
            {"id": "done", "type": "terminal"},
        ],
    }


def command_line(*arguments: str) -> list[str]:
    """The command as it is installed beside this interpreter."""
    return [str(Path(sys.executable).with_name("bailiwick")), *arguments]


def home(folder: Path) -> dict[str, str]:
    """The environment in which the command keeps everything below `folder`."""
    return {**environment(), "BAILIWICK_HOME": str(folder)}


async def create(runtime: Runtime, root: Path, key: str) -> RunRow:
    """Start a run; it is ready, nobody walks it yet."""
    return (await start(runtime, StartRequest(load(root), key=key))).row


async def walk(runtime: Runtime, row: RunRow) -> Timed:
    """Walk a run to its end and wait until its directory is written; raises where it did not end well."""
    foreground = Foreground(runtime, current_owner("benchmark"))
    watch = Stopwatch()
    verdict = await foreground.walk(row, NoSignals())
    await runtime.settle()
    timed = watch.read()
    if verdict.row.status != "done":
        raise RuntimeError(f"the run is {verdict.row.status}: {verdict.row.summary}")
    return timed
