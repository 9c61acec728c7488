"""What the command costs before it does anything, over an interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from benchmarks.measure import Bench, PartFailed, Reading, Spread, column
from benchmarks.report import Figure
from benchmarks.walking import chain, command_line, home, write_workflow

GREETING = 0.5
HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"benchmark","version":"1"}}}\n'
)
LIMITS = {"--version": 2.0, "--help": 8.0, "hello workflow": 12.0}
"""Times an interpreter that does nothing."""


def measure(bench: Bench) -> list[Figure]:
    """Each beside `python -c pass`."""
    folder = bench.empty()
    root = write_workflow(folder, "hello", chain(1), script='echo \'{"n": "hello"}\'\n')
    numbers = count()
    bare = [sys.executable, "-c", "pass"]
    commands: dict[str, Callable[[], list[str]]] = {
        "python -c pass": lambda: bare,
        "--version": lambda: command_line("--version"),
        "--help": lambda: command_line("--help"),
        "hello workflow": lambda: command_line("run", str(root), "--run-id", f"r{next(numbers)}"),
    }
    parts = {name: _timer(made, folder) for name, made in commands.items()}
    for part in parts.values():
        part()
    found = bench.in_turn(parts, bench.pick(21, 3))
    times = {name: Spread.of(column(readings, "seconds"), 1000) for name, readings in found.items()}
    base = times["python -c pass"]
    found_ours = [
        Figure(
            f"start-{name.strip('-').replace(' ', '-')}",
            f"start-up: `bailiwick {name}`" if name[0] == "-" else f"a {name}",
            f"≤ {limit:g} × `python -c pass`",
            times[name],
            "ms",
            {"`python -c pass`": base},
            times[name].middle / base.middle,
            "× `python -c pass`",
            limit,
        )
        for name, limit in LIMITS.items()
    ]
    return [*found_ours, _greeting(bench, folder)]


def _greeting(bench: Bench, folder: Path) -> Figure:
    """The processor time until an MCP client on a pipe has its first answer; a client asks for no more to be sure."""
    greeted(folder)
    times = Spread.of([greeted(folder) for _ in range(bench.pick(11, 2))], 1)
    return Figure(
        "start-mcp-initialize",
        "start-up: `bailiwick mcp` until `initialize` is answered",
        f"≤ {GREETING:g} s of CPU",
        times,
        "s",
        {},
        times.middle,
        "s of CPU",
        GREETING,
    )


def greeted(folder: Path) -> float:
    """Seconds of CPU that a fresh `bailiwick mcp` has used when it answers `initialize`."""
    process = subprocess.Popen(
        command_line("mcp"), cwd=folder, env=home(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        if process.stdin is None or process.stdout is None:
            raise PartFailed("`bailiwick mcp` has no pipes")
        process.stdin.write(HELLO)
        process.stdin.flush()
        answer = process.stdout.readline()
        fields = Path(f"/proc/{process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        process.stdin.close()
    if b'"result"' not in answer:
        raise PartFailed("`bailiwick mcp` did not answer initialize")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _timer(made: Callable[[], list[str]], folder: Path) -> Callable[[], Reading]:
    def timed() -> Reading:
        command = made()
        began = time.perf_counter()
        done = subprocess.run(command, cwd=folder, env=home(folder), capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        if done.returncode:
            words = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise PartFailed(f"`bailiwick {' '.join(command[1:2])}` ended with {done.returncode}: {words}")
        return {"seconds": seconds}

    return timed
