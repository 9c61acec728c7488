"""Whether agents could be asked at all: looked at before anything starts and anything is spent.

One answer for turns, lists and first looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bailiwick.agents.broker.upstreams import VENDORS
from bailiwick.agents.clouds import CLOUDS
from bailiwick.agents.credentials import LOGINS, Credential
from bailiwick.agents.registry import SERVERS, require
from bailiwick.agents.settings import AgentSettings, endpoint_of
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.engine.graph import Graph, Work
from bailiwick.errors import NotReady, UsageError

NO_ADDRESS = "BW259"
NO_MODEL = "BW256"
ALLOW = "bailiwick config set agents.allow_exposed_credentials true"


def agents_of(graph: Graph) -> list[Work]:
    """The agent nodes of a workflow."""
    return [node for node in graph.nodes.values() if isinstance(node, Work) and node.type == "agent"]


def require_agents(
    nodes: Iterable[Work], settings: AgentSettings, backends: Callable[[Work], tuple[str, ...]]
) -> frozenset[str]:
    """Refuse what can't be asked, with what to set; gives the backends that the nodes may ask.

    `backends` tells those of a node. Of a node that names a skill or a chain only those are looked at: its models are
    tried one after the other.
    """
    names: set[str] = set()
    for node in nodes:
        names.update(backends(node))
        if not (node.spec.get("skill") or node.spec.get("models")):
            choice = settings.choose(node)
            for model in choice.models:
                require_model(choice.backend, model, settings)
    for name in sorted(names):
        require(name, settings)
    return frozenset(names)


def cost_words(backends: Iterable[str], settings: AgentSettings) -> tuple[str, ...]:
    """What to say of calls whose price nobody will ever tell: they count as what is set aside for them, not as zero."""
    if "command" not in backends or settings.unknown_cost == "refuse":
        return ()
    if settings.unknown_cost == "allow":
        return ("what a call of the command costs is unknown, and is not counted: budget.unknown_cost is allow",)
    each = f"each counts as ${settings.policy.reserve_usd:g} (budget.call.usd, or the node's max_usd)"
    free = "for a program that costs nothing: bailiwick config set budget.unknown_cost allow"
    return (f"what a call of the command costs is unknown: {each}; {free}",)


def require_model(
    backend: str, model: str | None, settings: AgentSettings, environment: Environment | None = None
) -> None:
    """Refuse a model that this backend can't be asked for: a profile that is not there, no address, no name."""
    env = environment or Environment()
    if backend == "codex":
        from bailiwick.agents.profiles import chosen_provider

        chosen_provider(model, env.child_environment({}))
    if backend == "openai" and not _has_address(settings, env):
        raise UsageError(
            "backend 'openai' has no address to ask",
            hint="set it: bailiwick config set endpoints.openai.url http://HOST:PORT/v1; for the vendor's own host set "
            "OPENAI_API_KEY",
            code=NO_ADDRESS,
        )
    if backend in SERVERS and not model:
        raise UsageError(
            f"backend '{backend}' has no default model, and none is named",
            hint="name one: --model NAME, the node's `model:`, or: bailiwick config set model NAME",
            code=NO_MODEL,
        )


def _has_address(settings: AgentSettings, env: Environment) -> bool:
    """Whether an endpoint is configured, or the environment names one, or a key for the vendor's own host."""
    named = endpoint_of(settings.endpoints, "openai")
    return bool(named or env.text("OPENAI_API_KEY") or env.text("OPENAI_BASE_URL"))


def require_credential(backend: str, credential: Credential, config: Config, env: Mapping[str, str]) -> None:
    """Raises `NotReady` with what to do where a turn of this backend would be refused.

    The person's own login is never used by the way: without a credential of ours it takes the person's word.
    """
    allowed = bool(config.get("agents.allow_exposed_credentials"))
    if credential.exposed and not allowed:
        raise NotReady(
            f"the {credential.kind} of backend '{backend}' can't be kept out of the agent's reach",
            hint=f"use an API key or a token, or: {ALLOW}",
            code="BW253",
        )
    if credential.kind in CLOUDS:
        CLOUDS[credential.kind].check(env)
    elsewhere = bool(env.get(VENDORS.get(backend, ("", ""))[0]))
    if credential.kind != "none" or backend not in LOGINS or elsewhere or allowed:
        return
    raise NotReady(
        f"no credential is set for backend '{backend}'",
        hint=f"set an API key or a token, or run: bailiwick login {backend}; your own login is only used where "
        f"there is no sandbox, after: {ALLOW}",
        code="BW254",
    )


def credential_problem(
    backend: str, credential: Credential, config: Config, environment: Environment | None = None
) -> str:
    """Why a turn of this backend would be refused for its credential, in one sentence; empty where it would not be."""
    env = (environment or Environment()).child_environment({})
    if backend == "codex" and credential.kind == "none" and _has_provider(env):
        return ""
    try:
        require_credential(backend, credential, config, env)
    except NotReady as error:
        return error.sentence
    return ""


def _has_provider(env: Mapping[str, str]) -> bool:
    """Whether a codex profile brings a provider of its own: it needs no other credential."""
    from bailiwick.agents.profiles import read_profiles

    profiles = read_profiles(env)
    return any(table.get("model_provider") for table in (profiles.base, *profiles.named.values()))
