"""OpenAI's chat completions, as our own backend, `copilot` and most local servers speak it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bailiwick.ids import Json
from bailiwick.testing.model_server import errors
from bailiwick.testing.model_server.dialect import Dialect, Frames, ModelAnswer, pieces, says_title
from bailiwick.testing.model_server.script import Fail

_STOPS = {"end": "stop", "refusal": "content_filter", "length": "length"}


class Chat(Dialect):
    """Answers `POST …/chat/completions`."""

    media = "text/event-stream"

    def offered(self, request: dict[str, Json]) -> Mapping[str, Json]:
        tools = [tool.get("function") or {} for tool in request.get("tools") or () if tool.get("type") == "function"]
        return {str(tool.get("name")): tool.get("parameters") for tool in tools}

    def is_aside(self, request: dict[str, Json]) -> bool:
        first = (request.get("messages") or [{}])[0]
        plain = not request.get("tools") and not request.get("response_format")
        return plain and first.get("role") in ("system", "developer") and says_title(first)

    def whole(self, answer: ModelAnswer) -> dict[str, Json]:
        message: dict[str, Json] = {"role": "assistant", "content": answer.text or None}
        if answer.call:
            message["tool_calls"] = [_call(answer)]
        choice = {"index": 0, "message": message, "finish_reason": _stop(answer)}
        return {**_completion(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer)}

    def frames(self, answer: ModelAnswer) -> Frames:
        opening = [_chunk(answer, {"role": "assistant", "content": ""})]
        opening += [_chunk(answer, {"reasoning_content": piece}) for piece in pieces(answer.thinking)]
        opening += [_chunk(answer, {"content": piece}) for piece in pieces(answer.text)]
        closing = [_chunk(answer, {"tool_calls": [{"index": 0, **_call(answer)}]})] if answer.call else []
        closing.append(_chunk(answer, {}, _stop(answer)))
        counted = {**_completion(answer, "chat.completion.chunk"), "choices": [], "usage": _usage(answer)}
        return Frames(opening, [*closing, _data(counted), b"data: [DONE]\n\n"])

    def refusal(self, fail: Fail, model: str, now: float) -> errors.ModelApiError:
        return errors.openai(fail, model, now)

    def broken(self, fail: Fail, answer: ModelAnswer, now: float) -> bytes:
        return _data(errors.openai(fail, answer.model, now).body)


def _completion(answer: ModelAnswer, kind: str) -> dict[str, Json]:
    return {"id": f"chatcmpl-{answer.uid}", "object": kind, "created": answer.created, "model": answer.model}


def _stop(answer: ModelAnswer) -> str:
    return "tool_calls" if answer.call else _STOPS[answer.stop]


def _call(answer: ModelAnswer) -> dict[str, Json]:
    name, arguments = (answer.call.name, answer.call.arguments) if answer.call else ("", "")
    return {"id": f"call_{answer.uid}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _usage(answer: ModelAnswer) -> dict[str, Json]:
    tokens = answer.tokens
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }


def _chunk(answer: ModelAnswer, delta: dict[str, Json], stop: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return _data({**_completion(answer, "chat.completion.chunk"), "choices": [choice]})


def _data(value: Json) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()
