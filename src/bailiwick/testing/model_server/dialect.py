"""What the APIs have in common: an answer in our words, and the pieces in which it goes over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bailiwick.ids import Json
from bailiwick.testing.model_server.errors import ModelApiError
from bailiwick.testing.model_server.script import Fail, ScriptedUsage, Stop
from bailiwick.testing.model_server.tools import ToolCall

PIECE = 12
"""Characters of text in one event of a stream."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the model says in one answer; `uid` makes its ids unlike those of any other."""

    uid: str
    model: str
    text: str = ""
    thinking: str = ""
    call: ToolCall | None = None
    stop: Stop = "end"
    tokens: ScriptedUsage = field(default_factory=ScriptedUsage)
    created: int = 0


@dataclass(frozen=True, slots=True)
class Frames:
    """A stream: what comes up to the end of the text, and what closes the answer after it."""

    opening: list[bytes]
    closing: list[bytes]


class Dialect(Protocol):
    """One vendor's API."""

    media: str

    def offered(self, request: dict[str, Json]) -> Mapping[str, Json]:
        """The tools of a request: name to parameter schema."""

    def is_aside(self, request: dict[str, Json]) -> bool:
        """Whether a request is not part of the conversation: a title, a topic, a probe. It uses up no step."""
        return False

    def streams(self, request: dict[str, Json]) -> bool:
        """Whether the answer is wanted in pieces."""
        return bool(request.get("stream"))

    def whole(self, answer: ModelAnswer) -> dict[str, Json]:
        """The answer as one object."""

    def frames(self, answer: ModelAnswer) -> Frames:
        """The answer in pieces."""

    def refusal(self, fail: Fail, model: str, now: float) -> ModelApiError:
        """An error instead of an answer."""

    def broken(self, fail: Fail, answer: ModelAnswer, now: float) -> bytes:
        """An error within a stream."""


def pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """A text in pieces."""
    return (text[at : at + size] for at in range(0, len(text), size))


def event(name: str, data: Mapping[str, Json]) -> bytes:
    """A named server-sent event that carries its name as `type` too."""
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def says_title(text: Json) -> bool:
    """Whether instructions ask for a title or a topic instead of work."""
    said = json.dumps(text)[:4000].lower()
    return "title" in said or "topic" in said
