"""What a turn is given: an address, a token, one upstream, a budget; and what was learned while it used them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from bailiwick.agents.broker.asked import Known, ModelRequest
from bailiwick.agents.broker.meter import UsageMeter
from bailiwick.agents.broker.models import ModelList
from bailiwick.agents.broker.purse import Hold, Purse
from bailiwick.agents.port import AgentEvent, LimitSeen, Trouble, Used
from bailiwick.agents.prices import Price, TokenCount
from bailiwick.errors import UsageError

MODEL_PATHS: Mapping[str, str] = {
    "/v1/messages": "POST",
    "/v1/messages/count_tokens": "POST",
    "/v1/responses": "POST",
    "/v1/chat/completions": "POST",
    "/v1/models": "GET",
}
"""What a model's API is; everything else that a vendor's host offers is none of a turn's business."""
ANSWERS = frozenset({"/v1/messages", "/v1/responses", "/v1/chat/completions"})
"""Where a model answers, which costs money."""
ANSWER_TOKENS = 16_000
"""Tokens that an answer may have whose request names no limit."""
Charge = Literal["nothing", "as said", "in full"]
"""What a request costs for which the vendor told no numbers."""
VENDOR_HOSTS = frozenset({"api.anthropic.com", "api.openai.com"})
_TROUBLES = 20


@dataclass(frozen=True, slots=True)
class Upstream:
    """The one host that a turn may reach, and what opens it.

    `headers` replace the client's own of that name, `added` are appended to them (names in lower case); neither is
    ever shown. `proxy` is used for https only. `exact`: model paths follow the base without a /v1 of their own.
    """

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    added: Mapping[str, str] = field(default_factory=dict, repr=False)
    exact: bool = False
    proxy: str | None = field(default=None, repr=False)
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.base_url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            fits = False
        if not fits or any(not 0x20 < ord(letter) < 0x7F for letter in self.base_url):
            raise UsageError(
                "the address of a model API is not a URL",
                hint="write http://HOST:PORT or https://HOST",
                code="BW260",
            )
        for value in (*self.headers.values(), *self.added.values()):
            if not value.isprintable() or not value.isascii():
                raise UsageError(
                    "a credential holds a character that can't be sent",
                    hint="check where it comes from: a line break at its end, or another file",
                    code="BW261",
                )

    @property
    def is_secure(self) -> bool:
        """Whether it is reached by TLS."""
        return urlsplit(self.base_url).scheme == "https"

    @property
    def host(self) -> str:
        """The name of the host."""
        return str(urlsplit(self.base_url).hostname)

    @property
    def port(self) -> int:
        """Its port."""
        return urlsplit(self.base_url).port or (443 if self.is_secure else 80)

    @property
    def is_vendor(self) -> bool:
        """Whether it is the vendor's own host, whose API is known to the letter; a gateway's may differ."""
        return self.host in VENDOR_HOSTS

    @property
    def authority(self) -> str:
        """The host with its port where that is not the usual one, for the Host field."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    def target(self, path: str) -> str:
        """Where a model path is on that host; a base that ends in /v1 means the same as one that does not."""
        before = urlsplit(self.base_url).path.rstrip("/")
        return before + path.removeprefix("/v1") if self.exact else before.removesuffix("/v1") + path


@dataclass(frozen=True, slots=True)
class GrantRules:
    """What a turn may ask: which models (None: every one), and whether one without a known price.

    `answer_tokens` is the limit of an answer whose request names none.
    """

    models: ModelList | None = None
    unpriced: bool = False
    answer_tokens: int = ANSWER_TOKENS


@dataclass(slots=True)
class Counted:
    """What the answers of one model used together: the dollars are all there is only where `all_priced`."""

    tokens: TokenCount = field(default_factory=TokenCount)
    usd: float = 0.0
    all_priced: bool = True

    def add(self, tokens: TokenCount, usd: float | None) -> None:
        """Take the count of an answer that is over."""
        self.tokens += tokens
        self.usd += usd or 0.0
        self.all_priced = self.all_priced and usd is not None

    def told(self, model: str) -> Used:
        """The same as an event."""
        tokens = self.tokens
        return Used(tokens.input, tokens.output, tokens.cached, self.usd if self.all_priced else None, model=model)


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """A request that was admitted: what is sent, what counts its answer, what is set aside for it."""

    asked: ModelRequest
    meter: UsageMeter
    hold: Hold


@dataclass(slots=True, eq=False)
class Grant:
    """The rights of one turn. Valid until it is revoked; `facts` stay."""

    key: str
    base_url: str
    token: str = field(repr=False)
    upstream: Upstream
    purse: Purse
    price: Price = field(repr=False)
    rules: GrantRules = field(default_factory=GrantRules, repr=False)
    on_budget: Callable[[], None] | None = field(default=None, repr=False)
    why: Literal["budget"] | None = None
    tasks: set[asyncio.Task[None]] = field(default_factory=set, repr=False)
    known: Known = field(default_factory=Known, repr=False)
    bodies: int = 0
    _models: dict[str, Counted] = field(default_factory=dict, repr=False)
    _troubles: list[Trouble] = field(default_factory=list, repr=False)
    _limits: dict[str, LimitSeen] = field(default_factory=dict, repr=False)

    @property
    def limit_usd(self) -> float | None:
        """What the turn may cost."""
        return self.purse.limit

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be asked."""
        return self.why == "budget" or self.purse.is_empty

    def end(self, ticket: AdmittedRequest, charge: Charge) -> None:
        """A request is over: pay for it, and learn what the vendor counted."""
        meter = ticket.meter
        if charge == "nothing":
            self.purse.settle(ticket.hold, 0.0)
            return
        tokens = meter.charged(in_full=charge == "in full")
        usd = self.price(meter.model, tokens)
        self.purse.settle(ticket.hold, usd or 0.0)
        self._models.setdefault(meter.model, Counted()).add(tokens, usd)
        if meter.told is not None:
            self.known.learn(ticket.asked, meter.told.input)

    def stop(self) -> None:
        """The budget is reached: remember it, and tell whoever can end the agent."""
        first = self.why is None
        self.why = "budget"
        if first and self.on_budget is not None:
            self.on_budget()

    def went_well(self) -> None:
        """A model answered: what stood in the way before no longer does."""
        self._troubles.clear()
        self._limits = {name: replace(seen, hit=False) for name, seen in self._limits.items()}

    def note(self, event: Trouble | LimitSeen) -> None:
        """Keep a fact: the newest of each limit, the last few troubles."""
        if isinstance(event, LimitSeen):
            self._limits[event.window] = event
        else:
            self._troubles = [*self._troubles[1 - _TROUBLES :], event]

    def facts(self) -> list[AgentEvent]:
        """What is known of the turn from the wire: limits, use per model, and the troubles no answer came after."""
        used = [counted.told(model) for model, counted in self._models.items()]
        return [*self._limits.values(), *used, *self._troubles]
