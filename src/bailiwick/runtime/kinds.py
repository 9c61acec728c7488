"""The port of node kinds: one attempt in, one result out. What follows a failure is the engine's to decide."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bailiwick.engine.events import Failure
from bailiwick.engine.graph import Node, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer
from bailiwick.engine.retry_agent import AttemptPlan
from bailiwick.ids import Json
from bailiwick.processes.command import Command, Exit

__all__ = ["AttemptRequest", "Command", "Done", "Exit", "Failed", "Io", "NodeKind", "declared"]
"""What packages that bring kinds of nodes import from here."""


@dataclass(frozen=True, slots=True)
class AttemptRequest:
    """One attempt: who asks, with which effect key, and what `prepare` made of the context."""

    run: str
    root: str
    epoch: int
    key: str
    scope: str
    node: Node
    visit: int
    ordinal: int
    attempt: int
    entry: int
    prepared: Json
    pinned: Path
    live: Path
    workspace: Path
    plan: AttemptPlan | None = None
    allowance: float | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The attempt succeeded. `log` is kept for people: stdout, stderr, command."""

    outputs: dict[str, Json] = field(default_factory=dict)
    log: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed."""

    failure: Failure
    log: dict[str, Json] = field(default_factory=dict)


def declared(node: Node, made: dict[str, Json]) -> dict[str, Json]:
    """What a node declares of what was made for it; without a declaration: all of it."""
    if not isinstance(node, Work) or not node.outputs:
        return made
    return {out.key: made.get(out.key, out.default) for out in node.outputs}


class Io(Protocol):
    """What an attempt may do to the world."""

    async def run(self, command: Command) -> Exit:
        """Run a process of this effect to its end, its children included. Raises `OSError` when it can't be started."""

    def environment(self) -> dict[str, str]:
        """The operator's environment without Bailiwick's secrets, plus what marks the processes of this effect."""

    @property
    def cancel(self) -> asyncio.Event:
        """Set when the attempt has to end now."""

    def show(self, text: str) -> None:
        """A line for whoever watches the run."""

    def observe(self, data: dict[str, Json]) -> None:
        """Journal what became known in the middle, with the next group commit."""


class NodeKind(Protocol):
    """A kind of node. `prepare` is pure; `attempt` never retries, sleeps or decides."""

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        """What the attempt needs of the context, as JSON. Raises `RenderFailed`."""

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        """Do it once."""
