"""A pure node beside a durable effect node: a loop of `set` and `branch` through walker, journal and projector."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bailiwick.ids import Json
from benchmarks.measure import Bench, Reading, Spread, column
from benchmarks.report import Figure
from benchmarks.walking import create, open_state, walk, write_workflow

FEW, MANY = 10, 1000
BOUND = 0.1


def measure(bench: Bench) -> list[Figure]:
    """Time per node at 10 and at 1,000 context keys, beside an effect node."""
    turns, rounds = bench.pick(20_000, 2_000), bench.pick(7, 2)
    parts = {
        "few": lambda: bench.part("pure_nodes", "loop", turns=turns, keys=FEW),
        "many": lambda: bench.part("pure_nodes", "loop", turns=turns, keys=MANY),
        "effect": lambda: bench.part("effect_node", "ours", nodes=bench.pick(200, 50)),
    }
    found = bench.in_turn(parts, rounds)
    few, many, effect = (Spread.of(column(found[name], "seconds"), 1e6) for name in parts)
    note = f"{2 * turns:,} nodes, half `set` with a template, half `branch` with a comparison"
    return [
        _beside(f"a pure node, {FEW} keys", few, effect, name="pure-nodes", note=note),
        _beside(f"a pure node, {MANY:,} keys", many, effect, name="pure-nodes-wide"),
        Figure(
            "pure-nodes-flat",
            f"time per pure node, {MANY:,} keys beside {FEW}",
            "≤ 1.2 ×",
            many,
            "µs",
            {f"{FEW} keys": few},
            many.middle / few.middle,
            f"× {FEW} keys",
            1.2,
        ),
    ]


def _beside(what: str, pure: Spread, effect: Spread, *, name: str, note: str = "") -> Figure:
    ratio = pure.middle / effect.middle
    target = f"≤ {BOUND:g} × a durable effect node"
    others = {"effect node": effect}
    return Figure(name, what, target, pure, "µs", others, ratio, "× an effect node", BOUND, note=note)


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
    """Seconds per node until the last file is written."""

    async def walked() -> float:
        async with open_state(folder) as runtime:
            warm = write_workflow(folder, "warm", pure_loop(500, keys))
            await walk(runtime, await create(runtime, warm, "first"))
            root = write_workflow(folder, "pure", pure_loop(turns, keys))
            return (await walk(runtime, await create(runtime, root, "first"))).seconds

    return {"seconds": asyncio.run(walked()) / (2 * turns)}


PARTS = {"loop": walk_loop}
