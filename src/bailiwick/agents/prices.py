"""What tokens cost, from a table that comes with the installation. An unknown model has no price, which is not zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from urllib.parse import urlsplit

from bailiwick.ids import Json

LOCAL = frozenset({"ollama", "simulate"})
"""Backends whose models run on the person's own machine, or nowhere."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Tokens of an answer. `input` is the whole prompt: what came from the cache and what was written to it included.

    `written_hour` is the part of `written` that is kept for an hour, which is dearer.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    written_hour: int = 0

    def at_least(self, output: int) -> TokenCount:
        """The same with an answer of that many tokens, if it was counted shorter."""
        return replace(self, output=max(self.output, output))

    def __add__(self, other: TokenCount) -> TokenCount:
        return TokenCount(
            self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            written=self.written + other.written,
            written_hour=self.written_hour + other.written_hour,
        )

    def __bool__(self) -> bool:
        return bool(self.input or self.output)


Price = Callable[[str, TokenCount], float | None]
"""Dollars of some tokens of a model; None is unknown."""


def price(model: str, usage: TokenCount) -> float | None:
    """Dollars by the table; None for a model that it does not know, or knows without a price."""
    found = _look_up(model, usage)
    return None if found == 0 and usage else found


def context_window(model: str) -> int | None:
    """Tokens that a model takes at most by the table; None where it does not say."""
    from genai_prices import Usage, calc_price

    for name, provider in _spellings(model):
        try:
            return calc_price(Usage(), name, provider_id=provider).model.context_window
        except (LookupError, ValueError):
            continue
    return None


def free(_model: str, _usage: TokenCount) -> float | None:
    """The price of a model on the person's own machine."""
    return 0.0


def price_for(backend: str, endpoints: Mapping[str, Json] = MappingProxyType({}), base_url: str = "") -> Price:
    """How a backend's tokens are priced: those of local backends, and of endpoints configured `free`, cost nothing."""
    return free if backend in LOCAL or is_free(endpoints, base_url) else price


def is_free(endpoints: Mapping[str, Json], base_url: str) -> bool:
    """Whether an address belongs to an endpoint that the configuration calls free."""
    if not base_url:
        return False
    here = _origin(base_url)
    return any(
        isinstance(entry, dict) and entry.get("free") is True and _origin(str(entry.get("url"))) == here
        for entry in endpoints.values()
    )


def warm() -> None:
    """Load the table. It takes half a second: call it in a thread before the first answer is priced."""
    price("", TokenCount())


def _origin(url: str) -> str:
    return urlsplit(url if "://" in url else f"http://{url}").netloc.rpartition("@")[2].lower()


def _look_up(model: str, usage: TokenCount) -> float | None:
    from genai_prices import Usage, calc_price

    counted = Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=usage.cached or None,
        cache_write_tokens=usage.written or None,
        cache_write_1h_tokens=usage.written_hour or None,
    )
    for name, provider in _spellings(model):
        try:
            return float(calc_price(counted, name, provider_id=provider).total_price)
        except (LookupError, ValueError):
            continue
    return None


def _spellings(model: str) -> list[tuple[str, str | None]]:
    """How the table may know a model: by its name, or behind a gateway by the vendor's name before a slash."""
    plain: list[tuple[str, str | None]] = [(model, None)]
    return [*plain, (model, "litellm"), (model, "openrouter")] if "/" in model else plain
