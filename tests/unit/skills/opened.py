"""Somebody who answers calls as a test wants it."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.errors import NotReady
from bailiwick.ids import Json
from bailiwick.routing.model import Attempt, Outcome, Result
from bailiwick.skills.calling import Caller


@dataclass
class Fake:
    """Answers every call with `outcome`, and remembers what it was asked."""

    outcome: Outcome | dict[str, Json]
    interrupts: bool = False
    calls: list[tuple[str, Mapping[str, Json], Caller]] = field(default_factory=list)
    models: Path | None = None

    async def call(self, tool: str, arguments: Mapping[str, Json], caller: Caller) -> Outcome | dict[str, Json]:
        self.calls.append((tool, arguments, caller))
        caller.show("asks ollama/small\x1b[31m")
        if self.interrupts:
            os.kill(os.getpid(), signal.SIGINT)
            await caller.cancel.wait()
        return self.outcome


def outcome(status: str = "pass", error: str = "", **more: Json) -> Outcome:
    """What a call of review came to."""
    attempt = Attempt(1, "ollama/small", "local", 1234, "accept", feedback="fine", verified=True)
    values: dict[str, Json] = {"model_used": "ollama/small", "attempts": (attempt,), **more}
    result = Result(status, "review", "review", "One finding.", **values)  # type: ignore[arg-type]
    return Outcome("c-1", result, "review: chain of models.yaml:9", error)


CURRENT: list[Fake] = []


@asynccontextmanager
async def open_fake(models: Path | None) -> AsyncIterator[Fake]:
    """What stands in for the session."""
    if not CURRENT:
        raise NotReady("no models are configured", hint="write models.yaml")
    CURRENT[-1].models = models
    yield CURRENT[-1]
