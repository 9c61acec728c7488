"""The few words of ASGI that our middleware speaks, so that it needs no framework to be read or tested."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from bailiwick.ids import Json

Message = MutableMapping[str, Any]
Context = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Context, Receive, Send], Awaitable[None]]

ACCESS = "bailiwick.access"
"""Where a request's context keeps the `Access` that was found."""


def header(context: Context, name: bytes) -> str | None:
    """The value of a header; None where it is missing. One that stands twice gives both, so that neither is trusted."""
    found = [value for key, value in context["headers"] if key == name]
    return b", ".join(found).decode("latin-1") if found else None


async def refuse(send: Send, status: int, what: str, hint: str, more: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    """Answer with a status and what to change."""
    await answer(send, status, {"error": what, "hint": hint}, more)


async def answer(send: Send, status: int, body: Json, more: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    """Answer with a JSON document."""
    data = json.dumps(body).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(data)).encode()),
        (b"cache-control", b"no-store"),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
