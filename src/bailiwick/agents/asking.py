"""One turn of an agent: its credential, the broker, the sandbox, the clocks, and what it came to. Who asks decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bailiwick.agents import registry
from bailiwick.agents.broker_access import BrokerAccess, TurnAccess
from bailiwick.agents.classify import Classified, classify
from bailiwick.agents.http import CONNECTION_REFUSED
from bailiwick.agents.launch import Launcher
from bailiwick.agents.port import AgentEvent, Answered, Backend, Compacted, Emit, ProcessEnded, Said, SessionKnown, Turn
from bailiwick.agents.record import TurnUsage, is_unpriced, priced, tally
from bailiwick.agents.settings import AgentSettings, TurnTimeouts
from bailiwick.agents.turn_sandbox import TurnSandbox, TurnSandboxRequest
from bailiwick.agents.workplaces import Workplaces
from bailiwick.clock import Clock
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import ENDPOINT, Detail, FailureKind
from bailiwick.errors import NotReady
from bailiwick.ids import Json
from bailiwick.journal.port import Store

PATIENCE = 120.0
"""Seconds that others wait for the probe of a credential."""
GRACE = 12.0
"""Seconds a program gets to end after a turn is cancelled: TERM, 5 s, KILL, and what it leaves behind."""
SHORT_WAIT = 30.0
"""Seconds of rate-limit wait for everybody who uses a credential, after a limit that names no time."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """Around a turn: what ends it, where it works, for how long in seconds, and who is told.

    `root` names the run tree or the call; its home is kept under that name. `environment` is the prepared one of a
    worktree. `expects`: an empty answer is a failure.
    """

    cancel: asyncio.Event
    root: str
    workspace: Path
    total: float
    silence: float
    environment: str = ""
    expects: bool = True
    show: Callable[[str], None] = lambda _text: None
    observe: Callable[[dict[str, Json]], None] = lambda _data: None


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What a turn came to: an answer, or why there is none; what it used, either way."""

    answer: Answered | None
    failure: Failure | None
    spent: TurnUsage = field(default_factory=TurnUsage)
    events: tuple[AgentEvent, ...] = ()
    session: str | None = None


@dataclass(slots=True)
class TurnRunner:
    """Asks agents, a turn at a time."""

    settings: AgentSettings
    store: Store
    clock: Clock
    zone: str | None = None
    broker_access: BrokerAccess | None = None
    turn_sandbox: Callable[[], Awaitable[TurnSandbox]] | None = None
    places: Workplaces | None = None
    _backends: dict[str, Backend] = field(default_factory=dict)

    def backend(self, name: str, script: Json = None) -> Backend:
        """A backend by name, made once. Raises `UsageError` where there is none, or it is not allowed."""
        key = f"{name}\0{script or ''}"
        if key not in self._backends:
            settings = replace(self.settings, script=Path(script)) if script else self.settings
            self._backends[key] = registry.find(name, settings)
        return self._backends[key]

    def refusal(self, backend: str, model: str | None) -> str:
        """Why a model may not be asked: it is not allowed, or its price is unknown where that is refused."""
        allowed = self.settings.allowed_models
        if allowed is not None and model not in allowed:
            return f"model '{model or 'the default'}' is not among the allowed ones: {', '.join(allowed) or 'none'}"
        unpriced = is_unpriced(backend, model)
        if self.settings.unknown_cost == "refuse" and unpriced:
            return f"the price of model '{model or 'the default'}' is unknown, and budget.unknown_cost is refuse"
        return ""

    async def ask(self, backend: Backend, turn: Turn, context: TurnContext) -> TurnResult:
        """Ask once. What an agent or a server does wrong is told, not raised.

        A turn with an address of its own goes straight there: no agent's program sees its token, and whether its
        model may be asked was decided by whoever chose it.
        """
        if not turn.base_url and (refusal := self.refusal(backend.name, turn.model)):
            return _not_asked(FailureKind.BILLING, refusal, Detail(evidence=refusal))
        try:
            asked = turn if backend.capabilities.system else _in_one(turn)
            return await self._asked(backend, self._credential(backend.name, turn, context), asked, context)
        except NotReady as error:
            return _not_asked(FailureKind.AUTH, error.what, Detail(evidence=f"{error.what}; {error.hint}"))

    async def _asked(self, backend: Backend, credential: str, turn: Turn, context: TurnContext) -> TurnResult:
        reserved = await self.broker_access.kept_free(credential, self.store) if self.broker_access else 0.0
        wait = reserved or await self.store.bucket_take(credential, self.clock.now(), PATIENCE)
        if wait > 0:
            detail = Detail(retry_after=wait, backend=backend.name, credential=credential)
            return _not_asked(FailureKind.HELD, f"held back for {wait:.0f} s", detail)
        if self.places is None or not turn.node or turn.base_url:
            return await self._made(backend, credential, turn, context)
        async with self.places.taken(context.cancel, context.show) as there:
            if not there:
                return TurnResult(None, Failure("cancelled", "it was to end before there was a place to work"))
            return await self._made(backend, credential, turn, context)

    async def _made(self, backend: Backend, credential: str, turn: Turn, context: TurnContext) -> TurnResult:
        told = self._told(await self._events(backend, turn, context), backend, turn, expects=context.expects)
        await self._report(credential, told.failure)
        return told

    def _credential(self, name: str, turn: Turn, context: TurnContext) -> str:
        """The unit of limits: a credential; each run for itself where nothing is shared."""
        if name == "simulate":
            return f"simulate:{context.root}"
        if turn.base_url:
            return f"{name}:{turn.base_url}"
        return self.broker_access.credential(name, turn.model).name if self.broker_access else name

    async def _events(self, backend: Backend, turn: Turn, context: TurnContext) -> list[AgentEvent]:
        events: list[AgentEvent] = []

        def emit(event: AgentEvent) -> None:
            events.append(event)
            match event:
                case SessionKnown():
                    context.observe({"session": event.id})
                case Said():
                    context.show(event.text)
                case _:
                    pass

        with Launcher(TurnTimeouts(context.silence, context.total), context.cancel, marks=_marks(turn)) as launcher:
            watched = launcher.watching(emit)
            access = await self._access(backend, turn, launcher)
            try:
                grace = 0.0 if backend.name in registry.SERVERS else GRACE
                async with self._fenced(backend, access, context, launcher) as seen:
                    await _until_cancelled(
                        _play(backend, seen, launcher=launcher, emit=watched, events=events),
                        context.cancel,
                        emit,
                        grace,
                    )
            finally:
                if self.broker_access is not None:
                    self.broker_access.revoke(access)
        told = access.facts(events)
        if self.broker_access is not None:
            await self.broker_access.remember(access.credential, told, self.store)
        return told

    async def _access(self, backend: Backend, turn: Turn, launcher: Launcher) -> TurnAccess:
        if self.broker_access is None or turn.base_url:
            return TurnAccess(turn, backend.name)
        return await self.broker_access.open(backend, turn, lambda: launcher.end("budget"))

    @asynccontextmanager
    async def _fenced(
        self, backend: Backend, access: TurnAccess, context: TurnContext, launcher: Launcher
    ) -> AsyncIterator[Turn]:
        """The turn as it is made behind the sandbox; a backend that only talks to a server starts no program."""
        if self.turn_sandbox is None or backend.name in registry.SERVERS:
            yield access.turn
            return
        if not access.turn.cwd.is_dir():
            raise NotReady(f"the directory {access.turn.cwd} does not exist", hint="make it, or change the node's cwd")
        turn_sandbox = await self.turn_sandbox()
        sandbox_request = TurnSandboxRequest(
            context.root,
            workspace=context.workspace,
            environment=context.environment,
            show=context.show,
            over=lambda why: launcher.end("disk", why),
        )
        program, files = registry.program_files(backend.name, access.turn, self.settings)
        options = {**access.turn.options, **turn_sandbox.options(backend.name), "program": turn_sandbox.inside(program)}
        dressed = turn_sandbox.dress(
            replace(access, turn=replace(access.turn, options=options)), backend.name, sandbox_request
        )
        async with turn_sandbox.around(dressed, sandbox_request, files, self.broker_access) as (seen, sandbox):
            launcher.enter(sandbox)
            yield seen

    def _told(self, events: list[AgentEvent], backend: Backend, turn: Turn, *, expects: bool) -> TurnResult:
        session = next((e.id for e in reversed(events) if isinstance(e, SessionKnown)), turn.session)
        spent = priced(tally(events), backend.name, turn.model)
        found = classify(events, expects_answer=expects, now=self.clock.now(), zone=self.zone)
        if found is not None:
            failure = failure_of(found, backend, session=session, turn=turn, spent=spent)
            return TurnResult(None, failure=failure, spent=spent, events=tuple(events), session=session)
        answer = next((e for e in reversed(events) if isinstance(e, Answered)), Answered(""))
        return TurnResult(answer, failure=None, spent=spent, events=tuple(events), session=session)

    async def _report(self, credential: str, failure: Failure | None) -> None:
        """Tell everybody who uses the credential what this turn met: a limit closes it, any answer opens it.

        However far away a vendor's reset is, the credential is asked again after the longest wait for a cap. A server
        that is not running holds nobody back: finding that out takes no time, and it may be started now.
        """
        if failure is None or failure.kind not in (*ENDPOINT, FailureKind.CAP) or is_refused(failure):
            await self.store.bucket_report(credential, None)
            return
        detail = Detail.from_json(failure.detail)
        now = self.clock.now()
        until = detail.resets_at or now + (detail.retry_after or SHORT_WAIT)
        await self.store.bucket_report(credential, min(until, now + self.settings.policy.cap_max_wait))


def is_refused(failure: Failure) -> bool:
    """Whether nothing listened where a model should answer."""
    return failure.kind == FailureKind.UNREACHABLE and failure.message.endswith(CONNECTION_REFUSED)


def failure_of(found: Classified, backend: Backend, session: str | None, turn: Turn, spent: TurnUsage) -> Failure:
    """A failed turn in the ladder's words, with what the next rung can build on."""
    can = backend.capabilities
    detail = replace(
        found.detail,
        session=session,
        can_resume=can.resume,
        can_compact=can.compact,
        backend=backend.name,
        model=turn.model or "",
        credential=backend.name,
    )
    return Failure("cancelled" if spent.cancelled else str(found.kind), found.message, detail.to_json())


def _in_one(turn: Turn) -> Turn:
    return replace(turn, prompt=f"{turn.system}\n\n{turn.prompt}", system="") if turn.system else turn


def _not_asked(kind: FailureKind, message: str, detail: Detail) -> TurnResult:
    return TurnResult(None, Failure(str(kind), message, detail.to_json()))


async def _play(backend: Backend, turn: Turn, launcher: Launcher, emit: Emit, events: list[AgentEvent]) -> None:
    if turn.options.get("rung") == "compact" and turn.session and backend.capabilities.compact:
        await backend.compact(turn, launcher, emit)
        if not any(isinstance(e, Compacted) and e.ok for e in events):
            return
    await backend.turn(turn, launcher, emit)


async def _until_cancelled(work: Coroutine[None, None, None], cancel: asyncio.Event, emit: Emit, grace: float) -> None:
    """Play a turn; one that talks to a server is given up when the attempt has to end, as a program is killed."""
    playing = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait({playing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if stopping.done() and not playing.done():
            await asyncio.wait({playing}, timeout=grace)
        if not playing.done():
            playing.cancel()
            await asyncio.wait({playing})
            emit(ProcessEnded(-15, why="cancelled"))
    finally:
        stopping.cancel()
    if not playing.cancelled():
        playing.result()


def _marks(turn: Turn) -> dict[str, str]:
    return {name: value for name, value in turn.env.items() if name.startswith("BAILIWICK_")}
