"""A backend that plays turns, and a stage with an agent kind around it: what the tests of turns and of money share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bailiwick.agents.asking import TurnRunner
from bailiwick.agents.kind import AgentKind
from bailiwick.agents.port import (
    AgentEvent,
    Answered,
    Capabilities,
    Compacted,
    Emit,
    SessionKnown,
    Trouble,
    Turn,
    TurnIo,
)
from bailiwick.agents.settings import AgentSettings
from bailiwick.engine import graph as g
from bailiwick.engine.retry_agent import RetryPolicy
from tests.unit.runtime.stage import RuntimeSetup, Scripted, at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bailiwick.clock import ManualClock
    from bailiwick.ids import Json
    from bailiwick.runtime.assemble import Runtime

QUICK = RetryPolicy(backoff_base=0.001, backoff_cap=0.002)
GOOD: list[AgentEvent] = [SessionKnown("s1"), Answered('{"x": 1}')]
LIMIT = Trouble("too many requests", 429, "rate_limit_error")
LIMITED: list[AgentEvent] = [LIMIT]
CAPPED: list[AgentEvent] = [
    Trouble("You've hit your 5-hour limit · resets 11pm (UTC)", 429, "usage_limit_reached", resets_at=1_700_003_600.0)
]
OVERFLOW: list[AgentEvent] = [SessionKnown("s1"), Trouble("prompt is too long", 400, "prompt_too_long")]
RUBBISH: list[AgentEvent] = [SessionKnown("s1"), Answered("I would rather not say.")]


@dataclass
class ScriptedBackend:
    """A backend that plays a list of turns, the last one for ever."""

    turns: list[list[AgentEvent]]
    name: str = "played"
    capabilities: Capabilities = field(default_factory=lambda: Capabilities(resume=True, compact=True))
    seen: list[Turn] = field(default_factory=list)
    compacted: int = 0
    hold: Callable[[], None] | None = None

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        """The next turn of the list."""
        self.seen.append(turn)
        for event in self.turns[min(len(self.seen), len(self.turns)) - 1]:
            emit(event)

    async def compact(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        """Works."""
        self.compacted += 1
        emit(Compacted(ok=True))

    async def check(self, env: Mapping[str, str], io: TurnIo) -> tuple[bool, str]:
        """Always there."""
        return True, "there"


def stage_of(
    tmp_path: Path,
    backend: ScriptedBackend,
    policy: RetryPolicy = QUICK,
    clock: ManualClock | None = None,
    **settings: Json,
) -> RuntimeSetup:
    """A stage whose agent nodes are played by this backend."""
    chosen = AgentSettings(backend="played", policy=policy, **settings)
    tmp_path.mkdir(exist_ok=True)

    def make(runtime: Runtime) -> AgentKind:
        kind = AgentKind(TurnRunner(chosen, runtime.store, runtime.clock, "UTC"))
        kind.turns._backends["played\0"] = backend
        return kind

    stage = RuntimeSetup(tmp_path, Scripted(at_once), agent=make, policy=chosen.ladder)
    if clock is not None:
        stage.clock = clock
    return stage


def agent(name: str = "a", **fields: Json) -> g.Work:
    outputs = fields.pop("outputs", (g.Output(key="x"),))
    spec = {"prompt_text": "Do it for {{ who }}.", "args": {"who": "me"}, **fields.pop("spec", {})}
    return g.Work(id=name, type="agent", spec=spec, outputs=outputs, **fields)
