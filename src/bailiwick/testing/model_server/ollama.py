"""Ollama's own chat API: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bailiwick.ids import Json
from bailiwick.testing.model_server import errors
from bailiwick.testing.model_server.dialect import Dialect, Frames, ModelAnswer, pieces
from bailiwick.testing.model_server.script import Fail

_STOPS = {"end": "stop", "refusal": "stop", "length": "length"}
_WHEN = "2030-01-01T00:00:00Z"


class Ollama(Dialect):
    """Answers `POST …/api/chat`."""

    media = "application/x-ndjson"

    def offered(self, request: dict[str, Json]) -> Mapping[str, Json]:
        tools = [tool.get("function") or {} for tool in request.get("tools") or ()]
        return {str(tool.get("name")): tool.get("parameters") for tool in tools}

    def streams(self, request: dict[str, Json]) -> bool:
        return request.get("stream") is not False

    def whole(self, answer: ModelAnswer) -> dict[str, Json]:
        message: dict[str, Json] = {"role": "assistant", "content": answer.text}
        if answer.thinking:
            message["thinking"] = answer.thinking
        if answer.call:
            message["tool_calls"] = [_call(answer)]
        return {**_end(answer), "message": message}

    def frames(self, answer: ModelAnswer) -> Frames:
        opening = [_line(answer, {"content": "", "thinking": piece}) for piece in pieces(answer.thinking)]
        opening += [_line(answer, {"content": piece}) for piece in pieces(answer.text)]
        closing = [_line(answer, {"content": "", "tool_calls": [_call(answer)]})] if answer.call else []
        last = {**_end(answer), "message": {"role": "assistant", "content": ""}}
        return Frames(opening, [*closing, json.dumps(last).encode() + b"\n"])

    def refusal(self, fail: Fail, model: str, now: float) -> errors.ModelApiError:
        return errors.ollama(fail, model, now)

    def broken(self, fail: Fail, answer: ModelAnswer, now: float) -> bytes:
        return json.dumps(errors.ollama(fail, answer.model, now).body).encode() + b"\n"


def _line(answer: ModelAnswer, message: dict[str, Json]) -> bytes:
    said = {"role": "assistant", **message}
    return json.dumps({"model": answer.model, "created_at": _WHEN, "message": said, "done": False}).encode() + b"\n"


def _end(answer: ModelAnswer) -> dict[str, Json]:
    return {
        "model": answer.model,
        "created_at": _WHEN,
        "done": True,
        "done_reason": _STOPS[answer.stop],
        "total_duration": 1_000_000,
        "prompt_eval_count": answer.tokens.input,
        "eval_count": answer.tokens.output,
    }


def _call(answer: ModelAnswer) -> dict[str, Json]:
    call = answer.call
    return {"function": {"name": call.name, "arguments": json.loads(call.arguments)}} if call else {}
