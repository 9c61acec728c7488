"""How much one client may ask: bytes in a request, the time to send them, requests in a second."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil

from bailiwick.clock import Clock
from bailiwick.service.asgi import ACCESS, App, Context, Message, Receive, Send, header, refuse
from bailiwick.service.tokens import TokenAccess

MEGABYTE = 1_000_000
CLIENTS = 4096
"""Clients that are remembered; the one that was quiet longest is forgotten first."""
FIRST_REFUSAL = 400
TOO_SLOW = 408


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many more each second."""

    burst: float
    second: float


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What a request may be. `refused` counts requests without a token that is known, by address.

    Of a request that is refused so many bytes are still read, for so many seconds, that its sender gets the answer.
    """

    body: int = MEGABYTE
    body_seconds: float = 30.0
    drain: int = 64 * MEGABYTE
    drain_seconds: float = 10.0
    each: Rate = Rate(2000, 1000)
    refused: Rate = Rate(20, 1)


@dataclass(slots=True)
class RateCounter:
    """Counts by client, each with the same rate."""

    rate: Rate
    clock: Clock
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, client: str) -> float:
        """Count one more: 0 where it is allowed, else the seconds until it is."""
        seconds = self.due(client)
        if not seconds:
            left, at = self._left[client]
            self._left[client] = (left - 1, at)
        return seconds

    def due(self, client: str) -> float:
        """The seconds until one more is allowed; counts nothing."""
        now = self.clock.monotonic()
        left, at = self._left.pop(client, (self.rate.burst, now))
        left = min(self.rate.burst, left + (now - at) * self.rate.second)
        self._left[client] = (left, now)
        while len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        return max(0.0, (1 - left) / self.rate.second)


async def slow_down(send: Send, seconds: float) -> None:
    """Answer that it was too much, and when to come again."""
    after = str(max(1, ceil(seconds))).encode()
    await refuse(
        send, 429, what="too many requests", hint=f"try again in {after.decode()} s", more=((b"retry-after", after),)
    )


def address_of(context: Context) -> str:
    """Where a request comes from."""
    client = context.get("client")
    return str(client[0]) if client else "?"


@dataclass(slots=True)
class Drain:
    """Stands in front of all others: what a refused request still sends is read and dropped before it is refused.

    A connection that is closed with bytes unread is reset, and the client never sees why.
    """

    app: App
    most: int
    seconds: float

    async def __call__(self, context: Context, receive: Receive, send: Send) -> None:
        if context["type"] != "http" or header(context, b"expect"):
            await self.app(context, receive, send)
            return
        read, done = 0, False

        async def counted() -> Message:
            nonlocal read, done
            message = await receive()
            read += len(message.get("body", b""))
            done = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_refusal(message["status"]) and _has_body(context):
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.seconds):
                        while not done and read <= self.most:
                            await counted()
            await send(message)

        await self.app(context, counted, answer)


def _is_refusal(status: int) -> bool:
    """Whether a request is refused; nobody who is too slow is waited for again."""
    return status >= FIRST_REFUSAL and status != TOO_SLOW


def _has_body(context: Context) -> bool:
    return (header(context, b"content-length") or "0") != "0" or header(context, b"transfer-encoding") is not None


@dataclass(slots=True)
class TokenLimit:
    """Stands behind the tokens: each token from each address has its own measure."""

    app: App
    each: RateCounter

    async def __call__(self, context: Context, receive: Receive, send: Send) -> None:
        access: TokenAccess | None = context.get(ACCESS)
        if access is not None and (seconds := self.each.take(f"{access.name}\0{address_of(context)}")) > 0:
            await slow_down(send, seconds)
            return
        await self.app(context, receive, send)


class _TooLarge(Exception):
    """A request that goes on past its limit."""


@dataclass(slots=True)
class SizeLimit:
    """Reads a request whole before it is passed on: 413 where it is too large, 408 where it takes too long."""

    app: App
    most: int
    seconds: float

    async def __call__(self, context: Context, receive: Receive, send: Send) -> None:
        if context["type"] != "http" or context["method"] in ("GET", "HEAD", "DELETE"):
            await self.app(context, receive, send)
            return
        try:
            async with asyncio.timeout(self.seconds):
                body = await self._body(context, receive)
        except _TooLarge:
            what = f"the request is larger than {self.most:,} bytes"
            await refuse(
                send, 413, what=what, hint="send less; name files by their path", more=((b"connection", b"close"),)
            )
            return
        except TimeoutError:
            what = f"the request did not arrive within {self.seconds:g} s"
            await refuse(send, TOO_SLOW, what=what, hint="send it again, faster", more=((b"connection", b"close"),))
            return
        if body is None:
            return
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return first.pop() if first else await receive()

        await self.app(context, replay, send)

    async def _body(self, context: Context, receive: Receive) -> bytes | None:
        """The whole body; None where the client left."""
        declared = header(context, b"content-length") or "0"
        if not declared.isdigit() or int(declared) > self.most:
            raise _TooLarge
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return None
            part = message.get("body", b"")
            size += len(part)
            if size > self.most:
                raise _TooLarge
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)
