"""One opened state directory: configuration, store, runtime, agents; opened and closed in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bailiwick import crashpoints
from bailiwick.app.agents import AgentServices
from bailiwick.app.node_kinds import makers
from bailiwick.clock import Clock, SystemClock
from bailiwick.config.paths import find_paths
from bailiwick.config.person import person
from bailiwick.config.room import require_room
from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.ids import Json
from bailiwick.journal.opening import open_store
from bailiwick.journal.port import Store
from bailiwick.runtime.assemble import KINDS, Runtime, Watch
from bailiwick.runtime.effects import KindTable
from bailiwick.runtime.kinds import NodeKind

if TYPE_CHECKING:
    from bailiwick.brain.service import Brain
    from bailiwick.gate.port import Judge
    from bailiwick.journal.marks import Loss
    from bailiwick.sandbox.service import Sandboxes
    from bailiwick.secrets.service import KnownSecrets
    from bailiwick.skills.service import Skills

LOST = "BW305"
TOLD = 5
"""How many runs a warning names."""


@dataclass(slots=True)
class App:
    """What a command, the service and the node kinds share. What few need is opened by the first that does, once."""

    config: Config
    store: Store
    clock: Clock
    by: str
    attended: bool = False
    agents: AgentServices = field(init=False)
    runtime: Runtime = field(init=False)
    _fence: Sandboxes | None = field(default=None)
    _coverage: KnownSecrets | None = field(default=None)

    @property
    def coverage(self) -> KnownSecrets:
        """The secrets that this process knows, looked up when the first effect ends."""
        if self._coverage is None:
            from bailiwick.secrets.service import KnownSecrets

            self._coverage = KnownSecrets.of(self.config)
        return self._coverage

    def clean(self, value: Json) -> Json:
        """A value without any secret that is known."""
        return self.coverage.redactor.json(value)

    def script(self) -> NodeKind:
        """The script kind, with a way to its secrets."""
        from bailiwick.runtime.script import ScriptKind

        return ScriptKind(lambda text: self.coverage.filled(text))  # noqa: PLW0108  secrets are looked up when one is asked for

    def subscribed(self, backend: str) -> bool:
        """Whether what a backend costs is paid for already: its dollars are estimates."""
        return self.agents.subscribed(backend)

    def skills(self) -> Skills:
        """The tools that a person, an editor or an agent can call."""
        return self.agents.routed().skills()

    def judge(self) -> Judge:
        """Who asks models for their opinion of a change."""
        return self.agents.routed().judge()

    def brain(self) -> Brain:
        """The person's notes. Raises `NotReady` where they are switched off."""
        from bailiwick.brain.service import Brain

        found = Brain.open(self.config, self.clock)
        found.redact = self.coverage.text
        return found

    async def fence(self) -> Sandboxes:
        """The sandbox around what is not trusted. Raises `NotReady` where it can't be had."""
        if self._fence is None:
            from bailiwick.sandbox.service import open_fence

            self._fence = await open_fence(self.config, attended=self.attended)
        return self._fence


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
async def open_skills(models_file: Path | None = None, *, attended: bool = True) -> AsyncIterator[Skills]:
    """The skills of a command. `models_file` goes before the files there are."""
    async with open_app(attended=attended) as app:
        app.agents.routed().models_file = models_file
        yield app.skills()


@asynccontextmanager
async def open_judge() -> AsyncIterator[Judge]:
    """Who asks models for their opinion of a change, for a command that opens nothing else."""
    async with open_app(attended=True) as app:
        yield app.judge()
