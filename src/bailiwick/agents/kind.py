"""The `agent` node: one turn per attempt. What follows a failed one is the engine's to decide."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bailiwick.agents import registry
from bailiwick.agents.brokerage import Access, Brokerage
from bailiwick.agents.classify import Classified, classify
from bailiwick.agents.extract import Bad, extract
from bailiwick.agents.fencing import Fencing, Stay
from bailiwick.agents.launch import Clocks, Launcher
from bailiwick.agents.port import AgentEvent, Answered, Backend, Compacted, Emit, ProcessEnded, Said, SessionKnown, Turn
from bailiwick.agents.prompts import compose
from bailiwick.agents.record import Ledgered, is_unpriced, priced, tally, transcript
from bailiwick.agents.settings import Settings
from bailiwick.clock import Clock
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import ENDPOINT, Detail, Kind
from bailiwick.engine.graph import Node, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer, RenderFailed
from bailiwick.engine.rungs import Plan
from bailiwick.engine.state import CHOSEN
from bailiwick.errors import NotReady, UsageError
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.runtime.kinds import Done, Failed, Io, Request

PATIENCE = 120.0
"""Seconds that others wait for the probe of a credential."""
GRACE = 12.0
"""Seconds a program gets to end after a turn is cancelled: TERM, 5 s, KILL, and what it leaves behind."""
SHORT_WAIT = 30.0
"""How long a credential is held back after a limit that names no time."""


@dataclass(slots=True)
class AgentKind:
    """Asks an agent once, checks what it says, and tells exactly why an answer can't be used."""

    settings: Settings
    store: Store
    clock: Clock
    zone: str | None = None
    brokerage: Brokerage | None = None
    fencing: Callable[[], Awaitable[Fencing]] | None = None
    _backends: dict[str, Backend] = field(default_factory=dict)

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        """The prompt, rendered against the context and the node's args; the chain and the shape of the answer."""
        if not isinstance(node, Work):
            raise RenderFailed("not an agent node")
        spec, missing = node.spec, dict[str, None]()
        args: dict[str, Json] = {}
        for name, template in (spec.get("args") or {}).items():
            made = renderer.text(str(template), lookup)
            args[name] = made.value
            missing.update(dict.fromkeys(made.missing))

        def inner(name: str) -> Json:
            return args[name] if name in args else lookup(name)

        text = spec.get("prompt_text")
        prompt = renderer.text(str(text), inner) if text else renderer.file(str(spec.get("prompt")), inner)
        cwd = renderer.text(str(spec.get("cwd") or ""), lookup)
        prepared = renderer.text(str(spec.get("environment") or ""), lookup)
        missing.update(dict.fromkeys((*prompt.missing, *cwd.missing)))
        chosen: dict[str, Json] = lookup(CHOSEN)
        settings = self.settings.for_run(chosen)
        choice = settings.choose(node)
        outputs: list[Json] = [{"key": o.key, "schema": o.schema} for o in node.outputs]
        value = {
            "prompt": prompt.value, "cwd": cwd.value, "backend": choice.backend, "models": list(choice.models),
            "outputs": outputs, "script": str(settings.script) if settings.script else None,
            "contract": bool(chosen.get("version")),
            **({"environment": prepared.value} if prepared.value else {}),
        }  # fmt: skip
        return Rendered(value, tuple(missing))

    async def attempt(self, request: Request, io: Io) -> Done | Failed:
        """One turn."""
        asked: dict[str, Json] = request.prepared
        plan = request.plan or Plan()
        name = str(asked["backend"])
        try:
            backend = self._backend(name, asked.get("script"))
        except UsageError as error:
            return Failed(Failure("no_backend", f"{error.what}; {error.hint}"))
        if refusal := self._refusal(asked, plan):
            return Failed(Failure(str(Kind.BILLING), refusal, Detail(evidence=refusal).to_json()))
        try:
            credential = self._credential(name, request)
            return await self._asked(backend, credential, request, io)
        except NotReady as error:
            evidence = f"{error.what}; {error.hint}"
            return Failed(Failure(str(Kind.AUTH), error.what, Detail(evidence=evidence).to_json()))

    def _refusal(self, asked: dict[str, Json], plan: Plan) -> str:
        """Why a model may not be asked: it is not allowed, or its price is unknown where that is refused."""
        models: list[Json] = asked["models"]
        model = models[min(plan.model, len(models) - 1)]
        allowed = self.settings.allowed_models
        if allowed is not None and model not in allowed:
            return f"model '{model or 'the default'}' is not among the allowed ones: {', '.join(allowed) or 'none'}"
        unpriced = is_unpriced(str(asked["backend"]), model, self.settings.endpoints)
        if self.settings.unknown_cost == "refuse" and unpriced:
            return f"the price of model '{model or 'the default'}' is unknown, and budget.unknown_cost is refuse"
        return ""

    async def _asked(self, backend: Backend, credential: str, request: Request, io: Io) -> Done | Failed:
        plan, name = request.plan or Plan(), backend.name
        reserved = self.brokerage.kept_free(credential) if self.brokerage else 0.0
        wait = reserved or await self.store.bucket_take(credential, self.clock.now(), PATIENCE)
        if wait > 0:
            detail = Detail(retry_after=wait, backend=name, credential=credential)
            return Failed(Failure(str(Kind.HELD), f"held back for {wait:.0f} s", detail.to_json()))
        turn = self._turn(request, plan, io)
        events = await self._ask(backend, turn, request, io)
        found = self._judge(events, request.node, backend, turn, plan)
        await self._report(credential, found)
        return found

    def _credential(self, name: str, request: Request) -> str:
        """The unit of limits: a credential; each run for itself where nothing is shared."""
        if name == "simulate":
            return f"simulate:{request.root}"
        return self.brokerage.credential(name).name if self.brokerage else name

    def _backend(self, name: str, script: Json) -> Backend:
        key = f"{name}\0{script or ''}"
        if key not in self._backends:
            settings = replace(self.settings, script=Path(script)) if script else self.settings
            self._backends[key] = registry.find(name, settings)
        return self._backends[key]

    def _turn(self, request: Request, plan: Plan, io: Io) -> Turn:
        asked: dict[str, Json] = request.prepared
        node = request.node
        contract = bool(asked.get("contract"))
        prompt = compose(plan, str(asked["prompt"]), asked["outputs"], contract=contract)
        models: list[Json] = asked["models"]
        model = models[min(plan.model, len(models) - 1)]
        cwd = request.live / str(asked["cwd"]) if asked["cwd"] else request.workspace
        schema = _answer_schema(node) if isinstance(node, Work) else None
        return Turn(
            key=request.key, prompt=prompt, model=str(model) if model else None, cwd=Path(cwd), env=io.environment(),
            session=plan.session, schema=schema, max_usd=request.allowance,
            options=self._options(request, plan),
            node=node.id, attempt=request.attempt,
        )  # fmt: skip

    def _options(self, request: Request, plan: Plan) -> dict[str, Json]:
        """What a backend may want to know besides the prompt: clocks, the rung, the declared defaults."""
        node = request.node
        defaults = {o.key: o.default for o in node.outputs if o.declared} if isinstance(node, Work) else {}
        return {
            "entry": request.entry,
            "rung": plan.rung,
            "visit": request.visit,
            "scope": request.scope,
            "silence": self.settings.silence,
            "total": self._total(node),
            "defaults": defaults,
        }

    def _total(self, node: Node) -> float:
        return node.timeout if isinstance(node, Work) and node.timeout else self.settings.total

    async def _ask(self, backend: Backend, turn: Turn, request: Request, io: Io) -> list[AgentEvent]:
        events: list[AgentEvent] = []

        def emit(event: AgentEvent) -> None:
            events.append(event)
            match event:
                case SessionKnown():
                    io.observe({"session": event.id})
                case Said():
                    io.show(event.text)
                case _:
                    pass

        clocks = Clocks(self.settings.silence, self._total(request.node))
        with Launcher(clocks, io.cancel, marks=_marks(turn)) as launcher:
            watched = launcher.watching(emit)
            access = await self._access(backend, turn, launcher)
            try:
                async with self._fenced(backend, access, request, launcher, io) as seen:
                    await self._until_cancelled(self._play(backend, seen, launcher, watched, events), io, emit)
            finally:
                if self.brokerage is not None:
                    self.brokerage.revoke(access)
        told = access.facts(events)
        if self.brokerage is not None:
            self.brokerage.remember(access.credential, told)
        return told

    async def _access(self, backend: Backend, turn: Turn, launcher: Launcher) -> Access:
        if self.brokerage is None:
            return Access(turn, backend.name)
        return await self.brokerage.open(backend, turn, lambda: launcher.end("budget"))

    @asynccontextmanager
    async def _fenced(
        self, backend: Backend, access: Access, request: Request, launcher: Launcher, io: Io
    ) -> AsyncIterator[Turn]:
        """The turn as it is made behind the fence; a backend that only talks to a server starts no program."""
        if self.fencing is None or backend.name in registry.SERVERS:
            yield access.turn
            return
        if not access.turn.cwd.is_dir():
            raise NotReady(f"the directory {access.turn.cwd} does not exist", hint="make it, or change the node's cwd")
        fencing = await self.fencing()
        prepared = str(request.prepared.get("environment") or "")
        stay = Stay(request.root, request.workspace, prepared, io.show, lambda: launcher.end("total"))
        program, files = registry.program_files(backend.name, access.turn, self.settings)
        options = {**access.turn.options, **fencing.options(backend.name), "program": fencing.inside(program)}
        dressed = fencing.dress(replace(access, turn=replace(access.turn, options=options)), backend.name, stay)
        async with fencing.around(dressed, stay, files, self.brokerage) as (seen, room):
            launcher.enter(room)
            yield seen

    async def _play(
        self, backend: Backend, turn: Turn, launcher: Launcher, emit: Emit, events: list[AgentEvent]
    ) -> None:
        if turn.options["rung"] == "compact" and turn.session and backend.capabilities.compact:
            await backend.compact(turn, launcher, emit)
            if not any(isinstance(e, Compacted) and e.ok for e in events):
                return
        await backend.turn(turn, launcher, emit)

    async def _until_cancelled(self, work: Coroutine[None, None, None], io: Io, emit: Emit) -> None:
        """Play a turn; one that talks to a server is given up when the attempt has to end, as a program is killed."""
        playing = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(io.cancel.wait())
        try:
            await asyncio.wait({playing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done() and not playing.done():
                await asyncio.wait({playing}, timeout=GRACE)
            if not playing.done():
                playing.cancel()
                await asyncio.wait({playing})
                emit(ProcessEnded(-15, why="cancelled"))
        finally:
            stopping.cancel()
        if not playing.cancelled():
            playing.result()

    def _judge(self, events: list[AgentEvent], node: Node, backend: Backend, turn: Turn, plan: Plan) -> Done | Failed:
        outputs = node.outputs if isinstance(node, Work) else ()
        session = next((e.id for e in reversed(events) if isinstance(e, SessionKnown)), turn.session)
        spent = priced(tally(events), backend.name, turn.model, self.settings.endpoints)
        log = {
            "prompt": turn.prompt, "transcript": transcript(events), "backend": backend.name, "model": turn.model,
            "rung": plan.rung, "usage": spent.to_json(), "session": session,
            "unknown_cost": self.settings.unknown_cost,
        }  # fmt: skip
        failed = classify(events, expects_answer=bool(outputs), now=self.clock.now(), zone=self.zone)
        if failed is not None:
            return self._failed(failed, backend, session, turn, (spent, log))
        answer = next((e for e in reversed(events) if isinstance(e, Answered)), Answered(""))
        got = extract(answer.text, outputs, answer.structured)
        if isinstance(got, Bad):
            bad = Classified(Kind.BAD_OUTPUT, got.problem, Detail(problem=got.problem, evidence=answer.text[:200]))
            return self._failed(bad, backend, session, turn, (spent, log))
        return Done(got.values, {**log, "repaired": got.repaired})

    def _failed(
        self,
        found: Classified,
        backend: Backend,
        session: str | None,
        turn: Turn,
        kept: tuple[Ledgered, dict[str, Json]],
    ) -> Failed:
        spent, log = kept
        can = backend.capabilities
        detail = replace(
            found.detail, session=session, can_resume=can.resume, can_compact=can.compact, backend=backend.name,
            model=turn.model or "", credential=backend.name,
        )  # fmt: skip
        kind = "cancelled" if spent.cancelled else str(found.kind)
        return Failed(Failure(kind, found.message, detail.to_json()), log)

    async def _report(self, credential: str, found: Done | Failed) -> None:
        """Tell everybody who uses the credential what this turn met: a limit closes it, any answer opens it."""
        limited = isinstance(found, Failed) and found.failure.kind in (*ENDPOINT, Kind.CAP)
        if not isinstance(found, Failed) or not limited:
            await self.store.bucket_report(credential, None)
            return
        detail = Detail.from_json(found.failure.detail)
        until = detail.resets_at or self.clock.now() + (detail.retry_after or SHORT_WAIT)
        await self.store.bucket_report(credential, until)


def _marks(turn: Turn) -> dict[str, str]:
    return {name: value for name, value in turn.env.items() if name.startswith("BAILIWICK_")}


def _answer_schema(node: Work) -> Json:
    """One object with every declared output, for backends that can enforce a schema."""
    if not node.outputs:
        return None
    properties = {o.key: o.schema if o.schema is not None else {} for o in node.outputs}
    return {"type": "object", "properties": properties, "required": [o.key for o in node.outputs]}
