"""The way from a sandbox's door to a container, with both ends on loopback."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bailiwick.egress.relay import Address, RelayServer, dial
from bailiwick.sandbox.spec import DOORS, port_of, service_door


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A service: repeats what it hears to the end, and only then answers."""
    heard = await reader.read()
    writer.write(b"heard " + heard)
    writer.close()


async def tell(passage: RelayServer, history: Callable[[int], Awaitable[None]]) -> None:
    """Tell a story at the port of a door that the passage serves."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    await passage.serve("service-5432", listening)
    try:
        await history(port)
    finally:
        await passage.close()


def play(history: Callable[[int], Awaitable[None]], connections: int = 4) -> None:
    """Tell a story at a door with the service behind it."""

    async def go() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            address = Address(server.sockets[0].getsockname()[1], None)
            await tell(RelayServer({"service-5432": address}, connections), history)

    asyncio.run(asyncio.wait_for(go(), 600))


def test_every_byte_goes_both_ways_and_so_does_the_end() -> None:
    """A client that ends its half must be heard to the end, or protocols that answer only then would hang."""
    sent = bytes(range(256)) * 2048

    async def history(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        writer.write_eof()
        assert await reader.read() == b"heard " + sent
        writer.close()

    play(history)


def test_one_connection_too_many_is_closed_and_the_others_go_on() -> None:
    """A test that leaks connections must not use up the files of the process that runs the gate."""

    async def history(port: int) -> None:
        first, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"one")
        await writer.drain()
        second, other = await asyncio.open_connection("127.0.0.1", port)
        assert await second.read() == b""
        other.close()
        writer.write_eof()
        assert await first.read() == b"heard one"
        writer.close()

    play(history, connections=1)


def test_the_end_of_a_command_ends_its_connections() -> None:
    """What is still open when the command has ended belongs to nobody."""

    async def history(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await closing.close()
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection("127.0.0.1", port)

    async def go() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            closing.addresses = {"service-5432": Address(server.sockets[0].getsockname()[1], None)}
            await tell(closing, history)

    closing = RelayServer({})
    asyncio.run(asyncio.wait_for(go(), 600))


def test_nobody_behind_the_door_is_an_end_not_an_error() -> None:
    """A container that died must look to tests as it would without a sandbox: as a connection that is closed."""

    async def history(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()

    with socket.create_server(("127.0.0.1", 0)) as free:
        closed = Address(free.getsockname()[1], None)
    asyncio.run(asyncio.wait_for(tell(RelayServer({"service-5432": closed}), history), 600))


def test_a_network_that_can_not_be_entered_is_not_taken_for_our_own(tmp_path: Path) -> None:
    """The same port of the operator's own loopback may be a database with real data."""
    (tmp_path / "no-network").touch()

    async def go() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        opened = os.open(tmp_path / "no-network", os.O_RDONLY)
        try:
            async with server:
                port = server.sockets[0].getsockname()[1]
                await (await dial(Address(port, None))).close()
                with pytest.raises(OSError, match=r"Invalid argument|not permitted"):
                    await dial(Address(port, opened))
        finally:
            os.close(opened)

    asyncio.run(asyncio.wait_for(go(), 600))


def test_a_door_that_was_not_asked_for_leads_nowhere() -> None:
    """Behind a door there is what the gate put there, and nothing by default."""

    async def go() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        await RelayServer({}).serve("model", listening)
        assert listening.fileno() == -1

    asyncio.run(go())


def test_the_port_of_a_door_is_in_its_name_or_in_the_table() -> None:
    """Shim, sandboxes and relay have to mean the same door by a name."""
    assert port_of(service_door(5432)) == 5432
    assert {name: port_of(name) for name in DOORS} == DOORS
    for name in ("service-", "service-x", "other", "5432"):
        with pytest.raises(KeyError):
            port_of(name)
