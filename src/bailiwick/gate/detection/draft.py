"""What detection looks at, what it is asked to do beyond the first guess, and what it has found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bailiwick.errors import Problem
from bailiwick.gate.spec import CheckSpec


@dataclass(frozen=True, slots=True)
class PlanAdditions:
    """What a plan is asked to have beyond the first guess, after one that was not green.

    `level` 1 takes everything that tox, nox, hatch, CI files and further extras name. `add` are requirements;
    `without` are sources that could not be installed; `split` installs them one by one, the project last;
    `unittest` runs the tests without pytest.
    """

    level: int = 0
    add: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    split: bool = False
    unittest: bool = False


@dataclass(slots=True)
class GateDraft:
    """What has been detected so far."""

    files: frozenset[str]
    texts: Mapping[str, bytes]
    has_tool: Callable[[str], bool]
    tags: tuple[str, ...] = ()
    additions: PlanAdditions = field(default_factory=PlanAdditions)
    prepare: list[tuple[str, ...]] = field(default_factory=list)
    checks: list[CheckSpec] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)

    def first(self, *names: str) -> str:
        """The first of some files of the top directory that is there; empty where none is."""
        return next((name for name in names if name in self.files), "")

    def add(self, name: str, *run: str, kind: str = "command") -> None:
        """Add a check; a second one of the same name is told apart by its program."""
        taken = any(check.name == name for check in self.checks)
        self.checks.append(CheckSpec(f"{run[0]}-{name}" if taken else name, kind, run))

    def warn(self, code: str, what: str, hint: str) -> None:
        """Say something that the person should know about the plan."""
        self.notes.append(Problem(code, what, hint=hint, warning=True))
