"""Turns at an endpoint: so many calls at once as it takes, over all processes of this machine.

Within a process calls for the model that is loaded go first, so that a server does not swap models for each call; but
no call is passed over more than a few times. Between processes a lock on a file decides: a death frees it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from bailiwick.config.paths import make_private
from bailiwick.config.service import Config
from bailiwick.errors import InternalBug, NotReady
from bailiwick.errors import Place as Where
from bailiwick.ids import digest
from bailiwick.locks import first_free
from bailiwick.routing.endpoints import EndpointAddress

FAIRNESS = 4
"""How often a waiting call may be passed over by calls for the loaded model."""
NO_LOCK = "BW286"


@dataclass(slots=True, eq=False)
class _Waiter:
    """A call that waits for its turn within this process."""

    model: str
    turn: asyncio.Future[None]
    warm: bool = False
    passed: int = 0


@dataclass(slots=True)
class _Queue:
    """The calls of this process at one endpoint; `loaded` is the model that is in memory, as far as we know."""

    free: int
    loaded: str = ""
    waiting: list[_Waiter] = field(default_factory=list)


class Slots:
    """Gives out turns at endpoints. One for a process; its locks are shared with every other process of the person."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._queues: dict[str, _Queue] = {}

    @classmethod
    def of(cls, config: Config) -> Slots:
        """The slots of a state directory: whoever shares it shares them."""
        return cls(config.paths.state / "endpoints")

    @asynccontextmanager
    async def turn(self, place: EndpointAddress, model: str, loaded: bool = False) -> AsyncIterator[None]:
        """Hold a slot of an endpoint; waits for one. `loaded`: a probe has found the model in memory."""
        queue = self._queues.setdefault(place.key, _Queue(place.concurrency))
        await _enter(queue, model, loaded=loaded)
        try:
            handle = await self._lock(place)
            try:
                queue.loaded = model
                yield
            finally:
                os.close(handle)
        finally:
            _leave(queue)

    def waiting(self, place: EndpointAddress) -> int:
        """How many calls of this process wait for a turn there."""
        queue = self._queues.get(place.key)
        return len(queue.waiting) if queue else 0

    async def _lock(self, place: EndpointAddress) -> int:
        """A descriptor that holds one of the endpoint's slots.

        Who waits for a slot holds the turnstile, so that a busy process can't take each slot that it frees itself.
        """
        folder = make_private(self._folder)
        name = digest(place.key)[:16]
        turnstile = await _first_free([folder / f"{name}.next"])
        try:
            return await _first_free([folder / f"{name}.{number}" for number in range(place.concurrency)])
        finally:
            os.close(turnstile)


async def _enter(queue: _Queue, model: str, *, loaded: bool) -> None:
    """Take a turn within the process; a call that is cancelled meanwhile leaves no trace."""
    if queue.free > 0 and not queue.waiting:
        queue.free -= 1
        return
    waiter = _Waiter(model, asyncio.get_running_loop().create_future(), loaded)
    queue.waiting.append(waiter)
    try:
        await waiter.turn
    except asyncio.CancelledError:
        if waiter in queue.waiting:
            queue.waiting.remove(waiter)
        else:  # it was given the turn in the same moment: others must not wait for it
            _leave(queue)
        raise


def _leave(queue: _Queue) -> None:
    """Give the turn back: to the next call, if there is one."""
    queue.free += 1
    if queue.waiting:
        chosen = queue.waiting.pop(_next(queue))
        queue.free -= 1
        chosen.turn.set_result(None)


def _next(queue: _Queue) -> int:
    """The place in the queue of the call that goes next, counted against those that it passes."""
    numbered = list(enumerate(queue.waiting))
    patient = (number for number, each in numbered if each.passed >= FAIRNESS)
    ready = (number for number, each in numbered if each.model == queue.loaded)
    warm = (number for number, each in numbered if each.warm)
    chosen = next(chain(patient, ready, warm), 0)
    for each in queue.waiting[:chosen]:
        each.passed += 1
    return chosen


async def _first_free(files: list[Path]) -> int:
    """A descriptor with the lock of the first file that nobody holds; waits while all are held."""
    try:
        taken = await first_free(files)
    except OSError as error:
        raise NotReady(
            f"the lock of an endpoint can't be made: {error.strerror}",
            place=Where(str(files[0])),
            hint="free some space, or make the state directory writable",
            code=NO_LOCK,
        ) from error
    if taken is None:
        raise InternalBug("a lock was released that is never released")
    return taken
