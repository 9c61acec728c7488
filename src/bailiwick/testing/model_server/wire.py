"""As much of HTTP/1.1 as agent CLIs need, on asyncio's streams. For loopback and tests only."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

MAX_HEAD = 64 << 10
MAX_BODY = 64 << 20


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
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await _read_body(reader, headers)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
        return None
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return ReceivedRequest(method, target.partition("?")[0], headers, body)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        size = int(headers.get("content-length") or 0)
        return await reader.readexactly(size) if 0 < size <= MAX_BODY else b""
    out = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        out += (await reader.readexactly(size + 2))[:-2]
        if len(out) > MAX_BODY:
            raise ValueError("too large")
    await reader.readuntil(b"\r\n")
    return bytes(out)


class HttpResponder:
    """The way back to a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(
        self, status: int, body: bytes, media: str, headers: Mapping[str, str], *, head: bool = False
    ) -> None:
        """Answer in one go; `head` leaves the body out."""
        await self._write(_head(status, {"content-type": media, "content-length": str(len(body)), **headers}))
        if not head:
            await self._write(body)

    async def begin(self, media: str, headers: Mapping[str, str]) -> None:
        """Begin an answer of unknown length."""
        fields = {"content-type": media, "cache-control": "no-cache", "transfer-encoding": "chunked"}
        await self._write(_head(200, {**fields, **headers}))

    async def chunk(self, data: bytes) -> None:
        """Send a piece of it."""
        await self._write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """It is complete."""
        await self._write(b"0\r\n\r\n")

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


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    try:
        words = HTTPStatus(status).phrase
    except ValueError:
        words = "Overloaded"
    lines = [f"HTTP/1.1 {status} {words}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
