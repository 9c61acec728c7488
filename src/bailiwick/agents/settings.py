"""What a person chose about agents: backend, models, knobs. Read once per command; a node's own word comes first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bailiwick.config.service import Config
from bailiwick.engine.graph import Work
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.ids import Json

SIMULATED = "simulate"
ENDPOINTS = {"openai": ("openai", "litellm", "llama-swap"), "ollama": ("ollama",)}
"""Which configured endpoints a backend uses."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The backend and the chain of models for one node; None is the backend's own default."""

    backend: str
    models: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class TurnTimeouts:
    """When a turn is ended, in seconds: without a sign of life while no tool runs, and in all."""

    silence: float = 600.0
    total: float = 3600.0

    @classmethod
    def of(cls, options: Mapping[str, Json]) -> TurnTimeouts:
        """Those that a turn's options name."""
        return cls(**{name: float(options[name]) for name in ("silence", "total") if options.get(name) is not None})


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The settings of a process. `script` is the simulated agent's; `power` maps a backend to its model per tier."""

    backend: str = "claude"
    model: str | None = None
    script: Path | None = None
    command: str | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    total: float = 3600.0
    silence: float = 600.0
    power: Mapping[str, Json] = field(default_factory=dict)
    endpoints: Mapping[str, Json] = field(default_factory=dict)
    allowed: tuple[str, ...] | None = None
    allowed_models: tuple[str, ...] | None = None
    unknown_cost: str = "estimate"

    def for_run(self, chosen: Json) -> AgentSettings:
        """The settings with what the run was started with on top."""
        if not isinstance(chosen, dict) or not chosen:
            return self
        script = chosen.get("script")
        return replace(
            self,
            backend=str(chosen.get("backend") or self.backend),
            model=chosen.get("model") or self.model,
            script=Path(script) if script else self.script,
        )

    def choose(self, node: Work) -> ModelChoice:
        """The node's pin, else the person's choice; a chain of `models`, a `model`, a power tier, or the default."""
        spec = node.spec
        pinned = (
            spec.get("backend") if self.backend != SIMULATED else None
        )  # simulated: no real agent, whatever is pinned
        backend = str(pinned or self.backend)
        chain = spec.get("models")
        if isinstance(chain, list) and chain:
            return ModelChoice(backend, tuple(str(m) for m in chain))
        model = spec.get("model") or self.model or self._tier(spec.get("power"), backend)
        return ModelChoice(backend, (str(model) if model else None,))

    def _tier(self, tier: Json, backend: str) -> Json:
        models = self.power.get(backend) if tier else None
        return models.get(str(tier)) if isinstance(models, dict) else None

    def ladder(self, node: Work) -> RetryPolicy:
        """The knobs of one node."""
        on_cap = str(node.spec.get("on_cap") or self.policy.on_cap)
        wanted = node.spec.get("max_usd")
        reserve = self.policy.reserve_usd if wanted is None else float(wanted)
        return replace(self.policy, models=len(self.choose(node).models), on_cap=on_cap, reserve_usd=reserve)


def endpoint_of(endpoints: Mapping[str, Json], backend: str) -> dict[str, Json]:
    """The configured endpoint that a backend uses: the first of its own that has an address; empty where none has."""
    given = (endpoints.get(name) for name in ENDPOINTS.get(backend, ()))
    return next((entry for entry in given if isinstance(entry, dict) and entry.get("url")), {})


def read_settings(config: Config, simulate: Path | bool | None = None) -> AgentSettings:
    """The settings of this configuration; `simulate` is the flag: True, or the script of the simulated agent."""
    command = config.get("agents.command")
    named = config.get("backend")
    backend = "simulate" if simulate else str(named or ("command" if command else "claude"))
    policy = RetryPolicy(
        max_output_retries=config.get("agents.max_output_retries"),
        max_invoke_retries=config.get("agents.max_invoke_retries"),
        backoff_base=config.get("agents.invoke_backoff_base"),
        backoff_cap=config.get("agents.invoke_backoff_cap"),
        max_compact_attempts=config.get("agents.max_compact_attempts"),
        max_rephrase_attempts=config.get("agents.max_rephrase_attempts"),
        cap_default_wait=config.get("agents.cap_default_wait"),
        cap_wait_margin=config.get("agents.cap_wait_margin"),
        cap_max_wait=config.get("agents.cap_max_wait"),
        max_cap_waits=config.get("agents.max_cap_waits"),
        max_attempts=config.get("agents.max_attempts"),
        outage_wait=config.get("agents.outage_wait"),
        use_defaults=config.get("agents.use_default_outputs"),
        reserve_usd=config.get("budget.call.usd"),
    )
    allowed, models = config.get("agents.allowed_backends"), config.get("agents.allowed_models")
    return AgentSettings(
        backend=backend,
        model=config.get("model"),
        script=simulate if isinstance(simulate, Path) else None,
        command=command,
        policy=policy,
        total=config.get("agents.result_timeout"),
        silence=config.get("agents.silence_timeout"),
        power=config.get("power") or {},
        endpoints=config.get("endpoints") or {},
        allowed=tuple(allowed) if allowed is not None else None,
        allowed_models=tuple(models) if models is not None else None,
        unknown_cost=config.get("budget.unknown_cost"),
    )
