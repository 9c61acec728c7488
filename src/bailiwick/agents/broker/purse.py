"""The money of one turn: what is spent, what running requests may still cost, and the requests that wait for it."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

_ROUNDING = 1e-9


class BudgetHeld(Exception):
    """What is left is held by other requests of the turn, and they did not end in time."""


@dataclass(slots=True, eq=False)
class Hold:
    """Dollars that are set aside for one request."""

    amount: float


@dataclass(slots=True, eq=False)
class _Waiting:
    full: float
    least: float
    ready: asyncio.Future[Hold | None]


@dataclass(slots=True)
class Purse:
    """Admits a request only while everything that is spent or set aside, and the request at its worst, fit the limit.

    Requests are admitted in the order in which they came. Where one does not fit, it waits for those that are running;
    where none is, it is given what is left, or nothing. `limit` None: nothing is ever too dear.
    """

    limit: float | None
    spent: float = 0.0
    _holds: set[Hold] = field(default_factory=set, repr=False)
    _queue: deque[_Waiting] = field(default_factory=deque, repr=False)

    @property
    def reserved(self) -> float:
        """What is set aside for requests that are running."""
        return sum(hold.amount for hold in self._holds)

    @property
    def left(self) -> float:
        """What is neither spent nor set aside."""
        return float("inf") if self.limit is None else self.limit - self.spent - self.reserved

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to be spent or set aside, now or when what is running ends."""
        return self.limit is not None and self.spent >= self.limit

    async def take(self, full: float, least: float, seconds: float) -> Hold | None:
        """Set aside `full` dollars, or between `least` and that; None where not even that is left, now or later.

        Raises `BudgetHeld` where others hold what is left for more than `seconds`.
        """
        waiting = _Waiting(full, least, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._serve()
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(waiting.ready)
        except TimeoutError:
            return self._late(waiting)
        except asyncio.CancelledError:
            self._give_up(waiting)
            raise

    def settle(self, hold: Hold, usd: float) -> None:
        """A request is over and cost this much: the rest is free again."""
        self._holds.discard(hold)
        self.spent += usd
        self._serve()

    def _late(self, waiting: _Waiting) -> Hold | None:
        """Who waited long enough is given what is left at this moment."""
        if waiting.ready.done():
            return waiting.ready.result()
        self._queue.remove(waiting)
        if waiting.least > self.left + _ROUNDING:
            self._serve()
            raise BudgetHeld
        hold = self._hold(min(waiting.full, self.left))
        self._serve()
        return hold

    def _give_up(self, waiting: _Waiting) -> None:
        """Who is gone needs nothing, also if it was just given."""
        if not waiting.ready.done():
            self._queue.remove(waiting)
        elif (hold := waiting.ready.result()) is not None:
            self._holds.discard(hold)
        self._serve()

    def _hold(self, amount: float) -> Hold:
        hold = Hold(amount)
        self._holds.add(hold)
        return hold

    def _serve(self) -> None:
        while self._queue:
            first = self._queue[0]
            if first.full <= self.left + _ROUNDING:
                first.ready.set_result(self._hold(first.full))
            elif self._holds:
                return
            else:
                fits = first.least <= self.left + _ROUNDING
                first.ready.set_result(self._hold(self.left) if fits else None)
            self._queue.popleft()
