"""What checks that run tests share: the pipe that a reporter writes to, a run, and what follows from it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from bailiwick.gate.failure_lines import failure_lines
from bailiwick.gate.model import CheckResult, Finding, Level, Outcome
from bailiwick.gate.outcomes import Fault, PipeRecords, PytestSession
from bailiwick.gate.shown import last_lines
from bailiwick.gate.spec import CheckSpec
from bailiwick.ids import Json, digest
from bailiwick.processes.command import Exit

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext

OUTPUT = 64 * 1024
_CHUNK = 1 << 18
_A = TypeVar("_A")
_B = TypeVar("_B")


@contextmanager
def open_pipe(records: PipeRecords) -> Iterator[int]:
    """A pipe that is read for as long as a process runs, then what is left in it; gives the handle to write to."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    loop = asyncio.get_running_loop()

    def read() -> bool:
        try:
            data = os.read(reading, _CHUNK)
        except BlockingIOError:
            return False
        records.feed(data)
        return bool(data) and records.fault is None

    loop.add_reader(reading, read)
    try:
        yield writing
    finally:
        loop.remove_reader(reading)
        while read():
            pass
        records.close()
        os.close(writing)
        os.close(reading)


@dataclass(frozen=True, slots=True)
class RanTests:
    """A run of tests: what its reporter said, and how its process ended.

    `missing` is a program that is not there to run them, `absent` a package that the environment does not have.
    """

    session: PytestSession
    end: Exit
    missing: str = ""
    absent: str = ""

    @property
    def text(self) -> str:
        """All that was printed."""
        return (self.end.stdout + b"\n" + self.end.stderr).decode("utf-8", "replace")


def code_of(end: Exit) -> int | None:
    """The exit code of a process that ended by itself."""
    return end.code if end.why == "exited" else None


def timed(session: PytestSession, end: Exit, disk: str = "") -> PytestSession:
    """Say first that a run was ended from outside; `disk`: which limit of the disk ended it."""
    if not end.timed_out and not disk:
        return session
    fault = Fault("timeout", f"the tests ran out of time after {end.seconds:.0f} s")
    if disk:
        fault = Fault("disk", f"the tests were ended: {disk}")
    kept = tuple(f for f in session.faults if f.code not in ("cut-short", "no-records"))
    return replace(session, faults=(fault, *kept))


async def both(first: Awaitable[_A], second: Awaitable[_B]) -> tuple[_A, _B]:
    """Both at the same time, each to its end, so that nothing runs on in a tree that is being removed."""
    one, two = await asyncio.gather(first, second, return_exceptions=True)
    if isinstance(one, BaseException):
        raise one
    if isinstance(two, BaseException):
        raise two
    return one, two


def kept_results(context: CheckContext, name: str, run: list[str]) -> dict[str, Json]:
    """What a check knows of the base from before, for exactly this command; what is put in is kept."""
    known: dict[str, Json] = {} if context.base_results is None else context.base_results
    entry = known.get(name)
    if not isinstance(entry, dict) or entry.get("run") != run:
        entry = known[name] = {"run": run}
    return entry


def outcome_of(here: PytestSession, excused: Collection[str], findings: Iterable[Finding]) -> Outcome:
    """How a check ended by its run and all that was found; `excused` are tests that are red on the base too."""
    listed = tuple(findings)
    if any(finding.blocks for finding in listed) or any(test not in excused for test in here.red):
        return "failed"
    same = any(finding.code in ("exit-code", *(fault.code for fault in here.faults)) for finding in listed)
    return "red_on_base" if here.red or same else "passed"


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
