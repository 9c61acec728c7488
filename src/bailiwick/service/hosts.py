"""Which names this service answers to. A page of a foreign name that resolves to this machine gets nothing."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from bailiwick.service.asgi import App, Context, Receive, Send, header, refuse

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104  compared with, never listened on


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names in `Host` that are ours, and the one foreign origin that is: where a proxy serves us."""

    names: frozenset[str]
    public: str = ""

    @classmethod
    def of(cls, host: str, public_url: str | None) -> Hosts:
        """The names of a service that listens on `host` and is known to others as `public_url`."""
        names = {*LOOPBACK, *(() if host in _EVERYWHERE else (host.lower().strip("[]"),))}
        if not public_url:
            return cls(frozenset(names))
        parts = urlsplit(public_url if "://" in public_url else f"https://{public_url}")
        names.add((parts.hostname or "").lower())
        return cls(frozenset(names - {""}), f"{parts.scheme}://{parts.netloc}".lower())

    def knows(self, host: str | None) -> bool:
        """Whether a `Host` header names us; the port is the proxy's business."""
        return _name(host) in self.names if host else False

    def trusts(self, origin: str | None, host: str) -> bool:
        """Whether a request may come from a page of `origin`: from none, from ours, from the public one."""
        if origin is None:
            return True
        asked = origin.lower()
        return asked in (f"http://{host.lower()}", f"https://{host.lower()}") or (
            bool(self.public) and asked == self.public
        )


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower() if "@" not in host and "/" not in host else ""
    except ValueError:
        return ""


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine itself."""
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return address == "localhost"


@dataclass(frozen=True, slots=True)
class HostCheck:
    """Lets through what is meant for us: 421 for a foreign `Host`, 403 for a foreign `Origin`."""

    app: App
    hosts: Hosts

    async def __call__(self, context: Context, receive: Receive, send: Send) -> None:
        if context["type"] == "http":
            host = header(context, b"host")
            if not self.hosts.knows(host):
                hint = "use a loopback name, or set service.public_url to the name that others use"
                await refuse(send, 421, "this service does not answer to that Host", hint)
                return
            if not self.hosts.trusts(header(context, b"origin"), host or ""):
                hint = "pages of other origins are not served; set service.public_url if this one is yours"
                await refuse(send, 403, "this Origin is not ours", hint)
                return
        await self.app(context, receive, send)
