"""Names of hosts and the list of those that may be reached. Pure: each name is read once, strictly, into one spelling.

What a program could read differently than we do (userinfo, numbers in disguise, zones, odd dots) is no name at all.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

HTTPS, HTTP = 443, 80
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_SHARED = ipaddress.ip_network("100.64.0.0/10")


class BadHost(ValueError):
    """The text is not the name of a host, or not one that everybody reads alike."""


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host, in the one spelling, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host(text: str) -> str:
    """A name in lower case and ASCII without the dot at its end, or an address in its usual form; raises `BadHost`."""
    if text.startswith("[") and text.endswith("]"):
        return _parse_v6(text[1:-1])
    name = _ascii(text).removesuffix(".")
    labels = name.split(".")
    if not name or len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise BadHost("it is not the name of a host")
    if _NUMBER.fullmatch(labels[-1]):
        return _parse_v4(name)
    return name


def _ascii(text: str) -> str:
    if text.isascii():
        return text.lower()
    try:
        return text.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise BadHost("it is not the name of a host") from None


def _parse_v4(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise BadHost("it is an address in disguise") from None


def _parse_v6(text: str) -> str:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        raise BadHost("it is not an address") from None
    if address.scope_id is not None:
        raise BadHost("an address with a zone is not accepted")
    return str(address)


def parse_target(text: str, default_port: int | None = None) -> HostPort:
    """`host:port`; without a default the port has to be there. Raises `BadHost`."""
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        if default_port is None:
            raise BadHost("it has no port")
        return HostPort(parse_host(text), default_port)
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise BadHost("its port is not a number from 1 to 65535")
    return HostPort(parse_host(host), int(port))


def parse_address(text: str) -> Address | None:
    """The address that a host in its one spelling is; None for a name."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def trouble_with(address: Address) -> str:
    """Why an address is none of the public network's; empty for a public one."""
    if isinstance(address, ipaddress.IPv6Address) and (why := _wrapped(address)):
        return why
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_unspecified or address.is_reserved:
        return "a reserved address"
    if address in _SHARED:
        return "an address shared by a carrier"
    return "" if address.is_global else "a private address"


def _wrapped(address: ipaddress.IPv6Address) -> str:
    """Whether another address hides in this one."""
    if address.ipv4_mapped is not None:
        return "an IPv4 address written as IPv6"
    if any(address in network for network in _NAT64):
        return "an IPv4 address behind NAT64"
    if address.sixtofour is not None or address.teredo is not None:
        return "a tunnelled address"
    return "a private address" if address.is_site_local else ""


def never_by_name(address: Address) -> bool:
    """Whether an address is reached only where it is listed itself, whatever name leads to it: metadata services."""
    plain = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    seen = plain or address
    return seen.is_link_local or seen.is_multicast or seen.is_unspecified or seen.is_reserved


@dataclass(frozen=True, slots=True)
class Pattern:
    """One entry of a list: a host or, for a leading `*.`, every host below it; and one port."""

    host: str
    port: int
    below: bool = False

    def matches(self, target: HostPort) -> bool:
        """Whether a target is meant."""
        if self.port != target.port:
            return False
        return target.host.endswith(f".{self.host}") if self.below else target.host == self.host


def parse_pattern(text: str) -> Pattern:
    """`host`, `host:port`, `*.domain` or `*.domain:port`; the port is 443 where none is given. Raises `BadHost`."""
    below = text.startswith("*.")
    target = parse_target(text.removeprefix("*."), HTTPS)
    if below and parse_address(target.host) is not None:
        raise BadHost("an address has no hosts below it")
    return Pattern(target.host, target.port, below)


@dataclass(frozen=True, slots=True)
class AllowList:
    """The egress allow list: hosts that the operator lists, and hosts that are reached at public addresses only."""

    listed: tuple[Pattern, ...] = ()
    public: tuple[Pattern, ...] = ()

    @classmethod
    def of(cls, listed: Iterable[str], public: Iterable[str] = ()) -> AllowList:
        """From texts; raises `BadHost` with the text that is none."""
        return cls(tuple(map(_read_pattern, listed)), tuple(map(_read_pattern, public)))

    def allows(self, target: HostPort) -> bool:
        """Whether a host and port are on the list."""
        return any(pattern.matches(target) for pattern in (*self.listed, *self.public))

    def objection(self, target: HostPort, address: Address) -> str:
        """Why an allowed host must not be reached at this address; empty where it may be."""
        trouble = trouble_with(address)
        if not trouble or self._lists(str(address), target.port):
            return ""
        if self._lists(target.host, target.port) and not never_by_name(address):
            return ""
        return trouble

    def _lists(self, host: str, port: int) -> bool:
        """Whether the operator has listed exactly this host or address."""
        return any(not pattern.below and pattern.matches(HostPort(host, port)) for pattern in self.listed)


def _read_pattern(text: str) -> Pattern:
    try:
        return parse_pattern(text)
    except BadHost as error:
        raise BadHost(f"{text!r}: {error}") from None


def bypasses(host: str, no_proxy: str) -> bool:
    """Whether a host is reached without the proxy: it, its domain or its network is listed; `*` lists all.

    A port behind a name means the host with every port.
    """
    address = parse_address(host)
    for entry in (part.strip().lower() for part in no_proxy.split(",")):
        name = entry.lstrip("*").lstrip(".")
        name = name.partition(":")[0] if name.count(":") == 1 else name
        if entry == "*" or (name and (host == name or host.endswith(f".{name}"))):
            return True
        if address is not None and "/" in entry and _in_network(address, entry):
            return True
    return False


def _in_network(address: Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
