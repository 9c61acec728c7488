"""Agent nodes with `skill:` or `models:`: each attempt asks one model of the chain; what a local one says is judged.

The walk over the chain is the engine's ladder, so it is journaled and goes on after a crash where it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from bailiwick.agents.backends.openai import OpenaiBackend
from bailiwick.agents.kind import AgentKind
from bailiwick.agents.port import Backend, Turn
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.engine.graph import Node, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer, RenderFailed
from bailiwick.engine.retry_agent import AttemptPlan
from bailiwick.engine.state import CHOSEN
from bailiwick.errors import BailiwickError
from bailiwick.ids import Json
from bailiwick.routing.chains import cli_name
from bailiwick.routing.cooldown import key_of
from bailiwick.routing.endpoints import EndpointAddress
from bailiwick.routing.generate import Stop, Stopped, Tiers
from bailiwick.routing.leads import NodeChains, SkillRoute, chain_of
from bailiwick.routing.model import VERIFY_SECONDS, Candidate, Job, Result, VerifierUsage
from bailiwick.routing.verifier import Judged, VerifierInput, verify
from bailiwick.routing.warm import is_warm
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io


@dataclass(slots=True)
class RoutedKind(AgentKind):
    """The agent kind of nodes that name a skill or models."""

    leads: Callable[[], NodeChains] = field(kw_only=True)

    def prepare(self, node: Node, lookup: Lookup, renderer: Renderer) -> Rendered:
        """With the chain, its verifier and the skill's discipline, as they are when the node begins."""
        if not isinstance(node, Work):
            raise RenderFailed("not an agent node")
        made = self.rendered(node, lookup, renderer)
        leads = self.leads()
        chosen: dict[str, Json] = lookup(CHOSEN)
        settings = self.turns.settings.for_run(chosen)
        skill = str(node.spec.get("skill") or "")
        try:
            discipline = leads.discipline(skill) if skill else SkillRoute("")
            chain = leads.chain(node, settings, chosen.get("model"), discipline)
        except BailiwickError as error:
            raise RenderFailed(f"{error.what}; {error.hint}") from error
        if chain is None:
            return made
        route = {
            "chain": [asdict(one) for one in chain.candidates],
            "why": chain.why,
            "skill": skill,
            "verifier": asdict(chain.verifier) if chain.verifier else None,
            "discipline": discipline.body,
        }
        return replace(made, value={**made.value, "route": route})

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        """One turn of the model whose call it is, and the verifier's word on it; a failure tells the chain's length."""
        found = await self._attempt(request, io)
        if isinstance(found, Done):
            return found
        detail = {**(found.failure.detail or {}), "models": len(request.prepared["route"]["chain"])}
        return replace(found, failure=replace(found.failure, detail=detail))

    async def _attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        route: dict[str, Json] = request.prepared["route"]
        leads = self.leads()
        chain, verifier = chain_of(route)
        candidate = chain[min((request.plan or AttemptPlan()).model, len(chain) - 1)]
        try:
            place = leads.place(candidate)
            backend = OpenaiBackend(place.reach) if place else self.turns.backend(candidate.backend, _script(request))
        except BailiwickError as error:
            return Failed(Failure(str(FailureKind.SPAWN), error.sentence, Detail(evidence=error.sentence).to_json()))
        key = key_of(candidate, place)
        blocked = await leads.cooldowns.blocked(key)
        if blocked > 0:
            detail = Detail(retry_after=blocked, model=candidate.model)
            left = f"'{candidate.model}' kept failing: backing off for {blocked:.0f} s"
            return Failed(Failure(str(FailureKind.HELD), left, detail.to_json()))
        turn = _dressed(self.turn(request, io), candidate, place, str(route["discipline"]))
        call = _Call(self, leads=leads, request=request, io=io, candidate=candidate, place=place)
        try:
            found = await call.ask(backend, turn)
            await leads.cooldowns.heard(key, found.failure if isinstance(found, Failed) else None)
            return await call.judged(found, verifier, turn)
        except Stopped:
            return Failed(Failure("cancelled", "the attempt was ended"))


@dataclass(frozen=True, slots=True)
class _Call:
    """One attempt under way."""

    kind: RoutedKind
    leads: NodeChains
    request: AttemptRequest
    io: Io
    candidate: Candidate
    place: EndpointAddress | None

    async def ask(self, backend: Backend, turn: Turn) -> Done | Failed:
        """Ask the model; a local endpoint is asked by as many at once as it can bear."""
        route, place = self.request.prepared["route"], self.place
        told = {
            "tier": self.candidate.tier,
            "skill": route["skill"],
            "route": route["why"],
            "candidate": self.candidate.model,
        }
        if place is None:
            found = await self.kind.ask(backend, turn, self.request, self.io)
            return self._noted(found, told)
        warm = asyncio.ensure_future(is_warm(place, self.candidate.model, self.leads.llama_swap_url))
        slot = self.leads.queue.turn(place, place.name_to_send)
        try:
            found = await _stop(self.io).in_turn(slot, lambda: self.kind.ask(backend, turn, self.request, self.io))
            told["warm_start"] = warm.done() and warm.result()
        finally:
            warm.cancel()
        return self._noted(found, told)

    def _noted(self, found: Done | Failed, told: dict[str, Json]) -> Done | Failed:
        """With what statistics want to know; a model in the house costs nothing unless its server says otherwise."""
        if not found.log:
            return found
        usage = found.log.get("usage") or {}
        free = {} if self.candidate.cloud else {"usd": 0.0}
        verdict = "error" if isinstance(found, Failed) else "accept_unverified"
        return replace(found, log={**found.log, **told, "verdict": verdict, "usage": {**free, **usage}})

    async def judged(self, found: Done | Failed, verifier: Candidate | None, turn: Turn) -> Done | Failed:
        """What a local model gave, if the verifier takes it; a program's answer is nobody's to verify."""
        if isinstance(found, Failed) or verifier is None or self.candidate.tier != "local":
            return found
        if verifier.backend == "simulate":
            return found
        self.io.show(f"asking the verifier {verifier.model}")
        route = self.request.prepared["route"]
        node = self.request.node.id
        job = Job(str(route["skill"] or node), node, str(route["discipline"]), turn.prompt)
        made = Result("pass", job.phase, job.skill, "", details=found.outputs)
        tiers = Tiers(
            turns=self.kind.turns,
            place=self.leads.endpoints.place,
            queue=self.leads.queue,
            clock=self.leads.clock,
            environment=self.leads.environment,
            root=self.request.root,
            stop=_stop(self.io),
            show=self.io.show,
        )
        key = f"{self.request.key}-{self.request.attempt}-verifier"
        opinion = await verify(
            tiers, verifier, case=VerifierInput(job, turn.prompt, made), key=key, seconds=VERIFY_SECONDS
        )
        log = {**found.log, "usage": _together(found.log.get("usage") or {}, opinion.judging)}
        if not isinstance(opinion.event, Judged):
            text = f"verifier error: {opinion.event.message}"
            detail = Detail(evidence=text, model=self.candidate.model, unjudged=True)
            log |= {"verdict": "escalate", "feedback": text}
            return Failed(Failure(str(FailureKind.BAD_OUTPUT), text, detail.to_json()), log)
        if opinion.event.accept:
            return Done(found.outputs, {**log, "verdict": "accept", "verified": True})
        text = opinion.event.feedback or "the verifier gave no reason"
        detail = Detail(problem=text, evidence=text[:200], model=self.candidate.model)
        log |= {"verdict": "escalate", "verified": False, "feedback": text}
        return Failed(Failure(str(FailureKind.REJECTED), f"the verifier rejected it: {text}", detail.to_json()), log)


def _script(request: AttemptRequest) -> Json:
    return request.prepared.get("script")


def _stop(io: Io) -> Stop:
    stop = Stop()
    stop.event = io.cancel
    return stop


def _dressed(turn: Turn, candidate: Candidate, place: EndpointAddress | None, discipline: str) -> Turn:
    """The turn as this model is asked."""
    if place is None:
        named = None if candidate.model == candidate.backend else cli_name(candidate)
        return replace(turn, model=named, system=discipline)
    return replace(turn, model=place.name_to_send, base_url=place.url, token=place.token, env={}, system=discipline)


def _together(usage: dict[str, Json], judging: VerifierUsage) -> dict[str, Json]:
    """What the model and its verifier used; a part that is unknown makes the whole unknown."""
    parts = {"input": judging.input_tokens, "output": judging.output_tokens, "usd": judging.cost}
    whole = dict(usage)
    for name, value in parts.items():
        if value is None or usage.get(name) is None:
            whole.pop(name, None)
        else:
            whole[name] = usage[name] + value
    return whole
