"""Which models a server has in memory now. A look that costs nothing: too slow or odd an answer means: not known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from bailiwick.agents.http import ApiRequest, CallFailed, Endpoint, calling, with_scheme
from bailiwick.agents.settings import TurnTimeouts
from bailiwick.agents.streams import as_object
from bailiwick.ids import Json
from bailiwick.routing.endpoints import LLAMA_SWAP, EndpointAddress, bare_name

PROBE_SECONDS = 0.2
MOST = 1 << 20
"""Bytes of an answer to a probe."""
_LATEST = ":latest"
_ONE_MODEL = frozenset({"llamacpp", "vllm"})
"""Servers that load what they list before they answer, by what they call themselves in that list."""
_ANY = "*"
"""Loaded whatever it is asked for: llama-server with one model takes every name for it."""


@dataclass(frozen=True, slots=True)
class WarmProbe:
    """One question about what is loaded: where, and how the answer is read."""

    endpoint: Endpoint
    url: str
    read: Callable[[dict[str, Json]], list[str]]


def probes_of(place: EndpointAddress, llama_swap_url: str = "") -> list[WarmProbe]:
    """Who can tell what a place has loaded: Ollama itself, also behind a proxy, llama-swap, llama-server or vLLM."""
    out: list[WarmProbe] = []
    if place.kind == "ollama":
        out.append(WarmProbe(place.reach, place.at("/api/ps"), _of_ollama))
    elif place.endpoint == LLAMA_SWAP:
        out.append(WarmProbe(place.reach, place.at("/running"), _of_llama_swap))
    elif place.kind == "endpoint":
        out.append(WarmProbe(place.reach, place.at("/v1/models"), _of_list))
    if place.behind:
        out.append(WarmProbe(Endpoint(place.behind), f"{place.behind.rstrip('/')}/api/ps", _of_ollama))
    swap = with_scheme(llama_swap_url).rstrip("/").removesuffix("/v1")
    if swap and place.endpoint != LLAMA_SWAP:
        out.append(WarmProbe(Endpoint(swap), f"{swap}/running", _of_llama_swap))
    return out


async def is_warm(place: EndpointAddress, model: str, llama_swap_url: str = "") -> bool:
    """Whether a model is loaded, told within 200 ms; False where nobody can say. Never raises."""
    loaded = await _told(place, llama_swap_url, PROBE_SECONDS)
    if _ANY in loaded:
        return True
    wanted = {model, bare_name(model), place.name_to_send} - {""}
    return any(_plain(name) in {_plain(each) for each in wanted} for name in loaded)


async def loaded_models(place: EndpointAddress, llama_swap_url: str = "", seconds: float = PROBE_SECONDS) -> list[str]:
    """The models that are loaded now, as far as that is told in time. Never raises."""
    return [name for name in await _told(place, llama_swap_url, seconds) if name != _ANY]


async def _told(place: EndpointAddress, llama_swap_url: str, seconds: float) -> list[str]:
    import httpx2  # noqa: F401 - the first import takes longer than a probe may

    told = await asyncio.gather(*(_ask(probe, seconds) for probe in probes_of(place, llama_swap_url)))
    return list(dict.fromkeys(name for names in told for name in names))


async def look(endpoint: Endpoint, url: str, seconds: float) -> dict[str, Json]:
    """The JSON object at an address; whatever goes wrong is `CallFailed`, `TimeoutError`, `OSError` or `ValueError`."""
    async with (
        asyncio.timeout(seconds),
        calling(ApiRequest(endpoint, url, clocks=TurnTimeouts(seconds, seconds))) as reply,
    ):
        if reply.status != 200:
            raise ValueError(f"the server answered with status {reply.status}")
        found = as_object(await reply.body(MOST))
    if found is None:
        raise ValueError("the answer is not a JSON object")
    return found


async def _ask(probe: WarmProbe, seconds: float) -> list[str]:
    try:
        return probe.read(await look(probe.endpoint, probe.url, seconds))
    except (CallFailed, OSError, ValueError):
        return []


def _of_ollama(answer: dict[str, Json]) -> list[str]:
    return [name for part in _parts(answer.get("models")) if isinstance(name := part.get("name"), str)]


def _of_llama_swap(answer: dict[str, Json]) -> list[str]:
    """What runs; one that is being started or stopped is not ready to answer."""
    running = (part for part in _parts(answer.get("running")) if part.get("state", "ready") == "ready")
    return [name for part in running if isinstance(name := part.get("model"), str)]


def _of_list(answer: dict[str, Json]) -> list[str]:
    """What llama-server and vLLM have loaded: what they list; with several models llama-server tells of each."""
    ours = [part for part in _parts(answer.get("data")) if part.get("owned_by") in _ONE_MODEL]
    states = [(part.get("id"), part.get("status")) for part in ours]
    ready = [name for name, status in states if not isinstance(status, dict) or status.get("value") == "loaded"]
    alone = len(ours) == 1 and ours[0].get("owned_by") == "llamacpp" and "status" not in ours[0]
    return [*(name for name in ready if isinstance(name, str)), *([_ANY] if alone else [])]


def _parts(listed: Json) -> list[dict[str, Json]]:
    return [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []


def _plain(name: str) -> str:
    return name.removesuffix(_LATEST)
