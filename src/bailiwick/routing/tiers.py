"""Which tiers can be reached now, and how that was found out. Looks only: no model is asked and nothing is spent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bailiwick.agents import registry
from bailiwick.agents.http import CallFailed
from bailiwick.agents.port import Trouble
from bailiwick.agents.settings import SIMULATED, AgentSettings
from bailiwick.clock import iso
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.errors import BailiwickError
from bailiwick.ids import Json
from bailiwick.routing.chains import candidate_of
from bailiwick.routing.cooldown import Cooldowns, key_of
from bailiwick.routing.endpoints import Endpoints, bare_name
from bailiwick.routing.model import Candidate, TierName
from bailiwick.routing.models_file import Models
from bailiwick.routing.warm import loaded_models, look

DIRECT = "openai"
"""The backend that asks local endpoints; what is held back there has its name and the address."""
LOOK_SECONDS = 5.0
PROGRAM_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class TierState:
    """One place that models answer at, as it is now. `models` are those of the chains that go there.

    `missing` are the ones among them that it does not list; `cooling_until` is the time until which it is left alone,
    after failures or a limit, and `cooling_why` what the last of them said.
    """

    name: str
    tier: TierName
    reachable: bool
    probed: str
    said: str
    models: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    cloud: bool = False
    cooling_until: float | None = None
    cooling_why: str = ""

    def to_json(self) -> dict[str, Json]:
        """As the `tier` tool gives it; a time is RFC 3339 in UTC."""
        cooling = iso(self.cooling_until) if self.cooling_until is not None else None
        return {
            "name": self.name,
            "tier": self.tier,
            "reachable": self.reachable,
            "probed": self.probed,
            "said": self.said,
            "models": list(self.models),
            "loaded": list(self.loaded),
            "missing": list(self.missing),
            "cloud": self.cloud,
            "cooling_until": cooling,
            "cooling_why": self.cooling_why,
        }


@dataclass(frozen=True, slots=True)
class TierSurvey:
    """What is looked at: the endpoints and programs of a configuration, and the chains that use them."""

    config: Config
    settings: AgentSettings
    models: Models
    cooldowns: Cooldowns
    environment: Environment = field(default_factory=Environment)
    seconds: float = LOOK_SECONDS


async def tiers(survey: TierSurvey) -> list[TierState]:
    """Every tier there is, local ones first, looked at side by side. What can't be reached is told.

    Raises `UsageError` only for an address in the configuration that is none.
    """
    wanted = [candidate_of(name, survey.settings) for name in _named(survey.models)]
    endpoints = Endpoints.of(survey.config, survey.environment)
    used = (endpoints.chosen(each.model) for each in wanted if each.tier == "local")
    allowed = survey.settings.allowed
    programs = [name for name in registry.PROGRAMS if allowed is None or name in allowed]
    local = (_endpoint(name, endpoints, wanted, survey) for name in dict.fromkeys([*endpoints.names(), *used]))
    return list(await asyncio.gather(*local, *(_program(name, wanted, survey) for name in programs)))


def _named(models: Models) -> list[str]:
    """Every model that the file names, once."""
    chains = [models.default_chain, *(entry.chain for entry in models.skills.values())]
    names = [*(name for chain in chains for name in chain), models.verifier]
    return list(dict.fromkeys(name for name in names if name))


async def _endpoint(name: str, endpoints: Endpoints, wanted: list[Candidate], survey: TierSurvey) -> TierState:
    own = tuple(each.model for each in wanted if each.tier == "local" and endpoints.chosen(each.model) == name)
    try:
        place = endpoints.at(name)
    except BailiwickError as error:
        return TierState(name, "local", reachable=False, probed="nothing was asked", said=error.sentence, models=own)
    url = place.at("/api/tags" if place.kind == "ollama" else "/v1/models")
    probed = f"GET {_shown(url)}"
    cooling, why = await _cooling(place.key, f"{DIRECT}:{place.url}", own, survey)
    try:
        answer = await look(place.reach, url, survey.seconds)
    except (CallFailed, OSError, ValueError) as error:
        said = _words(error, survey.seconds)
        return TierState(
            name,
            "local",
            reachable=False,
            probed=probed,
            said=said,
            models=own,
            cloud=place.cloud,
            cooling_until=cooling,
            cooling_why=why,
        )
    listed = _listed(answer)
    missing = tuple(model for model in own if not _is_listed(model, name, listed))
    loaded = await loaded_models(place, survey.models.llama_swap_url, survey.seconds)
    return TierState(
        name,
        "local",
        reachable=True,
        probed=probed,
        said=_count(listed),
        models=own,
        loaded=tuple(loaded),
        missing=missing,
        cloud=place.cloud,
        cooling_until=cooling,
        cooling_why=why,
    )


async def _program(name: str, wanted: list[Candidate], survey: TierSurvey) -> TierState:
    own = tuple(each.model for each in wanted if each.tier == "subagent" and _backend(each) == name)
    key = key_of(Candidate("", "subagent", name, cloud=True), None)
    cooling, why = await _cooling(key, _credential(name, survey), own, survey)
    ok, said = await _version(name, survey)
    return TierState(
        name,
        "subagent",
        reachable=ok,
        probed=f"{registry.PROGRAMS[name]} --version",
        said=said,
        models=own,
        cloud=True,
        cooling_until=cooling,
        cooling_why=why,
    )


async def _version(name: str, survey: TierSurvey) -> tuple[bool, str]:
    """Whether a program is there, in words; its credential is looked for too, for without it nothing is answered."""
    from bailiwick.agents.credentials import SECRET_VARIABLES, resolve_credential
    from bailiwick.agents.launch import Launcher
    from bailiwick.agents.ready import credential_problem
    from bailiwick.agents.settings import TurnTimeouts

    env = survey.environment.child_environment({}, SECRET_VARIABLES)
    try:
        backend = registry.find(name, survey.settings)
        credential = resolve_credential(name, survey.config, survey.environment)
        lacks = credential_problem(name, credential, survey.config, survey.environment)
        async with asyncio.timeout(PROGRAM_SECONDS):
            with Launcher(TurnTimeouts(PROGRAM_SECONDS, PROGRAM_SECONDS), asyncio.Event()) as launcher:
                ok, said = await backend.check(env, launcher)
    except BailiwickError as error:
        return False, error.sentence
    except TimeoutError:
        return False, f"no answer within {PROGRAM_SECONDS:.0f} s"
    return (False, f"{said}; {lacks}") if ok and lacks else (ok, said)


def _backend(candidate: Candidate) -> str:
    """The program of a subagent, also where agents are simulated."""
    if candidate.backend != SIMULATED:
        return candidate.backend
    return candidate_of(candidate.model, AgentSettings()).backend


async def _cooling(key: str, credential: str, models: tuple[str, ...], survey: TierSurvey) -> tuple[float | None, str]:
    """Until when a place is left alone, by its failures or by a limit of its credential, and what was said last."""
    cooldowns = survey.cooldowns
    left = max(await cooldowns.blocked(key), await cooldowns.held(credential))
    if left <= 0:
        return None, ""
    return cooldowns.clock.now() + left, await cooldowns.because(models) or "no reason is on record"


def _credential(name: str, survey: TierSurvey) -> str:
    """The name under which a program's credential is held back; the program's own where it has none."""
    from bailiwick.agents.credentials import resolve_credential

    try:
        return resolve_credential(name, survey.config, survey.environment).name
    except BailiwickError:
        return name


def _listed(answer: dict[str, Json]) -> list[str] | None:
    """The models that a server says it has; None where it does not say it as model servers do."""
    for field_name, key in (("data", "id"), ("models", "name")):
        parts = answer.get(field_name)
        if isinstance(parts, list):
            return [name for part in parts if isinstance(part, dict) and isinstance(name := part.get(key), str)]
    return None


def _is_listed(model: str, endpoint: str, listed: list[str] | None) -> bool:
    if listed is None:
        return True
    names = {model, bare_name(model), model.removeprefix(f"{endpoint}/")}
    return bool(names & {each for name in listed for each in (name, name.removesuffix(":latest"))})


def _count(listed: list[str] | None) -> str:
    return "it answers, but lists no models" if listed is None else f"it answers and lists {len(listed)} models"


def _shown(url: str) -> str:
    """An address without what may stand before the host: a password has no place in a report."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _words(error: Exception, seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {seconds:g} s"
    if isinstance(error, CallFailed):
        return error.event.message if isinstance(error.event, Trouble) else error.event.stderr
    return str(error)
