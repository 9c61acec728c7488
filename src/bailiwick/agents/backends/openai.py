"""Any endpoint that speaks OpenAI's chat completions: a LiteLLM proxy, llama-swap, vLLM, Ollama's `/v1`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Self

from bailiwick.agents.extract import without_thinking
from bailiwick.agents.http import (
    CHECK_CLOCKS,
    NOT_THERE,
    ApiRequest,
    ApiResponse,
    CallFailed,
    Endpoint,
    calling,
    malformed,
    trouble_of,
    whole_number,
    with_scheme,
)
from bailiwick.agents.port import Answered, Capabilities, Compacted, Emit, Trouble, Turn, TurnIo, Used
from bailiwick.agents.settings import AgentSettings, TurnTimeouts, endpoint_of
from bailiwick.agents.streams import as_object
from bailiwick.clock import Clock, SystemClock
from bailiwick.ids import Json

_OURS = frozenset({"model", "messages", "stream", "stream_options", "response_format"})
_DONE = b"[DONE]"


class OpenaiBackend:
    """Asks a chat completions endpoint. `options["parameters"]` of a turn go into the request as they are."""

    name = "openai"

    def __init__(
        self,
        endpoint: Endpoint | None = None,
        *,
        model: str | None = None,
        schema: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.capabilities = Capabilities(schema=schema, credential="brokered", default_model=model, system=True)
        self._endpoint = endpoint or Endpoint()
        self._clock = clock or SystemClock()

    @classmethod
    def for_settings(cls, settings: AgentSettings) -> Self:
        """The backend for the first of these endpoints that is configured: openai, litellm, llama-swap."""
        return cls(Endpoint(with_scheme(str(endpoint_of(settings.endpoints, "openai").get("url") or ""))))

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        endpoint = self._endpoint.for_turn(turn)
        model = turn.model or self.capabilities.default_model
        if not endpoint.base_url or not model:
            lacks = "a base URL" if not endpoint.base_url else "a model"
            emit(Trouble(f"the backend 'openai' needs {lacks}: set it in the configuration", type=NOT_THERE))
            return
        body = self._body(turn, model)
        call = ApiRequest(endpoint, address(endpoint.base_url), body, clocks=TurnTimeouts.of(turn.options))
        answer = _Answer()
        try:
            async with calling(call) as reply:
                if reply.status != 200:
                    emit(await reply.error(self._clock.now()))
                    return
                await self._read(reply, answer)
        except CallFailed as failed:
            answer.tell_usage(emit)
            emit(failed.event)
            return
        answer.tell(emit, enforced="response_format" in body)

    async def compact(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        emit(Compacted(ok=False, text="a chat completions endpoint keeps no session"))

    async def check(self, env: Mapping[str, str], io: TurnIo) -> tuple[bool, str]:
        if not self._endpoint.base_url:
            return False, "no base URL is configured"
        url = address(self._endpoint.base_url).removesuffix("/chat/completions") + "/models"
        try:
            async with calling(ApiRequest(self._endpoint, url, clocks=CHECK_CLOCKS)) as reply:
                if reply.status != 200:
                    return False, f"{self._endpoint.host}: {(await reply.error(self._clock.now())).message}"
                listed = (as_object(await reply.body()) or {}).get("data")
        except CallFailed as failed:
            event = failed.event
            return False, event.message if isinstance(event, Trouble) else f"{self._endpoint.host}: {event.stderr}"
        names = [str(part.get("id")) for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []
        return True, f"{self._endpoint.host}: {len(names)} models"

    def _body(self, turn: Turn, model: str) -> dict[str, Json]:
        given = turn.options.get("parameters")
        body: dict[str, Json] = {k: v for k, v in given.items() if k not in _OURS} if isinstance(given, dict) else {}
        body |= {
            "model": model,
            "messages": turn.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if turn.schema is not None and self.capabilities.schema:
            wanted = {"name": "answer", "schema": turn.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return body

    async def _read(self, reply: ApiResponse, answer: _Answer) -> None:
        if reply.kind != "text/event-stream":
            whole = as_object(await reply.body())
            if whole is None:
                raise CallFailed(malformed(f"it is not a JSON object but {reply.kind or 'of no known type'}"))
            answer.take(whole, self._clock.now())
            return
        async with aclosing(reply.lines()) as lines:
            async for line in lines:
                label, _, data = line.partition(b":")
                if label != b"data" or not data.strip():
                    continue
                reply.heard()
                if data.strip() == _DONE:
                    answer.finished = True
                    return
                chunk = as_object(data)
                if chunk is None:
                    raise CallFailed(malformed("an event of its stream is not a JSON object"))
                answer.take(chunk, self._clock.now())


def address(base_url: str) -> str:
    """Where completions are asked for, whether the base ends in `/v1`, in the full path or in neither."""
    base = base_url.rstrip("/")
    if base.endswith("/chat/completions"):
        return base
    return f"{base}/chat/completions" if re.search(r"/v\d+$", base) else f"{base}/v1/chat/completions"


@dataclass(slots=True)
class _Answer:
    """What the chunks of one completion add up to."""

    parts: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    stop: str = ""
    finished: bool = False
    choices: bool = False
    used: Used | None = None

    def take(self, chunk: dict[str, Json], now: float) -> None:
        """Add a chunk of a stream, or a whole completion; one that carries an error raises `CallFailed`."""
        if chunk.get("error"):
            raise CallFailed(trouble_of(json.dumps(chunk).encode(), None, {}, now))
        if isinstance(chunk.get("usage"), dict):
            self.used = _used(chunk["usage"], chunk.get("model"))
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                self._choose(choice)

    def _choose(self, choice: dict[str, Json]) -> None:
        self.choices = True
        said = choice.get("delta") or choice.get("message")
        if isinstance(said, dict):
            for kept, name in ((self.parts, "content"), (self.refusals, "refusal")):
                if isinstance(said.get(name), str):
                    kept.append(said[name])
        if isinstance(choice.get("finish_reason"), str):
            self.stop = choice["finish_reason"]
            self.finished = True

    def tell_usage(self, emit: Emit) -> None:
        """Tell what was used, where it is known: also a broken answer is paid for."""
        if self.used is not None:
            emit(self.used)

    def tell(self, emit: Emit, *, enforced: bool) -> None:
        """End the turn: the answer, or why there is none."""
        self.tell_usage(emit)
        if not self.choices:
            emit(malformed("it holds no choices" if self.finished or self.used else "its stream is empty"))
        elif not self.finished:
            emit(malformed("its stream broke off before the end"))
        elif self.refusals or self.stop == "content_filter":
            emit(Answered("".join(self.refusals or self.parts), stop="refusal"))
        else:
            text = without_thinking("".join(self.parts))
            emit(Answered(text, as_object(text.encode("utf-8", "replace")) if enforced else None, self.stop))


def _used(usage: dict[str, Json], model: Json) -> Used:
    details = usage.get("prompt_tokens_details")
    cost = usage.get("cost")
    return Used(
        input=whole_number(usage.get("prompt_tokens")),
        output=whole_number(usage.get("completion_tokens")),
        cached=whole_number(details.get("cached_tokens")) if isinstance(details, dict) else None,
        usd=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e9 else None,
        model=model if isinstance(model, str) else "",
    )
