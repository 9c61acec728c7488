"""How long a killed run with many visits takes from the command to its first new effect."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from itertools import count
from pathlib import Path

from bailiwick.runtime.kinds import AttemptRequest
from benchmarks.measure import Bench, PartFailed, Reading, Spread, column, in_child
from benchmarks.report import Figure
from benchmarks.walking import QuickKind, chain, command_line, create, home, loop, open_state, walk, write_workflow

KEY = "long"
PATIENCE = 60.0


def measure(bench: Bench) -> list[Figure]:
    """Grow a run until it is killed in a node, then enter it again and again, each time until it is killed again."""
    visits, rounds = bench.pick(10_000, 500), bench.pick(5, 1)
    folder = bench.empty()
    root = write_workflow(folder, "grown", loop(visits + 1000), script="sleep 30\n")
    _grow(folder, visits)
    hello = write_workflow(folder, "hello", chain(1), script='echo \'{"n": "hello"}\'\n')
    numbers = count()
    parts = {
        "resumed": lambda: _resume(folder, command_line("run", str(root), "--run-id", KEY, "--events")),
        "hello": lambda: _resume(folder, command_line("run", str(hello), "--run-id", f"r{next(numbers)}", "--events")),
    }
    found = bench.in_turn(parts, rounds)
    seconds, fresh = (Spread.of(column(found[name], "seconds")) for name in parts)
    return [
        Figure(
            "resume",
            f"resuming a run with {visits:,} effect visits, to its first new effect",
            "≤ 4 × a fresh run to its first effect",
            seconds,
            "s",
            {"fresh run": fresh},
            score=seconds.middle / fresh.middle,
            scale="× a fresh run",
            bound=4.0,
            note="from the start of `bailiwick run` after kill -9 until it says that the effect's start is durable",
        )
    ]


def _grow(folder: Path, visits: int) -> None:
    """Make the run; the process that does so kills itself in the last visit."""
    try:
        in_child("resuming", "grow", folder, visits=visits)
    except PartFailed as error:
        if f"ended with {-signal.SIGKILL}" not in str(error):
            raise


def grow(folder: Path, visits: int) -> Reading:
    """Walk up to a visit and die in it."""

    async def act(request: AttemptRequest) -> None:
        if request.visit == visits:
            os.kill(os.getpid(), signal.SIGKILL)

    async def walked() -> None:
        async with open_state(folder, QuickKind(act)) as runtime:
            await walk(runtime, await create(runtime, folder / "grown", KEY))

    asyncio.run(walked())
    return {}


def _resume(folder: Path, command: list[str]) -> Reading:
    """Seconds from the start of the process to its first new `EffectStarted`; then it is killed in the effect."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=home(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        for line in process.stdout or ():
            if "EffectStarted" in line and json.loads(line):
                return {"seconds": time.perf_counter() - began}
            if time.perf_counter() - began > PATIENCE:
                raise PartFailed(f"no effect was started in {PATIENCE:g} s")
        _, said = process.communicate()
        raise PartFailed(f"`bailiwick run` ended: {(said.strip().splitlines() or ['it said nothing'])[-1]}")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


PARTS = {"grow": grow}
