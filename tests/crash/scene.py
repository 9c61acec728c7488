"""Setting a crash: a run made here, walked and cut off in a process of its own, then walked on and judged here."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bailiwick.ids import Json
from bailiwick.processes.children import end_children
from bailiwick.testing.harness import CrashCase, Home, begin, opened, walk
from bailiwick.testing.polling import until
from tests.crash.shapes import Shape

RUNNER = Path(__file__).with_name("runner.py")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended and what it said."""

    code: int
    words: str

    @property
    def killed(self) -> bool:
        """Whether nothing could soften its end."""
        return self.code == -signal.SIGKILL


class Nursery:
    """Makes runners quickly: one process that has imported everything and forks. One at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(RUNNER), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, home: Home, mode: str, target: str | Path, tracer: Sequence[str] = (), **options: Json) -> Ended:
        """Run a runner to its end, whatever that is; `tracer` is a command that is given `-p PID`."""
        if tracer:
            options["hold"] = True
            os.mkfifo(home.root / "go")
        self._write(command(home, mode, target, **options)[2:])
        pid = self._read()
        code = self._traced(home, pid, tracer) if tracer else self._read()
        return Ended(code, (home.root / "words").read_text())

    def _traced(self, home: Home, pid: int, tracer: Sequence[str]) -> int:
        with subprocess.Popen([*tracer, "-p", str(pid)], stderr=subprocess.PIPE, text=True) as process:
            try:
                until(lambda: is_traced(pid) or process.poll() is not None, what="the tracer's hold")
                assert process.poll() is None, process.stderr.read() if process.stderr else ""
                (home.root / "go").write_bytes(b"")
                return self._read()
            finally:
                process.terminate()
                (home.root / "go").unlink()

    def _write(self, argv: list[str]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(argv) + "\n")
        self._process.stdin.flush()

    def _read(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process; it has no children now."""
        self._process.communicate()


def is_traced(pid: int) -> bool:
    """Whether a tracer holds a process."""
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


def command(home: Home, mode: str, target: str | Path = "-", **options: Json) -> list[str]:
    """The command line of a runner."""
    return [sys.executable, str(RUNNER), str(home.root), mode, str(target), json.dumps(options)]


class Crowd:
    """Processes of a test that live side by side; whatever happens, none of them and of their children is left."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self._runs: set[str] = set()

    def walk(self, case: CrashCase, **options: Json) -> subprocess.Popen[str]:
        """A runner that walks the run of this case."""
        self._runs.add(case.root)
        return self.start(command(case.home, "walk", case.root, **options))

    def command(self, case: CrashCase, *words: str, package: Path | None = None, **env: str) -> subprocess.Popen[str]:
        """The command as people have it, of the installed package or of another one."""
        self._runs.add(case.root)
        environment = {**os.environ, "BAILIWICK_HOME": str(case.home.root), "NO_COLOR": "1", **env}
        if package is not None:
            environment["PYTHONPATH"] = str(package)
        return self.start([sys.executable, "-m", "bailiwick", *words], environment)

    def start(self, argv: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Any process."""
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self._processes.append(process)
        return process

    def end(self) -> None:
        """Kill what a failed test left behind."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        for run in self._runs:
            asyncio.run(end_children({"BAILIWICK_RUN": run}, 0.0))


def runs_at(case: CrashCase, node: str, times: int = 1) -> bool:
    """Whether a script of this node began so many times."""
    return sum(line.node == node and line.word == "start" for line in case.home.lines()) >= times


def let_go(case: CrashCase) -> None:
    """Let the script of the node `held` end."""
    (case.home.state / "workspaces" / case.root / "go").touch()


def create(shape: Shape, root: Path) -> CrashCase:
    """A run of this shape that nobody has walked yet."""
    home = Home(root)
    return asyncio.run(_create(shape, home, shape.write(root / "flows")))


async def _create(shape: Shape, home: Home, directory: Path) -> CrashCase:
    home.state.mkdir()
    async with opened(home.state) as runtime:
        row = await begin(runtime, directory)
        if shape.stopped:
            home.stop.touch()
    return CrashCase(home, row.id, "done", shape.context)


def cut(case: CrashCase) -> None:
    """Look at what the dead process left."""
    asyncio.run(case.cut())


def go_on(case: CrashCase) -> list[str]:
    """Walk the run to its end in this process, as `run` again would, and judge it."""
    return asyncio.run(_go_on(case))


async def _go_on(case: CrashCase) -> list[str]:
    async with opened(case.home.state) as runtime:
        row = await runtime.store.run(case.root)
        assert row is not None, "the run is gone"
        await walk(runtime, row)
        return await case.findings(runtime)


def judge(case: CrashCase) -> list[str]:
    """Judge a run that is over."""
    return asyncio.run(_judge(case))


async def _judge(case: CrashCase) -> list[str]:
    async with opened(case.home.state) as runtime:
        return await case.findings(runtime)
