"""Carries one request to the upstream and its answer back, both streaming, neither ever whole in memory.

Nothing is tried twice. The client's leaving ends the question, the grant's budget ends the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from bailiwick.agents.broker import refusals
from bailiwick.agents.broker.dial import Dialer, Line
from bailiwick.agents.broker.events import Events, data_of
from bailiwick.agents.broker.grants import ANSWERS, Grant
from bailiwick.agents.broker.limits import limits_of
from bailiwick.agents.broker.meter import Meter
from bailiwick.agents.broker.wire import (
    LAST_CHUNK,
    MAX_BODY,
    Broken,
    Refused,
    Request,
    Response,
    bad_request,
    chunk,
    head_of,
    parse_response,
    pieces,
    read_head,
    status_line,
    too_large,
)
from bailiwick.agents.http import MAX_ERROR, UNREACHABLE, object_of, trouble_of
from bailiwick.agents.port import Trouble
from bailiwick.clock import Clock

MAX_WHOLE = 2 << 20
"""Bytes of an answer in one piece whose use is counted; of a larger one it is unknown."""
_OURS = ("authorization", "x-api-key", "api-key", "cookie", "accept-encoding", "forwarded", "x-forwarded-for")
_THEIRS = ("set-cookie", "location", "alt-svc", "strict-transport-security", "content-length")


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for a request's head, between two pieces of its body, for a connection, between pieces of an answer."""

    head: float = 10.0
    body: float = 30.0
    connect: float = 30.0
    answer: float = 900.0


class Left(Exception):
    """The client is gone."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer. `path` is the model path it asks for."""

    request: Request
    path: str
    client: Line
    grant: Grant
    patience: Patience
    clock: Clock
    began: bool = False
    _meter: Meter | None = field(default=None, init=False)

    async def run(self, dialer: Dialer) -> None:
        """Carry it out; raises `Refused` only while nothing was answered yet, later the connection is dropped."""
        upstream = await self._open(dialer)
        if self.path in ANSWERS:
            self._meter = self.grant.begin()
        try:
            await self._both_ways(upstream)
        except Left:
            pass
        except Refused:
            if not self.began:
                raise
        finally:
            upstream.drop()
            if self._meter is not None:
                self.grant.end(self._meter)

    async def _open(self, dialer: Dialer) -> Line:
        try:
            async with asyncio.timeout(self.patience.connect):
                return await dialer.open(self.grant.upstream)
        except TimeoutError:
            raise self._unreachable("no connection in time") from None
        except (OSError, Broken) as error:
            raise self._unreachable(str(error) or type(error).__name__) from None

    def _unreachable(self, why: str) -> Refused:
        """The upstream is at fault: a fact of the grant, and an answer that says so."""
        words = f"{self.grant.upstream.authority} can't be reached: {why}"[:500]
        self.grant.note(Trouble(words, type=UNREACHABLE, final=False))
        return Refused(502, UNREACHABLE, words)

    async def _both_ways(self, upstream: Line) -> None:
        asking = asyncio.create_task(self._ask(upstream))
        answering = asyncio.create_task(self._answer(upstream))
        both = {asking, answering}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                asking.result()
            await answering
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _ask(self, upstream: Line) -> None:
        """Send the request; then watch whether the client still wants the answer."""
        try:
            await upstream.send(self._head())
            await self._send_body(upstream)
        except (ConnectionError, OSError):
            return  # the answer, if there is one, says why the request is not wanted
        try:
            extra = await self.client.reader.read(1)
        except ConnectionError:
            extra = b""
        if not extra:
            raise Left

    def _head(self) -> bytes:
        upstream, length = self.grant.upstream, self.request.length
        given = {name.lower(): value for name, value in upstream.headers.items()}
        fields = [("host", upstream.authority), *self.request.fields.without((*_OURS, *given)), *given.items()]
        for name, value in upstream.added.items():
            own = [word.strip() for each, said in fields if each == name for word in said.split(",")]
            fields = [pair for pair in fields if pair[0] != name]
            fields.append((name, ",".join(dict.fromkeys((*own, value)))))
        fields += [("accept-encoding", "identity"), ("connection", "close")]
        if length is None:
            fields.append(("transfer-encoding", "chunked"))
        elif length or self.request.method == "POST":
            fields.append(("content-length", str(length)))
        target = upstream.target(self.path) + self.request.query
        return head_of(f"{self.request.method} {target} HTTP/1.1", fields)

    async def _send_body(self, upstream: Line) -> None:
        length, total = self.request.length, 0
        if length != 0 and self.request.fields.get("expect").lower() == "100-continue":
            await self._tell(b"HTTP/1.1 100 Continue\r\n\r\n")
        async for data in self._body():
            total += len(data)
            if total > MAX_BODY:
                raise too_large()
            await upstream.send(data if length is not None else chunk(data))
        if length is None:
            await upstream.send(LAST_CHUNK)

    async def _body(self) -> AsyncIterator[bytes]:
        """The request's body; a client that stops in the middle is not waited for."""
        reader = self.client.reader
        async with aclosing(pieces(reader, self.request.length)) as body:
            while True:
                try:
                    async with asyncio.timeout(self.patience.body):
                        data = await anext(body, None)
                except TimeoutError:
                    raise Refused(408, "timeout", "the request's body did not come in time") from None
                except ConnectionError:
                    raise Left from None
                except Broken as error:
                    raise (Left() if reader.at_eof() else bad_request(str(error))) from None
                if data is None:
                    return
                yield data

    async def _answer(self, upstream: Line) -> None:
        """Pass the answer on."""
        try:
            response = await self._read_head(upstream)
        except (Broken, OSError, TimeoutError) as error:
            raise self._unreachable(str(error) or "no answer in time") from None
        now = self.clock.now()
        for seen in limits_of(response.fields, response.status, now):
            self.grant.note(seen)
        if 300 <= response.status < 400:
            raise self._unreachable(f"it answers with a redirect ({response.status}), which is not followed")
        if self._hides_its_count(response):
            raise self._unreachable("its answer is compressed, which was not asked for: it can't be counted")
        await self._begin(response)
        try:
            await self._pass_on(response, upstream)
        except (Broken, OSError, TimeoutError) as error:
            why = str(error) or "nothing more came"
            self._broke_off(f"the answer of {self.grant.upstream.authority} broke off: {why}"[:500])
            raise Left from None

    def _broke_off(self, words: str) -> None:
        """What the model said about it before counts more than that the line is dead."""
        told = self._meter.trouble if self._meter is not None else None
        self.grant.note(told or Trouble(words, type=UNREACHABLE, final=False))

    async def _read_head(self, upstream: Line) -> Response:
        while True:
            async with asyncio.timeout(self.patience.answer):
                try:
                    head = await read_head(upstream.reader)
                except Refused:
                    raise Broken("its header is larger than is ever read") from None
            if head is None:
                raise Broken("it closed the connection without an answer")
            response = parse_response(head)
            if response.status >= 200:
                return response
            if response.status == 101:
                raise Broken("it changes the protocol, which was not asked for")

    def _hides_its_count(self, response: Response) -> bool:
        coding = response.fields.get("content-encoding", "identity").lower()
        return coding != "identity" and self._meter is not None and self.grant.limit_usd is not None

    async def _begin(self, response: Response) -> None:
        fields = response.fields.without(_THEIRS)
        fields.append(("connection", "close"))
        if self._keeps_length(response):
            fields.append(("content-length", str(response.length)))
        else:
            fields.append(("transfer-encoding", "chunked"))
        self.began = True
        await self._tell(head_of(status_line(response.status), fields))

    def _keeps_length(self, response: Response) -> bool:
        """Whether the body goes through unchanged: an event may be put at the end of a stream, so not that."""
        return response.length is not None and response.length >= 0 and not _streams(response)

    async def _pass_on(self, response: Response, upstream: Line) -> None:
        keeps = self._keeps_length(response)
        if _streams(response) and response.status < 300:
            await self._pass_events(response, upstream)
        else:
            kept = await self._pass_whole(response, upstream, plain=keeps)
            self._judge_whole(response, kept)
        if not keeps:
            await self._tell(LAST_CHUNK)

    async def _pass_whole(self, response: Response, upstream: Line, *, plain: bool) -> bytes | None:
        """Pass a body on as it is, and keep a copy unless it is too large."""
        kept, most = bytearray(), MAX_ERROR if response.status >= 400 else MAX_WHOLE
        async for data in self._pieces(response, upstream):
            await self._tell(data if plain else chunk(data))
            if len(kept) <= most:
                kept += data
        return None if len(kept) > most else bytes(kept)

    def _judge_whole(self, response: Response, kept: bytes | None) -> None:
        if self._meter is None:
            return  # a count or a list that is refused says nothing about the next answer
        if response.status >= 400:
            headers = dict(response.fields.pairs)
            told = trouble_of(kept or b"", response.status, headers, self.clock.now())
            self.grant.note(replace(told, final=False))
            return
        self._meter.began = True
        whole = object_of(kept) if kept is not None else None
        if whole is not None:
            self._meter.see_whole(whole)
        self._judge(self._meter)

    def _judge(self, meter: Meter) -> None:
        """An answer came to its end: with an error in it, or well."""
        if meter.trouble is not None:
            self.grant.note(meter.trouble)
        else:
            self.grant.went_well()

    async def _pass_events(self, response: Response, upstream: Line) -> None:
        events = Events()
        if self._meter is not None:
            self._meter.began = True
        async for data in self._pieces(response, upstream):
            ready = bytearray()
            for event, is_whole in events.feed(data):
                self._count(event, is_whole)
                if self._is_over():
                    await self._cut(bytes(ready), is_between=is_whole)
                    return
                ready += event
            if ready:
                await self._tell(chunk(bytes(ready)))
        rest, is_whole = events.finish()
        if rest:
            self._count(rest, is_whole)
            await self._tell(chunk(rest))
        if self._meter is not None:
            self._judge(self._meter)

    def _count(self, event: bytes, is_whole: bool) -> None:
        told = object_of(data_of(event)) if is_whole and self._meter is not None else None
        if told is not None and self._meter is not None:
            self._meter.see(told)

    def _is_over(self) -> bool:
        """Whether to cut: a complete answer is paid for, so it may as well be had."""
        return self._meter is not None and not self._meter.complete and self.grant.is_over

    async def _cut(self, ready: bytes, *, is_between: bool) -> None:
        words = refusals.budget_words(self.grant.limit_usd)
        last = refusals.event(self.path, refusals.BUDGET, words)
        await self._tell(chunk(ready + (b"" if is_between else b"\n\n") + last))
        self.grant.stop()

    async def _pieces(self, response: Response, upstream: Line) -> AsyncIterator[bytes]:
        async with aclosing(pieces(upstream.reader, response.length, lenient=True)) as body:
            while True:
                async with asyncio.timeout(self.patience.answer):
                    data = await anext(body, None)
                if data is None:
                    return
                yield data

    async def _tell(self, data: bytes) -> None:
        try:
            await self.client.send(data)
        except ConnectionError:
            raise Left from None


def _streams(response: Response) -> bool:
    return response.fields.get("content-type").partition(";")[0].strip().lower() == "text/event-stream"
