"""The Messages API, as `claude` speaks it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from bailiwick.ids import Json
from bailiwick.testing.model_server import errors
from bailiwick.testing.model_server.dialect import Dialect, Frames, ModelAnswer, event, pieces, says_title
from bailiwick.testing.model_server.script import Fail, ScriptedUsage

_STOPS = {"end": "end_turn", "refusal": "refusal", "length": "max_tokens"}
_SIGNATURE = "c2NyaXB0ZWQ="


class Anthropic(Dialect):
    """Answers `POST …/v1/messages`."""

    media = "text/event-stream"

    def offered(self, request: dict[str, Json]) -> Mapping[str, Json]:
        return {str(tool.get("name")): tool.get("input_schema") for tool in request.get("tools") or ()}

    def is_aside(self, request: dict[str, Json]) -> bool:
        return request.get("max_tokens") == 1 or (not request.get("tools") and says_title(request.get("system", "")))

    def whole(self, answer: ModelAnswer) -> dict[str, Json]:
        return {
            **_message(answer),
            "content": _blocks(answer),
            "stop_reason": _stop(answer),
            "usage": _usage(answer.tokens),
        }

    def frames(self, answer: ModelAnswer) -> Frames:
        empty = {**_message(answer), "usage": {**_usage(answer.tokens), "output_tokens": 1}}
        opening = [event("message_start", {"message": empty}), event("ping", {})]
        closing: list[bytes] = []
        for index, block in enumerate(_blocks(answer)):
            frames = closing if block["type"] == "tool_use" else opening
            frames += _block_frames(index, block, answer)
        delta = {"stop_reason": _stop(answer), "stop_sequence": None}
        closing.append(event("message_delta", {"delta": delta, "usage": _usage(answer.tokens)}))
        return Frames(opening, [*closing, event("message_stop", {})])

    def refusal(self, fail: Fail, model: str, now: float) -> errors.ModelApiError:
        return errors.anthropic(fail, model, now)

    def broken(self, fail: Fail, answer: ModelAnswer, now: float) -> bytes:
        body = errors.anthropic(fail, answer.model, now).body
        return f"event: error\ndata: {json.dumps(body)}\n\n".encode()


def _message(answer: ModelAnswer) -> dict[str, Json]:
    return {
        "id": f"msg_{answer.uid}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _stop(answer: ModelAnswer) -> str:
    return "tool_use" if answer.call else _STOPS[answer.stop]


def _usage(tokens: ScriptedUsage) -> dict[str, Json]:
    return {
        "input_tokens": tokens.input,
        "output_tokens": tokens.output,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": tokens.written,
        "cache_creation": {"ephemeral_5m_input_tokens": tokens.written, "ephemeral_1h_input_tokens": 0},
        "service_tier": "standard",
    }


def _blocks(answer: ModelAnswer) -> list[dict[str, Json]]:
    blocks: list[dict[str, Json]] = []
    if answer.thinking:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": _SIGNATURE})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    if answer.call:
        try:
            arguments = json.loads(answer.call.arguments)
        except ValueError:
            arguments = {}
        tool = {"type": "tool_use", "id": f"toolu_{answer.uid}", "name": answer.call.name, "input": arguments}
        blocks.append(tool)
    return blocks


def _block_frames(index: int, block: dict[str, Json], answer: ModelAnswer) -> list[bytes]:
    start: dict[str, Json]
    deltas: list[dict[str, Json]]
    match block["type"]:
        case "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "text":
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        case _:
            start = {**block, "input": {}}
            said = answer.call.arguments if answer.call else ""
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(said, 20)]
    return [
        event("content_block_start", {"index": index, "content_block": start}),
        *(event("content_block_delta", {"index": index, "delta": delta}) for delta in deltas),
        event("content_block_stop", {"index": index}),
    ]
