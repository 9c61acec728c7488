"""Commands as people give them, each in a process of its own, made by one that has imported everything and forks.

    python commands.py

reads one JSON object a line: the words of a command line, the working directory, the environment, and two files for
what it prints. It says each process's number, then how it ended: its exit code, or minus a signal's number.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from bailiwick.testing.polling import until
from tests.acceptance.command import Person, Result
from tests.crash.scene import is_traced

NEEDED = (
    "asyncio.subprocess", "apsw", "httpx2", "jinja2", "yaml", "bailiwick.cli.root", "bailiwick.cli.view.choose",
    "bailiwick.app.service", "bailiwick.journal.sqlite", "bailiwick.cli.commands.pipelines",
    "bailiwick.pipelines.basis", "bailiwick.pipelines.nodes", "bailiwick.proposals.nodes", "bailiwick.gate.nodes",
    "bailiwick.proposals.forges.gitea", "bailiwick.agents.kind", "bailiwick.sandbox.backends.bwrap",
    "bailiwick.agents.backends.simulate", "bailiwick.audit.service", "bailiwick.gate.backends.command",
)  # fmt: skip
"""What commands of patterns use, and would import each time."""


class Commands:
    """Runs commands quickly, one at a time, and says how each ended."""

    def __init__(self) -> None:
        root = Path(__file__).resolve().parents[2]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.commands"],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pids: list[int] = []

    def run(
        self,
        person: Person,
        *words: str | Path,
        kill_after: float | None = None,
        kill_when: Callable[[], bool] | None = None,
        tracer: Sequence[str] = (),
    ) -> Result:
        """Run a command to its end, whatever that is: `kill_after` so many seconds, or `kill_when` something is so.

        `tracer` is a command that is given `-p PID`, and has the process before it does anything.
        """
        out, err, go = (person.home.parent / name for name in ("out", "err", "go"))
        ask = {
            "words": [str(w) for w in words],
            "cwd": str(person.cwd),
            "env": person.env(),
            "out": str(out),
            "err": str(err),
            "go": str(go) if tracer else "",
        }
        if tracer:
            os.mkfifo(go)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(ask) + "\n")
        self._process.stdin.flush()
        self.pids.append(self._read())
        if kill_when is not None:
            until(kill_when, what="the moment to kill it")
            os.kill(self.pids[-1], signal.SIGKILL)
        code = self._traced(go, tracer) if tracer else self._timed(kill_after)
        said, complained = (file.read_text() if file.exists() else "" for file in (out, err))  # killed before it began
        return Result(code, said, complained)

    def _timed(self, kill_after: float | None) -> int:
        if kill_after is None:
            return self._read()
        timer = threading.Timer(kill_after, os.kill, (self.pids[-1], signal.SIGKILL))
        timer.start()
        try:
            return self._read()
        finally:
            timer.cancel()
            timer.join()

    def _traced(self, go: Path, tracer: Sequence[str]) -> int:
        pid = self.pids[-1]
        with subprocess.Popen([*tracer, "-p", str(pid)], stderr=subprocess.PIPE, text=True) as process:
            try:
                until(lambda: is_traced(pid) or process.poll() is not None, what="the tracer's hold")
                assert process.poll() is None, process.stderr.read() if process.stderr else ""
                go.write_bytes(b"")
                return self._read()
            finally:
                process.terminate()
                go.unlink()

    def _read(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process; it has no children now."""
        self._process.communicate()


def serve() -> None:
    """Make a process for each line."""
    for name in NEEDED:
        import_module(name)
    gc.freeze()
    for line in sys.stdin:
        ask = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(ask)
        _tell(pid)
        _, status = os.waitpid(pid, 0)
        _tell(os.waitstatus_to_exitcode(status))


def _tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _become(ask: dict[str, Any]) -> NoReturn:
    """Be the command, to the end of this process."""
    from bailiwick.cli.root import run

    code = 70
    try:
        with Path(os.devnull).open() as null, Path(ask["out"]).open("w") as out, Path(ask["err"]).open("w") as err:
            for descriptor, file in enumerate((null, out, err)):
                os.dup2(file.fileno(), descriptor)
        os.environ.clear()
        os.environ.update(ask["env"])
        os.chdir(ask["cwd"])
        if ask["go"]:
            Path(ask["go"]).read_bytes()
        code = run(ask["words"])
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
