"""One opened state directory: configuration, store, runtime, agents; opened and closed in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bailiwick import crashpoints
from bailiwick.app.agents import AgentServices
from bailiwick.app.context import AppContext
from bailiwick.clock import SystemClock
from bailiwick.config.paths import find_paths
from bailiwick.config.person import person
from bailiwick.config.room import require_room
from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment
from bailiwick.ids import Json
from bailiwick.journal.opening import open_store
from bailiwick.runtime.assemble import KINDS, Runtime, Watch
from bailiwick.runtime.effects import KindTable
from bailiwick.runtime.kinds import NodeKind

if TYPE_CHECKING:
    from bailiwick.gate.port import Judge
    from bailiwick.journal.marks import Loss
    from bailiwick.skills.service import Skills

LOST = "BW305"
TOLD = 5
"""How many runs a warning names."""


TABLE: dict[str, str] = {
    "worktree": "bailiwick.pipelines.nodes",
    "gate": "bailiwick.gate.nodes",
    "propose": "bailiwick.proposals.nodes",
}
"""Which module brings a kind of node; none is imported before a workflow uses it."""


@dataclass(slots=True)
class App(AppContext):
    """One opened state directory, as a command, the service and the kinds of nodes use it."""

    agents: AgentServices = field(init=False)
    runtime: Runtime = field(init=False)

    def subscribed(self, backend: str) -> bool:
        """Whether what a backend costs is paid for already: its dollars are estimates."""
        return self.agents.subscribed(backend)

    def skills(self) -> Skills:
        """The tools that a person, an editor or an agent can call."""
        return self.agents.routed().skills()

    def judge(self) -> Judge:
        """Who asks models for their opinion of a change."""
        return self.agents.routed().judge()


def makers(app: App) -> dict[str, Callable[[], NodeKind]]:
    """The kinds of features, each made when a node needs it by its module's `make_kind`."""

    def maker(module: str) -> Callable[[], NodeKind]:
        def make() -> NodeKind:
            made: NodeKind = import_module(module).make_kind(app)
            return made

        return make

    return {name: maker(module) for name, module in TABLE.items()}


@asynccontextmanager
async def open_app(
    flags: dict[str, Json] | None = None,
    watch: Watch | None = None,
    simulate: Path | bool | None = None,
    *,
    attended: bool = False,
) -> AsyncIterator[App]:
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
    app = App(config, store=store, clock=clock, by=person(), attended=attended or simulate is not None)
    app.agents = AgentServices(app, zone, simulate)
    app.runtime = Runtime(
        store,
        clock=clock,
        state_dir=state,
        environment=lambda: environment.child_environment({}),
        zone=zone,
        kinds=KindTable({**KINDS, **makers(app), "script": app.script, "agent": app.agents.kind}),
        policy=app.agents.ladder,
        daily={unit: config.get(f"budget.day.{unit}") for unit in ("usd", "tokens", "agent_calls")},
        purse=app.agents.purse,
        watch=watch or Watch(),
        clean=app.clean,
        require_room=lambda: require_room(config),
    )
    try:
        yield app
    finally:
        await app.agents.close()
        await app.runtime.close()


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
async def open_skills(models_file: Path | None = None) -> AsyncIterator[Skills]:
    """The skills of a command. `models_file` goes before the files there are."""
    async with open_app(attended=True) as app:
        app.agents.routed().models_file = models_file
        yield app.skills()


@asynccontextmanager
async def open_judge() -> AsyncIterator[Judge]:
    """Who asks models for their opinion of a change, for a command that opens nothing else."""
    async with open_app(attended=True) as app:
        yield app.judge()
