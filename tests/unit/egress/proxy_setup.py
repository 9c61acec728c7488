"""A proxy on loopback with a sandbox's end and a server's end, both in the test's hands."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bailiwick.egress.proxy import EgressProxy, ProxyTimeouts, allow_list
from bailiwick.egress.upstream_proxy import UpstreamProxy


def listener() -> socket.socket:
    """A listener as it would come out of a sandbox."""
    return socket.create_server(("127.0.0.1", 0))


def port_of(made: socket.socket) -> int:
    """Where a listener listens."""
    port: int = made.getsockname()[1]
    return port


@dataclass(slots=True)
class Server:
    """Some host of the world: keeps what it was sent, echoes it behind `greeting`."""

    greeting: bytes = b"hello "
    connections: int = 0
    got: list[bytes] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until the other side ends it."""
        self.connections += 1
        try:
            while data := await reader.read(65536):
                self.got.append(data)
                writer.write(self.greeting + data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            self.ended.set()
            writer.close()


@dataclass(slots=True)
class ProxySetup:
    """The proxy with what it refused, and which names were asked for."""

    egress: EgressProxy
    port: int
    server: Server
    refused: list[tuple[str, str]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection as a program inside makes it."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, raw: bytes, *, end: bool = True) -> bytes:
        """Send bytes and read everything that comes back."""
        reader, writer = await self.connect()
        try:
            writer.write(raw)
            if end:
                writer.write_eof()
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()


def tunnel(target: str) -> bytes:
    """A request for a tunnel."""
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()


@dataclass(slots=True)
class FakeNetwork:
    """What names mean here, and what the proxy is told."""

    names: dict[str, list[str]] = field(default_factory=dict)
    listed: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
    pace: ProxyTimeouts = field(default_factory=ProxyTimeouts)
    proxy: str = ""
    no_proxy: str = ""


@asynccontextmanager
async def stage(world: FakeNetwork) -> AsyncIterator[ProxySetup]:
    """A proxy for a world; `PORT` in the list stands for the server's port."""
    server = Server()
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as running:
        server.port = port_of(running.sockets[0])
        refused: list[tuple[str, str]] = []
        asked: list[str] = []

        async def resolve(host: str, port: int) -> list[str]:
            asked.append(host)
            if host not in world.names:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return world.names[host]

        def numbered(texts: tuple[str, ...]) -> list[str]:
            return [text.replace("PORT", str(server.port)) for text in texts]

        made = listener()
        egress = EgressProxy(
            allow_list(numbered(world.listed), numbered(world.public)),
            lambda host, why: refused.append((host, why)),
            UpstreamProxy(world.proxy.replace("PORT", str(server.port)), world.no_proxy),
            world.pace,
            resolve,
        )
        port = port_of(made)
        await egress.serve(made)
        try:
            yield ProxySetup(egress, port, server, refused, asked)
        finally:
            await egress.close()
