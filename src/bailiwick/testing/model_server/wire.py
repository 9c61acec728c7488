"""As much of HTTP/1.1 as agent CLIs need, on asyncio's streams. For loopback and tests only."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import dataclass

from bailiwick.egress.http1 import (
    LAST_CHUNK,
    PeerBroken,
    RequestRefused,
    RequestRules,
    chunk,
    head_of,
    parse_request,
    pieces,
    read_head,
    status_line,
)

MAX_HEAD = 64 << 10
RULES = RequestRules(frozenset({"origin"}), max_body=64 << 20, versions=frozenset({"1.0", "1.1"}))


class Gone(Exception):
    """The client left."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request, its body whole; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


async def read_request(reader: asyncio.StreamReader) -> ReceivedRequest | None:
    """The next request of a connection; None at its end or where it is no HTTP."""
    try:
        raw = await read_head(reader)
        if raw is None:
            return None
        head = parse_request(raw, RULES)
        body = b"".join([piece async for piece in pieces(reader, head.length, lenient=True)])
    except (PeerBroken, RequestRefused, ConnectionError):
        return None
    if head.fields.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return ReceivedRequest(head.method, head.path, dict(head.fields.pairs), body)


class HttpResponder:
    """The way back to a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(
        self, status: int, body: bytes, media: str, headers: Mapping[str, str], *, head: bool = False
    ) -> None:
        """Answer in one go; `head` leaves the body out."""
        fields = {"content-type": media, "content-length": str(len(body)), **headers}
        await self._write(head_of(status_line(status), fields.items()) + (b"" if head else body))

    async def begin(self, media: str, headers: Mapping[str, str]) -> None:
        """Begin an answer of unknown length."""
        fields = {"content-type": media, "cache-control": "no-cache", "transfer-encoding": "chunked", **headers}
        await self._write(head_of(status_line(200), fields.items()))

    async def chunk(self, data: bytes) -> None:
        """Send a piece of it."""
        await self._write(chunk(data))

    async def end(self) -> None:
        """It is complete."""
        await self._write(LAST_CHUNK)

    async def wait_gone(self) -> None:
        """Say nothing until the client leaves."""
        try:
            while await self._reader.read(4096):
                pass
        except ConnectionError:
            pass
        raise Gone

    def drop(self) -> None:
        """Cut the line."""
        self._writer.transport.abort()
        raise Gone

    async def _write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            raise Gone from None
