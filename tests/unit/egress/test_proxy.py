"""The proxy out of a sandbox: tunnels to listed hosts, at addresses that were judged, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from bailiwick.egress.proxy import EgressProxy, ProxyTimeouts, allow_list, resolve
from tests.unit.egress.odd_requests import ODD
from tests.unit.egress.proxy_setup import FakeNetwork, ProxySetup, listener, port_of, stage, tunnel

HERE = {"ok.example": ["127.0.0.1"]}
OPEN = FakeNetwork(HERE, ("ok.example:PORT",))
POST = "POST http://ok.example/"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def play(history: Coroutine[Any, Any, None]) -> None:
    """Run a test's story to its end."""
    asyncio.run(asyncio.wait_for(history, 600))


async def refusal(world: FakeNetwork, target: str) -> tuple[bytes, ProxySetup]:
    """Ask for a tunnel that must not come about; the server must not have heard of it."""
    async with stage(world) as scene:
        answer = await scene.ask(tunnel(target.replace("PORT", str(scene.server.port))))
        assert (scene.server.got, scene.server.connections) == ([], 0)
        assert len(scene.refused) == 1
        return answer, scene


def test_a_listed_host_is_reached_and_its_bytes_are_carried() -> None:
    """The tunnel carries bytes both ways unread, and ends when both sides have."""

    async def history() -> None:
        async with stage(OPEN) as scene:
            answer = await scene.ask(tunnel(f"ok.example:{scene.server.port}") + b"\x16\x03\x01")
            assert answer == ESTABLISHED + b"hello \x16\x03\x01"
            assert (scene.server.connections, scene.refused) == (1, [])

    play(history())


def test_a_tunnel_may_be_asked_for_in_http_1_0() -> None:
    """Python's own client does so, and names no host in a field of its own."""

    async def history() -> None:
        async with stage(OPEN) as scene:
            answer = await scene.ask(f"CONNECT ok.example:{scene.server.port} HTTP/1.0\r\n\r\nx".encode())
            assert answer == ESTABLISHED + b"hello x"

    play(history())


def test_a_host_that_is_not_listed_is_refused_and_told() -> None:
    """Without asking a name server: a name alone could carry a secret out."""

    async def history() -> None:
        answer, scene = await refusal(OPEN, "evil.example:443")
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"evil.example:443" in answer
        assert b"sandbox.allow" in answer
        assert scene.asked == []
        assert scene.refused[0][0] == "evil.example:443"

    play(history())


@pytest.mark.parametrize(
    "target", ["ok.example:22", "sub.ok.example:PORT", "ok.example.evil.example:PORT", "127.0.0.1:PORT"]
)
def test_neither_another_port_nor_a_neighbour_is_meant(target: str) -> None:
    """The address of a listed host is not the host: it is dialled only when it is listed itself."""

    async def history() -> None:
        answer, _ = await refusal(OPEN, target)
        assert answer.startswith(b"HTTP/1.1 403 ")

    play(history())


@pytest.mark.parametrize(
    "target", ["user@ok.example:PORT", "ok.example", "2130706433:PORT", "0x7f.1:PORT", "[::1%lo]:PORT"]
)
def test_a_name_in_disguise_is_a_bad_request(target: str) -> None:
    """Before any list is asked."""

    async def history() -> None:
        answer, scene = await refusal(OPEN, target)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert scene.asked == []

    play(history())


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"]
)
def test_a_pattern_or_a_public_registry_does_not_lead_into_the_private_network(address: str) -> None:
    """Whoever owns a name chooses its address: a name that the operator did not list itself may not point inwards."""

    async def history() -> None:
        names = {"a.wide.example": [address], "reg.example": [address]}
        world = FakeNetwork(names, ("*.wide.example:PORT",), ("reg.example:PORT",))
        for target in ("a.wide.example:PORT", "reg.example:PORT"):
            answer, _ = await refusal(world, target)
            assert answer.startswith(b"HTTP/1.1 403 ")

    play(history())


def test_the_address_that_was_judged_is_the_one_that_is_dialled() -> None:
    """The name is asked for once: a second answer, as rebinding needs it, never comes into play."""

    async def history() -> None:
        async with stage(
            FakeNetwork({"a.example": ["10.9.9.9", "127.0.0.1"]}, ("127.0.0.1:PORT", "*.example:PORT"))
        ) as scene:
            answer = await scene.ask(tunnel(f"a.example:{scene.server.port}") + b"x")
            assert answer.endswith(b"hello x"), "the private one was left out, the listed one taken"
            assert scene.asked == ["a.example"]

    play(history())


def test_a_host_without_an_address_is_told_apart_from_a_forbidden_one() -> None:
    """A person who reads the log has to know whether to change the list or to look at the network."""

    async def history() -> None:
        async with stage(FakeNetwork({}, ("gone.example",))) as scene:
            answer = await scene.ask(tunnel("gone.example:443"))
            assert answer.startswith(b"HTTP/1.1 502 ")
            assert "can't be reached" in scene.refused[0][1]

    play(history())


def test_a_plain_request_goes_out_where_its_port_is_listed() -> None:
    """In the form that a server expects, with the host that was judged, and one request per connection."""

    async def history() -> None:
        async with stage(OPEN) as scene:
            host = f"ok.example:{scene.server.port}"
            head = f"POST http://{host}/a?b=c HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic eA==\r\n"
            rest = "Connection: keep-alive, X-Near\r\nX-Near: y\r\nAccept: */*\r\nContent-Length: 3\r\n\r\nabc"
            smuggled = "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
            reader, writer = await scene.connect()
            writer.write((head + rest + smuggled).encode())
            first = await reader.readuntil(b"abc")
            writer.close()
            await scene.egress.close()
            sent = b"".join(scene.server.got).decode()
            fields = f"host: {host}\r\nconnection: close\r\ncontent-length: 3\r\naccept: */*\r\n"
            assert sent == f"POST /a?b=c HTTP/1.1\r\n{fields}\r\nabc"
            assert first.startswith(b"hello POST")

    play(history())


def test_a_plain_request_needs_port_80_on_the_list() -> None:
    """What is listed without a port is meant with TLS."""

    async def history() -> None:
        async with stage(FakeNetwork(HERE, ("ok.example",))) as scene:
            answer = await scene.ask(b"GET http://ok.example/ HTTP/1.1\r\nHost: ok.example\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert scene.refused[0][0] == "ok.example:80"

    play(history())


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET ftp://ok.example/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http://a@ok.example/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET ok.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"BREW http://ok.example/ HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"POST http://ok.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST http://ok.example/ HTTP/1.0\r\nTransfer-Encoding: gzip\r\n\r\n", 411),
        (b"POST http://ok.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 16777217\r\n\r\n", 413),
        (b"CONNECT http://ok.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"CONNECT /ok.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"CONNECT \xff\xfe:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"CONNECT ok.example:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", 400),
        (b"CONNECT ok.example:443 HTTP/1.1\r\nx: " + b"y" * 40_000, 431),
        *((raw.format(post=POST, fields="Host: ok.example\r\n").encode("latin-1"), status) for raw, status in ODD),
    ],
)
def test_a_request_that_is_odd_is_refused(raw: bytes, status: int) -> None:
    """Where two programs could read a request differently, the stricter one ends it."""

    async def history() -> None:
        async with stage(FakeNetwork(HERE, ("ok.example", "ok.example:80"))) as scene:
            answer = await scene.ask(raw, end=False)
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())
            assert (len(scene.refused), scene.asked) == (1, []), "no name is even looked up"

    play(history())


def test_what_is_refused_is_safe_to_log() -> None:
    """The text comes from inside the sandbox: it must not carry a terminal sequence into the operator's log."""

    async def history() -> None:
        async with stage(OPEN) as scene:
            await scene.ask(b"CONNECT \x1b[2J\x07evil:443 HTTP/1.1\r\n\r\n")
            assert all(text.isprintable() for text in scene.refused[0])

    play(history())


def test_after_close_the_port_is_dead_and_tunnels_are_gone() -> None:
    """The proxy ends with the run: a process that outlived it would find nothing."""

    async def history() -> None:
        async with stage(OPEN) as scene:
            reader, writer = await scene.connect()
            writer.write(tunnel(f"ok.example:{scene.server.port}"))
            assert await reader.readexactly(len(ESTABLISHED)) == ESTABLISHED
            await scene.egress.close()
            assert await reader.read() == b""
            await asyncio.wait_for(scene.server.ended.wait(), 600)
            writer.close()
            with pytest.raises(ConnectionRefusedError):
                await scene.connect()
            late = listener()
            await scene.egress.serve(late)
            assert late.fileno() == -1, "a listener that comes too late is closed"

    play(history())


def test_one_proxy_serves_every_process_of_its_room() -> None:
    """Each process inside makes a listener of its own."""

    async def history() -> None:
        async with stage(OPEN) as scene:
            second = listener()
            port = port_of(second)
            await scene.egress.serve(second)
            for number in (scene.port, port):
                scene.port = number
                answer = await scene.ask(tunnel(f"ok.example:{scene.server.port}") + b"x")
                assert answer.endswith(b"hello x")

    play(history())


def test_a_tunnel_too_many_is_turned_away() -> None:
    """A program inside can't use up the operator's descriptors."""

    async def history() -> None:
        world = FakeNetwork(HERE, ("ok.example:PORT",), pace=ProxyTimeouts(connections=1))
        async with stage(world) as scene:
            reader, writer = await scene.connect()
            writer.write(tunnel(f"ok.example:{scene.server.port}"))
            await reader.readexactly(len(ESTABLISHED))
            assert (await scene.ask(b"")).startswith(b"HTTP/1.1 503 ")
            writer.close()
            await writer.wait_closed()

    play(history())


@pytest.mark.parametrize("raw", [b"", b"CONNECT ok.exam"])
def test_a_request_that_never_ends_is_let_go(raw: bytes) -> None:
    """A connection is held only as long as somebody is about to ask something."""

    async def history() -> None:
        async with stage(FakeNetwork(HERE, ("ok.example:PORT",), pace=ProxyTimeouts(head=0.05))) as scene:
            assert await scene.ask(raw, end=False) == b""

    play(history())


def test_a_silent_tunnel_is_closed() -> None:
    """Neither side speaks: the connection is of no use to anybody."""

    async def history() -> None:
        async with stage(FakeNetwork(HERE, ("ok.example:PORT",), pace=ProxyTimeouts(idle=0.05))) as scene:
            answer = await scene.ask(tunnel(f"ok.example:{scene.server.port}"), end=False)
            assert answer == ESTABLISHED
            await asyncio.wait_for(scene.server.ended.wait(), 600)

    play(history())


def test_a_hundred_tunnels_at_once_all_work() -> None:
    """A package manager opens many connections."""

    async def history() -> None:
        async with stage(OPEN) as scene:
            raw = tunnel(f"ok.example:{scene.server.port}")
            answers = await asyncio.gather(*(scene.ask(raw + str(n).encode()) for n in range(100)))
            assert answers == [ESTABLISHED + b"hello " + str(n).encode() for n in range(100)]

    play(history())


def test_the_systems_resolver_is_the_default() -> None:
    """Each address once, in the system's order."""

    async def history() -> None:
        assert "127.0.0.1" in await resolve("localhost", 443)
        egress = EgressProxy(allow_list(["localhost:1"]))
        made = listener()
        port = port_of(made)
        await egress.serve(made)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(tunnel("localhost:1"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 502 "), "nothing listens there"
        writer.close()
        await egress.close()

    play(history())


def test_a_big_transfer_arrives_whole_both_ways() -> None:
    """Bytes are passed on as the other side takes them, none lost or doubled, however the two sides keep pace."""

    async def history() -> None:
        size = 8 * 1024**2
        async with stage(OPEN) as scene:
            scene.server.greeting = b""
            reader, writer = await scene.connect()
            writer.write(tunnel(f"ok.example:{scene.server.port}"))
            await reader.readexactly(len(ESTABLISHED))

            async def give() -> None:
                for _ in range(size // 65536):
                    writer.write(b"z" * 65536)
                    await writer.drain()
                writer.write_eof()

            giving = asyncio.ensure_future(give())
            got = 0
            while data := await reader.read(65536):
                got += len(data)
            await giving
            writer.close()
            assert (got, sum(map(len, scene.server.got))) == (size, size)

    play(history())
