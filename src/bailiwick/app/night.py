"""The end of the night: from then on nothing new is started."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from bailiwick.app.service import App
from bailiwick.runtime.timing import due_at

NIGHT = "night.until"
MINUTE = 60.0
Sleep = Callable[[float], Awaitable[None]]


def night_end(until: str, now: float, zone: str | None) -> float:
    """The next time that the clock shows `until`, such as 07:00, strictly after now."""
    hour, minute = until.split(":")
    return due_at(f"{int(minute)} {int(hour)} * * *", now, zone)


async def night_is_over(app: App, sleep: Sleep = asyncio.sleep) -> bool:
    """Wait for the end of the night and say so; False at once where `night.until` is not set."""
    until, clock = app.config.get(NIGHT), app.runtime.clock
    if until is None:
        return False
    due = night_end(str(until), clock.now(), app.runtime.zone)
    while clock.now() < due:
        await sleep(min(due - clock.now(), MINUTE))
    app.runtime.on_trouble("", f"past {until} (night.until): nothing new is started")
    return True
