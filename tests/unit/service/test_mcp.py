"""The MCP server as the official client meets it, in the old protocol and in the new one, in process and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bailiwick.service import mcp
from bailiwick.service.mcp import build_server
from bailiwick.skills.tools import TABLE
from tests.unit.service.desk import Office, client, mcp_part, offer, parts, running

ERAS = ("legacy", "2026-07-28")
Use = Callable[[Any, Office], Awaitable[None]]


def connected(folder: Path, use: Use, mode: str) -> Office:
    """Let the client use the server without anything between them."""

    async def go() -> Office:
        from mcp import Client

        office = Office()
        async with Client(build_server(offer(office, folder)), mode=mode) as one:
            await asyncio.wait_for(use(one, office), 600)
        return office

    return asyncio.run(go())


def over_http(folder: Path, use: Use, mode: str, token: str) -> Office:
    """Let the client use the server through a socket, with a token."""

    async def go() -> Office:
        office = Office()
        async with running(parts(mcp_part(office, folder))) as url, client(url, token, mode) as one:
            await asyncio.wait_for(use(one, office), 600)
        return office

    return asyncio.run(go())


@pytest.mark.parametrize("mode", ERAS)
def test_every_tool_says_what_it_takes_gives_and_may_do(tmp_path: Path, mode: str) -> None:
    """A client decides by title, schemas and hints; a tool that lacks one is called wrongly or not at all."""

    async def use(one: Any, _office: Office) -> None:
        found = {tool.name: tool for tool in (await one.list_tools()).tools}
        assert set(found) == {tool.name for tool in TABLE}
        for tool in found.values():
            assert tool.title
            assert tool.description
            assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
            hints = tool.annotations.model_dump(exclude={"title"})
            assert all(isinstance(value, bool) for value in hints.values()), tool.name

    connected(tmp_path, use, mode)


@pytest.mark.parametrize("mode", ERAS)
def test_a_result_comes_as_data_and_as_text(tmp_path: Path, mode: str) -> None:
    """Older clients read only text."""

    async def use(one: Any, _office: Office) -> None:
        result = await one.call_tool("tier", {})
        assert not result.is_error
        assert result.structured_content == {"tiers": [{"model": "tiny", "reachable": True}]}
        assert result.content[0].text == '{"tiers":[{"model":"tiny","reachable":true}]}'

    connected(tmp_path, use, mode)


@pytest.mark.parametrize("mode", ERAS)
def test_progress_arrives_in_order_before_the_result(tmp_path: Path, mode: str) -> None:
    """A person who waits for minutes wants to see that something goes on."""
    seen: list[tuple[float, str]] = []

    async def note(progress: float, _total: float | None, message: str | None) -> None:
        seen.append((progress, message or ""))

    async def use(one: Any, _office: Office) -> None:
        result = await one.call_tool("brain_query", {"query": "x"}, progress_callback=note)
        assert result.structured_content == {"notes": [{"id": "n1"}]}

    connected(tmp_path, use, mode)
    assert seen == [(1.0, "looking"), (2.0, "found one")]


def test_more_calls_than_we_can_bear_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call may start processes; a client in a loop must not start a thousand."""
    monkeypatch.setattr(mcp, "CALLS", 1)

    async def use(one: Any, office: Office) -> None:
        first = asyncio.ensure_future(one.call_tool("debug", {"project_root": "/x", "error": "boom"}))
        await office.working.wait()
        assert "1 calls are open already" in (await one.call_tool("tier", {})).content[0].text
        office.asked[0].cancel.set()
        await first
        assert not (await one.call_tool("tier", {})).is_error

    connected(tmp_path, use, "legacy")


@pytest.mark.parametrize("mode", ERAS)
def test_a_client_that_gives_up_cancels_its_call(tmp_path: Path, mode: str) -> None:
    """Work that nobody waits for must end, and be put on record as cancelled."""

    async def use(one: Any, office: Office) -> None:
        call = asyncio.ensure_future(one.call_tool("debug", {"project_root": "/x", "error": "boom"}))
        await office.working.wait()
        call.cancel()
        await office.stopped.wait()

    office = connected(tmp_path, use, mode)
    assert office.asked[0].cancel.is_set()


WRONG: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("review", {"project_root": "/x"}, "'files' is missing"),
    ("review", {"project_root": "/x", "files": "a.py"}, "list of paths"),
    ("tier", {"nope": 1}, "has no argument 'nope'"),
    ("debug", {"project_root": 7, "error": "x"}, "give a path"),
    ("session_log", {"session_id": "../../etc/passwd"}, "use letters"),
    ("session_log", {"session_id": "s1"}, "there is no log of this session"),
    ("run_start", {"workflow": "w", "params": {"a": "x" * 300_000}}, "at most 262,144 characters"),
)


@pytest.mark.parametrize("mode", ERAS)
def test_what_is_wrong_with_a_call_is_a_tool_error_that_says_what_to_change(tmp_path: Path, mode: str) -> None:
    """A model can correct a result it reads; a protocol error only breaks its client."""

    async def use(one: Any, _office: Office) -> None:
        for tool, arguments, words in WRONG:
            result = await one.call_tool(tool, arguments)
            assert result.is_error, tool
            assert words in result.content[0].text

    connected(tmp_path, use, mode)


def test_our_own_mistake_is_told_without_its_inside(tmp_path: Path) -> None:
    """A trace would show paths and values to whoever holds a token; the operator needs them, the client does not."""

    async def use(one: Any, _office: Office) -> None:
        result = await one.call_tool("spec", {"project_root": "/x", "requirements": "y"})
        assert result.is_error
        assert "internal error" in result.content[0].text
        assert "/a/private/path" not in result.content[0].text

    office = connected(tmp_path, use, "legacy")
    assert any("RuntimeError: a mistake of ours" in line for line in office.troubles)


@pytest.mark.parametrize("mode", ERAS)
def test_a_token_that_may_read_sees_and_calls_only_what_reads(tmp_path: Path, mode: str) -> None:
    """A token for a dashboard must not be able to spend money."""
    reading = {tool.name for tool in TABLE if tool.scope == "read"}

    async def use(one: Any, office: Office) -> None:
        assert {tool.name for tool in (await one.list_tools()).tools} == reading
        refused = await one.call_tool("debug", {"project_root": "/x", "error": "boom"})
        assert refused.is_error
        assert "needs a token with scope run" in refused.content[0].text
        assert office.asked == []

    over_http(tmp_path, use, mode, "reading")


@pytest.mark.parametrize("mode", ERAS)
def test_who_called_is_told_by_its_name(tmp_path: Path, mode: str) -> None:
    """`started_by` has to name who is to be asked about a run."""

    async def use(one: Any, _office: Office) -> None:
        await one.call_tool("tier", {})

    assert connected(tmp_path, use, mode).asked[0].by == "mcp:mcp"


@pytest.mark.parametrize("mode", ERAS)
def test_progress_and_cancellation_reach_over_http(tmp_path: Path, mode: str) -> None:
    """Between client and server are streams that could hold either back."""
    seen: list[str] = []

    async def note(_progress: float, _total: float | None, message: str | None) -> None:
        seen.append(message or "")

    async def use(one: Any, office: Office) -> None:
        await one.call_tool("brain_query", {"query": "x"}, progress_callback=note)
        call = asyncio.ensure_future(one.call_tool("debug", {"project_root": "/x", "error": "boom"}))
        await office.working.wait()
        call.cancel()
        await office.stopped.wait()

    office = over_http(tmp_path, use, mode, "running")
    assert seen == ["looking", "found one"]
    assert office.asked[1].cancel.is_set()
    assert office.asked[0].by == "mcp:mcp@runner"


@pytest.mark.parametrize("mode", ERAS)
def test_disciplines_are_prompts_and_resources(tmp_path: Path, mode: str) -> None:
    """A person can use a discipline in their own chat without a routed call."""

    async def use(one: Any, _office: Office) -> None:
        assert [prompt.name for prompt in (await one.list_prompts()).prompts] == ["review"]
        got = await one.get_prompt("review", {"task": "Look at a.py"})
        assert got.messages[0].content.text == "# Review\n\nName the line.\n\nLook at a.py"
        assert [str(entry.uri) for entry in (await one.list_resources()).resources] == ["bailiwick://skills/review"]
        read = await one.read_resource("bailiwick://skills/review")
        assert read.contents[0].text == "# Review\n\nName the line."
        assert len((await one.list_resource_templates()).resource_templates) == 4

    connected(tmp_path, use, mode)


@pytest.mark.parametrize("mode", ERAS)
def test_unknown_names_are_protocol_errors_with_the_nearest_one(tmp_path: Path, mode: str) -> None:
    """The protocol wants an error here, and a typo should be found at once."""
    from mcp.shared.exceptions import MCPError

    async def use(one: Any, _office: Office) -> None:
        with pytest.raises(MCPError, match="did you mean review"):
            await one.call_tool("reviw", {})
        with pytest.raises(MCPError, match="Unknown prompt"):
            await one.get_prompt("nope")
        with pytest.raises(MCPError, match="no such resource"):
            await one.read_resource("bailiwick://skills/nope")

    connected(tmp_path, use, mode)


def test_a_session_of_another_token_can_t_be_used(tmp_path: Path) -> None:
    """A session id that leaks must not give a reader the stream of somebody who may run."""
    import httpx2

    first = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    accept = {"Accept": "application/json, text/event-stream"}

    async def go() -> int:
        async with running(parts(mcp_part(Office(), tmp_path))) as url, httpx2.AsyncClient(headers=accept) as http:
            begun = await http.post(f"{url}/mcp", json=first, headers={"Authorization": "Bearer running"})
            headers = {"Authorization": "Bearer reading", "Mcp-Session-Id": begun.headers["mcp-session-id"]}
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            return (await http.post(f"{url}/mcp", json=ping, headers=headers)).status_code

    assert asyncio.run(go()) == 404


_CALL = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tier", "arguments": %s}}'
BAD = {
    "deep": _CALL % (b'{"a":' * 5000 + b"1" + b"}" * 5000),
    "not text": b"\xff\xfe",
    "batch": b"[]",
    "not a number": _CALL % b"[NaN]",
    "long number": b"9" * 100_000,
}


def test_over_http_too_batches_and_open_ids_get_errors_of_the_protocol(tmp_path: Path) -> None:
    """The answer is JSON-RPC, and who asks twice under one id hears that instead of waiting."""
    import httpx2

    headers = {"Authorization": "Bearer ruling", "Accept": "application/json, text/event-stream"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call"}
    slow = {**call, "params": {"name": "debug", "arguments": {"project_root": "/x", "error": "boom"}}}
    office = Office()

    async def go() -> tuple[Any, Any]:
        async with running(parts(mcp_part(office, tmp_path))) as url, httpx2.AsyncClient(timeout=600) as web:
            batch = await web.post(f"{url}/mcp", json=[hello], headers=headers)
            first = await web.post(f"{url}/mcp", json=hello, headers=headers)
            inside = {**headers, "mcp-session-id": first.headers["mcp-session-id"]}
            open_one = asyncio.ensure_future(web.post(f"{url}/mcp", json=slow, headers=inside))
            await office.working.wait()
            second = await web.post(f"{url}/mcp", json=slow, headers=inside)
            open_one.cancel()
            return batch, second

    for reply in asyncio.run(go()):
        assert reply.status_code == 400
        assert reply.json()["error"]["code"] == -32600


def test_no_message_breaks_the_server(tmp_path: Path) -> None:
    """Whoever holds a token can send anything; the next request has to be answered all the same."""
    import httpx2

    headers = {
        "Authorization": "Bearer running",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    answers: dict[str, int] = {}

    async def go() -> None:
        async with running(parts(mcp_part(Office(), tmp_path))) as url:
            async with httpx2.AsyncClient(headers=headers, timeout=600) as http:
                for name, body in BAD.items():
                    for version in ("2025-06-18", "2026-07-28"):
                        sent = await http.post(f"{url}/mcp", content=body, headers={"Mcp-Protocol-Version": version})
                        answers[f"{name} {version}"] = sent.status_code
            async with client(url, "running") as one:
                assert not (await one.call_tool("tier", {})).is_error

    asyncio.run(go())
    assert {name: status for name, status in answers.items() if not 400 <= status < 500} == {}
