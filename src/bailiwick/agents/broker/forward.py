"""Carries one request to the upstream and its answer back: the request whole and looked at, the answer as it streams.

Nothing is tried twice. The client's leaving ends the question, what was set aside for an answer ends the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from bailiwick.agents.broker import admission, refusals
from bailiwick.agents.broker.asked import ModelRequest
from bailiwick.agents.broker.dial import Dialer
from bailiwick.agents.broker.events import Events, data_of
from bailiwick.agents.broker.grants import ANSWERS, AdmittedRequest, Charge, Grant
from bailiwick.agents.broker.intake import Intake, Left, beside
from bailiwick.agents.broker.limits import limits_of
from bailiwick.agents.broker.meter import UsageMeter
from bailiwick.agents.http import MAX_ERROR, UNREACHABLE, trouble_of
from bailiwick.agents.port import Trouble
from bailiwick.agents.streams import as_object
from bailiwick.clock import Clock
from bailiwick.egress.carry import PIECE, Connection
from bailiwick.egress.http1 import (
    LAST_CHUNK,
    PeerBroken,
    RequestHead,
    RequestRefused,
    ResponseHead,
    chunk,
    head_of,
    parse_response,
    pieces,
    read_head,
    status_line,
)

MAX_WHOLE = 2 << 20
"""Bytes of an answer in one piece that are read for the vendor's count; a larger one counts by its size."""
DONE = b"[DONE]"
"""How a stream of chat completions ends."""
_OURS = ("authorization", "x-api-key", "api-key", "cookie", "accept-encoding", "forwarded", "x-forwarded-for")
_THEIRS = ("set-cookie", "location", "alt-svc", "strict-transport-security", "content-length")


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for a request's head, between two pieces of its body, for a connection, between pieces of an answer.

    `turn` is how long a request waits for others that hold what is left of the budget.
    """

    head: float = 10.0
    body: float = 30.0
    connect: float = 30.0
    answer: float = 900.0
    turn: float = 600.0


class BrokeOff(Exception):
    """The upstream stopped in the middle of an answer."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer. `path` is the model path it asks for."""

    request: RequestHead
    path: str
    client: Connection
    grant: Grant
    patience: Patience
    clock: Clock
    began: bool = False
    _intake: Intake = field(init=False)
    _ticket: AdmittedRequest | None = field(default=None, init=False)
    _body: bytes = field(default=b"", init=False, repr=False)
    _upstream: Connection | None = field(default=None, init=False)
    _charge: Charge = field(default="nothing", init=False)

    def __post_init__(self) -> None:
        self._intake = Intake(self.client, self.grant, self.patience.body)

    async def run(self, dialer: Dialer) -> None:
        """Carry it out; `RequestRefused` only while nothing was answered yet, later the connection is dropped."""
        try:
            await self._carry_out(dialer)
        except Left:
            if self._charge == "as said":
                self._charge = "in full"  # nobody sees what is still said
        except BrokeOff:
            pass
        except RequestRefused:
            if not self.began:
                raise
        finally:
            self._intake.release()
            if self._upstream is not None:
                self._upstream.drop()
            if self._ticket is not None:
                self.grant.end(self._ticket, self._charge)

    async def _carry_out(self, dialer: Dialer) -> None:
        self._body = await self._intake.take(self.request)
        if self.request.method == "POST":
            asked = await admission.read(self.path, self._body, self.grant)
            if self.path in ANSWERS:
                await self._intake.while_there(self._admit(asked))
        await self._intake.while_there(self._open(dialer))
        if self._upstream is not None:
            await beside(self._answer(self._upstream), self._ask(self._upstream))

    async def _admit(self, asked: ModelRequest) -> None:
        """Set aside what a request can cost."""
        beta = ",".join(self.request.fields.all("anthropic-beta"))
        self._ticket = await admission.admit(asked, self.grant, beta, self.patience.turn)
        self._body = self._ticket.asked.sent()

    @property
    def _meter(self) -> UsageMeter | None:
        return None if self._ticket is None else self._ticket.meter

    async def _open(self, dialer: Dialer) -> None:
        try:
            async with asyncio.timeout(self.patience.connect):
                self._upstream = await dialer.open(self.grant.upstream)
        except TimeoutError:
            raise self._unreachable("no connection in time") from None
        except (OSError, PeerBroken) as error:
            raise self._unreachable(str(error) or type(error).__name__) from None

    def _unreachable(self, why: str) -> RequestRefused:
        """The upstream is at fault: a fact of the grant, and an answer that says so."""
        words = f"{self.grant.upstream.authority} can't be reached: {why}"[:500]
        self.grant.note(Trouble(words, type=UNREACHABLE, final=False))
        return RequestRefused(502, UNREACHABLE, words)

    async def _ask(self, upstream: Connection) -> None:
        """Send the request; then watch whether the client still wants the answer."""
        try:
            await upstream.send(self._head())
            for at in range(0, len(self._body), PIECE):
                await upstream.send(self._body[at : at + PIECE])
        except (ConnectionError, OSError):
            return  # the answer, if there is one, says why the request is not wanted
        self._charge = "in full"  # what was asked may be answered, whether anybody waits for it or not
        await self._intake.gone()

    def _head(self) -> bytes:
        upstream = self.grant.upstream
        given = {name.lower(): value for name, value in upstream.headers.items()}
        fields = [("host", upstream.authority), *self.request.fields.without((*_OURS, *given)), *given.items()]
        for name, value in upstream.added.items():
            own = [word.strip() for each, said in fields if each == name for word in said.split(",")]
            fields = [pair for pair in fields if pair[0] != name]
            fields.append((name, ",".join(dict.fromkeys((*own, value)))))
        fields += [("accept-encoding", "identity"), ("connection", "close")]
        if self._body or self.request.method == "POST":
            fields.append(("content-length", str(len(self._body))))
        target = upstream.target(self.path) + self.request.query
        return head_of(f"{self.request.method} {target} HTTP/1.1", fields)

    async def _answer(self, upstream: Connection) -> None:
        """Pass the answer on."""
        try:
            response = await self._read_head(upstream)
        except TimeoutError:
            raise self._unreachable("no answer in time") from None
        except (PeerBroken, OSError) as error:
            self._charge = "nothing"
            raise self._unreachable(str(error) or "no answer") from None
        self._charge = "nothing" if response.status >= 300 else "in full"
        now = self.clock.now()
        for seen in limits_of(response.fields, response.status, now):
            self.grant.note(seen)
        if 300 <= response.status < 400:
            raise self._unreachable(f"it answers with a redirect ({response.status}), which is not followed")
        if self._hides_its_count(response):
            raise self._unreachable("its answer is compressed, which was not asked for: it can't be counted")
        await self._begin(response)
        self._charge = "nothing" if response.status >= 300 else "as said"
        try:
            await self._pass_on(response, upstream)
        except (PeerBroken, OSError, TimeoutError) as error:
            why = str(error) or "nothing more came"
            self._broke_off(f"the answer of {self.grant.upstream.authority} broke off: {why}"[:500])
            raise BrokeOff from None

    def _broke_off(self, words: str) -> None:
        """What the model said about it before counts more than that the line is dead."""
        told = self._meter.trouble if self._meter is not None else None
        self.grant.note(told or Trouble(words, type=UNREACHABLE, final=False))

    async def _read_head(self, upstream: Connection) -> ResponseHead:
        while True:
            async with asyncio.timeout(self.patience.answer):
                try:
                    head = await read_head(upstream.reader)
                except RequestRefused:
                    raise PeerBroken("its header is larger than is ever read") from None
            if head is None:
                raise PeerBroken("it closed the connection without an answer")
            response = parse_response(head)
            if response.status >= 200:
                return response
            if response.status == 101:
                raise PeerBroken("it changes the protocol, which was not asked for")

    def _hides_its_count(self, response: ResponseHead) -> bool:
        coding = response.fields.get("content-encoding", "identity").lower()
        return coding != "identity" and self._meter is not None and self.grant.limit_usd is not None

    async def _begin(self, response: ResponseHead) -> None:
        fields = response.fields.without(_THEIRS)
        fields.append(("connection", "close"))
        if self._keeps_length(response):
            fields.append(("content-length", str(response.length)))
        else:
            fields.append(("transfer-encoding", "chunked"))
        self.began = True
        await self._intake.tell(head_of(status_line(response.status), fields))

    def _keeps_length(self, response: ResponseHead) -> bool:
        """Whether the body goes through unchanged: an event may be put at the end of a stream, so not that."""
        return response.length is not None and response.length >= 0 and not _streams(response)

    async def _pass_on(self, response: ResponseHead, upstream: Connection) -> None:
        keeps = self._keeps_length(response)
        if _streams(response) and response.status < 300:
            await self._pass_events(response, upstream)
        else:
            kept = await self._pass_whole(response, upstream, plain=keeps)
            self._judge_whole(response, kept)
        if not keeps:
            await self._intake.tell(LAST_CHUNK)

    async def _pass_whole(self, response: ResponseHead, upstream: Connection, *, plain: bool) -> bytes | None:
        """Pass a body on as it is, and keep a copy unless it is too large."""
        kept, size, most = bytearray(), 0, MAX_ERROR if response.status >= 400 else MAX_WHOLE
        try:
            async for data in self._pieces(response, upstream):
                size += len(data)
                if len(kept) <= most:
                    kept += data
                await self._intake.tell(data if plain else chunk(data))
        except (PeerBroken, OSError, TimeoutError):
            self._pass_over(response, size)
            raise
        if len(kept) > most:
            self._pass_over(response, size)
        return None if len(kept) > most else bytes(kept)

    def _pass_over(self, response: ResponseHead, size: int) -> None:
        """An answer that is not read counts by its size."""
        if self._meter is not None and response.status < 300:
            self._meter.pass_over(size)

    def _judge_whole(self, response: ResponseHead, kept: bytes | None) -> None:
        if self._meter is None:
            return  # a count or a list that is refused says nothing about the next answer
        if response.status >= 400:
            headers = dict(response.fields.pairs)
            told = trouble_of(kept or b"", response.status, headers, self.clock.now())
            self.grant.note(replace(told, final=False))
            return
        whole = as_object(kept) if kept is not None else None
        if whole is not None:
            self._meter.see_whole(whole)
        if kept is not None and not self._meter.complete:
            self._pass_over(response, len(kept))
        self._judge(self._meter)

    def _judge(self, meter: UsageMeter) -> None:
        """An answer came to its end: with an error in it, or well."""
        if meter.trouble is not None:
            self.grant.note(meter.trouble)
        else:
            self.grant.went_well()

    async def _pass_events(self, response: ResponseHead, upstream: Connection) -> None:
        events = Events()
        async for data in self._pieces(response, upstream):
            ready = bytearray()
            for event, is_whole in events.feed(data):
                self._count(event, is_whole)
                if self._is_over():
                    await self._cut(bytes(ready), is_between=is_whole)
                    return
                ready += event
            if ready:
                await self._intake.tell(chunk(bytes(ready)))
        rest, is_whole = events.finish()
        if rest:
            self._count(rest, is_whole)
            await self._intake.tell(chunk(rest))
        if self._meter is not None:
            self._judge(self._meter)

    def _count(self, event: bytes, is_whole: bool) -> None:
        if self._meter is None:
            return
        data = data_of(event) if is_whole else event
        told = as_object(data) if is_whole else None
        if told is not None:
            self._meter.see(told)
        elif data.strip() != DONE:
            self._meter.pass_over(len(data))

    def _is_over(self) -> bool:
        """Whether to cut: the model writes more than was set aside for it."""
        return self._meter is not None and self.grant.limit_usd is not None and self._meter.is_over

    async def _cut(self, ready: bytes, *, is_between: bool) -> None:
        words = refusals.budget_words(self.grant.limit_usd)
        last = refusals.event(self.path, refusals.BUDGET, words)
        await self._intake.tell(chunk(ready + (b"" if is_between else b"\n\n") + last))
        self.grant.stop()

    async def _pieces(self, response: ResponseHead, upstream: Connection) -> AsyncIterator[bytes]:
        async with aclosing(pieces(upstream.reader, response.length, lenient=True)) as body:
            while True:
                async with asyncio.timeout(self.patience.answer):
                    data = await anext(body, None)
                if data is None:
                    return
                yield data


def _streams(response: ResponseHead) -> bool:
    return response.fields.get("content-type").partition(";")[0].strip().lower() == "text/event-stream"
