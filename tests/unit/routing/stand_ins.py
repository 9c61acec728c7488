"""A desk that answers by a script, a bench in memory, and a router with both of them on a real store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.agents.asking import TurnContext, TurnResult, TurnRunner
from bailiwick.agents.port import Answered, Backend, Capabilities, Emit, Turn, TurnIo
from bailiwick.agents.record import TurnUsage
from bailiwick.agents.settings import AgentSettings
from bailiwick.clock import ManualClock
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import Detail
from bailiwick.ids import Json
from bailiwick.journal.rows import AttemptRow
from bailiwick.journal.slots import FileSlots
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.routing.ask import ModelAccess
from bailiwick.routing.cooldown import Cooldowns
from bailiwick.routing.course import Course
from bailiwick.routing.endpoints import EndpointAddress, Endpoints
from bailiwick.routing.model import Candidate, Chain, CheckOutcome, FileOut, Job, Outcome, Result
from bailiwick.routing.models_file import Models
from bailiwick.routing.service import Router
from bailiwick.routing.slots import Slots
from tests.unit.config.places import ConfigLayers

SMALL, LARGE, CLAUDE, JUDGE = "ollama/small", "ollama/large", "claude-sonnet-4-6", "claude-judge"
ENDPOINTS: Mapping[str, Json] = {"openai": {"url": "http://127.0.0.1:9"}}
"""A place in the house of which nobody can tell what is loaded: no test here may reach a network."""

Answering = Callable[[Turn, TurnContext], Awaitable[TurnResult]]
Step = TurnResult | Answering


def says(value: Json, *, usd: float | None = None, session: str | None = None, cumulative: bool = False) -> TurnResult:
    """An answer: a text, or a value as JSON."""
    text = value if isinstance(value, str) else json.dumps(value)
    return TurnResult(Answered(text), None, TurnUsage(100, 10, 0, usd, cumulative=cumulative), (), session)


def passes(message: str = "done", **more: Json) -> TurnResult:
    """A good result."""
    return says({"status": "pass", "message": message, **more})


def verdict(*, accept: bool, feedback: str = "") -> TurnResult:
    """A verifier's word."""
    return says({"accept": accept, "feedback": feedback}, usd=0.002)


def fails(kind: str, message: str = "", **detail: Json) -> TurnResult:
    """A turn that failed."""
    return TurnResult(None, Failure(kind, message or f"it was {kind}", Detail(**detail).to_json()))


async def hangs(turn: Turn, context: TurnContext) -> TurnResult:
    """Give no answer until the turn is cancelled."""
    await context.cancel.wait()
    return TurnResult(None, Failure("cancelled", "cancelled"), TurnUsage(7, 0, 0, 0.25, cancelled=True))


class Puppet:
    """A backend that is never asked itself: the desk answers for it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.capabilities = Capabilities(resume=True)

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        raise AssertionError("the desk answers")

    async def compact(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        raise AssertionError("the desk answers")

    async def check(self, env: Mapping[str, str], io: TurnIo) -> tuple[bool, str]:
        return True, self.name


class ScriptedDesk(TurnRunner):
    """Answers each model by its own list of steps, the last of them again and again; a verifier by its name."""

    def __init__(self, script: Mapping[str, Sequence[Step]], settings: AgentSettings | None = None) -> None:
        chosen = settings or AgentSettings(endpoints=ENDPOINTS)
        super().__init__(chosen, store=None, clock=ManualClock())  # type: ignore[arg-type]  # no store is asked
        self.script = {name: list(steps) for name, steps in script.items()}
        self.turns: list[Turn] = []

    def backend(self, name: str, script: Json = None) -> Backend:
        return Puppet(name)

    async def ask(self, backend: Backend, turn: Turn, context: TurnContext) -> TurnResult:
        self.turns.append(turn)
        steps = self.script[turn.model or backend.name]
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        return step if isinstance(step, TurnResult) else await step(turn, context)

    @property
    def asked(self) -> list[str]:
        """The models that were asked, in order."""
        return [turn.model or "" for turn in self.turns]


@dataclass
class PaperBench:
    """A bench that notes what was done to it; `checks` says what each result in turn comes to."""

    tree: Path | None = None
    checks: list[CheckOutcome] = field(default_factory=list)
    refuses: str = ""
    misses: str = ""
    done: list[str] = field(default_factory=list)

    async def begin(self) -> Path | None:
        self.done.append("begin")
        return self.tree

    async def put(self, files: Sequence[FileOut]) -> str:
        self.done.append(f"put {','.join(file.path for file in files)}")
        return self.refuses

    async def check(self, result: Result) -> CheckOutcome:
        self.done.append("check")
        return self.checks.pop(0) if self.checks else CheckOutcome(ok=True, ran=False)

    async def keep(self) -> str:
        self.done.append("keep")
        return self.misses

    async def drop(self) -> None:
        self.done.append("drop")


class Unbounded:
    """An endpoint that takes everybody at once."""

    def turn(self, place: object, model: str, loaded: bool = False) -> Unbounded:
        return self

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, *_: object) -> None:
        return None


class NothingKnown:
    """A store in which no endpoint ever failed."""

    async def bucket_until(self, name: str) -> float:
        return 0.0

    async def attempts(self, *, since: float | None = None, call: str | None = None) -> list[AttemptRow]:
        return []

    async def cooldown(self, name: str) -> tuple[int, float]:
        return 0, 0.0

    async def cooldown_report(self, name: str, failures: int, until: float) -> None:
        raise AssertionError("nothing failed that counts")


@dataclass
class RouterSetup:
    """A router with all that it works with."""

    world: ConfigLayers
    store: SqliteStore
    clock: ManualClock
    turns: ScriptedDesk
    router: Router
    shown: list[str] = field(default_factory=list)
    paused: list[float] = field(default_factory=list)

    async def call(self, job: Job, bench: PaperBench | None = None, cancel: asyncio.Event | None = None) -> Outcome:
        """Route a call."""
        return await self.router.call(job, bench, show=self.shown.append, cancel=cancel or asyncio.Event())


def job(**given: Json) -> Job:
    """A call of the review skill, but for what is given."""
    return Job(
        **{
            "skill": "review",
            "phase": "review",
            "discipline": "Iron law: cite lines.",
            "task": "phase: review",
            **given,
        }
    )


def models(*chain: str, verifier: str = JUDGE, **given: Json) -> Models:
    """What a models.yaml says."""
    return Models(verifier=verifier, default_chain=chain, **given)


@asynccontextmanager
async def routed(
    folder: Path, script: Mapping[str, Sequence[Step]], said: Models, settings: AgentSettings | None = None
) -> AsyncIterator[RouterSetup]:
    """A router on a store of its own; pauses are noted and take no time but the clock's."""
    world = ConfigLayers(folder)
    config = world.load()
    clock = ManualClock()
    store = await SqliteStore.open(folder / "bailiwick.db", now=clock.now)
    turns = ScriptedDesk(script, settings)
    access = ModelAccess(
        turns=turns,
        clock=clock,
        endpoints=Endpoints(turns.settings.endpoints),
        queue=Slots(FileSlots(config.paths.state / "endpoints").hold),
        cooldowns=Cooldowns(store, clock),
    )
    router = Router(config=config, store=store, access=access, models=lambda: said)
    context = RouterSetup(world, store, clock, turns, router)

    async def pause(seconds: float) -> None:
        context.paused.append(seconds)
        clock.advance(seconds)

    router.pause = pause
    try:
        yield context
    finally:
        await store.close()


def play(
    folder: Path,
    script: Mapping[str, Sequence[Step]],
    act: Callable[[RouterSetup], Awaitable[Outcome]],
    said: Models | None = None,
    settings: AgentSettings | None = None,
) -> tuple[Outcome, RouterSetup]:
    """Do something with a router and give what came of it."""

    async def go() -> tuple[Outcome, RouterSetup]:
        async with routed(folder, script, said or models(SMALL, LARGE, CLAUDE), settings) as stage:
            return await act(stage), stage

    return asyncio.run(go())


def lone_access(turns: TurnRunner, clock: ManualClock | None = None) -> ModelAccess:
    """The ways to models without a store: no endpoint ever fails, and none is asked what it has loaded."""

    async def is_cold(place: EndpointAddress, model: str, llama_swap_url: str) -> bool:
        return False

    ticking = clock or ManualClock()
    return ModelAccess(
        turns=turns,
        clock=ticking,
        endpoints=Endpoints(ENDPOINTS),
        queue=Unbounded(),
        cooldowns=Cooldowns(NothingKnown(), ticking),
        probe=is_cold,
    )


def lone_course(script: Mapping[str, Sequence[Step]], bench: PaperBench, seconds: float) -> tuple[Course, ScriptedDesk]:
    """A call over local models, one for each name in the script but the verifier's, that nobody records."""

    async def pause(_seconds: float) -> None:
        raise AssertionError("nothing is waited for")

    chain = Chain(
        tuple(Candidate(name, "local", "openai", cloud=False) for name in script if name != JUDGE),
        Candidate(JUDGE, "subagent", "claude", cloud=True),
        "why",
    )
    turns = ScriptedDesk(script)
    course = Course(
        call="c-1", job=job(seconds=seconds), bench=bench, chain=chain, access=lone_access(turns), pause=pause
    )
    return course, turns


def verdicts(outcome: Outcome) -> list[str]:
    """The verdicts of the attempts, in order."""
    return [one.verdict for one in outcome.result.attempts]
