"""Dying at the n-th system call: no point in the code needed, so also where nobody thought of one."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

CALLS = ("pwrite64", "fdatasync", "fsync", "write", "rename", "mkdir", "unlink", "ftruncate")
FOLLOW = ("strace", "-qq", "-f", "-b", "execve")
SEED = 20_260_101
SAMPLE = 40


def counter(file: Path) -> list[str]:
    """A tracer that writes down the calls."""
    return [*FOLLOW, "-o", str(file), "-e", f"trace={','.join(CALLS)}"]


def read_counts(file: Path) -> dict[str, int]:
    """How often the busiest thread makes each call: so many points there are, as calls are counted by thread."""
    by_thread: Counter[tuple[str, str]] = Counter()
    for line in file.read_text().splitlines():
        thread, _, rest = line.partition(" ")
        name = rest.strip().partition("(")[0]
        if name in CALLS:
            by_thread[thread, name] += 1
    return {name: max((n for (_, call), n in by_thread.items() if call == name), default=0) for name in CALLS}


def killer(call: str, nth: int) -> list[str]:
    """A tracer that kills the process before its n-th such call."""
    return [*FOLLOW, "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={nth}"]


def breaker(call: str, error: str, first: int, last: int) -> list[str]:
    """A tracer that lets some calls of the writing thread fail."""
    when = f"when={first}..{last}"
    return [*FOLLOW, "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:{when}"]


def watcher(file: Path) -> list[str]:
    """A tracer that writes down what is written to the journal, when it is synced, and when a process is asked for."""
    return [*FOLLOW, "-y", "-o", str(file), "-e", "trace=pwrite64,fdatasync,sendmsg"]


def order_of_writes(file: Path) -> list[str]:
    """What happened to the journal in its order: write, sync, begin (of a process)."""
    order = []
    for line in file.read_text().splitlines():
        call = line.partition(" ")[2].strip()
        if "bailiwick.db-wal" in call:
            order.append("sync" if call.startswith("fdatasync") else "write")
        elif call.startswith("sendmsg") and "SCM_RIGHTS" in call:  # the files of a process go to the spawner
            order.append("begin")
    return order


def choose(shape: str, counts: dict[str, int], size: int | None) -> list[tuple[str, int]]:
    """The points of a shape to die at: all, or a sample that has every kind of call in it, the same each time."""
    points = {call: list(range(1, count + 1)) for call, count in counts.items()}
    if size is None:
        return [(call, nth) for call, all_of in points.items() for nth in all_of]
    dice = random.Random(f"{SEED} {shape}")
    for all_of in points.values():
        dice.shuffle(all_of)
    chosen: list[tuple[str, int]] = []
    while len(chosen) < size and any(points.values()):
        rare = [call for call, all_of in points.items() if all_of]
        chosen += [(call, points[call].pop()) for call in rare]
        chosen += [("pwrite64", points["pwrite64"].pop())] if points["pwrite64"] else []
    return chosen[:size]
