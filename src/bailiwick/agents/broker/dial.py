"""Opens a connection to the one host of a grant: plain, by TLS, or by TLS through a proxy."""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bailiwick.agents.broker.grants import Upstream
from bailiwick.agents.broker.wire import MAX_HEAD, PeerBroken, RequestRefused, head_of, parse_response, read_head


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


@dataclass(slots=True)
class Dialer:
    """Keeps the certificates that the system trusts, read once."""

    _trusted: dict[Path | None, ssl.SSLContext] = field(default_factory=dict)

    async def open(self, upstream: Upstream) -> Connection:
        """A connection; raises `OSError` or `PeerBroken`."""
        trusted = self._trust(upstream.ca_file) if upstream.is_secure else None
        if upstream.proxy and trusted is not None:
            return await _through_proxy(upstream, upstream.proxy, trusted)
        name = upstream.host if trusted is not None else None
        return Connection(
            *await asyncio.open_connection(
                upstream.host, upstream.port, ssl=trusted, server_hostname=name, limit=MAX_HEAD
            )
        )

    def _trust(self, ca_file: Path | None) -> ssl.SSLContext:
        if ca_file not in self._trusted:
            context = ssl.create_default_context()
            if ca_file is not None:
                context.load_verify_locations(cafile=ca_file)
            self._trusted[ca_file] = context
        return self._trusted[ca_file]


async def _through_proxy(upstream: Upstream, proxy: str, trusted: ssl.SSLContext) -> Connection:
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if not parts.hostname:
        raise PeerBroken("the address of the proxy can't be read")
    line = Connection(*await asyncio.open_connection(parts.hostname, parts.port or 3128, limit=MAX_HEAD))
    host = f"[{upstream.host}]" if ":" in upstream.host else upstream.host
    target = f"{host}:{upstream.port}"
    fields = [("host", target)]
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        fields.append(("proxy-authorization", "Basic " + base64.b64encode(login).decode()))
    try:
        await line.send(head_of(f"CONNECT {target} HTTP/1.1", fields))
        head = await read_head(line.reader)
        if head is None or parse_response(head).status != 200:
            raise PeerBroken("the proxy does not let us through")
        await line.writer.start_tls(trusted, server_hostname=upstream.host)
    except RequestRefused:
        line.drop()
        raise PeerBroken("the proxy's answer is no HTTP") from None
    except BaseException:
        line.drop()
        raise
    return line
