"""The only owner of tasks: what is started here is awaited here, and a task that breaks is never lost in silence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Supervisor:
    """Starts tasks and collects them. `on_crash` hears of every exception that a task did not handle."""

    def __init__(self, on_crash: Callable[[str, BaseException], None]) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_crash = on_crash

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task; it is forgotten when it ends."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_crash(task.get_name(), error)

    async def close(self) -> None:
        """Cancel what is left and wait for it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def wait_set(event: asyncio.Event, timeout: float | None) -> bool:
    """Wait until the event is set or the time is over; clears it. True when it was set."""
    if not event.is_set() and (timeout is None or timeout > 0):
        try:
            async with asyncio.timeout(timeout):
                await event.wait()
        except TimeoutError:
            return False
    was = event.is_set()
    event.clear()
    return was
