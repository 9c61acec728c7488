"""Where a local model answers: a LiteLLM proxy, a configured endpoint, else Ollama; and whether that leaves the house.

Whether an address is in the house is told by the address alone: nothing is looked up, so nothing can change the answer.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from bailiwick.agents.http import Endpoint, with_scheme
from bailiwick.config.secrets import checked_token, resolve_secret
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.egress.hosts import bypasses
from bailiwick.errors import UsageError
from bailiwick.ids import Json

PlaceKind = Literal["litellm", "endpoint", "ollama"]

BAD_ADDRESS = "BW287"
LITELLM, OLLAMA, LLAMA_SWAP = "litellm", "ollama", "llama-swap"
LITELLM_KEY = "LITELLM_API_KEY"
OLLAMA_PORT = 11434
OLLAMA_URL = f"http://localhost:{OLLAMA_PORT}"
AT_HOME, ABROAD = 1, 4
"""Calls at once where nothing is configured: a machine of one's own has one model in memory, a service has many."""

_FIRST = ("openai", LLAMA_SWAP)
"""Endpoints that are asked before others that are in the house too."""
_OWN_PROVIDERS = frozenset(
    {"ollama", "ollama_chat", "llamafile", "lm_studio", "hosted_vllm", "vllm", "xinference", "docker_model_runner"}
)
"""What LiteLLM calls servers that people run themselves; any other name may be a vendor's."""
_HOUSE = tuple(
    ipaddress.ip_network(net)
    for net in (
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10",
        "::1/128", "fc00::/7", "fe80::/10",
    )
)  # fmt: skip
_HOUSE_NAMES = (".localhost", ".local", ".lan", ".internal", ".home.arpa")


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """Where one local model answers, and under which name. `key` is the endpoint's identity, whatever the model.

    `behind` is the Ollama that a proxy passes this model on to, as far as its name says so: it knows what is loaded.
    """

    url: str
    name_to_send: str
    token: str | None = field(default=None, repr=False)
    key: str = ""
    concurrency: int = AT_HOME
    kind: PlaceKind = "ollama"
    endpoint: str = OLLAMA
    cloud: bool = False
    proxy: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    behind: str = ""

    @property
    def reach(self) -> Endpoint:
        """The place as our own HTTP calls want it."""
        return Endpoint(self.url, self.token, self.proxy, self.ca_file)

    @property
    def to_start(self) -> str:
        """What to do where nothing listens there."""
        known = {OLLAMA: "start Ollama: ollama serve", LITELLM: "start LiteLLM: litellm --config FILE"}
        start = known.get(self.endpoint, f"start the server of the endpoint '{self.endpoint}'")
        return f"{start}; or name another address: bailiwick config set endpoints.{self.endpoint}.url URL"

    def at(self, path: str) -> str:
        """The address of a path of its own API, beside `/v1`."""
        return self.url.rstrip("/").removesuffix("/v1") + path


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The configured endpoints. `entries` alone is enough to tell where a model goes; `of` brings what opens them."""

    entries: Mapping[str, Json] = field(default_factory=dict)
    secret: Callable[[str], str | None] = field(default=lambda _name: None, repr=False)
    proxy: str = field(default="", repr=False)
    no_proxy: str = ""
    ca_file: Path | None = None

    @classmethod
    def of(cls, config: Config, environment: Environment | None = None) -> Endpoints:
        """The endpoints of a configuration; a key is looked up when its endpoint is first asked for."""
        env = environment or Environment()
        entries: dict[str, Json] = config.get("endpoints") or {}
        ca_file = config.get("network.ca_file")

        def secret(name: str) -> str | None:
            reference = (entries.get(name) or {}).get("key")
            if reference:
                return resolve_secret(str(reference), env, config)
            token = env.text(LITELLM_KEY) if name == LITELLM else None
            return checked_token(token, LITELLM_KEY) if token else None

        proxy, no_proxy = (str(config.get(f"network.{name}") or "") for name in ("proxy", "no_proxy"))
        return cls(entries, secret, proxy, no_proxy=no_proxy, ca_file=Path(ca_file) if ca_file else None)

    def place(self, model: str) -> EndpointAddress:
        """Where a local model answers. Raises `UsageError` for an address that is none, `NotReady` without its key."""
        return self._place(self.chosen(model), model)

    def at(self, name: str) -> EndpointAddress:
        """An endpoint by its name, for no model in particular; raises as `place` does."""
        return self._place(name, "")

    def names(self) -> list[str]:
        """Every endpoint that local models may go to: the configured ones, or Ollama alone."""
        return [name for name in (LITELLM, *self._order(), OLLAMA) if self._given(name)] or [OLLAMA]

    def chosen(self, model: str) -> str:
        """The name of the endpoint that a model goes to."""
        if self._given(LITELLM):
            return LITELLM
        prefix = model.partition("/")[0] if "/" in model else ""
        if prefix and self._given(prefix):
            return prefix
        others = [name for name in self._order() if prefix != OLLAMA or in_house(self._parts(name).hostname or "")]
        return others[0] if others else OLLAMA

    def is_cloud(self, model: str) -> bool:
        """Whether asking a local model may leave the house; where that can't be told, it does."""
        name = self.chosen(model)
        if model.endswith((":cloud", "-cloud")):  # Ollama passes such a model's questions on to its vendor
            return True
        if self._is_abroad(name):
            return True
        may_pass_on = name == LITELLM and not isinstance(self._entry(name).get("cloud"), bool)
        return may_pass_on and not ("/" in model and model.partition("/")[0] in _OWN_PROVIDERS)

    def _is_abroad(self, name: str) -> bool:
        """Whether an endpoint is outside, by the operator's word or by its address."""
        said = self._entry(name).get("cloud")
        return said if isinstance(said, bool) else not in_house(self._parts(name).hostname or "")

    def _entry(self, name: str) -> Mapping[str, Json]:
        entry = self.entries.get(name)
        return entry if isinstance(entry, dict) else {}

    def _given(self, name: str) -> bool:
        return bool(self._entry(name).get("url"))

    def _order(self) -> list[str]:
        """The configured endpoints but LiteLLM and Ollama: those in the house first."""
        names = [name for name in self.entries if self._given(name) and name not in (LITELLM, OLLAMA)]
        rank = {name: number for number, name in enumerate(_FIRST)}
        return sorted(
            names, key=lambda name: (not in_house(self._parts(name).hostname or ""), rank.get(name, len(rank)), name)
        )

    def _parts(self, name: str) -> SplitResult:
        return _parsed(self._url(name), name)

    def _url(self, name: str) -> str:
        url = str(self._entry(name).get("url") or "")
        return _ollama_url(url or OLLAMA_URL) if name == OLLAMA else with_scheme(url)

    def _place(self, name: str, model: str) -> EndpointAddress:
        parts = self._parts(name)
        host = parts.hostname or ""
        wanted = self._entry(name).get("concurrency")
        kind: PlaceKind = "litellm" if name == LITELLM else "ollama" if name == OLLAMA else "endpoint"
        own = in_house(host)
        return EndpointAddress(
            url=self._url(name),
            name_to_send=_name_to_send(name, model),
            token=self.secret(name),
            key=_identity(parts),
            concurrency=int(wanted) if wanted else AT_HOME if own else ABROAD,
            kind=kind,
            endpoint=name,
            cloud=self.is_cloud(model) if model else self._is_abroad(name),
            proxy=self.proxy if self.proxy and not own and not bypasses(host, self.no_proxy) else None,
            ca_file=self.ca_file,
            behind=self._url(OLLAMA) if kind == "litellm" and bare_name(model) != model else "",
        )


@lru_cache(maxsize=256)
def in_house(host: str) -> bool:
    """Whether a host is this machine or in a private network; a name without a domain is one of that network."""
    bare = host.strip("[]").rstrip(".").lower()
    if not bare:
        return False
    try:
        address = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return _is_house_name(bare)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return any((mapped or address) in network for network in _HOUSE)


def _is_house_name(name: str) -> bool:
    """A name without a domain is looked up in the network around; one that is a number in disguise is no name."""
    if "." not in name:
        return not name[0].isdigit()
    return name.endswith(_HOUSE_NAMES)


def bare_name(model: str) -> str:
    """A model's name as servers that are asked directly know it: `ollama/phi4` is phi4 there."""
    prefix, _, rest = model.partition("/")
    return rest if prefix in ("ollama", "ollama_chat") and rest else model


def _name_to_send(endpoint: str, model: str) -> str:
    if endpoint == LITELLM:
        return model
    return model.removeprefix(f"{endpoint}/") if model.startswith(f"{endpoint}/") else bare_name(model)


def _ollama_url(url: str) -> str:
    """Ollama's own variable also says where its server listens: `0.0.0.0` is everywhere, and the port may be left out.

    With a scheme and no port, the scheme's port is meant.
    """
    full = with_scheme(url)
    parts = _parsed(full, OLLAMA)
    host = "127.0.0.1" if parts.hostname == "0.0.0.0" else parts.hostname or ""  # noqa: S104 - replaced, not bound
    port = parts.port or (None if "://" in url else OLLAMA_PORT)
    at = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{at}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


@lru_cache(maxsize=256)
def _parsed(url: str, name: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0):
            return parts
    except ValueError:
        pass
    raise UsageError(
        f"endpoints.{name}.url is not an address that can be called",
        hint=f"set it to http://HOST:PORT or https://HOST: bailiwick config set endpoints.{name}.url URL",
        code=BAD_ADDRESS,
    )


def _identity(parts: SplitResult) -> str:
    """An endpoint's address without what may differ or has to stay secret: one server has one identity."""
    host = (parts.hostname or "").lower()
    port = parts.port or (443 if parts.scheme == "https" else 80)
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{'127.0.0.1' if host in ('localhost', '::1') else host}:{port}{path}"
