"""MCP on a pipe: whole lines, none too long, an end when the other side leaves."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.service import jsonrpc
from bailiwick.service.handshake import greeting
from bailiwick.service.mcp import build_server
from bailiwick.service.stdio import StdioLines, StdioTransport, serve_pipe
from tests.unit.service.desk import Office, offer

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}  # fmt: skip


@given(st.lists(st.binary(max_size=12).filter(lambda part: b"\n" not in part)), st.integers(1, 9))
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], size: int) -> None:
    """A pipe cuts where it likes."""
    data = b"".join(line + b"\n" for line in lines)
    cut = StdioLines()
    found = [line for at in range(0, len(data), size) for line in cut.feed(data[at : at + size])]
    assert found == [line for line in lines if line.strip()]


@given(st.integers(1, 9))
def test_of_a_line_that_is_too_long_nothing_is_kept(size: int) -> None:
    """One line could fill the memory; the next one is read all the same."""
    data = b"x" * 50 + b"\nshort\n"
    cut = StdioLines(most=10)
    found = [line for at in range(0, len(data), size) for line in cut.feed(data[at : at + size])]
    assert found == [None, b"short"]
    assert len(cut._rest) == 0


def talk(folder: Path, *lines: bytes, answers: int, greets: bool = False) -> list[Any]:
    """What comes back for some lines; the pipe is closed when that many answers came."""
    from_us, to_server = os.pipe()
    from_server, to_us = os.pipe()

    async def serve() -> None:
        wire, stop = StdioTransport(from_us, to_us), asyncio.Event()
        if greets:
            await wire.greet(stop)
        await serve_pipe(build_server(offer(Office(), folder)), wire, stop)

    async def go() -> list[Any]:
        serving = asyncio.ensure_future(serve())
        await asyncio.to_thread(os.write, to_server, b"".join(line + b"\n" for line in lines))
        with os.fdopen(from_server, "rb") as reader:
            found = [json.loads(await asyncio.to_thread(reader.readline)) for _ in range(answers)]
            os.close(to_server)
            await asyncio.wait_for(serving, 600)
        return found

    try:
        return asyncio.run(go())
    finally:
        os.close(from_us)
        os.close(to_us)


def test_a_client_is_served_until_it_closes_the_pipe(tmp_path: Path) -> None:
    """An editor that quits must not leave us behind."""
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "tier", "arguments": {}}}
    found = talk(tmp_path, json.dumps(HELLO).encode(), json.dumps(call).encode(), answers=2)
    assert found[0]["result"]["serverInfo"]["name"] == "bailiwick"
    assert found[1]["result"]["structuredContent"] == {"tiers": [{"model": "tiny", "reachable": True}]}


def test_a_line_that_is_no_message_is_answered_and_the_next_one_read(tmp_path: Path) -> None:
    """A stray print of a wrapper script must not end the session."""
    found = talk(tmp_path, b"Welcome!", b'{"a":' * 3000, b"x" * 4_000_001, json.dumps(HELLO).encode(), answers=4)
    codes = sorted(one["error"]["code"] for one in found if "error" in one)
    assert codes == [-32700, -32700, -32600]
    assert [one["id"] for one in found if "result" in one] == [1]


@pytest.mark.parametrize(
    ("line", "name", "said"),
    [
        (json.dumps([HELLO, HELLO]), None, "batches are not supported"),
        ("[]", None, "batches are not supported"),
        ("7", None, "JSON object"),
        ('{"id": 7, "method": "ping"}', 7, "jsonrpc"),
        ('{"jsonrpc": "2.0", "id": 8, "method": 3}', 8, "'method'"),
        ('{"jsonrpc": "2.0", "id": [1], "method": "ping"}', None, "'id'"),
        ('{"jsonrpc": "2.0", "id": 9}', 9, "not a request"),
    ],
)
def test_what_is_no_single_message_gets_an_error_of_the_protocol(
    tmp_path: Path, line: str, name: int | None, said: str
) -> None:
    """In a sentence, with the id where there is one; not what a library says about its own types."""
    found = talk(tmp_path, json.dumps(HELLO).encode(), line.encode(), answers=2)
    error = next(one for one in found if "error" in one)
    assert (error["id"], error["error"]["code"]) == (name, -32600)
    assert said in error["error"]["message"]
    assert "pydantic" not in error["error"]["message"]


def test_an_id_that_is_in_use_is_answered_with_an_error(tmp_path: Path) -> None:
    """Two open requests of one id: the second would wait for ever. When the first is over the id is free again."""
    slow = {"jsonrpc": "2.0", "id": 5, "method": "tools/call"}
    debug = {**slow, "params": {"name": "debug", "arguments": {"project_root": "/x", "error": "boom"}}}
    tier = {**slow, "params": {"name": "tier", "arguments": {}}}
    back = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}
    lines = [json.dumps(one).encode() for one in (HELLO, debug, tier, back, tier)]
    found = talk(tmp_path, *lines, answers=3)
    assert [one["error"]["code"] for one in found if "error" in one] == [-32600]
    assert any("structuredContent" in one.get("result", {}) for one in found)


@pytest.mark.parametrize(
    "version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "1999-01-01"]
)
def test_the_first_answer_is_the_servers_own(tmp_path: Path, version: str) -> None:
    """It is given before the server is loaded; nobody may notice."""
    hello = {**HELLO, "params": {**HELLO["params"], "protocolVersion": version}}  # type: ignore[dict-item]
    (served,) = talk(tmp_path, json.dumps(hello).encode(), answers=1)
    made = greeting(jsonrpc.RpcMessage(hello))
    assert made is not None
    assert (made[0], json.loads(made[1])) == (1, served)


@pytest.mark.parametrize("more", [{}, {"params": None}, {"params": {"protocolVersion": 3}}, {"method": "ping"}])
def test_what_is_no_plain_greeting_is_left_to_the_server(more: dict[str, Any]) -> None:
    """It knows what to say about it."""
    assert greeting(jsonrpc.RpcMessage({**HELLO, "id": None, **more})) is None
    assert greeting(jsonrpc.RpcMessage({**HELLO, "params": {}, **more})) is None


def test_a_greeted_client_gets_one_answer_and_is_served(tmp_path: Path) -> None:
    """The server hears the greeting too, and what it says to it is not said twice."""
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    found = talk(tmp_path, json.dumps(HELLO).encode(), json.dumps(ping).encode(), answers=2, greets=True)
    assert [one["id"] for one in found] == [1, 2]


def test_a_reader_that_left_ends_the_service(tmp_path: Path) -> None:
    """Where nobody reads, nobody is served."""
    from_us, to_server = os.pipe()
    from_server, to_us = os.pipe()
    os.close(from_server)

    async def go() -> None:
        os.write(to_server, json.dumps(HELLO).encode() + b"\n")
        server = build_server(offer(Office(), tmp_path))
        await asyncio.wait_for(serve_pipe(server, StdioTransport(from_us, to_us), asyncio.Event()), 600)

    asyncio.run(go())
    for handle in (from_us, to_server, to_us):
        os.close(handle)
