"""Asks one model of a chain once: a local one at its endpoint, a subagent by its program. Nothing is tried again."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bailiwick.agents.asking import TurnContext, TurnResult
from bailiwick.agents.backends.openai import OpenaiBackend
from bailiwick.agents.port import Backend, Turn, Used
from bailiwick.agents.prompts import compose
from bailiwick.agents.record import TurnUsage
from bailiwick.agents.settings import AgentSettings
from bailiwick.clock import Clock
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.engine.retry_agent import AttemptPlan
from bailiwick.errors import BailiwickError
from bailiwick.ids import Json
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.routing.chains import LOCAL_BACKEND, cli_name
from bailiwick.routing.endpoints import EndpointAddress
from bailiwick.routing.model import Candidate, Job, Result, TierName
from bailiwick.routing.result import Misread, answer_keys, read_result
from bailiwick.routing.tasks import discipline_for

NO_TIER = "no_tier"
"""The kind of failure of a tier that is declared and not there."""
EVIDENCE = 200

Came = TypeVar("Came")


class Stopped(Exception):
    """The call has to end now: it was cancelled, or its deadline has passed. `reply` is what was used until then."""

    def __init__(self, reply: Reply | None = None) -> None:
        super().__init__("the call has to end")
        self.reply = reply


class Asker(Protocol):
    """Asks agents, a turn at a time: the desk, as far as it is needed here."""

    @property
    def settings(self) -> AgentSettings:
        """What the person chose about agents."""

    def backend(self, name: str, script: Json = None) -> Backend:
        """A backend by name. Raises `UsageError` where there is none, or it is not allowed."""

    async def ask(self, backend: Backend, turn: Turn, context: TurnContext) -> TurnResult:
        """Ask once; what goes wrong is told, not raised."""


class Queue(Protocol):
    """Lets as many calls at an endpoint as it can bear."""

    def turn(self, place: EndpointAddress, model: str, loaded: bool = False) -> AbstractAsyncContextManager[None]:
        """Wait until it is one's turn; calls for the model that is `loaded` may go first."""


class Stop:
    """What ends a call before its time; the first reason stays."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.why = ""

    def set(self, why: str) -> None:
        """End it."""
        self.why = self.why or why
        self.event.set()

    async def bounded(self, work: Coroutine[Any, Any, Came], *, may_end: Callable[[], bool] = lambda: True) -> Came:
        """Do some work, or raise `Stopped`. Work that may not be ended hears of the stop itself and is waited for."""
        doing = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self.event.wait())
        try:
            await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not doing.done() and may_end():
                doing.cancel()
            await asyncio.wait({doing})
        finally:
            stopping.cancel()
        if doing.cancelled():
            raise Stopped
        return doing.result()

    async def in_turn(self, slot: AbstractAsyncContextManager[None], work: Callable[[], Awaitable[Came]]) -> Came:
        """Wait for a slot and do some work in it. Waiting can be ended; the work hears of a stop itself."""
        inside = False

        async def waited() -> Came:
            nonlocal inside
            async with slot:
                inside = True
                return await work()

        return await self.bounded(waited(), may_end=lambda: not inside)


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked: a text, what stands above it, the wanted shape of the answer, and for how many seconds.

    `node` is what a script of the simulated agent knows it by.
    """

    key: str
    prompt: str
    system: str
    schema: Json
    seconds: float
    node: str = ""
    plan: AttemptPlan = field(default_factory=AttemptPlan)
    tree: Path | None = None
    max_usd: float | None = None
    attempt: int = 1
    options: Mapping[str, Json] = field(default_factory=dict)
    loaded: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, how long it took in milliseconds, and whether a session of it can be gone on with."""

    told: TurnResult
    duration_ms: int = 0
    can_resume: bool = False


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """A tier's output, or why there is none; what it used, either way."""

    result: Result | None
    failure: Failure | None
    duration_ms: int
    spent: TurnUsage
    session: str | None = None


@dataclass(slots=True, kw_only=True)
class Tiers:
    """The way to every model of a chain, for one call. `root` names the call: a subagent's home is kept under it."""

    turns: Asker
    place: Callable[[str], EndpointAddress]
    queue: Queue
    clock: Clock
    environment: Callable[[], Mapping[str, str]]
    root: str
    stop: Stop
    show: Callable[[str], None]

    async def ask(self, candidate: Candidate, question: Question) -> Reply:
        """Ask once. Raises `Stopped` when the call has to end; whatever else goes wrong is told."""
        try:
            reply = await self._asked(candidate, question)
        except BailiwickError as error:
            reply = _not_asked("no_backend", error.sentence)
        if self.stop.event.is_set():
            raise Stopped(replace(reply, told=_priced(reply.told, candidate)))
        return replace(reply, told=_priced(reply.told, candidate))

    async def _asked(self, candidate: Candidate, question: Question) -> Reply:
        if candidate.tier == "managed":
            return _not_asked(NO_TIER, f"no managed tier is installed for '{candidate.model}'")
        if candidate.backend != LOCAL_BACKEND:
            return await self._by_program(candidate, question)
        place = self.place(candidate.model)
        turn = replace(self._turn(question), model=place.name_to_send, base_url=place.url, token=place.token, env={})
        backend = OpenaiBackend(place.reach, clock=self.clock)
        slot = self.queue.turn(place, place.name_to_send, question.loaded)
        return await self.stop.in_turn(slot, lambda: self._told(backend, turn, question))

    async def _by_program(self, candidate: Candidate, question: Question) -> Reply:
        backend = self.turns.backend(candidate.backend)
        turn = replace(self._turn(question), model=cli_name(candidate), session=question.plan.session)
        if question.tree is not None:
            return await self._told(backend, turn, question)
        with tempfile.TemporaryDirectory(prefix="bailiwick-", ignore_cleanup_errors=True) as empty:
            return await self._told(backend, replace(turn, cwd=Path(empty)), question)

    async def _told(self, backend: Backend, turn: Turn, question: Question) -> Reply:
        silence = min(self.turns.settings.silence, question.seconds)
        context = TurnContext(
            cancel=self.stop.event,
            root=self.root,
            workspace=turn.cwd,
            total=question.seconds,
            silence=silence,
            show=self.show,
        )
        began = self.clock.monotonic()
        told = await self.turns.ask(backend, turn, context)
        return Reply(told, round((self.clock.monotonic() - began) * 1000), backend.capabilities.resume)

    def _turn(self, question: Question) -> Turn:
        clocks = {"total": question.seconds, "silence": min(self.turns.settings.silence, question.seconds)}
        marks = {EFFECT_MARK: question.key, "BAILIWICK_ROOT": self.root}
        return Turn(
            key=question.key,
            prompt=question.prompt,
            model=None,
            cwd=question.tree or Path("/"),
            env={**self.environment(), **marks},
            schema=question.schema,
            max_usd=question.max_usd,
            options={**question.options, **clocks, "rung": question.plan.rung},
            node=question.node,
            attempt=question.attempt,
            system=question.system,
        )


def question_for(job: Job, tier: TierName, task: str, plan: AttemptPlan) -> tuple[str, str]:
    """What a tier is asked on a rung of the ladder, and what stands above it."""
    system = discipline_for(job, tier)
    return compose(replace(plan, feedback=""), task, answer_keys(job), contract=False), system  # the task has it


async def generate(tiers: Tiers, candidate: Candidate, job: Job, question: Question) -> GeneratedText:
    """A tier's output, read as a result. Raises `Stopped`; an answer that is no result is a failure like others."""
    reply = await tiers.ask(candidate, question)
    told, spent = reply.told, reply.told.spent
    if told.answer is None:
        failure = told.failure or Failure("unknown", "the model gave no answer")
        return GeneratedText(None, failure=failure, duration_ms=reply.duration_ms, spent=spent, session=told.session)
    got = read_result(told.answer, job, candidate.tier)
    if not isinstance(got, Misread):
        return GeneratedText(got, failure=None, duration_ms=reply.duration_ms, spent=spent, session=told.session)
    detail = Detail(
        problem=got.problem,
        evidence=told.answer.text[:EVIDENCE],
        session=told.session,
        can_resume=reply.can_resume,
        backend=candidate.backend,
        model=candidate.model,
    )
    failure = Failure(str(FailureKind.BAD_OUTPUT), got.problem, detail.to_json())
    return GeneratedText(None, failure=failure, duration_ms=reply.duration_ms, spent=spent, session=told.session)


def _priced(told: TurnResult, candidate: Candidate) -> TurnResult:
    """A model in the house costs nothing unless its server says otherwise: a price list knows only vendors."""
    if candidate.cloud or any(isinstance(event, Used) and event.usd is not None for event in told.events):
        return told
    return replace(told, spent=replace(told.spent, usd=0.0))


def _not_asked(kind: str, message: str) -> Reply:
    return Reply(TurnResult(None, Failure(kind, message, Detail(evidence=message).to_json())))
