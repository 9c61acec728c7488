"""How a test runner of another language is started: in a fresh checkout, with a pipe to the gate that is its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.gate.backends.command import READ, gate_variables
from bailiwick.gate.backends.ran import open_pipe
from bailiwick.gate.run import NOT_FOUND
from bailiwick.processes.command import Exit
from bailiwick.sandbox.spec import Bind

if TYPE_CHECKING:
    from bailiwick.gate.port import CheckContext, Which
    from bailiwick.gate.runner_records import RecordLines
    from bailiwick.gate.spec import CheckSpec

REPORTERS = Path(__file__).parent.parent / "reporters"
"""What takes part in the runners, on the host."""
INSIDE = Path("/opt/bailiwick-reporters")
"""The same inside a sandbox."""


@dataclass(frozen=True, slots=True)
class RunnerRequest:
    """What to run: on which tree, with which files in place of its own; `only` are files of tests that are enough."""

    which: Which
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    only: tuple[str, ...] = ()


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
        with open_pipe(lines) as handle:
            os.fchmod(handle, 0o622)  # a script inside opens it by its number, as another user
            return await self.start(tree, argv, mark(handle), stdin=stdin, handles=(handle,))

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
