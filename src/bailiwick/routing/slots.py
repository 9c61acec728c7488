"""Turns at an endpoint: so many calls at once as it takes, over all processes that share the store.

Within a process calls for the model that is loaded go first, so that a server does not swap models for each call; but
no call is passed over more than a few times. Between processes the store's slots decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain

from bailiwick.routing.endpoints import EndpointAddress

FAIRNESS = 4
"""How often a waiting call may be passed over by calls for the loaded model."""
Hold = Callable[[str, int], AbstractAsyncContextManager[None]]
"""Holds one of so many slots of an endpoint."""


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
    """Gives out turns at endpoints. One for a process; `hold` is the store's, shared by all who share the store."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._queues: dict[str, _Queue] = {}

    @asynccontextmanager
    async def turn(self, place: EndpointAddress, model: str, loaded: bool = False) -> AsyncIterator[None]:
        """Hold a slot of an endpoint; waits for one. `loaded`: a probe has found the model in memory."""
        queue = self._queues.setdefault(place.key, _Queue(place.concurrency))
        await _enter(queue, model, loaded=loaded)
        try:
            async with self._hold(place.key, place.concurrency):
                queue.loaded = model
                yield
        finally:
            _leave(queue)

    def waiting(self, place: EndpointAddress) -> int:
        """How many calls of this process wait for a turn there."""
        queue = self._queues.get(place.key)
        return len(queue.waiting) if queue else 0


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
