"""Takes a request's body in, whole and within bounds, and notices when its client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from bailiwick.agents.broker.grants import Grant
from bailiwick.egress.carry import Connection
from bailiwick.egress.http1 import (
    PeerBroken,
    RequestHead,
    RequestRefused,
    bad_request,
    pieces,
    too_large,
)

MAX_BODY = 32 << 20
"""Bytes of a request: it is held whole, and vendors take no more."""
MAX_HELD = 2 * MAX_BODY
"""Bytes of all the requests of a turn that are held at once."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

Result = TypeVar("Result")


class Left(Exception):
    """The client is gone."""


@dataclass(slots=True)
class Intake:
    """One client of a turn. `release` what was taken when it is no longer needed."""

    client: Connection
    grant: Grant
    seconds: float
    _held: int = 0

    async def take(self, request: RequestHead) -> bytes:
        """The whole body; a client that stops in the middle is not waited for."""
        coding = request.fields.get("content-encoding", "identity").lower()
        if coding != "identity":
            raise RequestRefused(
                415, "invalid_request_error", "a compressed request can't be counted: send it as it is"
            )
        if request.length != 0 and request.fields.get("expect").lower() == "100-continue":
            await self.tell(CONTINUE)
        body = bytearray()
        async with aclosing(pieces(self.client.reader, request.length)) as parts:
            while (data := await self._next(parts)) is not None:
                self._count(len(data))
                body += data
        return bytes(body)

    async def _next(self, parts: AsyncGenerator[bytes, None]) -> bytes | None:
        try:
            async with asyncio.timeout(self.seconds):
                return await anext(parts, None)
        except TimeoutError:
            raise RequestRefused(408, "timeout", "the request's body did not come in time") from None
        except ConnectionError:
            raise Left from None
        except PeerBroken as error:
            raise (Left() if self.client.reader.at_eof() else bad_request(str(error))) from None

    def _count(self, size: int) -> None:
        self._held += size
        self.grant.bodies += size
        if self._held > MAX_BODY:
            raise too_large(MAX_BODY)
        if self.grant.bodies > MAX_HELD:
            raise RequestRefused(
                429, "rate_limit_error", f"more than {MAX_HELD >> 20} MiB are asked at once: ask one by one"
            )

    def release(self) -> None:
        """The body is no longer needed."""
        self.grant.bodies -= self._held
        self._held = 0

    async def tell(self, data: bytes) -> None:
        """Send the client something."""
        try:
            await self.client.send(data)
        except ConnectionError:
            raise Left from None

    async def gone(self) -> None:
        """Wait until the client leaves: raises `Left`; anything that it still sends ends the wait."""
        try:
            extra = await self.client.reader.read(1)
        except ConnectionError:
            extra = b""
        if not extra:
            raise Left

    async def while_there(self, work: Awaitable[Result]) -> Result:
        """Do something for as long as the client waits for it; raises `Left`."""
        return await beside(work, self.gone())


async def beside(work: Awaitable[Result], other: Awaitable[None]) -> Result:
    """Do two things at once: what comes of the first, unless the other fails before that. Neither goes on after it."""
    working, others = asyncio.ensure_future(work), asyncio.ensure_future(other)
    try:
        await asyncio.wait({working, others}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            others.result()
        return await working
    finally:
        for task in (working, others):
            task.cancel()
        await asyncio.gather(working, others, return_exceptions=True)
