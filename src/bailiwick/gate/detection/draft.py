"""What detection has found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bailiwick.errors import Problem
from bailiwick.gate.spec import CheckSpec


@dataclass(slots=True)
class Draft:
    """What has been detected so far."""

    files: frozenset[str]
    texts: Mapping[str, bytes]
    has_tool: Callable[[str], bool]
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
