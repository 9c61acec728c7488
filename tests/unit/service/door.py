"""Knocking at an application without a socket: one request in, status, headers and body out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bailiwick.service.asgi import App, Context, Message, Receive, Send, answer


@dataclass
class Reply:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body as the document it has to be."""
        return json.loads(self.body)


async def knock(
    app: App,
    path: str = "/thing",
    headers: dict[str, str] | None = None,
    chunks: Sequence[bytes | None] = (b"",),
    client: str = "127.0.0.1",
) -> Reply:
    """Post to an application; a chunk that is None never arrives."""
    given = {"host": "127.0.0.1:3200", **(headers or {})}
    context: Context = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "client": (client, 4000),
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 3200),
    }
    left = list(chunks)
    reply = Reply()

    async def receive() -> Message:
        part = left.pop(0)
        if part is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            reply.body += message.get("body", b"")

    await app(context, receive, send)
    return reply


async def echo(context: Context, receive: Receive, send: Send) -> None:
    """Gives back how much arrived, and for whom."""
    size = len((await receive())["body"])
    await answer(send, 200, {"size": size, "who": context["bailiwick.access"].name})
