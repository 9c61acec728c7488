"""The proxy out of a sandbox where the operator has a proxy, too."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.unit.egress.proxy_setup import FakeNetwork, ProxySetup, port_of, stage, tunnel

HERE = {"ok.example": ["127.0.0.1"]}
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def play(history: Coroutine[Any, Any, None]) -> None:
    """Run a test's story to its end."""
    asyncio.run(asyncio.wait_for(history, 600))


class Forwarder:
    """The operator's own proxy: keeps the heads it was sent, answers with a status, echoes what follows."""

    def __init__(self, status: int = 200) -> None:
        self.heads: list[str] = []
        self.status = status

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {self.status} Fine\r\nvia: me\r\n\r\n".encode())
        while self.heads[-1].startswith("CONNECT") and (data := await reader.read(65536)):
            writer.write(b"through " + data)
        writer.close()


async def by_way_of(forwarder: Forwarder, world: FakeNetwork, raw: bytes) -> tuple[bytes, ProxySetup]:
    """Ask with the operator's proxy in between; it is written as `proxy` in the world, user and all."""
    async with await asyncio.start_server(forwarder.serve, "127.0.0.1", 0) as running:
        world.proxy = world.proxy.replace("HERE", f"127.0.0.1:{port_of(running.sockets[0])}")
        async with stage(world) as scene:
            return await scene.ask(raw), scene


def test_with_a_proxy_of_the_operator_tunnels_are_chained() -> None:
    """It resolves the name itself, as such networks often have no other name server; its login stays on our side."""

    async def history() -> None:
        forwarder = Forwarder()
        world = FakeNetwork({}, ("ok.example",), proxy="http://me:p%40ss@HERE")
        answer, scene = await by_way_of(forwarder, world, tunnel("OK.example:443") + b"x")
        login = base64.b64encode(b"me:p@ss").decode()
        assert answer == ESTABLISHED + b"through x"
        assert forwarder.heads == [
            f"CONNECT ok.example:443 HTTP/1.1\r\nhost: ok.example:443\r\nproxy-authorization: Basic {login}\r\n\r\n"
        ]
        assert scene.asked == []

    play(history())


def test_with_a_proxy_of_the_operator_plain_requests_keep_their_whole_address() -> None:
    """That is how a proxy is asked for them."""

    async def history() -> None:
        forwarder = Forwarder()
        world = FakeNetwork({}, ("ok.example:80",), proxy="HERE")
        await by_way_of(forwarder, world, b"GET http://ok.example/x HTTP/1.1\r\nHost: ok.example\r\n\r\n")
        assert forwarder.heads[0].startswith("GET http://ok.example:80/x HTTP/1.1\r\nhost: ok.example\r\n")

    play(history())


@pytest.mark.parametrize(
    ("target", "status"), [("10.0.0.1:443", 403), ("evil.example:443", 403), ("ok.example:443", 502)]
)
def test_a_proxy_of_the_operator_widens_nothing(target: str, status: int) -> None:
    """List and addresses are judged before it is asked; and its own refusal is passed on as what it is."""

    async def history() -> None:
        forwarder = Forwarder(407)
        world = FakeNetwork({}, ("ok.example",), ("10.0.0.1",), proxy="HERE")
        answer, _ = await by_way_of(forwarder, world, tunnel(target))
        assert answer.startswith(f"HTTP/1.1 {status} ".encode())
        assert len(forwarder.heads) == (1 if status == 502 else 0)

    play(history())


def test_hosts_listed_in_no_proxy_are_reached_directly() -> None:
    """The operator's own servers are often not reachable through their proxy."""

    async def history() -> None:
        forwarder = Forwarder()
        world = FakeNetwork(HERE, ("ok.example:PORT",), proxy="HERE", no_proxy="example")
        async with stage(world) as scene:
            answer = await scene.ask(tunnel(f"ok.example:{scene.server.port}") + b"x")
            assert answer.endswith(b"hello x")
            assert forwarder.heads == []

    play(history())


@pytest.mark.parametrize("proxy", ["https://127.0.0.1:1", "socks5://127.0.0.1:1", "http://"])
def test_a_proxy_that_can_not_be_used_is_named(proxy: str) -> None:
    """A silent detour around it would break the operator's own rule."""

    async def history() -> None:
        async with stage(FakeNetwork(HERE, ("ok.example:PORT",), proxy=proxy)) as scene:
            answer = await scene.ask(tunnel(f"ok.example:{scene.server.port}"))
            assert answer.startswith(b"HTTP/1.1 502 ")
            assert b"network.proxy" in answer

    play(history())
