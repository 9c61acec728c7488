"""A turn of an agent beside the bare program, and two hundred simulated agents under one orchestrator."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bailiwick.agents.asking import TurnRunner
from bailiwick.agents.kind import AgentKind
from bailiwick.agents.settings import AgentSettings
from bailiwick.clock import SystemClock
from bailiwick.config.variables import Environment
from bailiwick.ids import Json
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.runtime.assemble import KINDS, Runtime
from bailiwick.runtime.effects import KindTable
from benchmarks.measure import Bench, Reading, Spread, column
from benchmarks.report import Figure
from benchmarks.walking import create, walk, write_workflow

ANSWER = "sh -c 'cat >/dev/null; echo {\\\"n\\\": 1}'"
WARM_UP = 3
LATENCY = 2.0


def measure(bench: Bench) -> list[Figure]:
    """Both figures; neither has a target, both are told."""
    return [_turn(bench), *_crowd(bench)]


def _turn(bench: Bench) -> Figure:
    count, rounds = bench.pick(60, 10), bench.pick(5, 2)
    parts = {
        "ours": lambda: bench.part("agent_turns", "turn", count=count),
        "bare": lambda: bench.part("agent_turns", "bare", count=count),
    }
    found = bench.in_turn(parts, rounds)
    ours, bare = (Spread.of(column(found[name], "seconds"), 1000) for name in parts)
    return Figure(
        "agent-turn",
        "an agent's turn over its program",
        "",
        ours,
        "ms",
        {"bare program": bare},
        ours.middle - bare.middle,
        "ms over the bare program",
        note=f"{count} turns of the `command` backend one after the other, and the same program by `subprocess.run`",
    )


def _crowd(bench: Bench) -> list[Figure]:
    agents = bench.pick(200, 20)
    found = [bench.part("agent_turns", "crowd", count=agents) for _ in range(bench.pick(3, 1))]
    note = f"{agents} simulated agents at once, each {LATENCY:g} s long, journaled and projected, in one process"
    cpu, memory = (Spread.of(column(found, name)) for name in ("cpu", "memory"))
    return [
        Figure(
            "crowd-cpu",
            f"{agents} agents at once: processor time",
            "",
            cpu,
            "s",
            score=cpu.middle,
            scale="s",
            note=note,
        ),
        Figure(
            "crowd-memory", f"{agents} agents at once: memory added", "", memory, "MB", score=memory.middle, scale="MB"
        ),
    ]


@asynccontextmanager
async def _state(folder: Path, settings: AgentSettings) -> AsyncIterator[Runtime]:
    clock, around = SystemClock(), Environment()
    store = await SqliteStore.open(folder / "state" / "bailiwick.db", now=clock.now)
    kinds = KindTable({**KINDS, "agent": lambda: AgentKind(TurnRunner(settings, store, clock))})
    runtime = Runtime(
        store, clock, folder / "state", lambda: around.child_environment({}), kinds=kinds, policy=settings.ladder
    )
    try:
        yield runtime
    finally:
        await runtime.close()


def _agent(name: str, following: str) -> dict[str, Json]:
    return {"id": name, "type": "agent", "prompt_text": "Count.", "outputs": [{"key": "n"}], "next": following}


def _body(count: int) -> dict[str, Json]:
    names = [f"a{i}" for i in range(count)] + ["done"]
    nodes = [_agent(name, names[i + 1]) for i, name in enumerate(names[:-1])]
    return {"start": "a0", "nodes": [*nodes, {"id": "done", "type": "terminal"}], "returns": ["n"]}


def _chain(folder: Path, count: int) -> Reading:
    async def walked() -> float:
        async with _state(folder, AgentSettings(backend="command", command=ANSWER)) as runtime:
            for name, length in (("warm", WARM_UP), ("chain", count)):
                root = write_workflow(folder, name, _body(length))
                timed = await walk(runtime, await create(runtime, root, "first"))
        return timed.seconds

    return {"seconds": asyncio.run(walked()) / count}


def _bare(folder: Path, count: int) -> Reading:
    command = ["sh", "-c", 'cat >/dev/null; echo {"n": 1}']
    began = time.perf_counter()
    for _ in range(count):
        subprocess.run(command, input=b"Count.", cwd=folder, capture_output=True, check=True)
    return {"seconds": (time.perf_counter() - began) / count}


def _together(folder: Path, count: int) -> Reading:
    script = folder / "script.yaml"
    script.write_text(f'nodes:\n  "*":\n    - {{latency: {LATENCY:g}s, answer: {{n: 1}}}}\n')
    nodes: list[Json] = [
        {"id": "each", "type": "map", "over": "items", "body": "ask", "join": "done", "max": count},
        _agent("ask", "done"),
        {"id": "done", "type": "terminal"},
    ]
    body: dict[str, Json] = {"start": "each", "vars": {"items": list(range(count))}, "nodes": nodes}

    async def walked() -> Reading:
        async with _state(folder, AgentSettings(backend="simulate", script=script)) as runtime:
            row = await create(runtime, write_workflow(folder, "crowd", body), "first")
            before = resource.getrusage(resource.RUSAGE_SELF)
            await walk(runtime, row)
            after = resource.getrusage(resource.RUSAGE_SELF)
        cpu = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        return {"cpu": cpu, "memory": (after.ru_maxrss - before.ru_maxrss) / 1024}

    return asyncio.run(walked())


PARTS = {"turn": _chain, "bare": _bare, "crowd": _together}
