"""The one way out of a sandbox besides the model: a proxy that opens tunnels to the hosts on a list, and no other.

It serves a listener that was made inside, so that nothing of it can be reached from elsewhere. A name is read once,
resolved here once, and the connection goes to the address that was judged: what the name means later changes nothing.
"""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from bailiwick.egress import http1 as wire
from bailiwick.egress.hosts import AllowList, BadHost, HostPort, bypasses, parse_address, parse_target
from bailiwick.errors import UsageError

MAX_CONNECTIONS = 128
HEAD_SECONDS = 10.0
"""In which a request has to be there."""
DIAL_SECONDS = 15.0
"""In which a name has to be resolved and a connection to be made."""
IDLE_SECONDS = 300.0
"""After which a tunnel without a byte is closed."""
_CHUNK = 64 * 1024
_ADDRESSES = 4
"""How many addresses of one name are tried."""

OnRefused = Callable[[str, str], None]
Resolve = Callable[[str, int], Awaitable[list[str]]]


@dataclass(frozen=True, slots=True)
class ProxyTimeouts:
    """The clocks of a proxy, in seconds, and how many connections it serves at once."""

    head: float = HEAD_SECONDS
    dial: float = DIAL_SECONDS
    idle: float = IDLE_SECONDS
    connections: int = MAX_CONNECTIONS


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """The operator's own proxy, if there is one: `http://[user:password@]host[:port]`, and who is reached without."""

    url: str = ""
    no_proxy: str = ""

    def serves(self, target: HostPort) -> bool:
        """Whether a connection to this target goes through it."""
        return bool(self.url) and not bypasses(target.host, self.no_proxy)


@dataclass(slots=True)
class Traffic:
    """What went through: connections, refusals, and bytes to and from other machines."""

    opened: int = 0
    refused: int = 0
    sent: int = 0
    received: int = 0


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
    traffic: Traffic = field(default_factory=Traffic)
    _servers: list[asyncio.Server] = field(default_factory=list)
    _busy: set[asyncio.Task[None]] = field(default_factory=set)
    _closed: bool = False

    async def serve(self, listening: socket.socket) -> None:
        """Serve a listener from now on, and own it; returns at once. After `close` it is only closed."""
        if self._closed:
            listening.close()
            return
        listening.setblocking(False)
        self._servers.append(await asyncio.start_server(self._meet, sock=listening, limit=wire.MAX_HEAD))

    async def close(self) -> None:
        """End every tunnel and stop to listen: when this returns, nothing answers any more."""
        self._closed = True
        for server in self._servers:
            server.close()
        self._servers.clear()
        await asyncio.sleep(0)  # what was just accepted finds itself closed
        busy = list(self._busy)
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or self._closed or len(self._busy) >= self.pace.connections:
            if not self._closed:
                writer.write(wire.answer(503, "too many connections at once"))
            await _drop(writer)
            return
        self._busy.add(task)
        try:
            await self._attend(wire.ProxyConnection(reader, writer))
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # one of the two sides went away
        except asyncio.CancelledError:
            if not self._closed:
                raise
        finally:
            self._busy.discard(task)
            await _drop(writer)

    async def _attend(self, inside: wire.ProxyConnection) -> None:
        """One connection: one request, then a tunnel or an answer."""
        try:
            try:
                async with asyncio.timeout(self.pace.head):
                    request = await wire.read_request(inside.reader)
            except wire.ProxyRequestRefused as error:
                raise _Refused(error.status, "", str(error)) from None
            target = self._judge(request)
            outside = await self._dial(target, request)
        except _Refused as refused:
            self._refuse(refused)
            await inside.send(
                wire.answer(refused.status, f"{refused.host}: {refused.why}" if refused.host else refused.why)
            )
            return
        self.traffic.opened += 1
        try:
            await self._carry(request, target, inside, outside)
        finally:
            await _drop(outside.writer)

    def _judge(self, request: wire.ProxyRequestHead) -> HostPort:
        """Where a request wants to go, if it may."""
        try:
            target = parse_target(request.authority, None if request.is_tunnel else 80)
        except BadHost as error:
            raise _Refused(400, wire.shown(request.authority), str(error)) from None
        if not self.allow.allows(target):
            raise _Refused(403, str(target), "it is not on the list of hosts that may be reached (sandbox.allow)")
        return target

    def _refuse(self, refused: _Refused) -> None:
        self.traffic.refused += 1
        if self.on_refused is not None:
            self.on_refused(refused.host, refused.why)

    async def _dial(self, target: HostPort, request: wire.ProxyRequestHead) -> wire.ProxyConnection:
        """A connection for a target that is allowed: to an address that is, too, or through the operator's proxy."""
        try:
            async with asyncio.timeout(self.pace.dial):
                if self.parent.serves(target):
                    return await self._through_parent(target, request)
                return await self._direct(target)
        except (OSError, asyncio.IncompleteReadError, wire.ProxyRequestRefused) as error:
            raise _Refused(502, str(target), f"it can't be reached: {str(error) or type(error).__name__}") from None

    async def _direct(self, target: HostPort) -> wire.ProxyConnection:
        failure: OSError = OSError("the name has no address")
        for address in (await self._addresses(target))[:_ADDRESSES]:
            try:
                return wire.ProxyConnection(*await asyncio.open_connection(address, target.port, limit=_CHUNK))
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

    async def _through_parent(self, target: HostPort, request: wire.ProxyRequestHead) -> wire.ProxyConnection:
        """A connection by way of the operator's proxy, which resolves names; addresses are judged here all the same."""
        address = parse_address(target.host)
        if address is not None and (why := self.allow.objection(target, address)):
            raise _Refused(403, str(target), f"it is {why}, which has to be listed by itself (sandbox.allow)")
        url = self.parent.url
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if not parts.hostname or parts.scheme != "http":
            raise OSError("the address of the proxy (network.proxy) can't be used: only http:// is")
        line = wire.ProxyConnection(
            *await asyncio.open_connection(parts.hostname, parts.port or 3128, limit=wire.MAX_HEAD)
        )
        try:
            login = _login(parts.username, parts.password)
            if request.is_tunnel:
                await line.send(f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n{login}\r\n".encode())
                status = await wire.read_status(line.reader)
                if status != 200:
                    raise OSError(f"the proxy (network.proxy) answers {status}")
            else:
                request.prefix = f"http://{target}"
                request.extra = login
        except BaseException:
            await _drop(line.writer)
            raise
        return line

    async def _carry(
        self,
        request: wire.ProxyRequestHead,
        target: HostPort,
        inside: wire.ProxyConnection,
        outside: wire.ProxyConnection,
    ) -> None:
        """Bytes both ways until both sides have ended or neither speaks for long."""
        if request.is_tunnel:
            await inside.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            left = None
        else:
            head = request.forwarded(target)
            self.traffic.sent += len(head)
            await outside.send(head)
            left = request.length
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self.pace.idle) as clock:

            def moved(sent: int, received: int) -> None:
                self.traffic.sent += sent
                self.traffic.received += received
                clock.reschedule(loop.time() + self.pace.idle)

            out = loop.create_task(_copy(inside.reader, outside.writer, lambda size: moved(size, 0), left))
            back = loop.create_task(_copy(outside.reader, inside.writer, lambda size: moved(0, size), None))
            try:
                await (asyncio.gather(out, back) if left is None else back)
            finally:
                for task in (out, back):
                    task.cancel()
                await asyncio.gather(out, back, return_exceptions=True)


async def _copy(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, moved: Callable[[int], None], left: int | None
) -> None:
    """Copy to the end, or `left` bytes of it; then say that no more will come."""
    while left is None or left > 0:
        data = await source.read(_CHUNK if left is None else min(left, _CHUNK))
        if not data:
            break
        left = None if left is None else left - len(data)
        moved(len(data))
        sink.write(data)
        await sink.drain()
    if left is None and sink.can_write_eof():
        with suppress(OSError):
            sink.write_eof()


def _login(user: str | None, password: str | None) -> str:
    if user is None:
        return ""
    both = f"{unquote(user)}:{unquote(password or '')}".encode()
    return f"proxy-authorization: Basic {base64.b64encode(both).decode()}\r\n"


async def _drop(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1.0):
            await writer.wait_closed()
