"""A vendor on loopback that answers as a test says, and a client that speaks raw HTTP to the broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bailiwick.agents.broker.grants import Grant, GrantRules, Upstream
from bailiwick.agents.broker.server import Broker
from bailiwick.clock import ManualClock

if TYPE_CHECKING:
    from bailiwick.agents.broker.forward import Patience
    from bailiwick.agents.prices import TokenCount
    from bailiwick.ids import Json

SECRET = "sk-the-real-one"
BODY = b'{"model":"m-1","max_tokens":100,"messages":[]}'
"""A plain request; its prompt is counted at most as its 46 bytes and what a vendor may put around them."""
Answering = Callable[["Vendor", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def per_million(model: str, tokens: TokenCount) -> float | None:
    """A price that is easy to reckon with: a dollar per million tokens in, ten per million out; models in m- only."""
    return (tokens.input + 10 * tokens.output) / 1e6 if model.startswith("m-") else None


@dataclass(slots=True)
class Vendor:
    """Takes requests whole unless told otherwise; `heads` and `bodies` are what came in."""

    answering: Answering
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    url: str = ""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            await self.answering(self, reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.gone.set()
            writer.close()

    async def take_body(self, reader: asyncio.StreamReader) -> bytes:
        """The body of a request that tells its length."""
        head = self.heads[-1].lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
        self.bodies.append(await reader.readexactly(length))
        self.asked.set()
        return self.bodies[-1]


def answer(status: str, headers: str, body: bytes) -> Answering:
    """A vendor that answers the same to everything."""

    async def answering(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await vendor.take_body(reader)
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{headers}\r\n".encode() + body)

    return answering


def said(value: Json, status: str = "200 OK", headers: str = "") -> Answering:
    """A vendor that answers with JSON."""
    return answer(status, f"content-type: application/json\r\n{headers}", json.dumps(value).encode())


def stream(*events: bytes) -> Answering:
    """A vendor that streams events."""
    return answer("200 OK", "content-type: text/event-stream\r\n", b"".join(events))


@dataclass(slots=True)
class BrokerSetup:
    """A broker with one grant, and the vendor behind it."""

    broker: Broker
    vendor: Vendor
    grant: Grant

    def request(self, path: str = "/v1/messages", body: bytes = BODY, method: str = "POST", extra: str = "") -> bytes:
        """A plain request with the grant's token."""
        return (
            f"{method} {path} HTTP/1.1\r\nhost: {self.host}\r\nx-api-key: {self.grant.token}\r\n"
            f"content-length: {len(body)}\r\n{extra}\r\n"
        ).encode() + body

    @property
    def host(self) -> str:
        """Where the broker is."""
        return self.grant.base_url.removeprefix("http://")

    async def send(self, raw: bytes) -> tuple[int, str, bytes]:
        """Send bytes, read to the end: the status, the head, the body without its chunks."""
        return await send(self.host, raw)

    async def ask(self, path: str = "/v1/messages", body: bytes = BODY, extra: str = "") -> tuple[int, str, bytes]:
        """Ask as an agent does."""
        return await self.send(self.request(path, body, extra=extra))


async def send(host: str, raw: bytes) -> tuple[int, str, bytes]:
    """Send bytes to an address and read what comes back to its end."""
    name, _, port = host.rpartition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    try:
        writer.write(raw)
        got = await reader.read()
    finally:
        writer.close()
    head, _, body = got.partition(b"\r\n\r\n")
    text = head.decode("latin-1")
    whole = unchunked(body) if "transfer-encoding: chunked" in text else body
    return int(text.split(" ", 2)[1]) if text else 0, text, whole


async def settled(grant: Grant) -> None:
    """Wait until no request of a grant is running any more."""
    while grant.tasks:
        await asyncio.wait(set(grant.tasks))
        await asyncio.sleep(0)


def unchunked(body: bytes) -> bytes:
    """A body without its chunks; one that does not end as it should fails."""
    out = b""
    while True:
        size, _, body = body.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            assert body == b"\r\n"
            return out
        out, body = out + body[:count], body[count + 2 :]


@asynccontextmanager
async def staged(
    answering: Answering,
    limit_usd: float | None = None,
    patience: Patience | None = None,
    on_budget: Callable[[], None] | None = None,
    rules: GrantRules | None = None,
) -> AsyncIterator[BrokerSetup]:
    """Everything up and running; at the end all of it is gone."""
    vendor = Vendor(answering)
    server = await asyncio.start_server(vendor.serve, "127.0.0.1", 0)
    vendor.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    broker = Broker(ManualClock(), patience)
    await broker.start()
    upstream = Upstream(vendor.url, {"x-api-key": SECRET})
    grant = broker.grant("k1", upstream, limit_usd=limit_usd, price=per_million, rules=rules, on_budget=on_budget)
    try:
        yield BrokerSetup(broker, vendor, grant)
    finally:
        await broker.close()
        server.close()
        await server.wait_closed()
