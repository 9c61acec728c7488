"""Which models an agent node goes through: the chain of its skill, or its own `models`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bailiwick.agents.registry import PROGRAMS, TABLE
from bailiwick.agents.settings import SIMULATED, AgentSettings
from bailiwick.engine.graph import Work
from bailiwick.ids import Json
from bailiwick.routing.chains import compose
from bailiwick.routing.model import Candidate, Chain, TierName
from bailiwick.routing.models_file import Models

BY_NAME = frozenset(TABLE) - {"command", SIMULATED}
"""Backends for which a model's name tells who asks it; any other way to an agent has names of its own."""


@dataclass(frozen=True, slots=True)
class SkillRoute:
    """What a skill says: its text, and which models it wants or allows."""

    body: str
    chain: tuple[str, ...] = ()
    local_only: bool = False


@dataclass(slots=True, kw_only=True)
class NodeChains:
    """Chains for nodes. `discipline` gives a skill by its name."""

    models: Callable[[], Models]
    discipline: Callable[[str], SkillRoute]
    _read: Models | None = field(default=None)

    def chain(
        self, node: Work, settings: AgentSettings, asked: Json = None, discipline: SkillRoute | None = None
    ) -> Chain | None:
        """The chain of a node; None where its models are all of one backend that it, or the person, names.

        `asked` is the model that the run was started with; the node's own word goes before it. `discipline` is its
        skill, where that is known already. Raises `UsageError` where a skill's models are named nowhere, or may not
        be used.
        """
        spec = node.spec
        skill, given = str(spec.get("skill") or ""), tuple(map(str, spec.get("models") or ()))
        pinned = spec.get("backend") if settings.backend != SIMULATED else None
        own = str(pinned or settings.backend)
        if not skill and (pinned or own not in BY_NAME):
            return None
        if pinned or own not in BY_NAME:
            return _on(own, settings.choose(node).models, skill)
        named = spec.get("model") or (None if given else asked)
        models = self._models()
        wanted = discipline or (self.discipline(skill) if skill else SkillRoute(""))
        in_file = models.skills.get(skill)
        listed = () if in_file is not None and in_file.chain else wanted.chain
        return compose(
            models,
            skill or node.id,
            str(named) if named else None,
            local_only=wanted.local_only,
            settings=settings,
            given=given or listed,
        )

    def _models(self) -> Models:
        if self._read is None:
            self._read = self.models()
        return self._read

    @property
    def llama_swap_url(self) -> str:
        """Where llama-swap tells what is loaded; "" where nobody says."""
        return self._models().llama_swap_url


def _on(backend: str, models: tuple[str | None, ...], skill: str) -> Chain:
    """The models of one backend, in their order; nobody verifies them."""
    tier: TierName = "subagent" if backend in PROGRAMS else "local"
    chain = tuple(Candidate(model or backend, tier, backend, cloud=backend in PROGRAMS) for model in models)
    return Chain(chain, None, f"{skill}: on {backend}, which the node or the person names")


def chain_of(route: Mapping[str, Json]) -> tuple[tuple[Candidate, ...], Candidate | None]:
    """The chain and the verifier as they were written into a request."""
    judge = route.get("verifier")
    return tuple(Candidate(**one) for one in route["chain"]), Candidate(**judge) if judge else None
