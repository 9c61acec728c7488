"""How many agents work at once on this machine, over all processes and runs; it stays awake while one does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bailiwick.config.paths import make_private
from bailiwick.config.service import Config
from bailiwick.errors import NotReady, Place
from bailiwick.locks import first_free
from bailiwick.runtime.awake import Awake

NO_LOCK = "BW286"


@dataclass(slots=True)
class Workplaces:
    """Gives out `most` places. Between processes a lock on a file decides: a death frees it."""

    folder: Path
    most: int
    awake: Awake

    @classmethod
    def of(cls, config: Config) -> Workplaces:
        """The places of a state directory: whoever shares it shares them."""
        awake = Awake.here(wanted=bool(config.get("night.keep_awake")))
        return cls(config.paths.state / "agents", int(config.get("night.agents")), awake)

    @asynccontextmanager
    async def taken(self, cancel: asyncio.Event, show: Callable[[str], None]) -> AsyncIterator[bool]:
        """Hold a place, and keep the machine awake; waits for one, and gives False where `cancel` came first."""
        handle = await self._place(cancel, show)
        if handle is None:
            yield False
            return
        try:
            async with self.awake.held():
                yield True
        finally:
            os.close(handle)

    async def _place(self, cancel: asyncio.Event, show: Callable[[str], None]) -> int | None:
        told = False

        def give_up() -> bool:
            nonlocal told
            if not told:
                told = True
                show(f"waits: {self.most} agents are at work on this machine (night.agents)")
            return cancel.is_set()

        try:
            folder = make_private(self.folder)
            return await first_free([folder / f"{number}.lock" for number in range(self.most)], give_up)
        except OSError as error:
            raise NotReady(
                f"the lock of an agent's place can't be made: {error.strerror}",
                place=Place(str(self.folder)),
                hint="free some space, or make the state directory writable",
                code=NO_LOCK,
            ) from error
