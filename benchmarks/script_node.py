"""A script node beside the bare spawn of the same script."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

from benchmarks.measure import Bench, Reading, Spread, column
from benchmarks.report import Figure
from benchmarks.walking import chain, create, open_state, walk, write_workflow

PROGRAMS = {"py": "python3", "sh": "bash"}
WARM_UP = 3


def measure(bench: Bench) -> list[Figure]:
    """Time per script of a chain and of a plain loop of spawns, for Python and for bash."""
    return [_figure(bench, "py", 1.3), _figure(bench, "sh", 1.5)]


def _figure(bench: Bench, ending: str, bound: float) -> Figure:
    count, rounds = bench.pick(60, 10), bench.pick(7, 2)
    parts = {
        "ours": lambda: bench.part("script_node", f"node-{ending}", count=count),
        "bare": lambda: bench.part("script_node", f"bare-{ending}", count=count),
    }
    found = bench.in_turn(parts, rounds)
    ours, bare = (Spread.of(column(found[name], "seconds"), 1000) for name in parts)
    program = PROGRAMS[ending]
    return Figure(
        f"script-node-{ending}",
        f"a script node ({program})",
        f"≤ {bound:g} × the bare spawn",
        ours,
        "ms",
        {"bare spawn": bare},
        ours.middle / bare.middle,
        "× bare",
        bound,
        note=f"{count} scripts one after the other, as nodes of a chain and by `subprocess.run` with its output caught",
    )


def _node(folder: Path, count: int, ending: str) -> Reading:
    async def walked() -> float:
        async with open_state(folder) as runtime:
            for name, length in (("warm", WARM_UP), ("chain", count)):
                root = write_workflow(folder, name, chain(length, f"scripts/step.{ending}"))
                timed = await walk(runtime, await create(runtime, root, "first"))
        return timed.seconds

    return {"seconds": asyncio.run(walked()) / count}


def _bare(folder: Path, count: int, ending: str) -> Reading:
    root = write_workflow(folder, "bare", chain(1, f"scripts/step.{ending}"))
    command = [PROGRAMS[ending], str(root / "scripts" / f"step.{ending}")]
    for _ in range(WARM_UP):
        subprocess.run(command, cwd=root, capture_output=True, check=True)
    began = time.perf_counter()
    for _ in range(count):
        subprocess.run(command, cwd=root, capture_output=True, check=True)
    return {"seconds": (time.perf_counter() - began) / count}


PARTS = {
    "node-py": lambda folder, count: _node(folder, count, "py"),
    "node-sh": lambda folder, count: _node(folder, count, "sh"),
    "bare-py": lambda folder, count: _bare(folder, count, "py"),
    "bare-sh": lambda folder, count: _bare(folder, count, "sh"),
}
