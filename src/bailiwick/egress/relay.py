"""The way from a sandbox to the containers that its tests talk to: bytes are carried between a door and an address.

A door is a listener that was made inside, where it is all of the network there is. Behind it is one address and no
other, whatever is said through it: a port of a container's own loopback, which only a socket of its network reaches.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

MAX_CONNECTIONS = 128
"""How many connections one command may have at once; one more is closed as soon as it is made."""
DIAL_SECONDS = 10.0
_CLOSE_SECONDS = 1.0
_CHUNK = 64 * 1024
_HOST = "127.0.0.1"
_NEW_NETWORK = 0x40000000

_Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Address:
    """A port at 127.0.0.1 of a network: an open file of a namespace stands for it, or nothing for our own."""

    port: int
    network: int | None


@dataclass(frozen=True, slots=True)
class Relay:
    """Which address is behind which door."""

    addresses: Mapping[str, Address]
    connections: int = MAX_CONNECTIONS

    @property
    def doors(self) -> tuple[str, ...]:
        """The names of the doors that a cage needs for it."""
        return tuple(self.addresses)

    def passage(self) -> RelayServer:
        """The way for one command."""
        return RelayServer(self.addresses, self.connections)


@dataclass(slots=True)
class RelayServer:
    """Serves the doors of one command, until `close`."""

    addresses: Mapping[str, Address]
    connections: int
    _servers: list[asyncio.Server] = field(default_factory=list)
    _busy: set[asyncio.Task[None]] = field(default_factory=set)
    _closed: bool = False

    async def serve(self, door: str, listening: socket.socket) -> None:
        """Serve a listener from now on, and own it; one behind which there is nothing is only closed."""
        address = self.addresses.get(door)
        if self._closed or address is None:
            listening.close()
            return

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._meet(address, reader, writer)

        listening.setblocking(False)
        self._servers.append(await asyncio.start_server(meet, sock=listening, limit=_CHUNK))

    async def close(self) -> None:
        """End every connection and stop to listen; a second time does nothing."""
        self._closed = True
        for server in self._servers:
            server.close()
        self._servers.clear()
        await asyncio.sleep(0)  # what was just accepted finds itself closed
        busy = list(self._busy)
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)

    async def _meet(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or self._closed or len(self._busy) >= self.connections:
            await _drop(writer)
            return
        self._busy.add(task)
        try:
            theirs = await dial(address)
            try:
                await _carry((reader, writer), theirs)
            finally:
                await _drop(theirs[1])
        except (OSError, TimeoutError):
            pass  # one of the two sides went away: the other finds its connection closed
        except asyncio.CancelledError:
            if not self._closed:
                raise
        finally:
            self._busy.discard(task)
            await _drop(writer)


async def dial(address: Address, seconds: float = DIAL_SECONDS) -> _Line:
    """A connection to an address; an `OSError` or a `TimeoutError` where none comes about."""
    dialing = socket.socket() if address.network is None else _socket_of(address.network)
    try:
        dialing.setblocking(False)
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().sock_connect(dialing, (_HOST, address.port))
            return await asyncio.open_connection(sock=dialing, limit=_CHUNK)
    except BaseException:
        dialing.close()
        raise


def _socket_of(network: int) -> socket.socket:
    """A socket of another network, where it stays. The thread that goes there to make it ends there: none returns."""
    made: list[socket.socket | OSError] = []

    def make() -> None:
        try:
            _enter(network)
            made.append(socket.socket())
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=make, name="bailiwick-dial")
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


def _enter(network: int) -> None:
    """Take the calling thread, and no other, to a network."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(network, _NEW_NETWORK):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


async def _carry(ours: _Line, theirs: _Line) -> None:
    """Bytes both ways until both sides have ended, or one has gone."""
    loop = asyncio.get_running_loop()
    ways = [loop.create_task(_copy(ours[0], theirs[1])), loop.create_task(_copy(theirs[0], ours[1]))]
    try:
        await asyncio.gather(*ways)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy to the end; then say that no more will come."""
    while data := await source.read(_CHUNK):
        sink.write(data)
        await sink.drain()
    with suppress(OSError):
        sink.write_eof()


async def _drop(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await writer.wait_closed()
