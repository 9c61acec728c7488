"""OpenAI's Responses API, as `codex` speaks it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bailiwick.ids import Json
from bailiwick.testing.model_server import errors
from bailiwick.testing.model_server.dialect import Dialect, Frames, ModelAnswer, event, pieces
from bailiwick.testing.model_server.script import Fail

_REFUSAL = "I can't help with that."


class Responses(Dialect):
    """Answers `POST …/responses`."""

    media = "text/event-stream"

    def offered(self, request: dict[str, Json]) -> Mapping[str, Json]:
        return {name: schema for tool in request.get("tools") or () for name, schema in _named(tool)}

    def whole(self, answer: ModelAnswer) -> dict[str, Json]:
        full = {"output": _items(answer), "usage": _usage(answer)}
        if answer.stop == "length":
            return {**_response(answer, "incomplete"), **full, "incomplete_details": {"reason": "max_output_tokens"}}
        return {**_response(answer, "completed"), **full}

    def frames(self, answer: ModelAnswer) -> Frames:
        begun = _response(answer, "in_progress")
        opening = [("response.created", {"response": begun}), ("response.in_progress", {"response": begun})]
        closing: list[tuple[str, dict[str, Json]]] = []
        for index, item in enumerate(_items(answer)):
            message = item["type"] == "message"
            (opening if message else closing).extend(_item_frames(index, item))
            closing.extend(_message_end(index, item) if message else ())
        whole = self.whole(answer)
        closing.append((f"response.{whole['status']}", {"response": whole}))
        said = [event(name, {"sequence_number": n, **data}) for n, (name, data) in enumerate([*opening, *closing])]
        return Frames(said[: len(opening)], said[len(opening) :])

    def refusal(self, fail: Fail, model: str, now: float) -> errors.ModelApiError:
        return errors.openai(fail, model, now)

    def broken(self, fail: Fail, answer: ModelAnswer, now: float) -> bytes:
        error = errors.openai(fail, answer.model, now).body["error"]
        failed = {**_response(answer, "failed"), "error": {"code": error["code"], "message": error["message"]}}
        return event("response.failed", {"sequence_number": 1000, "response": failed})


def _named(tool: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    match tool.get("type"):
        case "function":
            yield str(tool.get("name")), tool.get("parameters")
        case "custom":
            yield str(tool.get("name")), "custom"
        case "namespace":
            for inner in tool.get("tools") or ():
                yield str(inner.get("name")), inner.get("parameters")
        case other:
            yield str(other), None


def _response(answer: ModelAnswer, status: str) -> dict[str, Json]:
    return {
        "id": f"resp_{answer.uid}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "model": answer.model,
        "output": [],
        "usage": None,
        "error": None,
        "incomplete_details": None,
    }


def _usage(answer: ModelAnswer) -> dict[str, Json]:
    tokens = answer.tokens
    return {
        "input_tokens": tokens.input,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.input + tokens.output,
    }


def _items(answer: ModelAnswer) -> list[dict[str, Json]]:
    items: list[dict[str, Json]] = []
    if answer.stop == "refusal":
        items.append(_said(answer, {"type": "refusal", "refusal": answer.text or _REFUSAL}))
    elif answer.text:
        items.append(_said(answer, {"type": "output_text", "text": answer.text, "annotations": []}))
    if answer.call:
        kind, key, mark = (
            ("custom_tool_call", "input", "ctc") if answer.call.custom else ("function_call", "arguments", "fc")
        )
        call = {"type": kind, "id": f"{mark}_{answer.uid}", "call_id": f"call_{answer.uid}", "status": "completed"}
        items.append({**call, "name": answer.call.name, key: answer.call.arguments})
    return items


def _said(answer: ModelAnswer, part: dict[str, Json]) -> dict[str, Json]:
    item = {"type": "message", "id": f"msg_{answer.uid}", "status": "completed", "role": "assistant"}
    return {**item, "content": [part]}


def _item_frames(index: int, item: dict[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    """An item begins; of a message, up to the end of its text; a call is complete."""
    here = {"item_id": item["id"], "output_index": index}
    begun = {key: "" if key in ("arguments", "input") else value for key, value in item.items()}
    begun |= {"status": "in_progress"} | ({"content": []} if "content" in item else {})
    yield "response.output_item.added", {"output_index": index, "item": begun}
    if item["type"] == "message":
        part = item["content"][0]
        if part["type"] == "output_text":
            yield "response.content_part.added", {**here, "content_index": 0, "part": {**part, "text": ""}}
            for piece in pieces(part["text"]):
                yield "response.output_text.delta", {**here, "content_index": 0, "delta": piece}
        return
    if item["type"] == "function_call":
        yield "response.function_call_arguments.delta", {**here, "delta": item["arguments"]}
        yield "response.function_call_arguments.done", {**here, "arguments": item["arguments"]}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _message_end(index: int, item: dict[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    here = {"item_id": item["id"], "output_index": index, "content_index": 0}
    part = item["content"][0]
    if part["type"] == "output_text":
        yield "response.output_text.done", {**here, "text": part["text"]}
        yield "response.content_part.done", {**here, "part": part}
    yield "response.output_item.done", {"output_index": index, "item": item}
