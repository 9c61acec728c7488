"""The one way out of a sandbox besides the model: a proxy that opens tunnels to the hosts on a list, and no other.

It serves a listener that was made inside, so that nothing of it can be reached from elsewhere. A name is read once,
resolved here once, and the connection goes to the address that was judged: what the name means later changes nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from bailiwick.egress.carry import PIECE, Connection, ConnectionServer, carry
from bailiwick.egress.hosts import HTTP, AllowList, BadHost, HostPort, parse_address, parse_target
from bailiwick.egress.http1 import (
    PeerBroken,
    RequestHead,
    RequestRefused,
    RequestRules,
    head_of,
    parse_request,
    read_head,
    status_line,
)
from bailiwick.egress.upstream_proxy import UpstreamProxy
from bailiwick.errors import UsageError

MAX_HEAD = 16 << 10
"""Bytes that a request may take up to its empty line."""
RULES = RequestRules(
    targets=frozenset({"absolute", "authority"}),
    max_body=16 << 20,
    versions=frozenset({"1.0", "1.1"}),
    chunked=False,
)
"""Tunnels, also for the programs that ask for them in HTTP/1.0, and plain requests whose length is stated."""
_ADDRESSES = 4
"""How many addresses of one name are tried."""
_METHODS = frozenset({"CONNECT", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})

OnRefused = Callable[[str, str], None]
Resolve = Callable[[str, int], Awaitable[list[str]]]


@dataclass(frozen=True, slots=True)
class ProxyTimeouts:
    """The clocks of a proxy, in seconds, and how many connections it serves at once.

    A request has to be there in `head`, its host resolved and reached in `dial`; a tunnel may be silent for `idle`.
    """

    head: float = 10.0
    dial: float = 15.0
    idle: float = 300.0
    connections: int = 128


class _Refused(Exception):
    """A request is not carried out: the answer's status, whom it was for, and why."""

    def __init__(self, status: int, host: str, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.host = host
        self.why = why


def allow_list(listed: Iterable[str], public: Iterable[str] = ()) -> AllowList:
    """A list of hosts from texts: `listed` is the operator's own word, `public` is reached at public addresses only."""
    try:
        return AllowList.of(listed, public)
    except BadHost as error:
        raise UsageError(
            f"a host that may be reached can't be read: {error}",
            hint="write a name, *.domain or an address, with :port where it is not 443: example.org:8443",
            code="BW404",
        ) from None


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name as the system knows them, in its order."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(slots=True)
class EgressProxy:
    """A proxy for one sandbox. `on_refused(host, why)` hears of each request that is not carried out."""

    allow: AllowList
    on_refused: OnRefused | None = None
    parent: UpstreamProxy = field(default_factory=UpstreamProxy)
    pace: ProxyTimeouts = field(default_factory=ProxyTimeouts)
    resolve: Resolve = resolve
    _connections: ConnectionServer = field(init=False)

    def __post_init__(self) -> None:
        refusal = _answer(503, "too many connections at once")
        self._connections = ConnectionServer(self.pace.connections, limit=MAX_HEAD, too_many=refusal)

    async def serve(self, listening: socket.socket) -> None:
        """Serve a listener from now on, and own it; returns at once. After `close` it is only closed."""
        await self._connections.serve(listening, self._attend)

    async def close(self) -> None:
        """End every tunnel and stop to listen: when this returns, nothing answers any more."""
        await self._connections.close()

    async def _attend(self, inside: Connection) -> None:
        """One connection: one request, then a tunnel or an answer."""
        try:
            request = await self._read(inside)
            if request is None:
                return
            target = self._judge(request)
            outside = await self._dial(target, request)
        except _Refused as refused:
            if self.on_refused is not None:
                self.on_refused(refused.host, refused.why)
            await inside.send(
                _answer(refused.status, f"{refused.host}: {refused.why}" if refused.host else refused.why)
            )
            return
        try:
            await self._carry(request, target, inside, outside)
        finally:
            await outside.close()

    async def _read(self, inside: Connection) -> RequestHead | None:
        """The request; None where the client left before it was complete."""
        try:
            async with asyncio.timeout(self.pace.head):
                head = await read_head(inside.reader)
            request = None if head is None else parse_request(head, RULES)
        except PeerBroken:
            return None
        except RequestRefused as error:
            raise _Refused(error.status, "", str(error)) from None
        if request is not None and request.method not in _METHODS:
            raise _Refused(405, "", "only CONNECT and plain requests are served")
        return request

    def _judge(self, request: RequestHead) -> HostPort:
        """Where a request wants to go, if it may."""
        try:
            target = parse_target(request.authority, None if _is_tunnel(request) else HTTP)
        except BadHost as error:
            raise _Refused(400, request.authority[:300], str(error)) from None
        if not self.allow.allows(target):
            raise _Refused(403, str(target), "it is not on the list of hosts that may be reached (sandbox.allow)")
        return target

    async def _dial(self, target: HostPort, request: RequestHead) -> Connection:
        """A connection for a target that is allowed: to an address that is, too, or through the operator's proxy."""
        try:
            async with asyncio.timeout(self.pace.dial):
                if self.parent.serves(target):
                    return await self._through_parent(target, request)
                return await self._direct(target)
        except (OSError, PeerBroken) as error:
            raise _Refused(502, str(target), f"it can't be reached: {str(error) or type(error).__name__}") from None

    async def _direct(self, target: HostPort) -> Connection:
        failure: OSError = OSError("the name has no address")
        for address in (await self._addresses(target))[:_ADDRESSES]:
            try:
                return Connection(*await asyncio.open_connection(address, target.port, limit=PIECE))
            except OSError as error:
                failure = error
        raise failure

    async def _addresses(self, target: HostPort) -> list[str]:
        """The addresses to try, each judged; a refusal where the name has only others."""
        if parse_address(target.host) is not None:
            found = [target.host]
        else:
            found = await self.resolve(target.host, target.port)
        objections = ""
        good = []
        for text in found:
            address = parse_address(text)
            why = "not an address" if address is None else self.allow.objection(target, address)
            if why:
                objections = why
            else:
                good.append(text)
        if objections and not good:
            raise _Refused(403, str(target), f"it is {objections}, which has to be listed by itself (sandbox.allow)")
        return good

    async def _through_parent(self, target: HostPort, request: RequestHead) -> Connection:
        """A connection by way of the operator's proxy, which resolves names; addresses are judged here all the same."""
        address = parse_address(target.host)
        if address is not None and (why := self.allow.objection(target, address)):
            raise _Refused(403, str(target), f"it is {why}, which has to be listed by itself (sandbox.allow)")
        if _is_tunnel(request):
            return await self.parent.tunnel(target, MAX_HEAD)
        return await self.parent.connect(MAX_HEAD)

    async def _carry(self, request: RequestHead, target: HostPort, inside: Connection, outside: Connection) -> None:
        """The bytes of a tunnel both ways; or a plain request, and what comes back."""
        length = None
        if _is_tunnel(request):
            await inside.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            await outside.send(self._forwarded(request, target))
            length = request.length
        await carry(inside, outside, length=length, idle=self.pace.idle)

    def _forwarded(self, request: RequestHead, target: HostPort) -> bytes:
        """The head for the host itself: one connection, one request, no field that is only between neighbours."""
        fields = [("host", str(target).removesuffix(f":{HTTP}")), ("connection", "close")]
        if request.length:
            fields.append(("content-length", str(request.length)))
        fields += request.fields.without(())
        path = request.target
        if self.parent.serves(target):
            fields += self.parent.login
            path = f"http://{target}{path}"
        return head_of(f"{request.method} {path} HTTP/1.1", fields)


def _is_tunnel(request: RequestHead) -> bool:
    """Whether bytes are carried unread."""
    return request.method == "CONNECT"


def _answer(status: int, why: str) -> bytes:
    """An answer that ends the connection."""
    body = f"bailiwick: {why}\n".encode()
    fields = [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", str(len(body))),
        ("connection", "close"),
    ]
    return head_of(status_line(status), fields) + body
