"""A desk with a real agent CLI on it: a home and a work directory of its own, a scripted model at the other end.

A tool of the agent can be told to ring a bell: a pipe whose writing end the tool's processes hold for as long as one of
them lives. So a test knows when the tool runs without polling, and that it is gone without trusting any mark.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from bailiwick.agents import registry
from bailiwick.agents.classify import Classified, classify
from bailiwick.agents.launch import Launcher
from bailiwick.agents.port import AgentEvent, Answered, Backend, SessionKnown, Turn, Used
from bailiwick.agents.settings import AgentSettings, TurnTimeouts
from bailiwick.clock import SystemClock
from bailiwick.engine.failures import FailureKind
from bailiwick.ids import Json
from bailiwick.processes.children import find_children
from bailiwick.processes.proc import EFFECT_MARK, become_subreaper
from bailiwick.testing.model_server.anthropic import Anthropic
from bailiwick.testing.model_server.dialect import ModelAnswer
from bailiwick.testing.model_server.script import Raw, Scenario, UseTool
from bailiwick.testing.model_server.server import MODEL, ModelRequestSeen, ModelServer
from bailiwick.testing.model_server.tools import ToolCall

AGENTS = Path(__file__).resolve().parents[2] / ".agents"
MODELS = {"claude": "sonnet", "codex": f"@{MODEL}", "copilot": MODEL}
BASES = {"claude": "", "codex": "/v1", "copilot": "/v1"}
MAY_USE_TOOLS: dict[str, dict[str, Json]] = {
    "claude": {"allowed_tools": ["Bash", "Write"]},
    "codex": {},
    "copilot": {"skip_permissions": True},
}
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["answer", "n"],
    "additionalProperties": False,
}
PATIENT = TurnTimeouts(silence=60.0, total=90.0)
RING = UseTool("shell", "exec 7>bell && echo ready >&7 && tail -f /dev/null")
"""A tool call that says when it runs, and then runs for ever."""

Event = TypeVar("Event", bound=AgentEvent)


def claude_calls(tool: str, **arguments: Json) -> Raw:
    """A step in which the model behind claude calls a tool by its very name, whether it is offered or not."""
    said = ModelAnswer(uuid.uuid4().hex[:12], MODEL, call=ToolCall(tool, json.dumps(arguments)))
    frames = Anthropic().frames(said)
    return Raw(b"".join([*frames.opening, *frames.closing]), Anthropic.media)


def tool_results(seen: ModelRequestSeen) -> list[dict[str, Json]]:
    """What claude told its model about the tools it called so far, oldest first."""
    blocks = [message["content"] for message in seen.body["messages"] if isinstance(message["content"], list)]
    return [block for content in blocks for block in content if block.get("type") == "tool_result"]


@dataclass(slots=True)
class Running:
    """A turn in its middle, and two ways to end it: ours, and the worst."""

    _cancel: asyncio.Event
    pid: int = 0

    def cancel(self) -> None:
        """Somebody stopped the run."""
        self._cancel.set()

    def kill(self) -> None:
        """The CLI dies on the spot; nobody tells its tools."""
        os.kill(self.pid, signal.SIGKILL)


Interrupt = Callable[[Running], None]


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a turn: its events, its class, the requests that reached the model."""

    events: list[AgentEvent]
    failed: Classified | None
    requests: list[ModelRequestSeen]

    def of(self, kind: type[Event]) -> list[Event]:
        """The events of a type, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def kind(self) -> FailureKind | None:
        """The class of the failed turn; None for a good one."""
        return self.failed.kind if self.failed else None

    @property
    def answer(self) -> Answered:
        """The answer; it has to be the last event."""
        assert isinstance(self.events[-1], Answered), self.events
        return self.events[-1]

    @property
    def used(self) -> Used:
        """What was used; it has to be said exactly once."""
        (used,) = self.of(Used)
        return used

    @property
    def session(self) -> str:
        """The session; however often it is named, it is one."""
        (name,) = {known.id for known in self.of(SessionKnown)}
        return name

    @property
    def asked(self) -> int:
        """How many questions the model got."""
        return sum(seen.step is not None for seen in self.requests)


@dataclass
class CliUnderTest:
    """One CLI for one test."""

    cli: str
    folder: Path
    backend: Backend = field(init=False)

    def __post_init__(self) -> None:
        self.backend = registry.find(self.cli, AgentSettings())
        self.work, self.home = self.folder / "work", self.folder / "home"
        for folder in (self.work, self.home / ".codex", self.folder / "tmp"):
            folder.mkdir(parents=True)
        self.mark = {EFFECT_MARK: f"{os.getpid()}-{self.folder.parent.name}"}

    @property
    def env(self) -> dict[str, str]:
        """Nothing of the person's own; codex's home lies beside its temporary directory, not in it."""
        return {
            "PATH": f"{AGENTS / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "TMPDIR": str(self.folder / "tmp"),
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "XDG_CACHE_HOME": str(AGENTS / "copilot" / ".cache"),  # where copilot unpacked itself: 235 MB
        }

    def turn(self, **given: Any) -> Turn:
        """A turn that may use tools."""
        plain = Turn(
            key=self.folder.parent.name,
            prompt="Do the task of the day.",
            model=MODELS[self.cli],
            cwd=self.work,
            env=self.env,
            token="made-up",
            options=MAY_USE_TOOLS[self.cli],
        )
        return replace(plain, **given)

    def ask(
        self,
        scenario: Scenario,
        turn: Turn | None = None,
        *,
        clocks: TurnTimeouts = PATIENT,
        bell: Interrupt | None = None,
    ) -> Told:
        """One turn against a model that plays the scenario. It leaves no process; `bell` hears when a tool rings."""
        become_subreaper()  # as every command that walks runs does
        return asyncio.run(self._ask(scenario, turn or self.turn(), clocks, bell))

    async def _ask(self, scenario: Scenario, turn: Turn, clocks: TurnTimeouts, bell: Interrupt | None) -> Told:
        events: list[AgentEvent] = []
        cancel = asyncio.Event()
        running = Running(cancel)

        def on_pid(pid: int) -> None:
            running.pid = pid

        async with ModelServer({"scene": scenario}) as server:
            asked = replace(turn, base_url=server.url("scene") + BASES[self.cli])
            with (
                self._bell(lambda: bell(running) if bell else None),
                Launcher(clocks, cancel, marks=self.mark, on_pid=on_pid) as launcher,
            ):
                await self.backend.turn(asked, launcher, launcher.watching(events.append))
        assert find_children(self.mark) == []
        failed = classify(events, expects_answer=True, now=SystemClock().now(), zone="UTC")
        return Told(events, failed, server.requests)

    @contextmanager
    def _bell(self, rung: Callable[[], None]) -> Iterator[None]:
        """A bell in the work directory; at the end nobody may hold its rope any more."""
        path = self.work / "bell"
        os.mkfifo(path)
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        loop = asyncio.get_running_loop()

        def hear() -> None:
            if os.read(pipe, 100):
                rung()
            else:
                loop.remove_reader(pipe)

        loop.add_reader(pipe, hear)
        try:
            yield
            assert os.read(pipe, 100) == b"", "a process of the tool is left"  # BlockingIOError means the same
        finally:
            loop.remove_reader(pipe)
            os.close(pipe)
            path.unlink()

    async def _check(self) -> tuple[bool, str]:
        with Launcher(PATIENT, asyncio.Event(), marks=self.mark) as launcher:
            return await self.backend.check(self.env, launcher)

    def check(self) -> tuple[bool, str]:
        """Whether the backend says that the CLI can be used."""
        return asyncio.run(self._check())
