"""The cost of a `call` late in a fan-out of thousands of called runs beside an early one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.lang.load import load
from bailiwick.runs.start import StartRequest, start
from bailiwick.runtime.kinds import AttemptRequest
from benchmarks.measure import Bench, Reading, Spread, Stopwatch, column
from benchmarks.report import Figure
from benchmarks.walking import QuickKind, open_state, walk, write_workflow

WINDOW = 200
EARLY = 500


def measure(bench: Bench) -> list[Figure]:
    """Processor time per child around child 500 and around child 20,000 of one map."""
    late = bench.pick(20_000, 1_500)
    found = [bench.part("many_children", "called", late=late) for _ in range(bench.pick(2, 1))]
    bench.say(f"  child {late:,} beside child {EARLY}: {[round(r['late'] / r['early'], 2) for r in found]}")
    early, later = (Spread.of(column(found, name), 1000) for name in ("early", "late"))
    return [
        Figure(
            "call-flat",
            f"a called run (CPU), child {late:,} beside child {EARLY}",
            "≤ 1.2 ×",
            later,
            "ms",
            {f"child {EARLY}": early},
            later.middle / early.middle,
            f"× child {EARLY}",
            1.2,
            note=f"one map whose body calls a workflow of one effect; {WINDOW} children up to each",
        ),
    ]


@dataclass(slots=True)
class Counting:
    """Takes the processor time of all threads when given numbers of children have done their work."""

    counts: tuple[int, ...]
    done: int = 0
    taken: list[float] = field(default_factory=list)
    watch: Stopwatch = field(default_factory=Stopwatch)

    async def act(self, _request: AttemptRequest) -> None:
        """The effect of a child."""
        self.done += 1
        if self.done in self.counts:
            self.taken.append(self.watch.read().cpu)


def called(folder: Path, late: int) -> Reading:
    """Processor seconds per child early and late in one fan-out."""
    counting = Counting((EARLY - WINDOW, EARLY, late - WINDOW, late))
    step = {"id": "step", "type": "script", "script": "scripts/step.sh", "outputs": [{"key": "n"}], "next": "done"}
    end = {"id": "done", "type": "terminal"}
    write_workflow(folder, "one", {"start": "step", "returns": ["n"], "nodes": [step, end]})
    nodes = [
        {"id": "each", "type": "map", "over": "items", "body": "sub", "join": "done", "max": 16},
        {"id": "sub", "type": "call", "workflow": "one", "next": "done"},
        end,
    ]
    root = write_workflow(folder, "many", {"vars": {"items": list(range(late + 50))}, "start": "each", "nodes": nodes})

    async def walked() -> None:
        async with open_state(folder, QuickKind(counting.act)) as runtime:
            loaded = load(root, lambda name, caller: caller.parent / name)
            await walk(runtime, (await start(runtime, StartRequest(loaded))).row)

    asyncio.run(walked())
    first, second, third, fourth = counting.taken
    return {"early": (second - first) / WINDOW, "late": (fourth - third) / WINDOW}


PARTS = {"called": called}
