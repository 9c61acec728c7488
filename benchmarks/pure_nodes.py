"""Pure nodes per second: a loop of `set` and `branch` through walker, journal and projector."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bailiwick.ids import Json
from benchmarks.measure import Bench, Reading, Spread, column
from benchmarks.report import Figure
from benchmarks.walking import create, open_state, walk, write_workflow

FEW, MANY = 10, 1000


def measure(bench: Bench) -> list[Figure]:
    """Nodes per second at 10 and at 1,000 context keys."""
    turns, rounds = bench.pick(20_000, 2_000), bench.pick(7, 2)
    parts = {
        "few": lambda: bench.part("pure_nodes", "loop", turns=turns, keys=FEW),
        "many": lambda: bench.part("pure_nodes", "loop", turns=turns, keys=MANY),
    }
    found = bench.in_turn(parts, rounds)
    few, many = (Spread.of(column(found[name], "rate")) for name in parts)
    what = "pure nodes per second"
    return [
        Figure(
            "pure-nodes",
            f"{what}, {FEW} keys",
            "≥ 10,000 per second",
            few,
            "/s",
            {},
            few.middle,
            "/s",
            10_000,
            at_least=True,
            note=f"{2 * turns:,} nodes, half `set` with a template, half `branch` with a comparison",
        ),
        Figure(
            "pure-nodes-wide",
            f"{what}, {MANY:,} keys",
            "≥ 10,000 per second",
            many,
            "/s",
            {},
            many.middle,
            "/s",
            10_000,
            at_least=True,
        ),
        Figure(
            "pure-nodes-flat",
            f"time per pure node, {MANY:,} keys beside {FEW}",
            "≤ 1.2 ×",
            Spread.of([1e6 / many.middle]),
            "µs",
            {f"{FEW} keys": Spread.of([1e6 / few.middle])},
            few.middle / many.middle,
            f"× {FEW} keys",
            1.2,
        ),
    ]


def pure_loop(turns: int, keys: int) -> dict[str, Json]:
    """A loop that counts its own visits up to `turns`, in a context of `keys` keys."""
    leave = {"op": ">=", "value": str(turns), "next": "done"}
    return {
        "start": "count",
        "vars": {"n": "0", **{f"key_{number}": f"value {number}" for number in range(keys - 1)}},
        "nodes": [
            {"id": "count", "type": "set", "values": {"n": "{{ node.visit }}"}, "next": "more", "max_visits": turns},
            {
                "id": "more",
                "type": "branch",
                "path": "n",
                "conditions": [leave],
                "default": "count",
                "max_visits": turns,
            },
            {"id": "done", "type": "terminal"},
        ],
    }


def walk_loop(folder: Path, turns: int, keys: int) -> Reading:
    """Nodes per second until the last file is written."""

    async def walked() -> float:
        async with open_state(folder) as assembly:
            warm = write_workflow(folder, "warm", pure_loop(500, keys))
            await walk(assembly, await create(assembly, warm, "first"))
            root = write_workflow(folder, "pure", pure_loop(turns, keys))
            return (await walk(assembly, await create(assembly, root, "first"))).seconds

    return {"rate": 2 * turns / asyncio.run(walked())}


PARTS = {"loop": walk_loop}
