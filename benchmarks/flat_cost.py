"""The cost of a node late in a run beside an early one, and what a large value costs that nobody changes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.kinds import AttemptRequest
from benchmarks.measure import Bench, Reading, Spread, Stopwatch, column
from benchmarks.report import Figure
from benchmarks.walking import QuickKind, create, loop, open_state, walk, write_workflow

WINDOW = 200
LARGE = 1_000_000
FEW_NODES = 100


def measure(bench: Bench) -> list[Figure]:
    """Time per node around node 100 and node 10,000; bytes written over 100 nodes with and without 1 MB."""
    late = bench.pick(10_000, 1_000)
    aged = [bench.part("flat_cost", "aged", late=late) for _ in range(bench.pick(5, 1))]
    bench.say(f"  node {late:,} beside node 100: {[round(r['late'] / r['early'], 2) for r in aged]}")
    early, later = (Spread.of(column(aged, name), 1000) for name in ("early", "late"))
    parts = {
        "large": lambda: bench.part("flat_cost", "written", size=LARGE),
        "small": lambda: bench.part("flat_cost", "written", size=10),
    }
    found = bench.in_turn(parts, bench.pick(3, 1))
    large, small = (Spread.of(column(found[name], "bytes"), 1 / 1024) for name in parts)
    growth = Spread.of(column(found["large"], "growth"), 1 / 1024)
    again = (large.middle - small.middle) * 1024 / LARGE
    return [
        Figure(
            "flat-cost",
            f"an effect node, node {late:,} beside node 100",
            "≤ 1.2 ×",
            later,
            "ms",
            {"node 100": early},
            later.middle / early.middle,
            "× node 100",
            1.2,
            note=f"one run; {WINDOW} nodes from node 100 on and as many up to node {late:,}, run directory written",
        ),
        Figure(
            "unchanged-value",
            f"written over {FEW_NODES} nodes with an unchanged 1 MB value in the context",
            "less than the value once",
            large,
            "KiB",
            {"with 10 bytes": small},
            again,
            "× the value",
            1.0,
            note=f"all bytes the process hands to the kernel; the database grew by {growth.middle:,.0f} KiB",
        ),
    ]


@dataclass(slots=True)
class Ageing:
    """Takes the time at given visits of a loop, after everything before is projected."""

    visits: tuple[int, ...]
    runtime: Runtime | None = None
    taken: list[float] = field(default_factory=list)
    watch: Stopwatch = field(default_factory=Stopwatch)

    async def act(self, request: AttemptRequest) -> None:
        """The effect of a visit."""
        if request.visit in self.visits and self.runtime is not None:
            await self.runtime.settle()
            self.taken.append(self.watch.read().seconds)


def aged(folder: Path, late: int) -> Reading:
    """Seconds per node early and late in one long run."""
    ageing = Ageing((100, 100 + WINDOW, late - WINDOW, late))

    async def walked() -> None:
        async with open_state(folder, QuickKind(ageing.act)) as runtime:
            ageing.runtime = runtime
            await walk(runtime, await create(runtime, write_workflow(folder, "aged", loop(late)), "first"))

    asyncio.run(walked())
    first, second, third, fourth = ageing.taken
    return {"early": (second - first) / WINDOW, "late": (fourth - third) / WINDOW}


@dataclass(slots=True)
class Writing:
    """Notes the bytes written at the first and the last visit, after everything before is projected."""

    folder: Path
    runtime: Runtime | None = None
    bytes: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    async def act(self, request: AttemptRequest) -> None:
        """The effect of a visit."""
        if request.visit in (2, 2 + FEW_NODES) and self.runtime is not None:
            await self.runtime.settle()
            self._checkpoint()
            self.bytes.append(bytes_written())
            self.sizes.append(sum(path.stat().st_size for path in (self.folder / "state").glob("bailiwick.db*")))

    def _checkpoint(self) -> None:
        """Move the log into the database, so that what is written before is not counted after."""
        import apsw

        db = apsw.Connection(str(self.folder / "state" / "bailiwick.db"))
        busy, _, _ = next(db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        if busy:
            raise RuntimeError("the log could not be moved into the database")
        db.close()


def written(folder: Path, size: int) -> Reading:
    """Bytes written over 100 nodes, and how much the database grew."""
    writing = Writing(folder)

    async def walked() -> None:
        async with open_state(folder, QuickKind(writing.act)) as runtime:
            writing.runtime = runtime
            root = write_workflow(folder, "large", loop(FEW_NODES + 3, {"large": "x" * size}))
            await walk(runtime, await create(runtime, root, "first"))

    asyncio.run(walked())
    return {"bytes": writing.bytes[1] - writing.bytes[0], "growth": writing.sizes[1] - writing.sizes[0]}


def bytes_written() -> int:
    """What this process has handed to write calls so far."""
    for line in Path("/proc/self/io").read_text("ascii").splitlines():
        if line.startswith("wchar:"):
            return int(line.split()[1])
    raise RuntimeError("this kernel does not count bytes written")


PARTS = {"aged": aged, "written": written}
