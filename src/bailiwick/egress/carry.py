"""Serves connections and carries bytes between two of them, for the proxy, the relay and the broker."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

PIECE = 64 << 10
"""Bytes that are read in one go."""
_CLOSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Connection:
    """Both directions of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Write, and wait until the other side keeps up."""
        self.writer.write(data)
        await self.writer.drain()

    def drop(self) -> None:
        """Let go of it at once."""
        self.writer.transport.abort()

    async def close(self) -> None:
        """End it; what was written has a moment to arrive."""
        self.writer.close()
        with suppress(OSError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.writer.wait_closed()


Handle = Callable[[Connection], Awaitable[None]]


class ConnectionServer:
    """Serves listeners until `close`, at most `most` connections at once; one more is told `too_many` and closed.

    `limit` is how many bytes a reader looks ahead, so the size of the largest head.
    """

    def __init__(self, most: int, *, limit: int = PIECE, too_many: bytes = b"") -> None:
        self._most = most
        self._limit = limit
        self._too_many = too_many
        self._servers: dict[socket.socket, asyncio.Server] = {}
        self._busy: set[asyncio.Task[None]] = set()
        self._closed = False

    async def serve(self, listening: socket.socket, handle: Handle) -> None:
        """Serve a listener from now on, and own it; returns at once. After `close` it is only closed."""

        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._meet(Connection(reader, writer), handle)

        listening.setblocking(False)
        self._servers[listening] = await asyncio.start_server(meet, sock=listening, limit=self._limit)
        if self._closed:  # before, or while it was made
            self.hang_up(listening)

    def hang_up(self, listening: socket.socket) -> None:
        """Stop serving a listener; what is connected stays so."""
        server = self._servers.pop(listening, None)
        if server is not None:
            server.close()

    async def close(self) -> None:
        """End every connection and stop to listen: when this returns, nothing answers. A second time does nothing."""
        self._closed = True
        for listening in list(self._servers):
            self.hang_up(listening)
        await asyncio.sleep(0)  # what was just accepted finds itself closed
        busy = list(self._busy)
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)

    async def _meet(self, connection: Connection, handle: Handle) -> None:
        task = asyncio.current_task()
        if task is None or self._closed or len(self._busy) >= self._most:
            if not self._closed:
                connection.writer.write(self._too_many)
            await connection.close()
            return
        self._busy.add(task)
        try:
            await handle(connection)
        except OSError:
            pass  # one of the two sides went away, or nothing came in time
        except asyncio.CancelledError:
            if not self._closed:
                raise
        finally:
            self._busy.discard(task)
            await connection.close()


async def carry(
    inside: Connection, outside: Connection, *, length: int | None = None, idle: float | None = None
) -> None:
    """Bytes both ways until both sides have ended, or `TimeoutError` where neither speaks for `idle` seconds.

    With a `length` so many bytes go out, and it is over when the other side has ended.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(idle) as clock:

        def heard() -> None:
            if idle is not None:
                clock.reschedule(loop.time() + idle)

        out = loop.create_task(_copy(inside.reader, outside, heard, length))
        back = loop.create_task(_copy(outside.reader, inside, heard))
        try:
            await (asyncio.gather(out, back) if length is None else back)
        finally:
            for task in (out, back):
                task.cancel()
            await asyncio.gather(out, back, return_exceptions=True)


async def _copy(
    source: asyncio.StreamReader, sink: Connection, heard: Callable[[], None], left: int | None = None
) -> None:
    """Copy to the end and say that no more will come; or `left` bytes of it, and say nothing."""
    while left is None or left > 0:
        data = await source.read(PIECE if left is None else min(left, PIECE))
        if not data:
            break
        left = None if left is None else left - len(data)
        heard()
        await sink.send(data)
    if left is None and sink.writer.can_write_eof():
        with suppress(OSError):
            sink.writer.write_eof()
