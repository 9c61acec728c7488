"""A command's view of the state directory: configuration, store, the person's name; opened and closed in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bailiwick import crashpoints
from bailiwick.app.node_kinds import App, makers
from bailiwick.clock import Clock, SystemClock
from bailiwick.config.paths import find_paths
from bailiwick.config.person import person
from bailiwick.config.room import require_room
from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.engine.graph import Node, Work
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.errors import BailiwickError, InternalBug, NotReady
from bailiwick.ids import Json
from bailiwick.journal.opening import open_store
from bailiwick.journal.port import Store
from bailiwick.runtime.assemble import KINDS, Runtime, Watch
from bailiwick.runtime.effects import KindTable
from bailiwick.runtime.kinds import NodeKind

if TYPE_CHECKING:
    from bailiwick.agents.asking import TurnRunner
    from bailiwick.agents.brokerage import BrokerAccess
    from bailiwick.agents.fencing import TurnSandbox
    from bailiwick.agents.settings import AgentSettings
    from bailiwick.app.routing import RoutingServices
    from bailiwick.gate.port import Judge
    from bailiwick.journal.marks import Loss
    from bailiwick.skills.service import Skills


LOST = "BW305"
TOLD = 5
"""How many runs a warning names."""


@dataclass(slots=True)
class Session:
    """What a command works with."""

    config: Config
    assembly: Runtime
    by: str
    household: App
    agents: AgentServices


@asynccontextmanager
async def open_session(
    flags: dict[str, Json] | None = None,
    watch: Watch | None = None,
    simulate: Path | bool | None = None,
    *,
    attended: bool = False,
) -> AsyncIterator[Session]:
    """Open the state directory; everything is let go of at the end, whatever happens. `attended`: a person watches."""
    environment = Environment()
    if point := environment.crash_point():
        crashpoints.arm_from(point)
    paths = find_paths(environment)
    config = load_config(Path.cwd(), flags or {})
    clock = SystemClock()
    state = paths.make_state()
    store = await open_store(state, clock)
    if store.losses:
        _tell_losses(store.path, store.losses)
    zone = config.get("time.zone") or environment.zone()
    household = App(config, store=store, clock=clock, by=person(), attended=attended or simulate is not None)
    agents = AgentServices(config, store=store, clock=clock, zone=zone, simulate=simulate, household=household)
    household.subscribed = agents.subscribed
    household.bring_skills(lambda house: agents.routed().skills(house))
    household.bring_judge(lambda: agents.routed().judge(household.by))
    assembly = Runtime(
        store,
        clock=clock,
        state_dir=state,
        environment=lambda: environment.child_environment({}),
        zone=zone,
        kinds=KindTable({**KINDS, **makers(household), "script": household.script, "agent": agents.kind}),
        policy=agents.ladder,
        daily={unit: config.get(f"budget.day.{unit}") for unit in ("usd", "tokens", "agent_calls")},
        purse=agents.purse,
        watch=watch or Watch(),
        clean=household.clean,
        require_room=lambda: require_room(config),
    )
    try:
        yield Session(config, assembly=assembly, by=person(), household=household, agents=agents)
    finally:
        await agents.close()
        await assembly.close()


def _tell_losses(database: Path, losses: Sequence[Loss]) -> None:
    """Say what a damaged or deleted write-ahead log took away; nothing else would."""
    from bailiwick.terminal.output import clean

    told = [loss.words for loss in losses[:TOLD]]
    rest = f"; {len(losses) - TOLD} more" if len(losses) > TOLD else ""
    click.echo(
        clean(f"warning[{LOST}]: {database}: the journal lost what was written last: {'; '.join(told)}{rest}"), err=True
    )
    back = [loss.name for loss in losses if loss.has is not None]
    if back:
        way = f"look with `bailiwick why {back[0]}`, let it go on with `bailiwick resume {back[0]}`"
        click.echo(clean(f"  try: runs that went back stop before they do anything again; {way}"), err=True)


@asynccontextmanager
async def open_skills(models_file: Path | None = None, *, attended: bool = True) -> AsyncIterator[Skills]:
    """The skills of a command. `models_file` goes before the files there are."""
    async with open_session(attended=attended) as session:
        session.agents.routed().models_file = models_file
        yield session.household.skills()


@asynccontextmanager
async def open_judge() -> AsyncIterator[Judge]:
    """Who asks models for their opinion of a change, for a command that has no session of its own."""
    async with open_session(attended=True) as session:
        yield session.household.judge()


@dataclass(slots=True)
class AgentServices:
    """The agent kind of a command, made when the first agent node needs it."""

    config: Config
    store: Store
    clock: Clock
    zone: str | None
    simulate: Path | bool | None = None
    household: App | None = None
    _settings: AgentSettings | None = None
    _brokerage: BrokerAccess | None = None
    _fencing: TurnSandbox | None = None
    _desk: TurnRunner | None = None
    _routed: RoutingServices | None = None
    _routed_kind: NodeKind | None = None

    def settings(self) -> AgentSettings:
        """What the person chose."""
        from bailiwick.agents.settings import read_settings

        if self._settings is None:
            self._settings = read_settings(self.config, self.simulate)
        return self._settings

    def kind(self) -> NodeKind:
        """The agent kind; what routes is loaded with the first node that names a skill or models."""
        from bailiwick.agents.kind import AgentKind

        return AgentKind(self.desk(), self._routing)

    def _routing(self) -> NodeKind:
        from bailiwick.routing.nodes import RoutedKind

        if self._routed_kind is None:
            self._routed_kind = RoutedKind(self.desk(), leads=lambda: self.routed().leads())
        return self._routed_kind

    def routed(self) -> RoutingServices:
        """Chains and the router, one for the process."""
        from bailiwick.app.routing import RoutingServices

        if self._routed is None:
            clean = self.household.clean if self.household else (lambda value: value)
            self._routed = RoutingServices(
                self.config, store=self.store, clock=self.clock, desk=self.desk, purse=self.daily, clean=clean
            )
        return self._routed

    def backends(self, node: Work, chosen: dict[str, Json], settings: AgentSettings) -> tuple[str, ...]:
        """Every backend that a node may ask. Raises `UsageError` where its chain can't be made."""
        routed = bool(node.spec.get("skill") or node.spec.get("models"))
        chain = self.routed().leads().chain(node, settings, chosen.get("model")) if routed else None
        if chain is None:
            return (settings.choose(node).backend,)
        asked = (*chain.candidates, *([chain.verifier] if chain.verifier else []))
        return tuple(dict.fromkeys(one.backend for one in asked))

    def desk(self) -> TurnRunner:
        """Where agents are asked, one for the process."""
        from bailiwick.agents.asking import TurnRunner
        from bailiwick.agents.workplaces import Workplaces

        if self._desk is None:
            fencing = self.fencing if self.household is not None else None
            places = Workplaces.of(self.config)
            self._desk = TurnRunner(
                self.settings(),
                store=self.store,
                clock=self.clock,
                zone=self.zone,
                brokerage=self.brokerage(),
                fencing=fencing,
                places=places,
            )
        return self._desk

    def brokerage(self) -> BrokerAccess:
        """The way to credentials and models, one for the process."""
        from bailiwick.agents.brokerage import BrokerAccess

        self._brokerage = self._brokerage or BrokerAccess(self.config, self.clock)
        return self._brokerage

    async def fencing(self) -> TurnSandbox:
        """The sandbox around turns."""
        from bailiwick.agents.fencing import TurnSandbox

        if self._fencing is None:
            if self.household is None:
                raise InternalBug("agents were asked for without a household")
            paths, config = self.config.paths, self.config
            self._fencing = TurnSandbox(
                await self.household.fence(),
                state=paths.state,
                cache=paths.cache,
                allow=tuple(config.get("sandbox.allow") or ()),
                proxy=str(config.get("network.proxy") or ""),
                no_proxy=str(config.get("network.no_proxy") or ""),
            )
        return self._fencing

    def subscribed(self, backend: str) -> bool:
        """Whether what a backend costs is paid for already: its dollars are estimates."""
        try:
            return self.brokerage().credential(backend).billing == "subscription"
        except BailiwickError:
            return False

    def purse(self, node: Node, chosen: dict[str, Json]) -> tuple[str, dict[str, float | None]]:
        """The credential that a node's turns use, with what it may spend a day; "" where that is not limited."""
        named = self.config.get("credentials")
        if not isinstance(node, Work) or node.type != "agent" or not named:
            return "", {}
        choice = self.settings().for_run(chosen).choose(node)
        return self.daily(choice.backend, choice.models[0])

    def daily(self, backend: str, model: str | None = None) -> tuple[str, dict[str, float | None]]:
        """The credential of a backend, with what it may spend a day; "" where that is not limited."""
        try:
            name = self.brokerage().credential(backend, model).name
        except NotReady:  # the turn itself says what is missing
            return "", {}
        budget = ((self.config.get("credentials") or {}).get(name) or {}).get("budget") or {}
        return (name, dict(budget)) if budget else ("", {})

    async def close(self) -> None:
        """Stop what was started for agents."""
        if self._brokerage is not None:
            await self._brokerage.close()

    def ladder(self, node: Work) -> RetryPolicy:
        """The knobs of a node."""
        return self.settings().ladder(node)
