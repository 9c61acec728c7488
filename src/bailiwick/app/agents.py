"""What asks agents, for one process: turns, credentials, chains; each made when the first node needs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.engine.graph import Node, Work
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.errors import BailiwickError, NotReady
from bailiwick.ids import Json
from bailiwick.runtime.kinds import NodeKind

if TYPE_CHECKING:
    from bailiwick.agents.asking import TurnRunner
    from bailiwick.agents.broker_access import BrokerAccess
    from bailiwick.agents.settings import AgentSettings
    from bailiwick.agents.turn_sandbox import TurnSandbox
    from bailiwick.app.context import AppContext
    from bailiwick.app.routing import RoutingServices


@dataclass(slots=True)
class AgentServices:
    """The agent kind of a command, made when the first agent node needs it."""

    app: AppContext
    zone: str | None
    simulate: Path | bool | None = None
    _settings: AgentSettings | None = None
    _broker_access: BrokerAccess | None = None
    _turn_sandbox: TurnSandbox | None = None
    _turns: TurnRunner | None = None
    _routed: RoutingServices | None = None
    _routed_kind: NodeKind | None = None

    def settings(self) -> AgentSettings:
        """What the person chose."""
        from bailiwick.agents.settings import read_settings

        if self._settings is None:
            self._settings = read_settings(self.app.config, self.simulate)
        return self._settings

    def kind(self) -> NodeKind:
        """The agent kind; what routes is loaded with the first node that names a skill or models."""
        from bailiwick.agents.kind import AgentKind

        return AgentKind(self.turns(), self._routing)

    def _routing(self) -> NodeKind:
        from bailiwick.routing.nodes import RoutedKind

        if self._routed_kind is None:
            routed = self.routed()
            self._routed_kind = RoutedKind(self.turns(), leads=routed.leads, access=routed.access)
        return self._routed_kind

    def routed(self) -> RoutingServices:
        """Chains and the router, one for the process."""
        from bailiwick.app.routing import RoutingServices

        if self._routed is None:
            self._routed = RoutingServices(self.app, turns=self.turns, purse=self.daily)
        return self._routed

    def backends(self, node: Work, chosen: dict[str, Json], settings: AgentSettings) -> tuple[str, ...]:
        """Every backend that a node may ask. Raises `UsageError` where its chain can't be made."""
        routed = bool(node.spec.get("skill") or node.spec.get("models"))
        chain = self.routed().leads().chain(node, settings, chosen.get("model")) if routed else None
        if chain is None:
            return (settings.choose(node).backend,)
        asked = (*chain.candidates, *([chain.verifier] if chain.verifier else []))
        return tuple(dict.fromkeys(one.backend for one in asked))

    def turns(self) -> TurnRunner:
        """Where agents are asked, one for the process."""
        from bailiwick.agents.asking import TurnRunner
        from bailiwick.agents.workplaces import Workplaces

        if self._turns is None:
            places = Workplaces.of(self.app.config)
            self._turns = TurnRunner(
                self.settings(),
                store=self.app.store,
                clock=self.app.clock,
                zone=self.zone,
                broker_access=self.broker_access(),
                turn_sandbox=self.turn_sandbox,
                places=places,
            )
        return self._turns

    def broker_access(self) -> BrokerAccess:
        """The way to credentials and models, one for the process."""
        from bailiwick.agents.broker_access import BrokerAccess

        self._broker_access = self._broker_access or BrokerAccess(self.app.config, self.app.clock)
        return self._broker_access

    async def turn_sandbox(self) -> TurnSandbox:
        """The sandbox around turns."""
        from bailiwick.agents.turn_sandbox import TurnSandbox

        if self._turn_sandbox is None:
            paths, config = self.app.config.paths, self.app.config
            self._turn_sandbox = TurnSandbox(
                await self.app.sandboxes(),
                state=paths.state,
                cache=paths.cache,
                allow=tuple(config.get("sandbox.allow") or ()),
                proxy=str(config.get("network.proxy") or ""),
                no_proxy=str(config.get("network.no_proxy") or ""),
            )
        return self._turn_sandbox

    def subscribed(self, backend: str) -> bool:
        """Whether what a backend costs is paid for already: its dollars are estimates."""
        try:
            return self.broker_access().credential(backend).billing == "subscription"
        except BailiwickError:
            return False

    def purse(self, node: Node, chosen: dict[str, Json]) -> tuple[str, dict[str, float | None]]:
        """The credential that a node's turns use, with what it may spend a day; "" where that is not limited."""
        named = self.app.config.get("credentials")
        if not isinstance(node, Work) or node.type != "agent" or not named:
            return "", {}
        choice = self.settings().for_run(chosen).choose(node)
        return self.daily(choice.backend, choice.models[0])

    def daily(self, backend: str, model: str | None = None) -> tuple[str, dict[str, float | None]]:
        """The credential of a backend, with what it may spend a day; "" where that is not limited."""
        try:
            name = self.broker_access().credential(backend, model).name
        except NotReady:  # the turn itself says what is missing
            return "", {}
        budget = ((self.app.config.get("credentials") or {}).get(name) or {}).get("budget") or {}
        return (name, dict(budget)) if budget else ("", {})

    async def close(self) -> None:
        """Stop what was started for agents."""
        if self._broker_access is not None:
            await self._broker_access.close()

    def ladder(self, node: Work) -> RetryPolicy:
        """The knobs of a node."""
        return self.settings().ladder(node)
