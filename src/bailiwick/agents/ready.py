"""Whether the agents of a workflow could be asked at all: looked at before anything starts and anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bailiwick.agents.broker_access import ENDPOINTS
from bailiwick.agents.registry import SERVERS, require
from bailiwick.agents.settings import AgentSettings
from bailiwick.config.variables import Environment
from bailiwick.engine.graph import Graph, Work
from bailiwick.errors import UsageError

NO_ADDRESS = "BW259"
NO_MODEL = "BW256"


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
        from bailiwick.agents.profiles import read_profiles

        names = env.child_environment({})
        profiles = read_profiles(names)
        profiles.provider(profiles.choose(model, names.get("CODEX_PROFILE", "")).profile, names)
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
    given = (settings.endpoints.get(name) for name in ENDPOINTS["openai"])
    if any(isinstance(entry, dict) and entry.get("url") for entry in given):
        return True
    return bool(env.text("OPENAI_API_KEY") or env.text("OPENAI_BASE_URL"))
