"""Processes that use one database at the same time, each started ready and let go together."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from bailiwick import crashpoints
from bailiwick.clock import ManualClock
from bailiwick.errors import StoreUnavailable
from bailiwick.ids import digest
from bailiwick.journal.rows import Batch, EncodedEvent, Owner
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.testing.store_conformance.stage import ANY, NOW, event, held_run, message, new_run

Answer = list[object]


async def open_only(store: SqliteStore, name: str) -> Answer:
    """Make one run each."""
    await store.create(new_run(name))
    return [name]


async def write(store: SqliteStore, name: str) -> Answer:
    """Append to a run of its own and send to the shared one, both at once, as a holder with children would."""
    row = await held_run(store, name)
    for number in range(40):
        await asyncio.gather(
            store.append(name, row.epoch, Batch(after=number, events=(event(str(number)),))),
            store.send(message("shared", f"{name}-{number}", body=[name, number])),
        )
    return [name]


async def walk(store: SqliteStore, name: str) -> Answer:
    """Claim, append, let go, until there is nothing left."""
    taken: Answer = []
    owner = Owner(host="here", boot="b", pidns="n", pid=1, start=1, name=name)
    while row := await store.claim(owner, NOW, NOW + 60, 1, ANY):
        taken.append(row.id)
        ended = Batch(after=row.seq, events=(event(f'"{name}"'),), status="done", release=True)
        await store.append(row.id, row.epoch, ended)
    return taken


async def overflow(store: SqliteStore, name: str) -> Answer:
    """Write while the kernel refuses longer files, then again when it does not."""
    row = await held_run(store, name)
    big = EncodedEvent("Grew", 1, '"' + "x" * 200_000 + '"', NOW)
    batch = Batch(after=0, events=(big,))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    said = ""
    try:
        await store.append(name, row.epoch, batch)
    except StoreUnavailable as error:
        said = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    seen = len(await store.read(name))
    seq = await store.append(name, row.epoch, batch)
    return [said, seen, seq]


async def crash(store: SqliteStore, name: str) -> Answer:
    """Append with a big blob, with a point armed; dies there."""
    point, data = name, b"b" * 2_000_000
    await store.create(new_run())
    row = await held_run(store)
    crashpoints.arm(point)
    await store.append("r1", row.epoch, Batch(after=0, events=(event("1"),), blobs={digest(data): data}))
    return []


MODES: dict[str, Callable[[SqliteStore, str], Awaitable[Answer]]] = {
    "open": open_only,
    "write": write,
    "walk": walk,
    "overflow": overflow,
    "crash": crash,
}


async def main(mode: str, path: str, name: str) -> None:
    store = await SqliteStore.open(Path(path), now=ManualClock().now, busy_timeout=30)
    answer = await MODES[mode](store, name)
    await store.close()
    sys.stdout.write(json.dumps(answer))


def contend(mode: str, path: Path, names: list[str]) -> list[list[object]]:
    """Run one process per name at the same time; what each answers, in order. A failure of one fails the test."""
    children = [start(mode, path, name) for name in names]
    for child in children:
        if child.stdout is None or child.stdin is None or child.stdout.readline() != "ready\n":
            raise RuntimeError("a contender did not start")
    for child in children:
        if child.stdin is not None:
            child.stdin.write("go\n")
            child.stdin.flush()
    outputs = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        raise RuntimeError(f"contenders ended with {[child.returncode for child in children]}")
    return [json.loads(output) for output in outputs]


def start(mode: str, path: Path, name: str) -> subprocess.Popen[str]:
    """One process that says `ready` and waits for a line."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "tests.unit.journal.contenders", mode, str(path), name]
    return subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


if __name__ == "__main__":
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    asyncio.run(main(*sys.argv[1:]))
