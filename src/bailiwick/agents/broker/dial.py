"""Opens a connection to the one host of a grant: plain, by TLS, or by TLS through a proxy."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.agents.broker.grants import Upstream
from bailiwick.egress.carry import Connection
from bailiwick.egress.hosts import HostPort
from bailiwick.egress.upstream_proxy import UpstreamProxy

MAX_HEAD = 32 << 10
"""Bytes of a request line with its fields, and of an answer's."""


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
    line = await UpstreamProxy(proxy).tunnel(HostPort(upstream.host, upstream.port), MAX_HEAD)
    try:
        await line.writer.start_tls(trusted, server_hostname=upstream.host)
    except BaseException:
        line.drop()
        raise
    return line
