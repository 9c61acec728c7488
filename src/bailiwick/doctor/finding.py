"""One line of doctor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """What was looked at, whether it is well, what was found, how to fix it. `needed`: nothing works without it."""

    name: str
    ok: bool
    found: str
    fix: str = ""
    needed: bool = True
