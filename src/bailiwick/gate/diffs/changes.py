"""A changed file, as everything that reads a diff takes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceChange:
    """A changed file in both versions; None on the side where there is none."""

    path: str
    old: bytes | None
    new: bytes | None
    is_test: bool
