"""The `agent` node: one turn per attempt. What follows a failed one is the engine's to decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bailiwick.agents.asking import TurnContext, TurnResult, TurnRunner, failure_of
from bailiwick.agents.classify import Classified
from bailiwick.agents.extract import Bad, Extracted, answers_in_json, extract
from bailiwick.agents.port import Backend, Turn
from bailiwick.agents.prompts import compose
from bailiwick.agents.record import transcript
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.engine.graph import Node, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer, RenderFailed
from bailiwick.engine.retry_agent import AttemptPlan
from bailiwick.engine.state import CHOSEN
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io, NodeKind

WITHOUT_JSON = "without_json"
NEWLINE, INDENTED = "\n", "\n  "
"""A value of several lines is indented, so that no line of it looks like another key."""


@dataclass(slots=True)
class AgentKind:
    """Asks an agent once, checks what it says, and tells exactly why an answer can't be used.

    `routed` gives the kind for nodes that name a skill or a chain of models: it is loaded with the first of them.
    """

    turns: TurnRunner
    routed: Callable[[], NodeKind] | None = None

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        """The prompt, rendered against the context and the node's args; the chain and the shape of the answer."""
        if not isinstance(node, Work):
            raise RenderFailed("not an agent node")
        if self.routed is not None and (node.spec.get("skill") or node.spec.get("models")):
            return self.routed().prepare(node, lookup, renderer)
        return self.rendered(node, lookup, renderer)

    def rendered(self, node: Work, lookup: Lookup, renderer: Renderer) -> Rendered:
        """What one turn on one backend needs."""
        spec, missing = node.spec, dict[str, None]()
        args: dict[str, Json] = {}
        for name, template in (spec.get("args") or {}).items():
            made = renderer.text(str(template), lookup)
            args[name] = made.value
            missing.update(dict.fromkeys(made.missing))

        def inner(name: str) -> Json:
            return args[name] if name in args else lookup(name)

        prompt = _prompt(spec, args, renderer, inner)
        cwd = renderer.text(str(spec.get("cwd") or ""), lookup)
        prepared = renderer.text(str(spec.get("environment") or ""), lookup)
        missing.update(dict.fromkeys((*prompt.missing, *cwd.missing)))
        chosen: dict[str, Json] = lookup(CHOSEN)
        settings = self.turns.settings.for_run(chosen)
        choice = settings.choose(node)
        outputs: list[Json] = [{"key": o.key, "schema": o.schema} for o in node.outputs]
        value = {
            "prompt": prompt.value,
            "cwd": cwd.value,
            "backend": choice.backend,
            "models": list(choice.models),
            "outputs": outputs,
            "script": str(settings.script) if settings.script else None,
            "contract": bool(chosen.get("version")),
            "unknown_cost": settings.unknown_cost,
            "silence": settings.silence,
            "total": node.timeout or settings.total,
            **({"environment": prepared.value} if prepared.value else {}),
        }
        return Rendered(value, tuple(missing))

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        """One turn."""
        asked: dict[str, Json] = request.prepared
        if self.routed is not None and "route" in asked:
            return await self.routed().attempt(request, io)
        try:
            backend = self.turns.backend(str(asked["backend"]), asked.get("script"))
        except UsageError as error:
            return Failed(Failure("no_backend", f"{error.what}; {error.hint}"))
        turn = self.turn(request, io)
        told = await self.turns.ask(backend, turn, self.context(request, io, backend.name))
        return self.judge(told, request, backend, turn)

    def context(self, request: AttemptRequest, io: Io, backend: str) -> TurnContext:
        """Around the turn of an attempt on this backend."""
        outputs = request.node.outputs if isinstance(request.node, Work) else ()
        return TurnContext(
            io.cancel,
            root=request.root,
            workspace=request.workspace,
            total=self._total(request),
            silence=self._silence(request),
            environment=str(request.prepared.get("environment") or ""),
            expects=bool(outputs) and _without_json(request.node, backend) is None,
            show=io.show,
            observe=io.observe,
        )

    def turn(self, request: AttemptRequest, io: Io) -> Turn:
        """The turn of an attempt, on the model of the chain whose call it is."""
        asked: dict[str, Json] = request.prepared
        plan = request.plan or AttemptPlan()
        node = request.node
        contract = bool(asked.get("contract"))
        prompt = compose(plan, str(asked["prompt"]), asked["outputs"], contract=contract)
        models: list[Json] = asked["models"]
        model = models[min(plan.model, len(models) - 1)]
        cwd = request.live / str(asked["cwd"]) if asked["cwd"] else request.workspace
        schema = answer_schema(node) if isinstance(node, Work) else None
        return Turn(
            key=request.key,
            prompt=prompt,
            model=str(model) if model else None,
            cwd=Path(cwd),
            env=io.environment(),
            session=plan.session,
            schema=schema,
            max_usd=request.allowance,
            options=self._options(request, plan),
            node=node.id,
            attempt=request.attempt,
        )

    def _options(self, request: AttemptRequest, plan: AttemptPlan) -> dict[str, Json]:
        """What a backend may want to know besides the prompt: clocks, the rung, the declared defaults."""
        node = request.node
        defaults = {o.key: o.default for o in node.outputs if o.declared} if isinstance(node, Work) else {}
        return {
            "entry": request.entry,
            "rung": plan.rung,
            "visit": request.visit,
            "scope": request.scope,
            "silence": self._silence(request),
            "total": self._total(request),
            "defaults": defaults,
        }

    def _total(self, request: AttemptRequest) -> float:
        """The clock of a whole turn, as the visit began with it; older journals did not keep it."""
        node = request.node
        own = node.timeout if isinstance(node, Work) else None
        return float(request.prepared.get("total") or own or self.turns.settings.total)

    def _silence(self, request: AttemptRequest) -> float:
        return float(request.prepared.get("silence") or self.turns.settings.silence)

    def judge(self, told: TurnResult, request: AttemptRequest, backend: Backend, turn: Turn) -> Done | Failed:
        """What a turn came to, as the declared outputs or as why there are none."""
        node, plan = request.node, request.plan or AttemptPlan()
        outputs = node.outputs if isinstance(node, Work) else ()
        if not told.events and told.failure is not None:
            return Failed(told.failure)
        log = {
            "prompt": turn.prompt,
            "transcript": transcript(told.events),
            "backend": backend.name,
            "model": turn.model,
            "rung": plan.rung,
            "usage": told.spent.to_json(),
            "session": told.session,
            "unknown_cost": request.prepared.get("unknown_cost") or self.turns.settings.unknown_cost,
        }
        if told.answer is None:
            return Failed(told.failure or Failure("unknown", "the turn gave neither an answer nor an error"), log)
        got = extract(told.answer.text, outputs, told.answer.structured)
        plain = _without_json(node, backend.name)
        if isinstance(got, Bad) and plain is not None and not answers_in_json(told.answer.text, outputs):
            got = Extracted(plain)
        if isinstance(got, Bad):
            detail = Detail(problem=got.problem, evidence=told.answer.text[:200])
            bad = Classified(FailureKind.BAD_OUTPUT, got.problem, detail)
            return Failed(failure_of(bad, backend, session=told.session, turn=turn, spent=told.spent), log)
        return Done(got.values, {**log, "repaired": got.repaired})


def _without_json(node: Node, backend: str) -> dict[str, Json] | None:
    """What an answer without JSON stands for, where the node says so: any program may be a `command`, and edits files.

    None where the outputs have to be said.
    """
    said = node.spec.get(WITHOUT_JSON) if isinstance(node, Work) and backend == "command" else None
    return said if isinstance(said, dict) else None


def _prompt(spec: dict[str, Json], args: dict[str, Json], renderer: Renderer, lookup: Lookup) -> Rendered:
    """The node's own prompt; for a node that names only a skill, its args as the task."""
    if spec.get("prompt_text"):
        return renderer.text(str(spec["prompt_text"]), lookup)
    if spec.get("prompt"):
        return renderer.file(str(spec["prompt"]), lookup)
    lines = [f"{name}: {str(value).replace(NEWLINE, INDENTED)}" for name, value in args.items()]
    return Rendered(NEWLINE.join([f"phase: {spec.get('skill')}", *lines]))


def answer_schema(node: Work) -> Json:
    """One object with every declared output, for backends that can enforce a schema."""
    if not node.outputs:
        return None
    properties = {o.key: o.schema if o.schema is not None else {} for o in node.outputs}
    return {"type": "object", "properties": properties, "required": [o.key for o in node.outputs]}
