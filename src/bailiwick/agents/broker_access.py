"""Between a turn and the model: which credential it uses, and the broker that keeps it out of the agent's reach."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bailiwick.agents import prices
from bailiwick.agents.broker.windows import VendorLimits
from bailiwick.agents.credentials import (
    SECRET_VARIABLES,
    Credential,
    CredentialKind,
    login_environment,
    resolve_credential,
)
from bailiwick.agents.port import AgentEvent, Backend, LimitSeen, Turn, Used
from bailiwick.agents.settings import endpoint_of
from bailiwick.clock import Clock
from bailiwick.config.secrets import resolve_secret
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.errors import NotReady, UsageError
from bailiwick.journal.port import Store

if TYPE_CHECKING:
    from bailiwick.agents.broker.grants import Grant, GrantRules, Upstream
    from bailiwick.agents.broker.server import Broker
    from bailiwick.agents.profiles import Provider


@dataclass(frozen=True, slots=True)
class TurnAccess:
    """How one turn reaches its model: the turn as it is to be made, and the broker's grant, if it goes through one.

    `exposed`: the program holds a credential itself and has to reach the vendor's hosts with it.
    """

    turn: Turn
    credential: str
    grant: Grant | None = None
    exposed: bool = False

    def facts(self, events: list[AgentEvent]) -> list[AgentEvent]:
        """What the agent said and then what the broker saw; the broker's count of tokens replaces the agent's own."""
        seen = self.grant.facts() if self.grant else []
        counted = any(isinstance(event, Used) for event in seen)
        return [*(e for e in events if not (counted and isinstance(e, Used))), *seen]


@dataclass(slots=True)
class BrokerAccess:
    """The broker of a process, started with the first turn that goes through it."""

    config: Config
    clock: Clock
    _broker: Broker | None = field(default=None)
    _credentials: dict[str, Credential] = field(default_factory=dict)

    def credential(self, backend: str, model: str | None = None) -> Credential:
        """What a backend uses, looked up once. Raises `NotReady` where a reference can't be read.

        A codex profile with a provider of its own brings its own, whatever else is set.
        """
        provider = self._provider(backend, model)[1]
        if provider is not None:
            kind: CredentialKind = "api_key" if provider.token else "none"
            return Credential(f"{backend}:{provider.base_url}", backend, kind, token=provider.token)
        if backend not in self._credentials:
            url, key = self._endpoint(backend)
            if url and key:
                name = f"{backend}:{url}"
                self._credentials[backend] = Credential(
                    name, backend, "api_key", token=resolve_secret(key, config=self.config)
                )
            else:
                self._credentials[backend] = resolve_credential(backend, self.config)
        return self._credentials[backend]

    def _provider(self, backend: str, model: str | None) -> tuple[str, Provider | None]:
        """The codex profile of a turn, and the provider that it names. Raises `NotReady` where it can't be used."""
        if backend != "codex":
            return "", None
        from bailiwick.agents.profiles import chosen_provider

        try:
            return chosen_provider(model, Environment().child_environment({}))
        except UsageError as error:
            raise NotReady(error.what, hint=error.hint, code=error.code) from error

    def _endpoint(self, backend: str) -> tuple[str, str]:
        """The address and the key's reference of the endpoint that is configured for a backend; empty where none is."""
        entry = endpoint_of(self.config.get("endpoints") or {}, backend)
        return str(entry.get("url") or ""), str(entry.get("key") or "")

    async def kept_free(self, credential: str, store: Store) -> float:
        """Seconds until a window that is used up to its reserve begins again; 0 where a turn may start.

        What was said of a window holds no longer than the longest wait for a cap.
        """
        reserves = self._reserves(credential)
        if not reserves:
            return 0.0
        now = self.clock.now()
        longest: float = self.config.get("agents.cap_max_wait")
        waits = [0.0]
        for window in await VendorLimits(store, self.config.paths.state).all():
            if window.credential != credential or window.resets_at is None or window.resets_at <= now:
                continue
            reserve = reserves.get(window.window)
            if reserve is not None and window.used is not None and window.used >= 1 - reserve:
                waits.append(min(window.resets_at, window.seen_at + longest) - now)
        return max(waits)

    def _reserves(self, credential: str) -> dict[str, float]:
        """The shares of a credential's windows that are left to the person, by window."""
        named = self.config.get("credentials") or {}
        entry = named.get(credential) if isinstance(named, dict) else None
        shares = entry.get("reserve", {}) if isinstance(entry, dict) else {}
        return {window: float(share) for window, share in shares.items() if share is not None}

    async def remember(self, credential: str, events: Sequence[AgentEvent], store: Store) -> None:
        """Keep what was said of limits, for `limits` and for the reserve."""
        seen = [event for event in events if isinstance(event, LimitSeen)]
        await VendorLimits(store, self.config.paths.state).remember(credential, seen, self.clock.now())

    async def open(self, backend: Backend, turn: Turn, on_budget: Callable[[], None]) -> TurnAccess:
        """Make a turn ready to reach its model."""
        from bailiwick.agents.broker.upstreams import upstream_for, upstream_of
        from bailiwick.agents.ready import require_credential

        profile, provider = self._provider(backend.name, turn.model)
        credential = self.credential(backend.name, turn.model)
        if profile:
            turn = replace(turn, options={**turn.options, "profile": profile})
        if provider is not None:
            return await self._brokered(
                backend, turn, credential=credential, upstream=upstream_of(provider, self.config), on_budget=on_budget
            )
        require_credential(backend.name, credential, self.config, turn.env)
        if backend.capabilities.credential == "none" and credential.token is not None:
            return TurnAccess(replace(turn, token=credential.token), credential.name)
        if credential.kind == "login":
            env = {**turn.env, **login_environment(self.config.paths, backend.name)}
            return TurnAccess(replace(turn, env=env), credential.name, exposed=True)
        if backend.capabilities.credential != "brokered":
            return TurnAccess(turn, credential.name)
        upstream = upstream_for(credential, self.config, self._endpoint(backend.name)[0])
        if upstream is None:
            return TurnAccess(self._without_key(backend.name, turn), credential.name, exposed=True)
        return await self._brokered(backend, turn, credential=credential, upstream=upstream, on_budget=on_budget)

    def _without_key(self, backend: str, turn: Turn) -> Turn:
        """A server that wants no key may be named by the environment alone; a configured endpoint goes before it."""
        gateway = Environment().text("OPENAI_BASE_URL") if backend == "openai" else None
        return replace(turn, base_url=gateway) if gateway and not self._endpoint(backend)[0] else turn

    async def _brokered(
        self, backend: Backend, turn: Turn, credential: Credential, upstream: Upstream, on_budget: Callable[[], None]
    ) -> TurnAccess:
        broker = await self._started()
        price = prices.price_for(backend.name, self.config.get("endpoints") or {}, upstream.base_url)
        rules = self._rules(backend, turn)
        grant = broker.grant(turn.key, upstream, limit_usd=turn.max_usd, price=price, rules=rules, on_budget=on_budget)
        hidden = (None, credential.token)
        env = {k: v for k, v in turn.env.items() if k not in SECRET_VARIABLES and v not in hidden}
        asked = replace(turn, env=env, base_url=grant.base_url, token=grant.token)
        return TurnAccess(asked, credential.name, grant)

    def _rules(self, backend: Backend, turn: Turn) -> GrantRules:
        """Which models a turn may ask, and what holds where a price is unknown."""
        from bailiwick.agents.broker.grants import GrantRules
        from bailiwick.agents.broker.models import models_for

        listed = (self.config.get("agents.models") or {}).get(backend.name) or {}
        model = turn.model or backend.capabilities.default_model
        models = models_for(backend.name, model, turn.env, tuple(listed.get("also") or ()))
        unpriced = self.config.get("budget.unknown_cost") == "allow"
        return GrantRules(models, unpriced, int(self.config.get("agents.answer_tokens")))

    async def _started(self) -> Broker:
        from bailiwick.agents.broker.server import Broker

        if self._broker is None:
            self._broker = Broker(self.clock)
            await asyncio.to_thread(prices.warm)
            await self._broker.start()
        return self._broker

    async def listen(self, listening: socket.socket) -> None:
        """Answer on a socket that was made inside a sandbox."""
        await (await self._started()).listen(listening)

    def hang_up(self, listening: socket.socket) -> None:
        """Answer there no more."""
        if self._broker is not None:
            self._broker.hang_up(listening)

    def revoke(self, access: TurnAccess) -> None:
        """The turn is over: its token opens nothing any more."""
        if self._broker is not None and access.grant is not None:
            self._broker.revoke(access.grant)

    async def close(self) -> None:
        """Stop the broker."""
        if self._broker is not None:
            await self._broker.close()
            self._broker = None
