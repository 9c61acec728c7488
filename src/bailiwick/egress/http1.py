"""The little of HTTP that a proxy of tunnels has to read and write; whatever is odd is refused."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from bailiwick.egress.hosts import HTTP, HostPort

MAX_HEAD = 16 * 1024
"""Bytes that a request may take up to its empty line."""
MAX_BODY = 16 * 1024**2
"""Bytes that the body of a plain request may have."""

_REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    405: "Method Not Allowed",
    411: "Length Required",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
_PLAIN = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_TARGET = re.compile(r"http://([^/?#\s]+)([/?][!-~]*)?", re.IGNORECASE)
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_HOP = frozenset({"connection", "keep-alive", "te", "trailer", "upgrade", "host", "content-length", "expect"})


class ProxyRequestRefused(Exception):
    """What came is not a request we serve, or not an answer; `status` is the answer to it."""

    def __init__(self, what: str, status: int = 400) -> None:
        super().__init__(what)
        self.status = status


@dataclass(frozen=True, slots=True)
class ProxyConnection:
    """Both directions of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Write, and wait until the other side keeps up."""
        self.writer.write(data)
        await self.writer.drain()


@dataclass(slots=True)
class ProxyRequestHead:
    """The head of a request: a tunnel's, or a plain one with the path, fields and length of its body.

    `prefix` and `extra` are what another proxy needs before the path and among the fields.
    """

    method: str
    authority: str
    path: str
    fields: tuple[tuple[str, str], ...]
    length: int = 0
    prefix: str = ""
    extra: str = ""

    @property
    def is_tunnel(self) -> bool:
        """Whether bytes are carried unread."""
        return self.method == "CONNECT"

    def forwarded(self, target: HostPort) -> bytes:
        """The head for the host itself: one connection, one request, no field that is only between neighbours."""
        host = target.host if target.port == HTTP else str(target)
        head = [f"{self.method} {self.prefix}{self.path} HTTP/1.1", f"host: {host}", "connection: close"]
        if self.length:
            head.append(f"content-length: {self.length}")
        head += [f"{name}: {value}" for name, value in self.fields if name.lower() not in _HOP and not _is_proxys(name)]
        return ("\r\n".join(head) + "\r\n" + self.extra + "\r\n").encode("latin-1")


def _is_proxys(name: str) -> bool:
    return name.lower().startswith("proxy-")


async def read_request(reader: asyncio.StreamReader) -> ProxyRequestHead:
    """The next request; raises `ProxyRequestRefused`, `TimeoutError`, or `IncompleteReadError` where there is none."""
    lines = await _read_head(reader)
    try:
        method, target, version = lines[0].split(" ")
    except ValueError:
        raise ProxyRequestRefused("not a request") from None
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise ProxyRequestRefused("not HTTP/1.1", 505)
    fields = tuple(_field(line) for line in lines[1:])
    if method == "CONNECT":
        return ProxyRequestHead(method, target, "", fields)
    if method not in _PLAIN:
        raise ProxyRequestRefused("only CONNECT and plain requests are served", 405)
    found = _TARGET.fullmatch(target)
    if found is None:
        raise ProxyRequestRefused("only CONNECT and requests for http:// are served")
    path = found[2] or "/"
    return ProxyRequestHead(
        method,
        authority=found[1],
        path=path if path.startswith("/") else f"/{path}",
        fields=fields,
        length=_length(fields),
    )


async def read_status(reader: asyncio.StreamReader) -> int:
    """The status of an answer, its head read to the end; raises `ProxyRequestRefused`."""
    found = re.match(r"HTTP/1\.[01] ([0-9]{3})", (await _read_head(reader))[0])
    if found is None:
        raise ProxyRequestRefused("the proxy's answer is no HTTP")
    return int(found[1])


async def _read_head(reader: asyncio.StreamReader) -> list[str]:
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise ProxyRequestRefused("the head is too long", 431) from None
    try:
        text = raw[:-4].decode("utf-8")
    except UnicodeDecodeError:
        raise ProxyRequestRefused("the head is no text") from None
    lines = text.split("\r\n")
    if any("\n" in line or "\r" in line for line in lines):
        raise ProxyRequestRefused("a line ends oddly")
    return lines


def _field(line: str) -> tuple[str, str]:
    found = _FIELD.fullmatch(line)
    if found is None or not found[2].isascii():
        raise ProxyRequestRefused("a field can't be read")
    return found[1], found[2].rstrip()


def _length(fields: tuple[tuple[str, str], ...]) -> int:
    """How long the body is; a body without a stated length would hide where the request ends."""
    if any(name.lower() == "transfer-encoding" for name, _ in fields):
        raise ProxyRequestRefused("the length of the body has to be stated", 411)
    stated = {value for name, value in fields if name.lower() == "content-length"}
    if not stated:
        return 0
    text = stated.pop()
    if stated or not re.fullmatch(r"[0-9]{1,12}", text):
        raise ProxyRequestRefused("the length of the body can't be read")
    if int(text) > MAX_BODY:
        raise ProxyRequestRefused("the body is too long", 413)
    return int(text)


def answer(status: int, why: str) -> bytes:
    """An answer that ends the connection."""
    body = f"bailiwick: {shown(why)}\n".encode()
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: text/plain; charset=utf-8\r\n"
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body


def shown(text: str) -> str:
    """A foreign text that is safe to show and to log: printable, bounded."""
    return "".join(char if char.isprintable() else "?" for char in text[:300])
