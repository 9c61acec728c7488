"""What a process is given to read, what is seen of its bytes, and who else may end it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from bailiwick.processes.command import Command, Exit, Why
from bailiwick.processes.proc import run_process


def _sh(script: str, cwd: Path, stdin: bytes = b"") -> Command:
    return Command(("sh", "-c", script), {"PATH": os.environ["PATH"]}, cwd, stdin=stdin)


def _run(command: Command) -> Exit:
    async def go() -> Exit:
        return await run_process(command, cancel=asyncio.Event())

    return asyncio.run(go())


@pytest.mark.parametrize("size", [0, 1, 65_536, 1_000_000])
def test_what_is_fed_arrives_whole_and_ends(tmp_path: Path, size: int) -> None:
    """`cat` ends only when its input does."""
    data = os.urandom(size)
    end = _run(_sh("cat", tmp_path, data))
    assert (end.stdout, end.why) == (data, "exited")


def test_a_process_that_never_reads_can_be_ended(tmp_path: Path) -> None:
    """What is left to write is dropped with it."""

    async def go() -> Exit:
        alarm: asyncio.Future[Why] = asyncio.get_running_loop().create_future()
        command = _sh("echo ready; exec sleep 600", tmp_path, b"x" * 1_000_000)
        return await run_process(
            command, cancel=asyncio.Event(), alarm=alarm, on_data=lambda _stream, _data: alarm.set_result("budget")
        )

    end = asyncio.run(go())
    assert (end.why, end.code, end.timed_out, end.cancelled) == ("budget", -15, False, False)


def test_every_byte_is_seen_with_its_stream(tmp_path: Path) -> None:
    """Lines for people are thinned out; this is for whoever parses."""
    seen = {"stdout": b"", "stderr": b""}

    def on_data(stream: str, data: bytes) -> None:
        seen[stream] += data

    async def go() -> None:
        command = _sh(r"seq 50000; printf '\377\0' >&2", tmp_path)
        await run_process(command, cancel=asyncio.Event(), on_data=on_data)

    asyncio.run(go())
    assert seen["stdout"] == b"".join(b"%d\n" % number for number in range(1, 50_001))
    assert seen["stderr"] == b"\xff\0"
