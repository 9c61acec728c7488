"""How a refusal looks to an agent: in the words of the API it speaks, as an answer or within a stream."""

from __future__ import annotations

import json

from bailiwick.egress.http1 import head_of, status_line
from bailiwick.ids import Json

BUDGET = "budget_exhausted"


def budget_words(limit_usd: float | None, needed: float | None = None, left: float = 0.0) -> str:
    """What a turn is told that has not enough money left."""
    words = f"Reached maximum budget (${_dollars(limit_usd or 0)}) of this turn"
    if needed is None:
        return words
    return f"{words}: this request can cost ${_dollars(needed)}, and ${_dollars(max(0.0, left))} is left"


def _dollars(amount: float) -> str:
    return f"{amount:.4f}".rstrip("0").rstrip(".")


def refusal(path: str, status: int, kind: str, words: str) -> bytes:
    """A whole answer that refuses."""
    error: Json = {"type": kind, "message": words}
    body: Json = {"type": "error", "error": error}
    if not path.startswith("/v1/messages"):
        body = {"error": {**error, "code": kind, "param": None}}
    data = json.dumps(body).encode()
    fields = [("content-type", "application/json"), ("content-length", str(len(data))), ("connection", "close")]
    if status == 405:
        fields.append(("allow", "GET" if path == "/v1/models" else "POST"))
    return head_of(status_line(status), fields) + data


def event(path: str, kind: str, words: str) -> bytes:
    """The event that ends a stream with an error."""
    error: Json = {"type": kind, "message": words}
    match path:
        case "/v1/messages":
            name, body = "error", {"type": "error", "error": error}
        case "/v1/responses":
            failed = {"status": "failed", "error": {"code": kind, "message": words}}
            name, body = "response.failed", {"type": "response.failed", "response": failed}
        case _:
            return b"data: " + json.dumps({"error": {**error, "code": kind}}).encode() + b"\n\n"
    return f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()
