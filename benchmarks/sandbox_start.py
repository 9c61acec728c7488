"""What the sandbox costs: a start of it beside a bare start of bubblewrap and of the program alone."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

from bailiwick.processes.proc import EFFECT_MARK, run_process
from bailiwick.sandbox.backends.bwrap import BwrapBackend
from bailiwick.sandbox.spec import INNER, Bind, SandboxSpec
from benchmarks.measure import Bench, PartFailed, Reading, Spread, column
from benchmarks.report import Figure

BOUND = 4.0
"""Times a bare start of bubblewrap."""


def measure(bench: Bench) -> list[Figure]:
    """Start the same program in the three ways, in turn."""
    starts = bench.pick(100, 10)
    parts: dict[str, Callable[[], Reading]] = {
        name: lambda name=name: bench.part("sandbox_start", name, starts=starts)  # type: ignore[misc]
        for name in ("sandbox", "listeners", "bwrap", "bare")
    }
    found = bench.in_turn(parts, bench.pick(3, 1))
    others = {name: Spread.of(column(found[name], "middle"), 1000) for name in ("bwrap", "bare")}
    return [
        _figure("sandbox-start", "a start in the sandbox", found["sandbox"], others),
        _figure("sandbox-listeners", "the same with two listeners", found["listeners"], others),
    ]


def _figure(name: str, what: str, readings: list[Reading], others: dict[str, Spread]) -> Figure:
    slow = Spread.of(column(readings, "p95"), 1000)
    middle = Spread.of(column(readings, "middle"), 1000)
    return Figure(
        name,
        what,
        f"≤ {BOUND:g} × bare bubblewrap",
        middle,
        "ms",
        others,
        middle.middle / others["bwrap"].middle,
        "× bwrap",
        BOUND,
        note=f"95 of 100 below {slow.middle:.3g} ms; entered, `true` run, left, nothing kept open between two starts",
    )


def _timed(starts: int, start: Callable[[], None]) -> Reading:
    start()
    taken = []
    for _ in range(starts):
        began = time.perf_counter()
        start()
        taken.append(time.perf_counter() - began)
    return {"middle": sorted(taken)[len(taken) // 2], "p95": quantiles(taken, n=20)[-1]}


def sandbox(folder: Path, starts: int) -> Reading:
    """Starts as a check of the gate has them."""
    return _sandboxed(folder, starts, ())


def listeners(folder: Path, starts: int) -> Reading:
    """Starts as an agent's program has them."""
    return _sandboxed(folder, starts, ("model", "egress"))


def _sandboxed(folder: Path, starts: int, names: tuple[str, ...]) -> Reading:
    tree = folder / "tree"
    tree.mkdir()
    box = BwrapBackend()
    standing = asyncio.run(box.check())
    if not standing.ok:
        raise PartFailed(standing.found)
    sandbox_spec = SandboxSpec("agent", (Bind(tree, INNER, write=True),), doors=names)

    async def once() -> None:
        async with box.enter(sandbox_spec, lambda _name, listening: listening.close()) as sandbox:
            command = sandbox.command(("true",), {"PATH": "/usr/bin:/bin", EFFECT_MARK: "benchmark"})
            end = await run_process(command, cancel=asyncio.Event())
            if end.code:
                raise PartFailed(end.stderr.decode("utf-8", "replace"))

    return _timed(starts, lambda: asyncio.run(once()))


def bwrap(folder: Path, starts: int) -> Reading:
    """Bubblewrap alone, with namespaces and the whole machine read-only."""
    argv = ["bwrap", "--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "--new-session", "--", "true"]
    return _timed(starts, lambda: _run(argv))


def bare(folder: Path, starts: int) -> Reading:
    """The program alone."""
    return _timed(starts, lambda: _run(["true"]))


def _run(argv: list[str]) -> None:
    subprocess.run(argv, check=True, capture_output=True)


PARTS = {"sandbox": sandbox, "listeners": listeners, "bwrap": bwrap, "bare": bare}
