"""What a request asks of a model, read whole before it is sent: the model, and what the answer can cost at most.

A token is at least one byte of text for every tokenizer in use, so the bytes of a request are the most tokens that its
text can be. What the vendor counted for an earlier request of the turn is taken for the parts that both share.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from bailiwick.agents.broker.content import (
    IMAGE_TOKENS,
    OTHER_IMAGE_TOKENS,
    SAME_PRICE,
    UNCOUNTED,
    Held,
    check_options,
    look_at,
    own_tools,
)
from bailiwick.agents.prices import Price, TokenCount
from bailiwick.egress.http1 import bad_request
from bailiwick.ids import Json
from bailiwick.strict_json import finite_number, is_deep, refuse_constant, unique_keys

MAX_DEPTH = 100
MAX_PARTS = 4_000_000
"""Brackets and commas of a request: each may become an object in memory."""
MOST_TOKENS = 10**9
MOST_CHOICES = 128
AROUND = 1_000
"""Tokens that a vendor puts around a request: the instructions for tools."""
LEAST_OUTPUT = 1_024
"""Tokens of an answer that is worth asking for; a request whose limit is lower keeps it."""
KEPT, KEPT_BYTES = 4, 4 << 20
"""Earlier requests that are remembered for what the vendor counted, and the bytes of the largest of them."""
_SLACK = 64
LIMITS: Final[Mapping[str, tuple[str, ...]]] = {
    "/v1/messages": ("max_tokens",),
    "/v1/responses": ("max_output_tokens",),
    "/v1/chat/completions": ("max_completion_tokens", "max_tokens"),
}
"""Where the limit of an answer stands, per path; the last is what is put in where none is."""
_GOVERNING = frozenset(
    {"model", "n", "stream", "stream_options", "tools", "thinking", *UNCOUNTED, *SAME_PRICE}
    | {name for names in LIMITS.values() for name in names}
)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request. `output` is the limit that it names for each of `choices` answers; None where it names none."""

    path: str
    model: str
    body: bytes = field(repr=False)
    said: Mapping[str, Json] = field(repr=False)
    held: Held = field(default_factory=Held)
    output: int | None = None
    choices: int = 1
    least: int = LEAST_OUTPUT
    changed: bool = False

    @property
    def text(self) -> int:
        """Tokens of its prompt at most, documents left out: their pages are more than their bytes tell."""
        image = IMAGE_TOKENS.get(self.path, OTHER_IMAGE_TOKENS)
        return len(self.body) - self.held.data + self.held.images * image + AROUND

    def prompt(self, known: Known, window: int | None) -> int | None:
        """Tokens of its prompt at most; None where nobody can say, which is a document for a model of unknown size."""
        if self.held.documents:
            return window
        most = min(self.text, known.most(self))
        return most if window is None else min(most, window)

    def limited(self, output: int) -> ModelRequest:
        """The same with at most so many tokens in each answer."""
        if self.output == output:
            return self
        names = [name for name in LIMITS[self.path] if self.said.get(name) is not None] or [LIMITS[self.path][-1]]
        return replace(self, said={**self.said, **dict.fromkeys(names, output)}, output=output, changed=True)

    def telling(self) -> ModelRequest:
        """The same, asking for the count at the end of a stream of chat completions."""
        if self.path != "/v1/chat/completions" or self.said.get("stream") is not True:
            return self
        options = self.said.get("stream_options")
        given = options if isinstance(options, dict) else {}
        if given.get("include_usage") is True:
            return self
        return replace(self, said={**self.said, "stream_options": {**given, "include_usage": True}}, changed=True)

    def sent(self) -> bytes:
        """The bytes that are sent: those that came, unless something had to be changed."""
        return json.dumps(self.said).encode() if self.changed else self.body


@dataclass(slots=True)
class Known:
    """What the vendor counted for earlier requests of a turn."""

    _requests: list[tuple[str, str, bytes, int]] = field(default_factory=list, repr=False)

    def learn(self, asked: ModelRequest, tokens: int) -> None:
        """The prompt of a request had so many tokens."""
        if asked.held.documents or len(asked.body) > KEPT_BYTES:
            return
        self._requests = [*self._requests[1 - KEPT :], (asked.path, asked.model, asked.body, tokens)]

    def most(self, asked: ModelRequest) -> int:
        """Tokens of a prompt at most, by its differences to earlier ones; every image counts as a new one."""
        images = asked.held.images * IMAGE_TOKENS.get(asked.path, OTHER_IMAGE_TOKENS)
        bounds = [
            tokens + _apart(body, asked.body) + images + _SLACK
            for path, model, body, tokens in self._requests
            if (path, model) == (asked.path, asked.model)
        ]
        return min(bounds, default=MOST_TOKENS)


def _apart(old: bytes, new: bytes) -> int:
    """Bytes of the new text that are neither at its beginning nor at its end as in the old one."""
    short = min(len(old), len(new))
    begin = largest(0, short, lambda n: old[:n] == new[:n])
    end = largest(0, short - begin, lambda n: old[len(old) - n :] == new[len(new) - n :])
    return len(new) - begin - end


def largest(least: int, most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits, where all smaller ones do; `least` is taken to fit."""
    if fits(most):
        return most
    low, high = least, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def read_asked(path: str, body: bytes) -> ModelRequest:
    """Read a request's body; raises `Refused` for what could be read in two ways, or costs what nobody can say."""
    said = _object(body)
    _check_names(said)
    model = said.get("model")
    if not isinstance(model, str) or not model.strip() or len(model) > 300 or not model.isprintable():
        raise bad_request("the request names no model: set the field model to its name")
    check_options(said)
    held = look_at(said)
    asked = ModelRequest(path, model=model, body=body, said=said, held=held)
    if path not in LIMITS:
        return asked
    tools = own_tools(said)
    if tools is not None:
        asked = replace(asked, said={**said, "tools": tools}, changed=True)
    given = [_whole(said, name, MOST_TOKENS) for name in LIMITS[path]]
    outputs = [number for number in given if number is not None]
    output = max(outputs) if outputs else None
    choices = _whole(said, "n", MOST_CHOICES) or 1
    least = min(LEAST_OUTPUT, output or LEAST_OUTPUT) + _thinking(said)
    return replace(asked, output=output, choices=choices, least=least)


def _object(body: bytes) -> dict[str, Json]:
    if sum(body.count(mark) for mark in (b"[", b"{", b",")) > MAX_PARTS:
        raise bad_request(f"the request has more than {MAX_PARTS} parts")
    try:
        said = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=unique_keys,
            parse_constant=refuse_constant,
            parse_float=finite_number,
        )
    except RecursionError:
        raise bad_request("the request is nested too deeply") from None
    except ValueError as error:
        raise bad_request(f"the request is not JSON: {error}"[:300]) from None
    if not isinstance(said, dict):
        raise bad_request("the request is not a JSON object")
    if is_deep(said, MAX_DEPTH):
        raise bad_request("the request is nested too deeply")
    return said


def _check_names(said: Mapping[str, Json]) -> None:
    """Some servers read names without regard to case: a second spelling could be what they go by."""
    for name in said:
        if name not in _GOVERNING and name.casefold() in _GOVERNING:
            raise bad_request(f"the field {name.casefold()} is written in another way: {name[:60]!r}")


def _whole(said: Mapping[str, Json], name: str, most: int) -> int | None:
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise bad_request(f"the field {name} is not a whole number from 1 to {most}")
    return value


def _thinking(said: Mapping[str, Json]) -> int:
    """Tokens that the limit of an answer has to be above because the request wants so many for thinking."""
    thinking = said.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return 0
    return _whole(thinking, "budget_tokens", MOST_TOKENS) or 0


def worst(price: Price, asked: ModelRequest, prompt: int, output: int) -> float | None:
    """Dollars of a request at most: a prompt that is written to a cache is dearer than one that is read."""
    tokens = TokenCount(prompt, output * asked.choices)
    ways = [tokens]
    if asked.held.writes_cache:
        ways.append(replace(tokens, written=prompt))
    if asked.held.writes_hour:
        ways.append(replace(tokens, written=prompt, written_hour=prompt))
    costs = [price(asked.model, way) for way in ways]
    known = [cost for cost in costs if cost is not None]
    return max(known) if len(known) == len(costs) else None
