"""One process that starts or walks a run, as the command does, with constants a test may change and bugs it may sow.

    python runner.py HOME start|walk|work TARGET OPTIONS
    python runner.py serve

`start` takes a workflow directory, `walk` a run id, `work` nothing: it is a worker until nothing can go on. `serve` has
everything imported and makes a process of itself for each command line it reads, which costs a tenth of a new one. Such
a process writes its words to HOME/words, and with the option `hold` begins when somebody opens HOME/go for writing.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bailiwick import crashpoints
from bailiwick.errors import BailiwickError
from bailiwick.journal.rows import Batch, ClaimFilter, Message, RunRow
from bailiwick.processes import guards
from bailiwick.processes.children import end_children
from bailiwick.processes.owner import current_owner
from bailiwick.processes.proc import become_subreaper
from bailiwick.runs.foreground import Foreground, Interrupts, RunExit
from bailiwick.runtime import leases
from bailiwick.runtime import walker as walking
from bailiwick.runtime import worker as working
from bailiwick.runtime.assemble import Runtime, Watch
from bailiwick.testing.harness import Home, begin, opened, walk

if TYPE_CHECKING:
    import apsw


async def main(home: Home, mode: str, target: str, options: dict[str, Any]) -> int:
    """Do what the command line says; gives the exit code."""
    become_subreaper()
    if point := options.get("crash"):
        crashpoints.arm_from(point)
    async with opened(home.state, Watch(trouble=lambda _run, text: _say(text))) as runtime:
        if mode == "work":
            await _work(runtime)
            return 0
        row = await begin(runtime, Path(target)) if mode == "start" else await runtime.store.run(target)
        assert row is not None
        _say(f"walking {row.id}")
        return (await walk(runtime, row, options.get("name", "harness"))).code


async def _work(runtime: Runtime) -> None:
    worker = working.Worker(runtime, current_owner("worker"), ClaimFilter())

    async def idle() -> bool:
        return all(row.status != "ready" for row in await runtime.store.runs())

    await worker.run(idle)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def adjust(home: Home, options: dict[str, Any]) -> None:
    """Shorten times, and break what a test wants to see broken."""
    for name in ("LEASE", "RENEW", "MARGIN"):
        setattr(leases, name, options.get(name, getattr(leases, name)))
    guards.PATIENCE = options.get("PATIENCE", guards.PATIENCE)
    walking.RETRY_STORE = options.get("RETRY_STORE", 0.02)
    if "GRACE" in options:
        vars(walking)["end_children"] = functools.partial(end_children, grace=options["GRACE"])
    if home.stop.exists():
        _stop_while_walking()
    match options.get("bug"):
        case "early start":
            _start_early(home)
        case "early answer":
            _answer_early(home)
        case "no sync":
            _never_sync()
        case _:
            pass


def _stop_while_walking() -> None:
    """Somebody stops the run, once, just after its walk was allowed to begin."""
    real = Foreground.walk

    async def walk(self: Foreground, row: RunRow, signals: Interrupts) -> RunExit:
        store, now = self._runtime.store, self._runtime.clock.now()
        await store.send(Message(row.id, "stop", "stop", {"now": False, "by": "a test"}, now))
        return await real(self, row, signals)

    Foreground.walk = walk  # type: ignore[method-assign]


async def _until_something_ran(home: Home) -> None:
    while not home.effects.exists():  # noqa: ASYNC110  another process makes the file
        await asyncio.sleep(0)


def _start_early(home: Home) -> None:
    """Effects begin before their start is durable."""
    real = walking.Walker._flush

    async def flush(self: walking.Walker, *, release: bool = False, wake_at: float | None = None) -> bool:
        starting, self.starting = self.starting, []
        for start in starting:
            self.effects.start(start, self.setup.around, self.state.graph.nodes[start.node])
        if starting:
            await _until_something_ran(home)
        return await real(self, release=release, wake_at=wake_at)

    walking.Walker._flush = flush  # type: ignore[method-assign]


def _answer_early(home: Home) -> None:
    """Appends are acknowledged before they are committed."""
    from bailiwick.journal.sqlite import SqliteStore

    real = SqliteStore.append
    late: set[asyncio.Task[int]] = set()

    async def write(self: SqliteStore, run_id: str, epoch: int, batch: Batch) -> int:
        await _until_something_ran(home)
        return await real(self, run_id, epoch, batch)

    async def append(self: SqliteStore, run_id: str, epoch: int, batch: Batch) -> int:
        late.add(asyncio.get_running_loop().create_task(write(self, run_id, epoch, batch)))
        return batch.after + len(batch.events)

    SqliteStore.append = append  # type: ignore[method-assign]


def _never_sync() -> None:
    """Commits are left to the kernel, which a power cut does not ask."""
    from bailiwick.journal import connection

    real = connection.connect

    def connect(path: Path, busy_timeout: float, flags: int = connection.READ_WRITE) -> apsw.Connection:
        db = real(path, busy_timeout, flags)
        db.pragma("synchronous", "OFF")
        return db

    connection.connect = connect


def run(argv: list[str]) -> int:
    """The command; errors of ours are words and a code."""
    home, options = Home(Path(argv[0])), json.loads(argv[3])
    adjust(home, options)
    try:
        return asyncio.run(main(home, argv[1], argv[2], options))
    except BailiwickError as error:
        _say("\n".join(str(problem) for problem in error.problems()))
        return error.exit_code


def serve() -> int:
    """Read command lines as JSON, one a line; say each one's pid, then how it ended."""
    for line in sys.stdin:
        argv = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os._exit(_served(argv))
        _tell(pid)
        _, status = os.waitpid(pid, 0)
        _tell(os.waitstatus_to_exitcode(status))
    return 0


def _tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _served(argv: list[str]) -> int:
    home = Path(argv[0])
    with (home / "words").open("w") as words, (home / "null").open("w+") as null:
        for descriptor, file in enumerate((null, words, words)):
            os.dup2(file.fileno(), descriptor)
    try:
        if json.loads(argv[3]).get("hold"):
            (home / "go").read_bytes()
        return run(argv)
    except Exception:  # noqa: BLE001  the words are for the test that finds them
        _say(traceback.format_exc())
        return 70


if __name__ == "__main__":
    sys.exit(serve() if sys.argv[1:] == ["serve"] else run(sys.argv[1:]))
