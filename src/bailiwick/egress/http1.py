"""HTTP/1.1 as strictly as it can be read: what two parsers could read in two ways is refused.

The one reader of the broker and of the proxy. One request per connection, so nothing that a client appends is ever
taken for a request. Bodies are streams of pieces of bounded size.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from bailiwick.egress.carry import PIECE

MAX_FIELDS = 100
TargetForm = Literal["origin", "absolute", "authority"]
"""How a request names what it is for: `/path`, `http://host/path`, or `host:port` for a tunnel."""

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105  HTTP's word for a name
_REQUEST = re.compile(rf"({_TOKEN}) ([!-~]+) HTTP/([!-~]+)")
_ABSOLUTE = re.compile(r"http://([^/?#]+)([/?].*)?", re.IGNORECASE)
_STATUS = re.compile(r"HTTP/1\.[01] ([1-5][0-9]{2})(?: [\t -~\x80-\xff]*)?")
_FIELD = re.compile(rf"({_TOKEN}):[ \t]*([!-~](?:[\t -~]*[!-~])?)?[ \t]*")
_ANSWER_FIELD = re.compile(rf"({_TOKEN}):[ \t]*([!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?[ \t]*")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_LENIENT_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?\r\n")
_LENGTH = re.compile(r"[0-9]{1,12}")
_ONCE = (
    "host", "content-length", "transfer-encoding", "content-type", "authorization", "proxy-authorization", "x-api-key",
)  # fmt: skip
"""Fields of which a second one would leave open which of them counts."""
_HOPS = frozenset({
    "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "expect", "host",
})  # fmt: skip


class RequestRefused(Exception):
    """A request is not carried out; `status` and `kind` tell the client why."""

    def __init__(self, status: int, kind: str, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.kind = kind


class PeerBroken(Exception):
    """The other side left, or what it sends is not HTTP."""


@dataclass(frozen=True, slots=True)
class HeaderFields:
    """Header fields in their order; names are in lower case."""

    pairs: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return [value for each, value in self.pairs if each == name]

    def get(self, name: str, default: str = "") -> str:
        """The first value of a field."""
        return next((value for each, value in self.pairs if each == name), default)

    def without(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """The fields but for those of these names, of one connection, of a proxy, or named by `Connection`."""
        listed = {word.strip().lower() for value in self.all("connection") for word in value.split(",")}
        dropped = {*names, *listed, *_HOPS}
        return [pair for pair in self.pairs if pair[0] not in dropped and not pair[0].startswith("proxy-")]


@dataclass(frozen=True, slots=True)
class RequestRules:
    """What a server takes: how a request may name its target, versions, bytes of a body, and whether it has chunks."""

    targets: frozenset[TargetForm]
    max_body: int
    versions: frozenset[str] = frozenset({"1.1"})
    chunked: bool = True


@dataclass(frozen=True, slots=True)
class RequestHead:
    """A request up to its body. `length` is the body's; None where it comes in chunks.

    `authority` is the host that is named, and `target` the path with its query: a tunnel has no target.
    """

    method: str
    authority: str
    target: str
    fields: HeaderFields
    length: int | None

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """The query with its question mark, empty where there is none."""
        return self.target[len(self.path) :]


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """An answer up to its body. `length` is None in chunks, -1 where the end of the connection ends the body."""

    status: int
    fields: HeaderFields
    length: int | None


async def read_head(reader: asyncio.StreamReader) -> bytes | None:
    """The bytes up to the empty line; None where the other side left without a word."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise RequestRefused(431, "request_header_fields_too_large", "the header is larger than is ever read") from None
    except asyncio.IncompleteReadError as cut:
        if cut.partial:
            raise PeerBroken("the header broke off") from None
        return None


def parse_request(head: bytes, rules: RequestRules) -> RequestHead:
    """Read a request's head; raises `RequestRefused`."""
    first, *lines = head.decode("latin-1")[:-4].split("\r\n")
    found = _REQUEST.fullmatch(first)
    if found is None:
        raise bad_request("the request line is malformed")
    method, text, version = found.groups()
    if version not in rules.versions:
        raise RequestRefused(505, "http_version_not_supported", f"HTTP/{version[:10]} is not spoken here")
    authority, target = _target(method, text, rules.targets)
    fields = _fields(lines, _FIELD)
    if fields is None:
        raise bad_request("a header field is malformed")
    if len(fields.pairs) > MAX_FIELDS:
        raise RequestRefused(431, "request_header_fields_too_large", f"more than {MAX_FIELDS} header fields")
    for name in _ONCE:
        if len(fields.all(name)) > 1:
            raise bad_request(f"the field {name} is there twice")
    if version != "1.0" and not fields.all("host"):
        raise bad_request("the field host is missing")
    length = _request_length(fields, rules)
    if method == "CONNECT" and length != 0:
        raise bad_request("a request for a tunnel has no body")
    return RequestHead(method, authority=authority, target=target, fields=fields, length=length)


def _target(method: str, text: str, targets: frozenset[TargetForm]) -> tuple[str, str]:
    """The host that a request names, and the path with its query; each empty where it is not said."""
    absolute = _ABSOLUTE.fullmatch(text)
    form: TargetForm
    if method == "CONNECT":
        form, found = "authority", (text, "")
    elif absolute is not None:
        form, found = "absolute", (absolute[1], "/" + (absolute[2] or "").removeprefix("/"))
    else:
        form, found = "origin", ("", text)
    if form not in targets or text.startswith("/") != (form == "origin"):
        raise bad_request(f"the target of the request has no form that is served here: {', '.join(sorted(targets))}")
    return found


def bad_request(words: str) -> RequestRefused:
    """What two readers could read in two ways."""
    return RequestRefused(400, "invalid_request_error", words)


def _request_length(fields: HeaderFields, rules: RequestRules) -> int | None:
    coding, length = fields.get("transfer-encoding"), fields.get("content-length")
    if fields.all("transfer-encoding"):
        if fields.all("content-length"):
            raise bad_request("a length and a transfer coding contradict each other")
        if not rules.chunked:
            raise RequestRefused(411, "length_required", "the length of the body has to be stated")
        if coding.lower() != "chunked":
            raise bad_request("the only transfer coding is chunked")
        return None
    if not fields.all("content-length"):
        return 0
    if not _LENGTH.fullmatch(length):
        raise bad_request("the length is not a number")
    if int(length) > rules.max_body:
        raise too_large(rules.max_body)
    return int(length)


def too_large(most: int) -> RequestRefused:
    """More than is ever taken."""
    return RequestRefused(413, "request_too_large", f"the body is larger than {most >> 20} MiB")


def parse_response(head: bytes) -> ResponseHead:
    """Read an answer's head; raises `PeerBroken`."""
    first, *lines = head.decode("latin-1")[:-4].split("\r\n")
    found, fields = _STATUS.fullmatch(first), _fields(lines, _ANSWER_FIELD)
    if found is None or fields is None:
        raise PeerBroken("what it sends is not HTTP")
    status = int(found[1])
    if status < 200 or status in (204, 304):
        return ResponseHead(status, fields, 0)
    codings, lengths = fields.all("transfer-encoding"), set(fields.all("content-length"))
    if codings:
        if [coding.lower() for coding in codings] != ["chunked"]:
            raise PeerBroken("it uses a transfer coding that was not asked for")
        return ResponseHead(status, fields, None)
    if not lengths:
        return ResponseHead(status, fields, -1)
    length = lengths.pop()
    if lengths or not _LENGTH.fullmatch(length):
        raise PeerBroken("it names no clear length")
    return ResponseHead(status, fields, int(length))


def _fields(lines: list[str], pattern: re.Pattern[str]) -> HeaderFields | None:
    found = [pattern.fullmatch(line) for line in lines]
    pairs = tuple((each[1].lower(), each[2] or "") for each in found if each)
    return HeaderFields(pairs) if len(pairs) == len(lines) else None


async def pieces(
    reader: asyncio.StreamReader, length: int | None, *, lenient: bool = False
) -> AsyncGenerator[bytes, None]:
    """The pieces of a body; raises `PeerBroken` where it ends early or its chunks are malformed.

    `lenient` passes over what a server may say besides: extensions of chunks, trailers.
    """
    if length is None:
        async for data in _chunks(reader, lenient=lenient):
            yield data
        return
    left = length
    while left:
        data = await reader.read(PIECE if left < 0 else min(left, PIECE))
        if not data and left < 0:
            return
        if not data:
            raise PeerBroken("the body broke off")
        left -= len(data) if left > 0 else 0
        yield data


async def _chunks(reader: asyncio.StreamReader, *, lenient: bool) -> AsyncGenerator[bytes, None]:
    while size := await _chunk_size(reader, _LENIENT_CHUNK if lenient else _CHUNK):
        async for data in pieces(reader, size):
            yield data
        if await _exactly(reader, 2) != b"\r\n":
            raise PeerBroken("a chunk is longer than it says")
    for _ in range(MAX_FIELDS):
        line = await _line(reader)
        if line == b"\r\n":
            return
        if not lenient:
            break
    raise PeerBroken("there is a trailer")


async def _chunk_size(reader: asyncio.StreamReader, pattern: re.Pattern[bytes]) -> int:
    found = pattern.fullmatch(await _line(reader))
    if found is None:
        raise PeerBroken("a chunk's size is not a number")
    return int(found[1], 16)


async def _line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n")
    except (asyncio.LimitOverrunError, asyncio.IncompleteReadError):
        raise PeerBroken("the body broke off between two chunks") from None


async def _exactly(reader: asyncio.StreamReader, count: int) -> bytes:
    try:
        return await reader.readexactly(count)
    except asyncio.IncompleteReadError:
        raise PeerBroken("the body broke off") from None


def head_of(first: str, fields: Iterable[tuple[str, str]]) -> bytes:
    """A head as bytes."""
    return "\r\n".join([first, *(f"{name}: {value}" for name, value in fields), "", ""]).encode("latin-1")


def status_line(status: int) -> str:
    """The first line of an answer."""
    try:
        words = HTTPStatus(status).phrase
    except ValueError:
        words = "Overloaded" if status == 529 else "Unknown"
    return f"HTTP/1.1 {status} {words}"


def chunk(data: bytes) -> bytes:
    """A piece of a body of unknown length."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
