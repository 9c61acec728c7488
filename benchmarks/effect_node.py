"""A durable effect node without a spawn, beside a step of LangGraph and of DBOS on SQLite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

from benchmarks.measure import Bench, Reading, Spread, Stopwatch, Timed, column
from benchmarks.report import Figure

WARM_UP = 20


def measure(bench: Bench) -> list[Figure]:
    """Time per node of a chain, all three in turn."""
    nodes, rounds = bench.pick(200, 50), bench.pick(9, 2)
    parts = {name: partial(bench.part, "effect_node", name, nodes=nodes) for name in PARTS}
    found = bench.in_turn(parts, rounds)
    spreads = {name: Spread.of(column(readings, "seconds"), 1000) for name, readings in found.items()}
    cpu = {name: Spread.of(column(readings, "cpu"), 1000).middle for name, readings in found.items()}
    ours, langgraph, dbos = spreads["ours"], spreads["LangGraph"], spreads["DBOS"]
    what = "a durable effect node without a spawn"
    told = ", ".join(f"{name} {value:.2f} ms" for name, value in cpu.items())
    return [
        Figure(
            "effect-node",
            what,
            "≤ 0.5 × LangGraph with its SQLite saver",
            ours,
            "ms",
            {"LangGraph": langgraph},
            ours.middle / langgraph.middle,
            "× LangGraph",
            0.5,
            note=f"chains of {nodes} nodes; processor time per node, all threads: {told}",
        ),
        Figure(
            "effect-node-dbos",
            what,
            "< DBOS on SQLite",
            ours,
            "ms",
            {"DBOS": dbos},
            ours.middle / dbos.middle,
            "× DBOS",
            1.0,
        ),
    ]


def ours(folder: Path, nodes: int) -> Reading:
    """Per node: claim, decide, journal, effect, run directory."""
    return _per_node(asyncio.run(_walk_chain(folder, nodes)), nodes)


async def _walk_chain(folder: Path, nodes: int) -> Timed:
    from benchmarks.walking import QuickKind, chain, create, open_state, walk, write_workflow

    async with open_state(folder, QuickKind()) as runtime:
        await walk(runtime, await create(runtime, write_workflow(folder, "warm", chain(WARM_UP)), "first"))
        return await walk(runtime, await create(runtime, write_workflow(folder, "chain", chain(nodes)), "first"))


class Counted(TypedDict):
    """The state of the LangGraph chain: as small as ours."""

    n: int


def langgraph(folder: Path, nodes: int) -> Reading:
    """Per node: one step of a compiled graph with a checkpoint that is written before the next one."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    with SqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
        warm, measured = _langgraph_chain(WARM_UP, saver), _langgraph_chain(nodes, saver)
        for graph, count, thread in ((warm, WARM_UP, "warm"), (measured, nodes, "measured")):
            watch = Stopwatch()
            config = {"configurable": {"thread_id": thread}, "recursion_limit": count + 10}
            end = graph.invoke({"n": 0}, config, durability="sync")
            timed = watch.read()
            if end["n"] != count:
                raise RuntimeError(f"LangGraph took {end['n']} steps, not {count}")
    return _per_node(timed, nodes)


def _langgraph_chain(count: int, saver: object) -> Any:
    from langgraph.graph import END, START, StateGraph

    def step(state: Counted) -> Counted:
        return {"n": state["n"] + 1}

    builder = StateGraph(Counted)
    names = [START, *(f"step_{number}" for number in range(count)), END]
    for name in names[1:-1]:
        builder.add_node(name, step)
    for here, after in pairwise(names):
        builder.add_edge(here, after)
    return builder.compile(checkpointer=saver)


def dbos(folder: Path, nodes: int) -> Reading:
    """Per node: one recorded step of a workflow."""
    from dbos import DBOS

    DBOS(config={"name": "chain", "system_database_url": f"sqlite:///{folder}/dbos.sqlite", "log_level": "ERROR"})

    def step(number: int) -> int:
        return number + 1

    recorded = DBOS.step()(step)

    def chained(count: int) -> int:
        number = 0
        for _ in range(count):
            number = recorded(number)
        return number

    workflow = DBOS.workflow()(chained)
    DBOS.launch()
    try:
        workflow(WARM_UP)
        watch = Stopwatch()
        end = workflow(nodes)
        timed = watch.read()
    finally:
        DBOS.destroy()
    if end != nodes:
        raise RuntimeError(f"DBOS took {end} steps, not {nodes}")
    return _per_node(timed, nodes)


def _per_node(timed: Timed, nodes: int) -> Reading:
    return {"seconds": timed.seconds / nodes, "cpu": timed.cpu / nodes}


PARTS: dict[str, Callable[[Path, int], Reading]] = {"ours": ours, "LangGraph": langgraph, "DBOS": dbos}
