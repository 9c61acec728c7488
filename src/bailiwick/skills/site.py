"""What the checks of a skill may look at: the project before and after, and what its tests say. Only a port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from bailiwick.git.objects import TreeChange
from bailiwick.routing.model import CheckOutcome, Result
from bailiwick.skills.trials import CheckRun

Which = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class CheckArguments:
    """The arguments of a call that its checks go by; paths are relative to the project.

    `material` are the caller's own words: what is quoted as evidence has to stand in them.
    """

    test_cmd: str = ""
    test_path: str = ""
    impl_path: str = ""
    output_path: str = ""
    material: str = ""


class ProjectState(Protocol):
    """The project as it was when the call began, and as one attempt left its copy of it."""

    @property
    def root(self) -> Path:
        """Where the project is; only to name places in it."""

    @property
    def changes(self) -> tuple[TreeChange, ...]:
        """What the attempt changed."""

    async def read(self, which: Which, path: str) -> bytes | None:
        """The bytes of a file; None where there is none."""

    async def files(self, which: Which) -> tuple[str, ...]:
        """Every path."""

    async def run(self, which: Which, command: str) -> CheckRun:
        """Run the tests on a fresh copy."""


Check = Callable[[Result, ProjectState, CheckArguments], Awaitable[CheckOutcome]]
"""Judges one attempt. It never raises for what it finds."""


def refused(feedback: str, output: str = "", file_path: str = "") -> CheckOutcome:
    """An attempt that does not hold, with the reason for the next one."""
    return CheckOutcome(ok=False, output=output, feedback=feedback, file_path=file_path)
