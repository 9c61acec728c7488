"""What the router asks of others: a place in which a tier works, and somebody who checks what it left there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bailiwick.routing.model import CheckOutcome, FileOut, Result


class CallFiles(Protocol):
    """Where one call works. Each attempt begins with the project as it is; only an accepted one changes it."""

    async def begin(self) -> Path | None:
        """A fresh tree for the next attempt; None where the skill works on no files."""

    async def put(self, files: Sequence[FileOut]) -> str:
        """Write what a model without tools gave; "" or, where a path is not allowed, why nothing was written."""

    async def check(self, result: Result) -> CheckOutcome:
        """Run the skill's deterministic checks on the tree and the result."""

    async def keep(self) -> str:
        """Bring the accepted changes into the project; "" or, where it changed meanwhile, why nothing was brought."""

    async def drop(self) -> None:
        """Throw away what is left; safe to call at any time and twice."""
