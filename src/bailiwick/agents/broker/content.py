"""What a request holds besides its text: images, documents, tools, and options that cost apart from tokens.

What is not in the request can't be counted before it is sent, and what the vendor fetches or runs for a model leads to
hosts that the turn was not given: both are refused, in words that say what to leave out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bailiwick.egress.http1 import bad_request
from bailiwick.ids import Json

IMAGE_TOKENS: Mapping[str, int] = {"/v1/messages": 5_000, "/v1/messages/count_tokens": 5_000}
"""Tokens of one image at most, as the vendor documents it; `OTHER_IMAGE_TOKENS` for the paths that are not listed."""
OTHER_IMAGE_TOKENS = 50_000
CLIENT_TOOLS = (
    "custom",
    "function",
    "bash_",
    "text_editor_",
    "computer",
    "memory_",
    "tool_search",
    "local_shell",
    "shell",
    "apply_patch",
    "namespace",
)
"""How the types of tools begin that the agent's own program runs; any other is run, and billed apart, by the vendor."""
UNCOUNTED: Mapping[str, str] = {
    "previous_response_id": "it stands for input that is not in the request",
    "conversation": "it stands for input that is not in the request",
    "prompt": "it stands for input that is not in the request",
    "background": "such an answer goes on when no client waits for it",
    "mcp_servers": "the vendor would connect to other hosts",
    "web_search_options": "a search by the vendor costs apart from tokens",
    "plugins": "the gateway would run them, and they cost apart from tokens",
    "prediction": "what is predicted is billed besides the limit of the answer",
    "audio": "sound is billed apart from text",
    "models": "only the one model in `model` is looked at",
    "fallbacks": "only the one model in `model` is looked at",
    "model_list": "only the one model in `model` is looked at",
    "api_base": "the address is not the turn's to choose",
    "base_url": "the address is not the turn's to choose",
    "api_key": "the credential is not the turn's to choose",
}
"""Fields that must not be set, and why."""
SAME_PRICE: Mapping[str, frozenset[str]] = {
    "service_tier": frozenset({"auto", "default", "standard", "standard_only", "flex"}),
    "speed": frozenset({"standard"}),
    "inference_geo": frozenset({"global", "not_available"}),
}
"""Fields that change the price, with the values that do not raise it."""
_ELSEWHERE = frozenset({"item_reference", "input_audio", "container_upload"})
_UNREAD = frozenset({"input_schema", "parameters", "metadata", "response_format", "output_config"})
"""Fields of free shape: what looks like a block in them is none."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a request holds: how many images and documents, the bytes of their data, how its prompt may be cached."""

    images: int = 0
    documents: int = 0
    data: int = 0
    writes_cache: bool = False
    writes_hour: bool = False


def check_options(said: Mapping[str, Json]) -> None:
    """Refuse what makes the cost of a request unknowable."""
    for name, why in UNCOUNTED.items():
        if said.get(name):
            raise bad_request(f"the field {name} is not forwarded: {why}; leave it out")
    for name, values in SAME_PRICE.items():
        value = said.get(name)
        if value is not None and (not isinstance(value, str) or value not in values):
            raise bad_request(f"the field {name} may only be one of {', '.join(sorted(values))}: others cost more")
    if said.get("modalities") not in (None, ["text"]):
        raise bad_request("the field modalities may only be text: others are billed apart")


def own_tools(said: Mapping[str, Json]) -> list[Json] | None:
    """The tools without those that the vendor runs; None where all may stay. Raises `Refused` if none were left."""
    tools = said.get("tools")
    if tools is None:
        return None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise bad_request("the field tools is not a list of objects")
    kept = [tool for tool in tools if _is_own(tool)]
    if len(kept) == len(tools):
        return None
    if not kept:
        named = sorted({str(tool.get("type"))[:60] for tool in tools})
        raise bad_request(
            f"tools that the vendor runs are not forwarded ({', '.join(named)}): they cost apart from tokens and reach "
            "other hosts"
        )
    return kept


def _is_own(tool: dict[str, Json]) -> bool:
    kind = tool.get("type")
    if kind is None:
        return True
    return isinstance(kind, str) and kind.startswith(CLIENT_TOOLS) and not tool.get("environment")


def look_at(said: Mapping[str, Json]) -> Held:
    """What a request holds; raises `Refused` for content that is only referred to."""
    images = documents = data = 0
    caches = hours = False
    for block in _blocks(said):
        control = block.get("cache_control")
        if control is not None:
            caches = True
            hours = hours or not isinstance(control, dict) or control.get("ttl") not in (None, "5m")
        media = _media(block)
        if media is not None:
            is_image, size = media
            images, documents, data = images + is_image, documents + (not is_image), data + size
    return Held(images, documents=documents, data=data, writes_cache=caches, writes_hour=hours)


def _blocks(said: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """Every object of the request that may be a block of content, at any depth."""
    stack: list[Json] = [dict(said)]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, dict):
            yield value
            is_call = str(value.get("type")).endswith("tool_use")
            stack.extend(
                below
                for name, below in value.items()
                if isinstance(below, dict | list) and name not in _UNREAD and not (is_call and name == "input")
            )


def _media(block: dict[str, Json]) -> tuple[bool, int] | None:
    """Whether a block is an image, and the bytes of its data; None where it is text."""
    kind, source = block.get("type"), block.get("source")
    if kind in _ELSEWHERE:
        raise _not_here(str(kind))
    if kind in ("image", "document") and isinstance(source, dict):
        return _anthropic(str(kind), source)
    if kind in ("image_url", "input_image"):
        return True, len(_inline(block.get("image_url"), str(kind)))
    if kind in ("file", "input_file"):
        held = block.get("file") if kind == "file" else block
        given = held.get("file_data") if isinstance(held, dict) else None
        return False, len(_inline(given, str(kind)))
    return None


def _anthropic(kind: str, source: dict[str, Json]) -> tuple[bool, int] | None:
    match source.get("type"), source.get("data"):
        case "base64", str(data):
            return kind == "image", len(data)
        case ("text", str()) | ("content", _):
            return None
        case _:
            raise _not_here(kind)


def _inline(value: Json, kind: str) -> str:
    """Data that is in the request itself."""
    url = value.get("url") if isinstance(value, dict) else value
    if not isinstance(url, str) or not url.lower().startswith("data:"):
        raise _not_here(kind)
    return url


def _not_here(kind: str) -> Exception:
    return bad_request(
        f"a block of type {kind} has to hold its data itself: what is elsewhere is neither counted nor fetched"
    )
