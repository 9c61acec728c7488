"""Where packages come from while an environment is prepared: public registries, and what the operator configured."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from bailiwick.egress.hosts import BadHost, HostPort, parse_host
from bailiwick.sandbox.spec import Bind
from bailiwick.sandbox.toolchain_trees import HiddenPaths, is_system

REGISTRIES = (
    "pypi.org",
    "files.pythonhosted.org",
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "index.crates.io",
    "static.crates.io",
    "crates.io",
    "proxy.golang.org",
    "sum.golang.org",
    "rubygems.org",
    "index.rubygems.org",
    "repo.maven.apache.org",
    "repo1.maven.org",
    "repo.packagist.org",
)
"""The public registries of packages that `prepare` may reach; at public addresses only."""

CERTIFICATES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CARGO_HTTP_CAINFO")
"""Variables that name a file of certificates."""

_LISTS = {
    "PIP_EXTRA_INDEX_URL": "index",
    "PIP_INDEX_URL": "default",
    "PIP_FIND_LINKS": "links",
    "UV_INDEX_URL": "default",
    "UV_DEFAULT_INDEX": "default",
    "UV_EXTRA_INDEX_URL": "index",
    "UV_INDEX": "index",
    "UV_FIND_LINKS": "links",
    "NPM_CONFIG_REGISTRY": "npm",
    "npm_config_registry": "npm",
    "GOPROXY": "go",
}
_PIP_KEYS = {"index-url": "default", "extra-index-url": "index", "find-links": "links"}
_MOST = 1 << 20
"""Bytes of a configuration file that are read."""


@dataclass(frozen=True, slots=True)
class Registries:
    """What the operator configured: hosts for the list, directories to bind, and variables that say it all inside.

    Logins that stood in an address are not in `variables`: no secret goes into a sandbox. `logins` names their hosts.
    """

    hosts: tuple[str, ...] = ()
    binds: tuple[Bind, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    logins: tuple[str, ...] = ()


def configured_registries(
    variables: Mapping[str, str], home: Path, *, machine: Path = Path("/etc"), hidden: tuple[Path, ...] = ()
) -> Registries:
    """Read what pip, uv, npm, Cargo and Go are told by variables and files; what can't be read counts as absent."""
    found = _Found(HiddenPaths(home, hidden))
    config = Path(variables.get("XDG_CONFIG_HOME") or home / ".config")
    for kind, text in (*_from_variables(variables), *_from_files(variables, home, config, machine)):
        found.add(kind, text)
    for name in CERTIFICATES:
        found.add_certificates(name, variables.get(name, ""))
    return found.registries()


def _from_variables(variables: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, kind in _LISTS.items():
        for part in re.split(r"[\s,|]+", variables.get(name, "")):
            yield kind, re.sub(r"^[A-Za-z0-9_.-]+=(?=\w+:|/)", "", part)  # uv: name=address


def _from_files(variables: Mapping[str, str], home: Path, config: Path, machine: Path) -> Iterator[tuple[str, str]]:
    """The nearest file first: where one value counts, it is the first."""
    absent = Path("/dev/null")
    pip = [config / "pip/pip.conf", home / ".pip/pip.conf", machine / "xdg/pip/pip.conf", machine / "pip.conf"]
    for file in (Path(variables.get("PIP_CONFIG_FILE") or absent), *pip):
        yield from _pip(file)
    for file in (Path(variables.get("UV_CONFIG_FILE") or absent), config / "uv/uv.toml", machine / "uv/uv.toml"):
        yield from _uv(_toml(file))
    for file in (Path(variables.get("NPM_CONFIG_USERCONFIG") or home / ".npmrc"), machine / "npmrc"):
        yield from _npm(file)
    for file in (home / ".cargo/config.toml", home / ".cargo/config"):
        yield from _cargo(_toml(file))


def _pip(file: Path) -> Iterator[tuple[str, str]]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(_read(file))
    except configparser.Error:
        return
    for section in parser.sections():
        for key, kind in _PIP_KEYS.items():
            for part in parser.get(section, key, fallback="").split():
                yield kind, part


def _uv(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for part in (document, document.get("pip")):
        if not isinstance(part, dict):
            continue
        for key, kind in _PIP_KEYS.items():
            yield from ((kind, text) for text in _texts(part.get(key)))
    indexes = document.get("index")
    for index in indexes if isinstance(indexes, list) else ():
        if isinstance(index, dict):
            yield ("default" if index.get("default") is True else "index"), str(index.get("url", ""))


def _npm(file: Path) -> Iterator[tuple[str, str]]:
    for line in _read(file).splitlines():
        found = re.fullmatch(r"\s*(@[^:\s]+:)?registry\s*=\s*\"?([^\s\"]+)\"?\s*", line)
        if found:
            yield ("host" if found[1] else "npm"), found[2]


def _cargo(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for table, key in (("source", "registry"), ("registries", "index")):
        entries = document.get(table)
        for entry in entries.values() if isinstance(entries, dict) else ():
            for text in _texts(entry.get(key) if isinstance(entry, dict) else None):
                yield "host", text.removeprefix("sparse+")


class _Found:
    """Gathers addresses by what they are for."""

    def __init__(self, grounds: HiddenPaths) -> None:
        self._grounds = grounds
        self._hosts: dict[str, None] = {}
        self._binds: dict[Path, Bind] = {}
        self._logins: dict[str, None] = {}
        self._texts: dict[str, dict[str, None]] = {}
        self._certificates: dict[str, str] = {}

    def add(self, kind: str, text: str) -> None:
        """Take one address: of a host, or of a directory here."""
        if not text:
            return
        place = _local(text)
        clean = self._take_place(place) if place is not None else self._take_host(text)
        if clean:
            self._texts.setdefault(kind, {})[clean if place is None or "://" not in text else place.as_uri()] = None

    def _take_place(self, place: Path) -> str:
        folder = place.resolve()
        if folder.name == "simple" and not self._grounds.refusal(folder.parent):
            folder = folder.parent  # its pages point to files beside it
        if not folder.exists() or self._grounds.refusal(folder):
            return ""
        self._binds[folder] = Bind(folder, folder)
        return str(place)

    def _take_host(self, text: str) -> str:
        try:
            parts = urlsplit(text)
            port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
            if port is None or not parts.hostname:
                return ""
            host = parse_host(f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname)
        except (BadHost, ValueError):
            return ""
        target = HostPort(host, port)
        self._hosts[str(target)] = None
        if parts.username is not None:
            self._logins[host] = None
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))

    def add_certificates(self, name: str, text: str) -> None:
        """Take a file of certificates that the operator's programs are told to trust."""
        file = Path(text or ".")
        if not file.is_absolute() or not file.is_file() or self._grounds.refusal(file.resolve()):
            return
        self._certificates[name] = text
        if not file.is_relative_to("/etc/ssl") and not is_system(file):  # seen in every sandbox
            self._binds[file] = Bind(file.resolve(), file)

    def registries(self) -> Registries:
        """Everything, each once."""
        default, index, links = (list(self._texts.get(kind, ())) for kind in ("default", "index", "links"))
        npm, go = (list(self._texts.get(kind, ())) for kind in ("npm", "go"))
        told = {
            "PIP_INDEX_URL": default[0] if default else "",
            "PIP_EXTRA_INDEX_URL": " ".join(index),
            "PIP_FIND_LINKS": " ".join(links),
            "UV_DEFAULT_INDEX": default[0] if default else "",
            "UV_INDEX": " ".join(index),
            "UV_FIND_LINKS": ",".join(links),
            "NPM_CONFIG_REGISTRY": npm[0] if npm else "",
            "GOPROXY": ",".join(go),
            **self._certificates,
        }
        kept = {name: value for name, value in told.items() if value}
        return Registries(tuple(self._hosts), tuple(self._binds.values()), kept, tuple(self._logins))


def _local(text: str) -> Path | None:
    if text.startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    return Path(text) if text.startswith("/") else None


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _toml(file: Path) -> Mapping[str, Any]:
    import tomllib

    try:
        return tomllib.loads(_read(file))
    except tomllib.TOMLDecodeError:
        return {}


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
