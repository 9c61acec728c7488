"""Which models a call goes through, in which order, and why: the caller's word, the skill's chain, the default one.

`local_only` and what is allowed take models out; what can't be kept then is refused, never loosened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bailiwick.agents.record import is_unpriced
from bailiwick.agents.registry import PROGRAMS
from bailiwick.agents.settings import SIMULATED, AgentSettings
from bailiwick.errors import Place, UsageError
from bailiwick.routing.endpoints import Endpoints, bare_name
from bailiwick.routing.model import Candidate, Chain
from bailiwick.routing.models_file import Models, SkillModels

NO_CHAIN = "BW280"
NOTHING_LOCAL = "BW282"
CLOUD_VERIFIER = "BW283"
CLOUD_PINNED = "BW284"
NOT_ALLOWED = "BW285"
LOCAL_BACKEND = "openai"
"""The backend that asks local models: they all answer chat completions."""

_CLAIMS = (
    ("claude", re.compile(r"claude-.+|(?:haiku|sonnet|opus)(?:\[1m\])?|opusplan")),
    ("codex", re.compile(r"(?:gpt-[0-9]|codex-|o[0-9]+(?:-|$)).*")),
)
"""Names that agent CLIs know as their own. `gpt-oss` and the like are open models, which run anywhere."""


def candidate_of(model: str, settings: AgentSettings) -> Candidate:
    """On which tier a model runs: `claude-*` and the like by their CLI, `copilot/NAME` by the CLI named, others local.

    Where agents are simulated, so are all models.
    """
    prefix = model.partition("/")[0]
    backend = prefix if prefix in PROGRAMS else next((name for name, own in _CLAIMS if own.fullmatch(model)), "")
    simulated = settings.backend == SIMULATED
    if backend:
        return Candidate(model, "subagent", SIMULATED if simulated else backend, cloud=True)
    cloud = Endpoints(settings.endpoints).is_cloud(model)
    return Candidate(model, "local", SIMULATED if simulated else LOCAL_BACKEND, cloud=cloud)


def cli_name(candidate: Candidate) -> str | None:
    """What a subagent's CLI is told as its model: without our prefix; None for a CLI's bare name, its own default."""
    prefix, _, rest = candidate.model.partition("/")
    return (rest or None) if prefix in PROGRAMS else candidate.model


def compose(
    models: Models,
    skill: str,
    model: str | None,
    *,
    local_only: bool = False,
    settings: AgentSettings,
    given: Sequence[str] = (),
) -> Chain:
    """The chain of one call. `model` is the caller's own, `given` a node's chain; both go before the file's.

    Raises `UsageError` where nothing is left to ask, or the verifier may not be asked.
    """
    own = models.skills.get(skill) or SkillModels()
    rules = _Rules(skill, models, settings, local=local_only or models.local_only or own.local_only)
    if model:
        only = candidate_of(model, settings)
        rules.require(only)
        return Chain((only,), None, f"{skill}: {model}, named by the caller: no escalation, no verifier", pinned=True)
    names, said = _named(models, skill, own, tuple(given))
    kept, why = rules.sift([candidate_of(name, settings) for name in names])
    verifier = rules.verifier(kept)
    listed = ", ".join(candidate.model for candidate in kept)
    return Chain(tuple(kept), verifier, f"{skill}: {said} ({listed}){why}")


def _named(models: Models, skill: str, own: SkillModels, given: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The names of the chain that counts, and where it stands."""
    if given:
        return given, "chain of its node"
    if own.chain:
        return own.chain, f"chain of {models.shown}:{own.line}"
    if models.default_chain:
        return models.default_chain, f"default_chain of {models.shown}:{models.default_line}"
    if models.path is not None:
        raise UsageError(
            f"no chain for skill '{skill}', and no default_chain",
            place=Place(str(models.path)),
            hint=f"add `default_chain: [MODEL, …]`, or `skills: {{{skill}: {{chain: [MODEL, …]}}}}`",
            code=NO_CHAIN,
        )
    looked = " or ".join(models.looked) or models.shown
    raise UsageError(
        f"no models are named for skill '{skill}': there is no {models.shown}",
        hint=f"write `default_chain: [MODEL, …]` into {looked}, or give --model",
        code=NO_CHAIN,
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a call's models have to keep to."""

    skill: str
    models: Models
    settings: AgentSettings
    local: bool

    def require(self, only: Candidate) -> None:
        """Refuse the caller's own model where it may not be used."""
        if self.local and only.cloud:
            raise UsageError(
                f"'{only.model}' leaves the house, and '{self.skill}' is local_only",
                hint=_how_local(only),
                code=CLOUD_PINNED,
                place=self._place(),
            )
        if not self._is_allowed(only):
            raise self._refused(f"'{only.model}'")

    def sift(self, chain: Iterable[Candidate]) -> tuple[list[Candidate], str]:
        """The models that may be used, and in words which ones were left out."""
        listed = list(chain)
        at_home = [each for each in listed if not (self.local and each.cloud)]
        kept = [each for each in at_home if self._is_allowed(each)]
        if not at_home:
            raise UsageError(
                f"'{self.skill}' is local_only, and every model of its chain leaves the house: {_names(listed)}",
                hint=f"add a local model to the chain; {_how_local(listed[0])}",
                code=NOTHING_LOCAL,
                place=self._place(),
            )
        if not kept:
            raise self._refused(f"every model of the chain of '{self.skill}' ({_names(at_home)})")
        abroad = [each for each in listed if each not in at_home]
        barred = [each for each in at_home if each not in kept]
        why = f"; local_only leaves out {_names(abroad)}" if abroad else ""
        return kept, why + (f"; not allowed: {_names(barred)}" if barred else "")

    def verifier(self, kept: Sequence[Candidate]) -> Candidate | None:
        """Who judges what local models answer; None where nobody is named, or no model of the chain is local."""
        if not self.models.verifier or not any(each.tier == "local" for each in kept):
            return None
        found = candidate_of(self.models.verifier, self.settings)
        if self.local and found.cloud:
            raise UsageError(
                f"'{self.skill}' is local_only, and the verifier '{found.model}' leaves the house",
                hint=f"name a local model as `verifier`; {_how_local(found)}",
                code=CLOUD_VERIFIER,
                place=self._place(),
            )
        if not self._is_allowed(found):
            raise self._refused(f"the verifier '{found.model}'")
        return found

    def _is_allowed(self, candidate: Candidate) -> bool:
        backends, models = self.settings.allowed, self.settings.allowed_models
        names = {candidate.model, bare_name(candidate.model), cli_name(candidate)}
        named = (backends is None or candidate.backend in backends) and (models is None or bool(names & set(models)))
        return named and not self._is_unpriced(candidate)

    def _is_unpriced(self, candidate: Candidate) -> bool:
        """Whether nobody can say what a model costs, where that is refused; what stays in the house costs nothing."""
        if self.settings.unknown_cost != "refuse" or not candidate.cloud:
            return False
        name = bare_name(cli_name(candidate) or "")
        return is_unpriced(candidate.backend, name)

    def _refused(self, what: str) -> UsageError:
        return UsageError(
            f"{what} may not be used: agents.allowed_backends or agents.allowed_models leaves it out, or its price is "
            "unknown and budget.unknown_cost is refuse",
            hint="name an allowed model, or ask the author of the policy; `bailiwick config show agents --origin`",
            code=NOT_ALLOWED,
            place=self._place(),
        )

    def _place(self) -> Place | None:
        return Place(str(self.models.path)) if self.models.path else None


def _names(candidates: Iterable[Candidate]) -> str:
    return ", ".join(each.model for each in candidates)


def _how_local(candidate: Candidate) -> str:
    """What makes a model count as local, where that can be."""
    if candidate.tier != "local":
        return "a model such as ollama/NAME is asked on this machine"
    return "if its endpoint passes nothing on to others, say so: bailiwick config set endpoints.NAME.cloud false"
