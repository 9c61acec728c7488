"""The broker stands between code that may be hostile and a credential: what is not plainly right is refused."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from bailiwick.agents.broker.forward import Patience
from bailiwick.agents.broker.grants import Upstream
from bailiwick.agents.broker.server import Broker
from bailiwick.agents.http import UNREACHABLE
from bailiwick.agents.port import Trouble, Used
from bailiwick.errors import InternalBug
from tests.memory import peak_memory
from tests.unit.agents.broker_stage import BODY, BrokerSetup, Vendor, answer, per_million, said, send, settled, staged
from tests.unit.egress.odd_requests import ODD

if TYPE_CHECKING:
    from collections.abc import Coroutine

OK = {"model": "m-1", "usage": {"input_tokens": 1, "output_tokens": 1}}
BIG = 100 << 20
PIECE = 64 << 10


def play(history: Coroutine[Any, Any, None]) -> None:
    """Run a test's story to its end."""
    asyncio.run(asyncio.wait_for(history, 600))


def refused(raw: str, patience: Patience | None = None) -> int:
    """The status that some bytes get; `HOST` and `TOKEN` stand for the right ones. Nothing may reach the vendor."""
    statuses: list[int] = []

    async def history() -> None:
        async with staged(said(OK), patience=patience) as stage:
            text = raw.replace("HOST", stage.host).replace("TOKEN", stage.grant.token)
            status, _, body = await stage.send(text.encode("latin-1"))
            assert "error" in json.loads(body)
            assert stage.vendor.heads == []
            statuses.append(status)

    play(history())
    return statuses[0]


FIELDS = "Host: HOST\r\nx-api-key: TOKEN\r\n"
HEAD = f"POST /v1/messages HTTP/1.1\r\n{FIELDS}"


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ("POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n", 401),
        ("POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nAuthorization: Basic TOKEN\r\n\r\n", 401),
        ("POST /v1/files HTTP/1.1\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 403),
        ("POST /v1/messages/ HTTP/1.1\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 403),
        ("POST /v1/messages/../files HTTP/1.1\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 403),
        ("POST /v1/%6dessages HTTP/1.1\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 403),
        ("GET / HTTP/1.1\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 403),
        ("GET /v1/messages HTTP/1.1\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 405),
        ("DELETE /v1/models HTTP/1.1\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 405),
        ("POST http://elsewhere/v1/messages HTTP/1.1\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 400),
        ("CONNECT elsewhere:443 HTTP/1.1\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 400),
        ("POST /v1/messages HTTP/1.1\r\nHost: elsewhere\r\nx-api-key: TOKEN\r\n\r\n", 400),
        ("POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: TOKEN\r\n\r\n", 400),
        ("POST /v1/messages HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 400),
        ("POST /v1/messages HTTP/1.1\r\nx-api-key: TOKEN\r\n\r\n", 400),
        ("POST /v1/messages HTTP/1.0\r\nHost: HOST\r\nx-api-key: TOKEN\r\n\r\n", 505),
        (HEAD + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
        (HEAD + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
        (HEAD + "x-api-key: TOKEN\r\n\r\n", 400),
        (HEAD + "Expect: a-miracle\r\n\r\n", 417),
        *((raw.format(post="POST /v1/messages", fields=FIELDS), status) for raw, status in ODD),
    ],
)
def test_what_is_not_plainly_right_is_refused(raw: str, status: int) -> None:
    """Two readers that see two requests in the same bytes are how a request gets past a check."""
    assert refused(raw) == status


@pytest.mark.parametrize(
    "body", ["zz\r\n", "-1\r\n", "2;x=y\r\n{}\r\n0\r\n\r\n", "1\r\n{}\r\n0\r\n\r\n", "0\r\nT: x\r\n\r\n"]
)
def test_a_chunk_that_is_malformed_is_refused(body: str) -> None:
    """The vendor never hears of such a body."""

    async def history() -> None:
        async with staged(said(OK)) as stage:
            head = HEAD.replace("HOST", stage.host).replace("TOKEN", stage.grant.token)
            raw = f"{head}Transfer-Encoding: chunked\r\n\r\n{body}"
            assert (await stage.send(raw.encode()))[0] == 400
            assert stage.vendor.heads == []

    play(history())


def test_what_follows_a_request_is_never_taken_for_another() -> None:
    """One request per connection: a second one in the same bytes is not even looked at."""

    async def history() -> None:
        async with staged(said(OK)) as stage:
            status, head, _ = await stage.send(stage.request() + stage.request("/v1/responses"))
            assert status == 200
            assert "connection: close" in head
            assert len(stage.vendor.heads) == 1

    play(history())


def test_a_request_that_drips_is_given_up() -> None:
    """A slow client must not hold a connection for good, in the head or in the body."""
    quick = Patience(head=0.05, body=0.05)
    assert refused("POST /v1/messages HTTP/1.1\r\nHost: HO", quick) == 408

    async def history() -> None:
        async def never(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with staged(never, patience=quick) as stage:
            assert (await stage.send(stage.request(body=b"{}")[:-1]))[0] == 408

    play(history())


def test_a_client_that_waits_for_a_word_gets_it() -> None:
    """Some send a large body only after 100 Continue."""

    async def history() -> None:
        async with staged(said(OK)) as stage:
            reader, writer = await asyncio.open_connection(*stage.host.split(":"))
            head, _, body = stage.request(extra="Expect: 100-continue\r\n").partition(b"\r\n\r\n")
            writer.write(head + b"\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(body)
            assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")
            assert "expect" not in stage.vendor.heads[0].lower()
            writer.close()

    play(history())


async def pour(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A vendor that answers with one event without an end."""
    await vendor.take_body(reader)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
    for _ in range(BIG // PIECE):
        writer.write(b"x" * PIECE)
        await writer.drain()


def test_a_hundred_megabytes_of_an_answer_do_not_grow_memory() -> None:
    """It is passed on as fast as the client takes it, whatever it holds: even one event without an end."""

    async def history() -> None:
        async with staged(pour) as stage:
            reader, writer = await asyncio.open_connection(*stage.host.split(":"))
            with peak_memory() as peak:
                writer.write(stage.request())
                got = 0
                while data := await reader.read(PIECE):
                    got += len(data)
            assert got > BIG
            assert peak.bytes < 24 << 20
            writer.close()
            (used,) = stage.grant.facts()
            assert isinstance(used, Used)
            assert used.output == 100, "what is said without being counted counts by its size, up to the limit"

    play(history())


def test_requests_are_held_within_bounds() -> None:
    """Each is read whole before it is sent: neither one nor many at once may fill the memory."""

    async def history() -> None:
        async with staged(said(OK)) as stage:
            raw = stage.request(body=b"").replace(b"content-length: 0", b"transfer-encoding: chunked")
            too_much = raw + b"%x\r\n" % (40 << 20) + b"z" * (33 << 20)
            assert (await stage.send(too_much))[0] == 413
            stage.grant.bodies = 64 << 20
            assert (await stage.ask())[0] == 429
            stage.grant.bodies -= 64 << 20
            assert (await stage.ask())[0] == 200
            await settled(stage.grant)
            assert (stage.grant.bodies, len(stage.vendor.heads)) == (0, 1)

    play(history())


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "without an answer"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx", "no clear length"),
        (b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n", "redirect"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n", "larger than is ever read"),
    ],
)
def test_an_upstream_that_makes_no_sense_is_unreachable(raw: bytes, words: str) -> None:
    """A gateway or a hotel's login page is no model: it is waited for, never followed."""

    async def history() -> None:
        async def answering(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await vendor.take_body(reader)
            writer.write(raw)

        async with staged(answering) as stage:
            status, head, _ = await stage.ask()
            assert status == 502
            assert "location" not in head
            (trouble,) = stage.grant.facts()
            assert isinstance(trouble, Trouble)
            assert (trouble.type, trouble.final) == (UNREACHABLE, False)
            assert words in trouble.message

    play(history())


def test_an_answer_that_breaks_off_is_not_made_to_look_whole() -> None:
    """Half an answer that ends well would be taken for the answer."""

    async def history() -> None:
        async def answering(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await vendor.take_body(reader)
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")

        async with staged(answering) as stage:
            reader, writer = await asyncio.open_connection(*stage.host.split(":"))
            writer.write(stage.request())
            got = await reader.read()
            assert got.endswith(b"5\r\nhello\r\n")
            assert [fact.type for fact in stage.grant.facts() if isinstance(fact, Trouble)] == [UNREACHABLE]
            writer.close()

    play(history())


def test_what_a_server_says_besides_its_chunks_is_passed_over() -> None:
    """Extensions and trailers are the vendor's right; the client gets the body alone."""

    async def history() -> None:
        async def answering(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await vendor.take_body(reader)
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: u\r\n\r\n")

        async with staged(answering) as stage:
            assert (await stage.ask())[2] == b"hello"
            assert stage.grant.facts() == [Used(1046, 3, 0, 0.001076, model="m-1")]

    play(history())


def test_a_vendor_that_does_not_read_on_is_heard() -> None:
    """A vendor that says too large closes at once; the client has to learn why, and nothing is paid."""

    async def history() -> None:
        body = b'{"error":{"type":"request_too_large","message":"Too large."}}'

        async def answering(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

        async with staged(answering) as stage:
            asked = BODY[:-1] + b',"system":"%s"}' % (b"z" * 100_000)
            status, _, got = await stage.ask(body=asked)
            assert (status, got) == (413, body)
            assert stage.grant.facts() == [Trouble("Too large.", 413, "request_too_large", final=False)]

    play(history())


def test_a_compressed_answer_is_refused_where_there_is_a_budget() -> None:
    """What can't be counted can't be kept within a limit."""
    squeezed = answer("200 OK", "content-encoding: gzip\r\n", b"\x1f\x8b")

    async def history() -> None:
        async with staged(squeezed, 1.0) as stage:
            assert (await stage.ask())[0] == 502
            assert stage.grant.facts()[0] == Used(1046, 100, 0, 0.002046, model="m-1"), "it was answered all the same"
            grant = stage.broker.grant("k", stage.grant.upstream, price=per_million)
            free = BrokerSetup(stage.broker, stage.vendor, grant)
            assert (await free.ask())[2] == b"\x1f\x8b"
            assert free.grant.facts() == [Used(1046, 1, 0, 0.001056, model="m-1")]
            assert "accept-encoding: identity" in stage.vendor.heads[0]

    play(history())


def test_it_serves_on_a_socket_that_was_made_elsewhere() -> None:
    """In a sandbox the only way out is a port whose socket was made inside."""

    async def history() -> None:
        async with staged(said(OK)) as stage:
            url = await stage.broker.listen(socket.create_server(("127.0.0.1", 0)))
            here = url.removeprefix("http://")
            raw = stage.request().replace(stage.host.encode(), here.encode())
            assert (await send(here, raw))[0] == 200
            assert (await send(here, stage.request()))[0] == 400

    play(history())


def test_a_client_that_is_slow_to_read_gets_the_whole_answer() -> None:
    """The end of an answer is where its result is."""
    body = b"z" * 60_000

    async def history() -> None:
        async with staged(answer("200 OK", "content-type: text/plain\r\n", body)) as stage:
            listening = socket.socket()
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            here = (await stage.broker.listen(listening)).removeprefix("http://")
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(client, ("127.0.0.1", int(here.rpartition(":")[2])))
            await loop.sock_sendall(client, stage.request().replace(stage.host.encode(), here.encode()))
            grant = stage.broker.grant("k2", stage.grant.upstream, price=per_million)
            other = BrokerSetup(stage.broker, stage.vendor, grant)
            while not stage.grant.facts():
                await other.ask()
            await other.ask()
            got = b""
            while data := await loop.sock_recv(client, 4096):
                got += data
            client.close()
            assert got.endswith(b"\r\n\r\n" + body)

    play(history())


def test_closing_ends_connections_that_say_nothing() -> None:
    """A process must not wait for somebody who only knocked."""

    async def history() -> None:
        async with staged(said(OK), patience=Patience(head=3600)) as stage:
            reader, writer = await asyncio.open_connection(*stage.host.split(":"))
            await stage.ask()
            await asyncio.wait_for(stage.broker.close(), 600)
            assert await reader.read() == b""
            writer.close()

    play(history())


def test_a_broker_can_be_closed_and_started_again() -> None:
    """Both are safe to call twice; a grant without a server would be an address that nobody serves."""

    async def history() -> None:
        broker = Broker()
        with pytest.raises(InternalBug):
            broker.grant("k", Upstream("https://api.example"))
        await broker.start()
        await broker.start()
        first = broker.grant("k", Upstream("https://api.example"))
        await broker.close()
        await broker.close()
        await broker.start()
        second = broker.grant("k", Upstream("https://api.example"))
        host = second.base_url.removeprefix("http://")
        raw = f"POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nx-api-key: {first.token}\r\n\r\n".encode()
        assert (await send(host, raw))[0] == 401, "what was granted before ended with it"
        await broker.close()

    play(history())
