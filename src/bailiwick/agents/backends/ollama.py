"""Ollama's own chat API. Unlike its `/v1` it lets us set the context window, so that nothing is cut in silence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Self

from bailiwick.agents.extract import without_thinking
from bailiwick.agents.http import (
    CHECK_CLOCKS,
    NOT_THERE,
    OVERFLOW,
    ApiRequest,
    CallFailed,
    Endpoint,
    calling,
    malformed,
    trouble_of,
    whole_number,
    with_scheme,
)
from bailiwick.agents.port import Answered, Capabilities, Compacted, Emit, Trouble, Turn, TurnIo, Used
from bailiwick.agents.settings import AgentSettings, TurnTimeouts
from bailiwick.agents.streams import as_object
from bailiwick.clock import Clock, SystemClock
from bailiwick.ids import Json

BASE_URL = "http://127.0.0.1:11434"
WINDOW = 16_384
"""Tokens of context where the turn's `num_ctx` says nothing; Ollama's own default is far too small for a task."""
KEEP_ALIVE = "10m"
_TOO_LONG = ("exceeds the context length", "exceeds the available context size", "longer than the context length")
_KEPT = range(4, 7)
"""Tokens that a server keeps of the beginning when it cuts a prompt; the rest of half the window is its end."""


class OllamaBackend:
    """Asks a model through `/api/chat`. A turn's options: `num_ctx`, `keep_alive`, `think`, `parameters` (Ollama's)."""

    name = "ollama"

    def __init__(
        self,
        endpoint: Endpoint | None = None,
        *,
        model: str | None = None,
        window: int = WINDOW,
        clock: Clock | None = None,
    ) -> None:
        self.capabilities = Capabilities(schema=True, credential="brokered", default_model=model, system=True)
        self._endpoint = endpoint or Endpoint(BASE_URL)
        self._window = window
        self._clock = clock or SystemClock()

    @classmethod
    def for_settings(cls, settings: AgentSettings) -> Self:
        """The backend for the endpoint `ollama`, its window included; without one, for this machine."""
        given = settings.endpoints.get("ollama")
        given = given if isinstance(given, dict) else {}
        url = with_scheme(str(given.get("url") or BASE_URL))
        return cls(Endpoint(url), window=whole_number(given.get("num_ctx")) or WINDOW)

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        endpoint = self._endpoint.for_turn(turn)
        model = turn.model or self.capabilities.default_model
        if not model:
            emit(Trouble("the backend 'ollama' needs a model: set it in the configuration", type=NOT_THERE))
            return
        window = whole_number(turn.options.get("num_ctx")) or self._window
        answer = _Answer(window, len(turn.prompt.encode("utf-8", "replace")))
        call = ApiRequest(
            endpoint,
            endpoint.base_url.rstrip("/") + "/api/chat",
            _body(turn, model, window),
            clocks=TurnTimeouts.of(turn.options),
        )
        try:
            async with calling(call) as reply:
                if reply.status != 200:
                    emit(_as_overflow(await reply.error(self._clock.now())))
                    return
                async with aclosing(reply.lines()) as lines:
                    async for line in lines:
                        if line.strip():
                            reply.heard()
                            answer.take(line, self._clock.now())
        except CallFailed as failed:
            emit(failed.event)
            return
        answer.tell(emit, enforced=turn.schema is not None)

    async def compact(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        emit(Compacted(ok=False, text="Ollama keeps no session"))

    async def check(self, env: Mapping[str, str], io: TurnIo) -> tuple[bool, str]:
        try:
            version = (await self._look("/api/version")).get("version")
            listed = (await self._look("/api/tags")).get("models")
        except CallFailed as failed:
            event = failed.event
            return False, event.message if isinstance(event, Trouble) else f"{self._endpoint.host}: {event.stderr}"
        names = (
            {str(part.get("name")) for part in listed if isinstance(part, dict)} if isinstance(listed, list) else set()
        )
        wanted = self.capabilities.default_model
        if wanted and not names & {wanted, f"{wanted}:latest"}:
            return False, f"Ollama {version} at {self._endpoint.host} has no model {wanted}: `ollama pull {wanted}`"
        return True, f"Ollama {version} at {self._endpoint.host}: {len(names)} models"

    async def _look(self, path: str) -> dict[str, Json]:
        url = self._endpoint.base_url.rstrip("/") + path
        async with calling(ApiRequest(self._endpoint, url, clocks=CHECK_CLOCKS)) as reply:
            if reply.status != 200:
                raise CallFailed(await reply.error(self._clock.now()))
            found = as_object(await reply.body())
        if found is None:
            raise CallFailed(malformed(f"{path} gives no JSON object"))
        return found


def _body(turn: Turn, model: str, window: int) -> dict[str, Json]:
    """The request. Servers that know `truncate` and `shift` refuse a prompt that is too long instead of cutting it."""
    given = turn.options.get("parameters")
    body: dict[str, Json] = {
        "model": model,
        "messages": replace(turn, prompt=turn.prompt + _contract(turn.schema)).messages,
        "stream": True,
        "truncate": False,
        "shift": False,
        "keep_alive": turn.options.get("keep_alive", KEEP_ALIVE),
        "options": {**(given if isinstance(given, dict) else {}), "num_ctx": window},
    }
    if turn.schema is not None:
        body["format"] = turn.schema
    if "think" in turn.options:
        body["think"] = turn.options["think"]
    return body


def _contract(schema: Json) -> str:
    """The schema in words: a model that does not know what it is held to fills the form with nonsense."""
    if schema is None:
        return ""
    text = (resources.files("bailiwick") / "bundled" / "prompts" / "answer-schema.md").read_text("utf-8")
    return text.replace("{{ schema }}", json.dumps(schema, ensure_ascii=False, indent=1))


def _as_overflow(trouble: Trouble) -> Trouble:
    """Ollama tells a prompt that is too long by its words alone."""
    if any(words in trouble.message for words in _TOO_LONG):
        return Trouble(trouble.message, trouble.status, OVERFLOW)
    return trouble


@dataclass(slots=True)
class _Answer:
    """What the lines of one answer add up to."""

    window: int
    asked: int
    parts: list[str] = field(default_factory=list)
    stop: str = ""
    done: bool = False
    used: Used = field(default_factory=Used)

    def take(self, line: bytes, now: float) -> None:
        """Add a line; one that is no object or carries an error raises `CallFailed`."""
        chunk = as_object(line)
        if chunk is None:
            raise CallFailed(malformed("a line of its stream is not a JSON object"))
        if chunk.get("error"):
            raise CallFailed(_as_overflow(trouble_of(line, None, {}, now)))
        said = chunk.get("message")
        if isinstance(said, dict) and isinstance(said.get("content"), str):
            self.parts.append(said["content"])
        if chunk.get("done") is True:
            self.done = True
            self.stop = str(chunk.get("done_reason") or "")
            prompt, said = (whole_number(chunk.get(name)) for name in ("prompt_eval_count", "eval_count"))
            self.used = Used(prompt, said, model=str(chunk.get("model") or ""))

    def tell(self, emit: Emit, *, enforced: bool) -> None:
        """End the turn: the answer, or why it can't be trusted."""
        if not self.done:
            emit(malformed("its stream broke off before the end" if self.parts else "its stream is empty"))
            return
        emit(self.used)
        if self._was_cut():
            what = f"the context window of {self.window} tokens was full and something was cut: raise `num_ctx`"
            emit(Trouble(what, type=OVERFLOW))
            return
        text = without_thinking("".join(self.parts))
        emit(Answered(text, as_object(text.encode("utf-8", "replace")) if enforced else None, self.stop))

    def _was_cut(self) -> bool:
        """Whether the window was full: a prompt that fills it was cut, an answer that reached its edge too.

        Servers cut a prompt to the whole window or, since they shift, to just over half of it; a count of exactly
        that for a prompt that may well have been longer is no chance.
        """
        prompt, said = self.used.input or 0, self.used.output or 0
        if prompt >= self.window - 1 or (self.stop == "length" and prompt + said >= self.window - 1):
            return True
        halves = {self.window - (self.window - kept) // 2 for kept in _KEPT}
        return prompt in halves and self.asked >= 2 * self.window
