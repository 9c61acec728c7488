"""What runs cost that wait for a person: threads, tasks, memory, and processor time while nothing happens."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
import tracemalloc
from pathlib import Path

from bailiwick.journal.rows import ClaimFilter
from bailiwick.processes.owner import current_owner
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.worker import Worker
from benchmarks.measure import Bench, Reading, Spread, column, in_child
from benchmarks.report import Figure
from benchmarks.walking import create, open_state, write_workflow

WARM_UP = 50
IDLE = 20


def measure(bench: Bench) -> list[Figure]:
    """Park many runs under one worker and look at the process before and after."""
    runs = bench.pick(1000, 100)
    rounds = bench.pick(3, 1)
    plain = [bench.part("parked", "plain", runs=runs, idle=bench.pick(IDLE, 1)) for _ in range(rounds)]
    traced = bench.part("parked", "traced", runs=runs, idle=0)
    for reading in (*plain, traced):
        bench.say("  " + ", ".join(f"{name} {value:.4g}" for name, value in reading.items()))
    memory = Spread.of(column(plain, "rss"), 1 / 1024)
    extra = Spread.of([reading["threads"] + reading["tasks"] for reading in plain])
    idle = Spread.of(column(plain, "cpu"), 100)
    what = f"{runs:,} parked runs"
    return [
        Figure(
            "parked-memory",
            f"{what}: memory of each",
            "≤ 5 KB",
            memory,
            "KiB",
            score=memory.middle * 1.024,
            scale="KB",
            bound=5.0,
            note=f"growth of the resident set by run; live Python objects: {traced['heap'] / 1024:.2f} KiB each",
        ),
        Figure(
            "parked-tasks",
            f"{what}: threads and tasks more than with {WARM_UP}",
            "none",
            extra,
            "",
            score=extra.middle,
            bound=0.0,
        ),
        Figure(
            "parked-idle",
            f"{what}: processor time while idle",
            "≤ 0.3 % of a core",
            idle,
            "% of a core",
            score=idle.middle,
            scale="%",
            bound=0.3,
            note="one look per process every 50 ms at whether another has written, 100 ms when quiet; none per run",
        ),
    ]


def plain(folder: Path, runs: int, idle: int) -> Reading:
    """Growth of the process by run, and its processor time while idle."""
    return asyncio.run(_park(folder, runs, idle))


def traced(folder: Path, runs: int, idle: int) -> Reading:
    """The same with the allocator watched, which by itself takes memory."""
    tracemalloc.start()
    return asyncio.run(_park(folder, runs, idle))


async def _park(folder: Path, runs: int, idle: int) -> Reading:
    async with open_state(folder) as runtime:
        worker = Worker(runtime, current_owner("benchmark"), ClaimFilter(), concurrency=16)
        serving = asyncio.create_task(worker.run(_never))
        await _add(runtime, worker, folder, 0, WARM_UP)
        before = _facts()
        await _add(runtime, worker, folder, WARM_UP, runs)
        after = _facts()
        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.sleep(idle)
        share = (time.process_time() - cpu) / (time.perf_counter() - began)
        worker.drain("over", now=True)
        worker.wake.set()
        await serving
    grown = {name: after[name] - before[name] for name in before}
    each = {name: grown[name] / runs for name in ("rss", "heap")}
    return {**each, "threads": grown["threads"], "tasks": grown["tasks"], "cpu": share if idle else 0.0}


ASKING = {
    "start": "ask",
    "vars": {"topic": "a question that takes days"},
    "nodes": [
        {"id": "ask", "type": "ask", "question": "go on with {{ topic }}?", "choices": ["yes", "no"], "next": "done"},
        {"id": "done", "type": "terminal"},
    ],
}


async def _never() -> bool:
    return False


async def _add(runtime: Runtime, worker: Worker, folder: Path, first: int, count: int) -> None:
    """Have another process start runs, as people do, and wait until all of them are parked here."""
    await asyncio.to_thread(in_child, "parked", "start", folder, first=first, count=count)
    while parked_runs(folder) < first + count or worker.held:  # noqa: ASYNC110  nobody tells
        await asyncio.sleep(0.1)
    await runtime.settle()


def start_runs(folder: Path, first: int, count: int) -> Reading:
    """Start runs that nobody walks yet, spread over workflows: a start looks at all runs of its workflow."""

    async def started() -> None:
        async with open_state(folder) as runtime:
            for number in range(first, first + count):
                root = folder / f"asking-{number // WARM_UP}"
                if not root.exists():
                    write_workflow(folder, root.name, ASKING)
                await create(runtime, root, f"run-{number}")

    asyncio.run(started())
    return {}


def parked_runs(folder: Path) -> int:
    """How many runs wait, counted by the database so that nothing of it stays in this process."""
    import apsw

    db = apsw.Connection(str(folder / "state" / "bailiwick.db"), flags=apsw.SQLITE_OPEN_READONLY)
    found = int(next(db.execute("SELECT count(*) FROM wait"))[0])
    db.close()
    return found


def _facts() -> Reading:
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    heap = tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else 0
    tasks = len(asyncio.all_tasks())
    return {"rss": resident, "heap": heap, "threads": threading.active_count(), "tasks": tasks}


PARTS = {"plain": plain, "traced": traced, "start": start_runs}
