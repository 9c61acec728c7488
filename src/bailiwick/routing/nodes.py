"""Agent nodes with `skill:` or `models:`: each attempt asks one model of the chain; what a local one says is judged.

The walk over the chain is the engine's ladder, so it is journaled and goes on after a crash where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace

from bailiwick.agents.asking import TurnContext
from bailiwick.agents.kind import AgentKind
from bailiwick.agents.port import Turn
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.engine.graph import Node, Work
from bailiwick.engine.render import Lookup, Rendered, Renderer, RenderFailed
from bailiwick.engine.retry_agent import AttemptPlan
from bailiwick.engine.state import CHOSEN
from bailiwick.errors import BailiwickError
from bailiwick.ids import Json
from bailiwick.routing.ask import NOWHERE, ModelAccess, ModelReply, Stopped, ask_candidate
from bailiwick.routing.chains import LOCAL_BACKEND
from bailiwick.routing.leads import NodeChains, SkillRoute, chain_of
from bailiwick.routing.model import VERIFY_SECONDS, Candidate, Job, Result, VerifierUsage
from bailiwick.routing.verifier import Judged, VerifierInput, verify
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io


@dataclass(slots=True)
class RoutedKind(AgentKind):
    """The agent kind of nodes that name a skill or models."""

    leads: Callable[[], NodeChains] = field(kw_only=True)
    access: Callable[[], ModelAccess] = field(kw_only=True)

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
        chain, verifier = chain_of(route)
        candidate = chain[min((request.plan or AttemptPlan()).model, len(chain) - 1)]

        async def make() -> tuple[Turn, TurnContext]:
            turn = replace(self.turn(request, io), system=str(route["discipline"]))
            return turn, self.context(request, io, candidate.backend)

        try:
            reply = await ask_candidate(
                self.access(),
                candidate,
                make,
                llama_swap_url=self.leads().llama_swap_url if candidate.backend == LOCAL_BACKEND else "",
                script=request.prepared.get("script"),
            )
            found = self._noted(reply, candidate, request)
            if isinstance(found, Failed) or verifier is None or candidate.tier != "local":
                return found
            return await self._verified(found, verifier, request, io)
        except Stopped:
            return Failed(Failure("cancelled", "the attempt was ended"))

    def _noted(self, reply: ModelReply, candidate: Candidate, request: AttemptRequest) -> Done | Failed:
        """What a model gave, with what statistics want to know."""
        warm = reply.was_warm()
        if reply.turn is None or reply.backend is None:
            return Failed(reply.told.failure or Failure(str(FailureKind.SPAWN), "nothing was asked"))
        found, route = self.judge(reply.told, request, reply.backend, reply.turn), request.prepared["route"]
        if not found.log:
            return found
        told = {
            "tier": candidate.tier,
            "skill": route["skill"],
            "route": route["why"],
            "candidate": candidate.model,
            **({"warm_start": warm} if reply.place else {}),
            "verdict": "error" if isinstance(found, Failed) else "accept_unverified",
        }
        return replace(found, log={**found.log, **told})

    async def _verified(self, found: Done, verifier: Candidate, request: AttemptRequest, io: Io) -> Done | Failed:
        """What a local model gave, if the verifier takes it; a program's answer is nobody's to verify."""
        if verifier.backend == "simulate":
            return found
        io.show(f"asking the verifier {verifier.model}")
        route, node, prompt = request.prepared["route"], request.node.id, str(found.log["prompt"])
        job = Job(str(route["skill"] or node), node, str(route["discipline"]), prompt)
        case = VerifierInput(job, prompt, Result("pass", job.phase, job.skill, "", details=found.outputs))
        access = self.access()
        context = TurnContext(
            io.cancel,
            root=request.root,
            workspace=NOWHERE,
            total=VERIFY_SECONDS,
            silence=access.silence(VERIFY_SECONDS),
            show=io.show,
        )
        opinion = await verify(access, verifier, case, key=f"{request.key}-{request.attempt}-verifier", context=context)
        if io.cancel.is_set():
            raise Stopped
        log = {**found.log, "usage": _together(found.log.get("usage") or {}, opinion.judging)}
        model = str(found.log["candidate"])
        if not isinstance(opinion.event, Judged):
            text = f"verifier error: {opinion.event.message}"
            detail = Detail(evidence=text, model=model, unjudged=True)
            log |= {"verdict": "escalate", "feedback": text}
            return Failed(Failure(str(FailureKind.BAD_OUTPUT), text, detail.to_json()), log)
        if opinion.event.accept:
            return Done(found.outputs, {**log, "verdict": "accept", "verified": True})
        text = opinion.event.feedback or "the verifier gave no reason"
        detail = Detail(problem=text, evidence=text[:200], model=model)
        log |= {"verdict": "escalate", "verified": False, "feedback": text}
        return Failed(Failure(str(FailureKind.REJECTED), f"the verifier rejected it: {text}", detail.to_json()), log)


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
