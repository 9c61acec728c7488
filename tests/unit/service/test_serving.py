"""The web server's manners: slow heads, an end in order, what it prints."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bailiwick.app.night import NIGHT, night_is_over
from bailiwick.clock import ManualClock
from bailiwick.service import serving
from bailiwick.service.ports import listen
from bailiwick.service.serving import client_snippet, url_of
from tests.unit.service.desk import Office, mcp_part, parts, running
from tests.unit.service.test_app import THING

HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What still comes until the other side ends the connection, rudely or not."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


def test_a_client_that_does_not_finish_the_head_of_a_request_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte a minute on a thousand connections keeps everybody else out."""
    monkeypatch.setattr(serving, "HEADERS", 0.05)

    async def go() -> list[bytes]:
        ends = []
        async with running(parts(THING)) as url:
            for before, half in ((b"", b""), (b"", b"GET /heal"), (HEAD, b"GET /heal")):
                reader, writer = await connect(url)
                writer.write(before)
                if before:
                    await reader.readuntil(b"}")
                writer.write(half)
                ends.append(await asyncio.wait_for(rest_of(reader), 600))
                writer.close()
        return ends

    assert asyncio.run(go()) == [b"", b"", b""]


def test_a_connection_that_is_used_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is on heads, not on clients that think between two requests."""
    monkeypatch.setattr(serving, "HEADERS", 0.05)

    async def go() -> int:
        async with running(parts(THING)) as url:
            reader, writer = await connect(url)
            answers = 0
            for _ in range(3):
                writer.write(HEAD)
                await reader.readuntil(b"\r\n\r\n")
                answers += (await reader.readexactly(16)) == b'{"status": "ok"}'
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(reader.read(1), 0.1)
            writer.close()
        return answers

    assert asyncio.run(go()) == 3


def test_a_call_that_is_open_when_the_service_ends_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its children have to be ended, and it has to be put on record."""
    monkeypatch.setattr(serving, "DRAIN", 0)
    office = Office()
    prefix = "io.modelcontextprotocol"
    meta: dict[str, object] = {f"{prefix}/protocolVersion": "2026-07-28", f"{prefix}/clientCapabilities": {}}
    params = {"name": "debug", "arguments": {"project_root": "/x", "error": "boom"}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    lines = (
        "POST /mcp HTTP/1.1",
        "Host: 127.0.0.1",
        "Authorization: Bearer running",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "Mcp-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: debug",
        f"Content-Length: {len(body)}",
        "",
        "",
    )

    async def go() -> None:
        async with running(parts(mcp_part(office, tmp_path))) as url:
            reader, writer = await connect(url)
            writer.write("\r\n".join(lines).encode() + body)
            await asyncio.wait_for(office.working.wait(), 600)
        await asyncio.wait_for(office.stopped.wait(), 600)
        writer.close()
        await rest_of(reader)

    asyncio.run(go())
    assert office.asked[0].cancel.is_set()


def test_a_large_body_is_answered_and_not_cut_off() -> None:
    """Ten megabytes: the client gets 413 with what to change, whatever of it was on its way."""
    import http.client

    def send(url: str) -> tuple[int, bytes]:
        link = http.client.HTTPConnection(url.removeprefix("http://"), timeout=600)
        link.request("POST", "/thing", b"x" * 10_000_000, {"Authorization": "Bearer reading"})
        reply = link.getresponse()
        body = reply.read()
        link.close()
        return reply.status, body

    async def go() -> tuple[int, bytes]:
        async with running(parts(THING)) as url:
            return await asyncio.to_thread(send, url)

    status, body = asyncio.run(go())
    assert status == 413
    assert b"name files by their path" in body


class _Worker:
    """Walks nothing, until it is told to leave."""

    def __init__(self, *_: object) -> None:
        self.draining = ""
        self.drained: list[tuple[str, bool]] = []
        self.left = asyncio.Event()

    def drain(self, why: str, *, now: bool) -> None:
        self.draining = why
        self.drained.append((why, now))
        self.left.set()

    async def run(self, _finished: object) -> None:
        await self.left.wait()


class _Web:
    """A web server that answers nobody."""

    should_exit = force_exit = False

    def __init__(self, until: asyncio.Event) -> None:
        self._until = until

    async def serve(self, sockets: object) -> None:
        await self._until.wait()


def test_a_service_starts_no_work_after_the_night_and_keeps_to_retention(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a worker does; clients are answered as before, and a signal still ends what runs at once."""
    told: list[str] = []

    async def go() -> tuple[str, list[tuple[str, bool]]]:
        clock = ManualClock()
        runtime = SimpleNamespace(clock=clock, zone="UTC", on_trouble=lambda _run, text: told.append(text))
        session: Any = SimpleNamespace(config={"night.until": "07:00"}, runtime=runtime)

        async def pass_time(_seconds: float) -> None:
            clock.advance(3600)

        async def keep(_session: object) -> None:
            told.append("retention")

        monkeypatch.setattr(serving, "Worker", _Worker)
        monkeypatch.setattr(serving, "keep_to_retention", keep)
        monkeypatch.setattr(serving, "night_is_over", lambda session: night_is_over(session, pass_time))
        over = asyncio.Event()
        keeper = serving.ServiceRunner(session, _Web(over), 1)
        worker: Any = keeper._worker
        serves = asyncio.ensure_future(keeper.run(cast("socket.socket", None)))
        await worker.left.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not serves.done()
        keeper.stop("SIGTERM")
        over.set()
        return await serves, worker.drained

    assert asyncio.run(go()) == ("SIGTERM", [(NIGHT, False), ("SIGTERM", True)])
    assert told == ["retention", "past 07:00 (night.until): nothing new is started"]


@pytest.mark.parametrize(("host", "start"), [("127.0.0.1", "http://127.0.0.1:"), ("0.0.0.0", "http://127.0.0.1:")])
def test_the_address_that_is_shown_can_be_used_here(host: str, start: str) -> None:
    """A person copies it."""
    with listen("127.0.0.1", 0) as listening:
        assert url_of(host, listening) == f"{start}{listening.getsockname()[1]}"


def test_the_snippet_for_clients_holds_no_token() -> None:
    """The file is committed, and read by whoever has the repository."""
    entry = client_snippet("http://127.0.0.1:1")["mcpServers"]["bailiwick"]
    assert entry["headers"] == {"Authorization": "Bearer ${BW_TOKEN}"}
    assert entry["url"] == "http://127.0.0.1:1/mcp"


def test_small_answers_do_not_wait_for_the_client() -> None:
    """Without this a call takes 40 ms more than it needs, on every connection."""
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
