"""One call on its way: what it may carry, how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bailiwick.ids import Json
from bailiwick.service import mcp_tools
from bailiwick.service.mcp_tools import RunningToolCall, ToolRequest, objection, result_of
from bailiwick.service.tokens import TokenAccess
from bailiwick.skills.model import Tool
from bailiwick.skills.tools import find_tool

RUNNER = TokenAccess("runner", "run")


def tool(name: str) -> Tool:
    found = find_tool(name)
    assert found is not None
    return found


def nested(depth: int) -> Json:
    value: Json = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"n": float("nan")}, "finite numbers"),
        ({"n": float("inf")}, "finite numbers"),
        (nested(5_000), "nest values at most"),
        ({"text": "x" * 262_144}, "at most 262,144 characters"),
        ("text", "give an object"),
    ],
    ids=["nan", "inf", "deep", "long", "no object"],
)
def test_params_are_bounded(params: Json, words: str) -> None:
    """They are kept in the journal for good, and rendered by templates."""
    assert words in objection(tool("run_start"), {"workflow": "w", "params": params}, RUNNER)


def test_a_call_that_is_right_meets_no_objection() -> None:
    """The checks must not stand in the way."""
    assert objection(tool("run_start"), {"workflow": "w", "params": nested(10)}, RUNNER) == ""


@pytest.mark.parametrize(
    ("value", "failed"),
    [({"status": "pass"}, False), ({"status": "fail"}, False), ({"status": "error"}, True), ({"error": "x"}, True)],
)
def test_only_a_call_that_gave_nothing_is_an_error(value: dict[str, Json], failed: bool) -> None:
    """A review that says no has done its work."""
    assert result_of(value)["isError"] is failed


def test_a_client_that_takes_no_progress_still_gets_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that nobody reads must not hold the answer back."""
    monkeypatch.setattr(mcp_tools, "FLUSH", 0.01)
    heard: list[str] = []

    async def answer(asked: ToolRequest) -> dict[str, Json]:
        asked.show("a line")
        return {"tiers": []}

    async def never(_progress: float, _line: str) -> None:
        await asyncio.Event().wait()

    async def go() -> dict[str, Json]:
        return await RunningToolCall(answer, never, heard.append).run(tool("tier"), {}, "mcp:x")

    assert asyncio.run(go())["structuredContent"] == {"tiers": []}
    assert heard == ["tier: the client does not take its progress"]


def test_many_lines_keep_the_newest_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chatty tool must not fill our memory for a slow client."""
    monkeypatch.setattr(mcp_tools, "LINES", 3)
    seen: list[str] = []

    async def answer(asked: ToolRequest) -> dict[str, Json]:
        for number in range(1000):
            asked.show(f"{number} {'x' * 1000}")
        return {}

    async def note(_progress: float, line: str) -> None:
        seen.append(line)

    asyncio.run(RunningToolCall(answer, note, print).run(tool("tier"), {}, "mcp:x"))
    assert [line.split()[0] for line in seen] == ["997", "998", "999"]
    assert max(map(len, seen)) == 500


def test_a_cancelled_call_is_told_and_may_put_itself_on_record() -> None:
    """A call that is just cut off leaves children and an open reservation."""
    heard: list[str] = []
    working: Any = None

    async def answer(asked: ToolRequest) -> dict[str, Json]:
        working.set()
        await asked.cancel.wait()
        await asyncio.sleep(0)
        heard.append("recorded")
        return {}

    async def note(_progress: float, _line: str) -> None:
        return

    async def go() -> None:
        nonlocal working
        working = asyncio.Event()
        call = asyncio.ensure_future(RunningToolCall(answer, note, heard.append).run(tool("tier"), {}, "mcp:x"))
        await working.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(go())
    assert heard == ["recorded"]


def test_a_call_that_ignores_its_cancellation_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that is told to end has to end."""
    monkeypatch.setattr(mcp_tools, "GRACE", 0.01)
    ended: list[str] = []

    async def go() -> None:
        working = asyncio.Event()

        async def answer(_asked: ToolRequest) -> dict[str, Json]:
            working.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cut off")
            return {}

        async def note(_progress: float, _line: str) -> None:
            return

        call = asyncio.ensure_future(RunningToolCall(answer, note, print).run(tool("tier"), {}, "mcp:x"))
        await working.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(go())
    assert ended == ["cut off"]
