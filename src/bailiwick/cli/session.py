"""A command's view of the state directory: configuration, store, the person's name; opened and closed in order."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bailiwick import crashpoints
from bailiwick.clock import SystemClock
from bailiwick.config.environment import Environment
from bailiwick.config.paths import find_paths
from bailiwick.config.service import Config, load_config
from bailiwick.ids import Json
from bailiwick.runtime.assemble import Assembly, Watch


@dataclass(slots=True)
class Session:
    """What a command works with."""

    config: Config
    assembly: Assembly
    by: str


@asynccontextmanager
async def open_session(flags: dict[str, Json] | None = None, watch: Watch | None = None) -> AsyncIterator[Session]:
    """Open the state directory; everything is let go of at the end, whatever happens."""
    from bailiwick.journal.sqlite import SqliteStore

    environment = Environment()
    if point := environment.crash_point():
        crashpoints.arm_from(point)
    paths = find_paths(environment)
    config = load_config(Path.cwd(), flags or {})
    clock = SystemClock()
    state = paths.make_state()
    store = await SqliteStore.open(state / "bailiwick.db", now=clock.now)
    zone = config.get("time.zone") or environment.zone()
    assembly = Assembly(store, clock, state, lambda: environment.child_environment({}), zone, watch=watch or Watch())
    try:
        yield Session(config, assembly, person())
    finally:
        await assembly.close()


def person() -> str:
    """Who acts, for the journal."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
