"""The way from a sandbox to the containers that its tests talk to: bytes are carried between a door and an address.

A door is a listener that was made inside, where it is all of the network there is. Behind it is one address and no
other, whatever is said through it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

MAX_CONNECTIONS = 128
"""How many connections one command may have at once; one more is closed as soon as it is made."""
DIAL_SECONDS = 10.0
_CLOSE_SECONDS = 1.0
_CHUNK = 64 * 1024

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Relay:
    """Which address is behind which door."""

    addresses: Mapping[str, Address]
    connections: int = MAX_CONNECTIONS

    @property
    def doors(self) -> tuple[str, ...]:
        """The names of the doors that a cage needs for it."""
        return tuple(self.addresses)

    def passage(self) -> Passage:
        """The way for one command."""
        return Passage(self.addresses, self.connections)


@dataclass(slots=True)
class Passage:
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
            async with asyncio.timeout(DIAL_SECONDS):
                theirs = await asyncio.open_connection(*address, limit=_CHUNK)
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


_Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


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
