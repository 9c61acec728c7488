"""The night: how many agents work, when nothing new starts, and that the machine stays awake."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bailiwick.agents.workplaces import Workplaces
from bailiwick.app.night import NIGHT, night_end
from bailiwick.cli.hosting import Signals
from bailiwick.clock import ManualClock
from bailiwick.runtime.awake import Awake, can_inhibit, inhibitor
from bailiwick.testing.polling import until

HOLDER = """
import asyncio, sys
from pathlib import Path
from bailiwick.agents.workplaces import Workplaces
from bailiwick.runtime.awake import Awake

async def main():
    folder = Path(sys.argv[1])
    async with Workplaces(folder, 2, Awake(None)).taken(asyncio.Event(), lambda text: print(text, flush=True)):
        print("at work", flush=True)
        while not (folder / sys.argv[2]).exists():
            await asyncio.sleep(0.01)

asyncio.run(main())
"""


def _holder(folder: Path, word: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HOLDER, str(folder), word]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_no_more_agents_work_at_once_than_may_whichever_process_they_are_of(tmp_path: Path) -> None:
    """Four runs of four processes, two places: the third waits and says so, and gets a place when one dies."""
    folder = tmp_path / "agents"
    working = [_holder(folder, "end"), _holder(folder, "end")]
    waiting: list[subprocess.Popen[str]] = []
    try:
        assert [_said(one) for one in working] == ["at work", "at work"]
        waiting.append(_holder(folder, "end"))
        assert "2 agents are at work on this machine" in _said(waiting[0])
        working[0].kill()
        assert _said(waiting[0]) == "at work"
        (folder / "end").touch()
        assert working[1].wait(600) == 0
        assert waiting[0].wait(600) == 0
    finally:
        for one in (*working, *waiting):
            one.kill()
            one.communicate()


def test_whoever_waits_for_a_place_can_be_stopped(tmp_path: Path) -> None:
    """`stop` must not have to wait for somebody else's agent."""

    async def history() -> list[bool]:
        places, seen = Workplaces(tmp_path / "agents", 1, Awake(None)), []
        cancel = asyncio.Event()
        async with places.taken(asyncio.Event(), print) as first:
            cancel.set()
            async with places.taken(cancel, print) as second:
                seen += [first, second]
        return seen

    assert asyncio.run(history()) == [True, False]


@pytest.mark.parametrize(("now", "expected"), [("06:59", "07:00"), ("07:00", "31:00"), ("22:15", "31:00")])
def test_the_night_ends_the_next_time_the_clock_says_so(now: str, expected: str) -> None:
    """A process that begins in the evening works until the morning; one that begins at noon until the next one."""
    day = 1_700_006_400.0 - 1_700_006_400.0 % 86400

    def at(text: str) -> float:
        hour, minute = text.split(":")
        return day + int(hour) * 3600 + int(minute) * 60

    assert night_end("7:00", at(now), "UTC") == at(expected)


def test_nothing_new_starts_once_the_night_is_over() -> None:
    """What runs may finish: the worker is drained, not cut off. Without a setting nothing happens."""
    clock, told, drained = ManualClock(), list[str](), list[tuple[str, bool]]()
    worker: Any = SimpleNamespace(drain=lambda why, *, now: drained.append((why, now)))

    def session(UNTIL: str | None) -> Any:  # noqa: N803 - the key's name
        runtime = SimpleNamespace(clock=clock, zone="UTC", on_trouble=lambda _run, text: told.append(text))
        return SimpleNamespace(config={"night.until": UNTIL}, runtime=runtime)

    async def sleep(seconds: float) -> None:
        clock.advance(seconds)

    async def history(until_: str | None) -> None:
        signals = Signals(session(until_))
        signals.worker = worker
        began = clock.now()
        await signals.end_with_night(sleep)
        assert (clock.now() - began > 0) == (until_ is not None)

    asyncio.run(history(None))
    assert drained == []
    asyncio.run(history("07:00"))
    assert drained == [(NIGHT, False)]
    assert "night.until" in told[0]


STAYS = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"


def test_one_inhibitor_is_there_while_any_agent_works(tmp_path: Path) -> None:
    """The first to come starts it, the last to go ends it."""
    mark = tmp_path / "pid"

    async def history() -> None:
        awake = Awake([sys.executable, "-c", STAYS, str(mark)])
        async with awake.held():
            async with awake.held():
                await asyncio.to_thread(until, lambda: mark.exists() and bool(mark.read_text()))
            os.kill(int(mark.read_text()), 0)
        until(lambda: not Path(f"/proc/{mark.read_text()}").exists())

    asyncio.run(history())


def test_the_inhibitor_is_what_the_machine_has() -> None:
    """Linux with systemd, or macOS; else there is none, and doctor says so."""
    mac = inhibitor(7, lambda name: name if name == "caffeinate" else None)
    linux = inhibitor(7, lambda name: None if name == "caffeinate" else name)
    assert (mac or [])[-1] == "7"
    assert {"--what=sleep:idle", "--pid=7"} <= set(linux or [])
    assert inhibitor(7, lambda _name: None) is None


def test_an_inhibitor_that_is_refused_is_none(tmp_path: Path) -> None:
    """A container has the program and no service behind it: doctor must not say that all is well."""
    for name, code in (("good", 0), ("bad", 1)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    assert can_inhibit([str(tmp_path / "good"), "--what=sleep", "tail", "-f", "/dev/null"])
    assert not can_inhibit([str(tmp_path / "bad"), "--what=sleep", "tail", "-f", "/dev/null"])
    assert not can_inhibit([str(tmp_path / "none"), "tail"])
