"""The operator's own proxy, by which the broker and the egress proxy reach the world where there is one."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from bailiwick.egress.carry import Connection
from bailiwick.egress.hosts import HostPort, bypasses
from bailiwick.egress.http1 import PeerBroken, RequestRefused, head_of, parse_response, read_head

if TYPE_CHECKING:
    from bailiwick.config.service import Config


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """The operator's own proxy, if there is one: `http://[user:password@]host[:port]`, and who is reached without."""

    url: str = ""
    no_proxy: str = ""

    def serves(self, target: HostPort) -> bool:
        """Whether a connection to this target goes through it."""
        return bool(self.url) and not bypasses(target.host, self.no_proxy)

    @property
    def login(self) -> list[tuple[str, str]]:
        """The field that every request to it needs, if any."""
        parts = self._parts()
        if parts.username is None:
            return []
        both = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        return [("proxy-authorization", f"Basic {base64.b64encode(both).decode()}")]

    async def connect(self, limit: int) -> Connection:
        """A connection to it; raises `OSError`."""
        try:
            parts = self._parts()
            host, port = parts.hostname if parts.scheme == "http" else None, parts.port or 3128
        except ValueError:
            host, port = None, 0
        if not host:
            raise OSError("the address of the proxy (network.proxy) can't be used: only http:// is")
        return Connection(*await asyncio.open_connection(host, port, limit=limit))

    async def tunnel(self, target: HostPort, limit: int) -> Connection:
        """A connection through it to a host; raises `OSError` or `PeerBroken`."""
        line = await self.connect(limit)
        try:
            await line.send(head_of(f"CONNECT {target} HTTP/1.1", [("host", str(target)), *self.login]))
            head = await read_head(line.reader)
            status = 0 if head is None else parse_response(head).status
            if status != 200:
                raise PeerBroken(f"the proxy does not let us through (network.proxy): it answers {status or 'nothing'}")
        except RequestRefused:
            line.drop()
            raise PeerBroken("the answer of the proxy (network.proxy) is not HTTP") from None
        except BaseException:
            line.drop()
            raise
        return line

    def _parts(self) -> SplitResult:
        return urlsplit(self.url if "://" in self.url else f"http://{self.url}")


def network_of(config: Config, host: str) -> tuple[str | None, Path | None]:
    """The proxy by which the configuration has a host reached, if any, and the certificates besides the system's."""
    ca_file, proxy = config.get("network.ca_file"), config.get("network.proxy")
    through = bool(proxy) and not bypasses(host, str(config.get("network.no_proxy") or ""))
    return str(proxy) if through else None, Path(ca_file) if ca_file else None
