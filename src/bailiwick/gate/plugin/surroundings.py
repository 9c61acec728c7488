"""Asks for something in other surroundings: another thread, time zone, folder, date, after many times; sent as text."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from typing import Any

PATIENCE = 5.0
"""Seconds for an answer from another thread."""
MANY = 120
A_WHILE = 0.15
"""So often something is asked for, and for so many seconds at most, to see whether the answer stays the same."""
ZONE = "ELSE-05:30"
LATER = 400 * 86_400
CLOCKS = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")


def install_clocks() -> Any:
    """Let the clocks of `time` be set ahead from now on; gives what does it, in seconds."""
    ahead = [0]

    def shifted(real: Any, scale: int) -> Any:
        return lambda: real() + ahead[0] * scale

    for name in CLOCKS:
        setattr(time, name, shifted(getattr(time, name), 10**9 if name.endswith("_ns") else 1))

    def set_ahead(seconds: int) -> None:
        ahead[0] = seconds

    return set_ahead


def in_surroundings(ask: Any, set_ahead: Any, often: bool) -> dict[str, Any]:
    """The answers in another thread, zone and folder, a year later, `often` after many; none that can't be had."""
    found = {"thread": _in_thread(ask), "zone": _in_zone(ask), "cwd": _in_folder(ask)}
    set_ahead(LATER)
    try:
        found["later"] = ask()
    finally:
        set_ahead(0)
    if often:
        found["often"] = _in_a_while(ask)
    return {where: result for where, result in found.items() if result not in (None, ["unwritable"])}


def _in_a_while(ask: Any) -> Any:
    """The first result that is another one, or the last: what counts its calls gives itself away."""
    first = last = ask()
    began = time.monotonic()
    for _ in range(MANY):
        if last != first or time.monotonic() - began > A_WHILE:
            break
        last = ask()
    return last


def _in_thread(ask: Any) -> Any:
    made: list[Any] = []
    thread = threading.Thread(target=lambda: made.append(ask()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return made[0] if made else None


def _in_zone(ask: Any) -> Any:
    before = os.environ.get("TZ")
    os.environ["TZ"] = ZONE
    time.tzset()
    try:
        return ask()
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


def _in_folder(ask: Any) -> Any:
    before = os.getcwd()  # noqa: PTH109 - pathlib may be the product's own
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    try:
        return ask()
    finally:
        os.chdir(before)
