"""How a test runner of another language is started: in a fresh checkout, with a pipe to the gate that is its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bailiwick.gate.backends.command import READ, gate_variables
from bailiwick.gate.backends.ran import ReadPipe
from bailiwick.gate.outcomes import Fault, PytestSession
from bailiwick.processes.command import Exit
from bailiwick.sandbox.spec import Bind

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext, Which
    from bailiwick.gate.runner_records import RecordLines
    from bailiwick.gate.spec import CheckSpec

NOT_FOUND = 127
REPORTERS = Path(__file__).parent.parent / "reporters"
"""What takes part in the runners, on the host."""
INSIDE = Path("/opt/bailiwick-reporters")
"""The same inside a sandbox."""
_A = TypeVar("_A")
_B = TypeVar("_B")


@dataclass(frozen=True, slots=True)
class RunnerRequest:
    """What to run: on which tree, with which files in place of its own; `only` are files of tests that are enough."""

    which: Which
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunnerRun:
    """A run. `missing` is a program that is not there, `absent` a package that the environment does not have."""

    session: PytestSession
    end: Exit
    missing: str = ""
    absent: str = ""

    @property
    def text(self) -> str:
        """All that was printed."""
        return (self.end.stdout + b"\n" + self.end.stderr).decode("utf-8", "replace")


class NotUnderstoodError(Exception):
    """The command of a check does not simply start the runner of its kind."""


@dataclass(frozen=True, slots=True)
class RunnerPlace:
    """Where the commands of one check run."""

    spec: CheckSpec
    context: CheckContext

    @property
    def reporters(self) -> Path:
        """Where a command finds what takes part in its runner."""
        return REPORTERS if self.context.sandboxes.sandbox.name == "none" else INSIDE

    async def heard(
        self,
        tree: Path,
        argv: Sequence[str],
        lines: RecordLines,
        mark: Callable[[int], Mapping[str, str]],
        stdin: bytes = b"",
    ) -> Exit:
        """Run a command whose outcomes come over a pipe; `mark` gives the variables that tell it the handle."""
        reading, writing = os.pipe()
        os.fchmod(writing, 0o622)  # a script inside opens it by its number, as another user
        try:
            with ReadPipe(reading, lines):
                return await self.start(tree, argv, mark(writing), stdin=stdin, handles=(writing,))
        finally:
            os.close(writing)
            os.close(reading)

    async def start(
        self,
        tree: Path,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        stdin: bytes = b"",
        handles: tuple[int, ...] = (),
    ) -> Exit:
        """Run a command to its end; one that is not there ends with 127."""
        context, sandboxes = self.context, self.context.sandboxes
        reads = (Bind(REPORTERS, INSIDE),) if self.reporters == INSIDE else ()
        sandbox_spec = sandboxes.sandbox_spec("gate", tree, environment=context.environment, reads=reads)
        try:
            return await sandboxes.run(
                sandbox_spec,
                tuple(argv),
                env={**gate_variables(context, tree), **env},
                timeout=self.spec.timeout,
                cancel=context.cancel,
                keep=READ,
                stdin=stdin,
                pass_fds=handles,
            )
        except FileNotFoundError:
            return Exit(NOT_FOUND, b"", f"{argv[0]}: not found".encode(), 0.0)


def code_of(end: Exit) -> int | None:
    """The exit code of a process that ended by itself."""
    return end.code if end.why == "exited" else None


def timed(session: PytestSession, end: Exit) -> PytestSession:
    """Say first that a run was ended from outside."""
    if not end.timed_out:
        return session
    fault = Fault("timeout", f"the tests ran out of time after {end.seconds:.0f} s")
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
