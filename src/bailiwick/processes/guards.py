"""Guards of other processes: the next owner of a run finds them by name and has them end what they guard."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path

from bailiwick.ids import digest
from bailiwick.processes.spawner import frame

RUN_MARK, EFFECT_MARK = "BAILIWICK_RUN", "BAILIWICK_EFFECT_KEY"
_SOCKETS = Path("/proc/net/unix")
PATIENCE = 10.0
"""Seconds beyond the grace that a guard gets; it may have to wait for its turn on a busy machine."""


def guard_name(env: Mapping[str, str]) -> str:
    """The name under which the guard of a process with this environment listens; its pid is appended."""
    return f"bailiwick/{os.getuid()}/{_part(env.get(RUN_MARK))}/{_part(env.get(EFFECT_MARK))}"


def _part(value: str | None) -> str:
    return digest(value)[:24] if value else "-"


def find_guards(marks: Mapping[str, str]) -> dict[int, str]:
    """The guards on this host, by pid, whose process was started with all of these marks; of no other ones we know."""
    if not marks.keys() <= {RUN_MARK, EFFECT_MARK} or not marks:
        return {}
    run, key = (_part(marks[name]) if name in marks else "[^/]*" for name in (RUN_MARK, EFFECT_MARK))
    name = re.compile(rf" @(bailiwick/{os.getuid()}/{run}/{key}/(\d+))$", re.MULTILINE)
    return {int(pid): found for found, pid in name.findall(_listed())}


def _listed() -> str:
    try:
        return _SOCKETS.read_text("utf-8", errors="replace")
    except OSError:
        return ""


async def end_guarded(marks: Mapping[str, str], grace: float) -> list[int]:
    """Have the guards with these marks end everything they guard; gives the pids of those that could not in time."""
    found = find_guards(marks)
    ended = await asyncio.gather(*(_end(name, grace) for name in found.values()))
    return [pid for pid, is_ended in zip(found, ended, strict=True) if not is_ended]


async def _end(name: str, grace: float) -> bool:
    """Whether the guard closed its end, which it does when nothing that it guards is left."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line, contextlib.suppress(OSError):
        line.setblocking(False)
        line.connect(f"\0{name}".encode())
        line.send(frame(b"T", int(grace * 1000)))
        try:
            async with asyncio.timeout(grace + PATIENCE):
                await loop.sock_recv(line, 1)
        except TimeoutError:
            return False
    return True
