"""What checks that run tests share: the pipe that a reporter writes to, and the result of a run."""

from __future__ import annotations

import asyncio
import os
from typing import Protocol

from bailiwick.gate.failure_lines import failure_lines
from bailiwick.gate.model import CheckResult, Finding, Level, Outcome
from bailiwick.gate.outcomes import Fault, PytestSession
from bailiwick.gate.shown import last_lines
from bailiwick.gate.spec import CheckSpec
from bailiwick.ids import digest
from bailiwick.processes.command import Exit

OUTPUT = 64 * 1024
_CHUNK = 1 << 18


class PipeRecords(Protocol):
    """Takes the bytes of a pipe as they come; after a fault nothing more of it is read."""

    fault: Fault | None

    def feed(self, data: bytes) -> None:
        """Take what was read."""

    def close(self) -> None:
        """Nothing more comes."""


class ReadPipe:
    """Reads a pipe for as long as the process runs, then what is left in it."""

    def __init__(self, handle: int, records: PipeRecords) -> None:
        self._handle = handle
        self._records = records
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        os.set_blocking(self._handle, False)
        self._loop.add_reader(self._handle, self._read)

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._handle)
        while self._read():
            pass
        self._records.close()

    def _read(self) -> bool:
        try:
            data = os.read(self._handle, _CHUNK)
        except BlockingIOError:
            return False
        self._records.feed(data)
        return bool(data) and self._records.fault is None


class RanTests(Protocol):
    """A run of tests: how its process ended, and what its reporter said."""

    @property
    def end(self) -> Exit:
        """The end of the process."""

    @property
    def session(self) -> PytestSession:
        """The tests with their outcomes."""


def result_of(
    spec: CheckSpec,
    outcome: Outcome,
    ran: RanTests | None = None,
    *,
    level: Level = "tests",
    findings: tuple[Finding, ...] = (),
    hint: str = "",
) -> CheckResult:
    """The result of a check that runs tests; without a run where it could not begin."""
    if ran is None:
        return CheckResult(
            spec.name, kind=spec.kind, level=level, outcome=outcome, command=spec.run, findings=findings, hint=hint
        )
    red, texts = ran.session.red, ran.session.texts
    return CheckResult(
        name=spec.name,
        kind=spec.kind,
        level=level,
        outcome=outcome,
        command=spec.run,
        code=ran.end.code,
        seconds=ran.end.seconds,
        counts=ran.session.counts(),
        findings=findings,
        output="\n".join(last_lines(ran.end.stdout + b"\n" + ran.end.stderr, OUTPUT)),
        output_digest=digest(ran.end.stdout + b"\0" + ran.end.stderr),
        failing=red,
        reasons=failure_lines((test, texts.get(test, "")) for test in red) if level == "tests" else (),
        hint=hint,
    )
