"""The broker: one server on loopback per process, a grant per turn, the real credentials on this side only."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from bailiwick.agents.broker import refusals
from bailiwick.agents.broker.dial import MAX_HEAD, Dialer
from bailiwick.agents.broker.forward import Exchange, Patience
from bailiwick.agents.broker.grants import ANSWERS, MODEL_PATHS, Grant, GrantRules, Upstream
from bailiwick.agents.broker.intake import MAX_BODY
from bailiwick.agents.broker.purse import Purse
from bailiwick.agents.prices import Price
from bailiwick.agents.prices import price as table_price
from bailiwick.clock import Clock, SystemClock
from bailiwick.egress.carry import Connection, ConnectionServer
from bailiwick.egress.http1 import (
    PeerBroken,
    RequestHead,
    RequestRefused,
    RequestRules,
    bad_request,
    parse_request,
    read_head,
)
from bailiwick.errors import InternalBug
from bailiwick.ids import digest

MAX_OPEN = 1000
"""Connections at once; more is somebody who knocks without a token."""
RULES = RequestRules(targets=frozenset({"origin"}), max_body=MAX_BODY)
LINGER = 1.0
_LINGER_BYTES = 1 << 20
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Broker:
    """Gives turns an address and a token of their own, and forwards what they ask a model, nothing else.

    `start` before the first grant, `close` at the end; both may be called twice. It never retries.
    """

    def __init__(self, clock: Clock | None = None, patience: Patience | None = None) -> None:
        self._clock = clock or SystemClock()
        self._patience = patience or Patience()
        self._dialer = Dialer()
        self._grants: dict[str, Grant] = {}
        self._connections = ConnectionServer(MAX_OPEN, limit=MAX_HEAD)
        self._base_url = ""

    async def start(self) -> None:
        """Listen on a free port of loopback."""
        if not self._base_url:
            listening = socket.create_server(("127.0.0.1", 0), backlog=256)
            self._base_url = await self.listen(listening)

    async def listen(self, listening: socket.socket) -> str:
        """Serve on a listening socket too, for example one made inside a sandbox; gives the address it has there."""
        await self._connections.serve(listening, self._serve)
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    def hang_up(self, listening: socket.socket) -> None:
        """Stop serving on a socket that was given to `listen`, as at the end of a turn."""
        self._connections.hang_up(listening)

    def grant(
        self,
        turn_key: str,
        upstream: Upstream,
        *,
        limit_usd: float | None = None,
        price: Price = table_price,
        rules: GrantRules | None = None,
        on_budget: Callable[[], None] | None = None,
    ) -> Grant:
        """Rights for one turn, until they are revoked. `on_budget` is called once, when the budget ends the turn."""
        if not self._base_url:
            raise InternalBug("a grant was asked for before the broker was started")
        token = f"bw-turn-{secrets.token_urlsafe(32)}"
        grant = Grant(
            turn_key,
            base_url=self._base_url,
            token=token,
            upstream=upstream,
            purse=Purse(limit_usd),
            price=price,
            rules=rules or GrantRules(),
            on_budget=on_budget,
        )
        self._grants[digest(token)] = grant
        return grant

    def revoke(self, grant: Grant) -> None:
        """Take the rights back: nothing new is served, what runs is dropped. What is known of the turn stays known."""
        self._grants.pop(digest(grant.token), None)
        for task in grant.tasks:
            task.cancel()

    async def close(self) -> None:
        """Stop serving and let go of everything."""
        for grant in list(self._grants.values()):
            self.revoke(grant)
        await self._connections.close()
        self._connections = ConnectionServer(MAX_OPEN, limit=MAX_HEAD)
        self._base_url = ""

    async def _serve(self, client: Connection) -> None:
        try:
            await self._answer(client)
            await _part(client, self._patience.body)
        except (asyncio.CancelledError, ConnectionError, PeerBroken):
            pass  # revoked, closed, or nobody is there any more
        finally:
            client.drop()

    async def _answer(self, client: Connection) -> None:
        path = ""
        try:
            request = await self._read(client)
            if request is None:
                return
            path = model_path(request.path)
            _check_host(request, client)
            grant = self._find(request)
            _check_right(request, path, grant)
        except RequestRefused as refused:
            await client.send(refusals.refusal(path, refused.status, refused.kind, str(refused)))
            return
        task = cast("asyncio.Task[None]", asyncio.current_task())
        grant.tasks.add(task)
        exchange = Exchange(request, path=path, client=client, grant=grant, patience=self._patience, clock=self._clock)
        try:
            await exchange.run(self._dialer)
        except RequestRefused as refused:
            await client.send(refusals.refusal(path, refused.status, refused.kind, str(refused)))
        finally:
            grant.tasks.discard(task)

    async def _read(self, client: Connection) -> RequestHead | None:
        try:
            async with asyncio.timeout(self._patience.head):
                head = await read_head(client.reader)
        except TimeoutError:
            raise RequestRefused(408, "timeout", "the request did not come in time") from None
        return None if head is None else parse_request(head, RULES)

    def _find(self, request: RequestHead) -> Grant:
        scheme, _, bearer = request.fields.get("authorization").partition(" ")
        offered = [bearer.strip() if scheme.lower() == "bearer" else "", request.fields.get("x-api-key")]
        found = (self._grants.get(digest(token)) for token in offered if token)
        grant = next((grant for grant in found if grant is not None), None)
        if grant is None:
            raise RequestRefused(401, "authentication_error", "this token is good for no turn that is running")
        return grant


def model_path(path: str) -> str:
    """A path as models have it: clients whose base URL ends in /v1 leave that out. Any other path as it is."""
    return f"/v1{path}" if f"/v1{path}" in MODEL_PATHS else path


def _check_host(request: RequestHead, client: Connection) -> None:
    """A name that is not ours comes from a page that made its own name point here."""
    _, port, *_ = client.writer.get_extra_info("sockname")
    if request.fields.get("host").lower() not in {f"{name}:{port}" for name in _LOOPBACK}:
        raise bad_request("the Host field does not name this address")


def _check_right(request: RequestHead, path: str, grant: Grant) -> None:
    if path not in MODEL_PATHS:
        raise RequestRefused(403, "permission_error", "only a model's own paths are forwarded")
    if request.method != MODEL_PATHS[path]:
        raise RequestRefused(405, "method_not_allowed", f"{MODEL_PATHS[path]} is the method of this path")
    expected = request.fields.get("expect").lower()
    if expected not in ("", "100-continue"):
        raise RequestRefused(417, "expectation_failed", "nothing but 100-continue can be expected")
    if path in ANSWERS and grant.is_spent:
        grant.stop()
        raise RequestRefused(400, refusals.BUDGET, refusals.budget_words(grant.limit_usd))


async def _part(client: Connection, seconds: float) -> None:
    """End a connection so that the answer arrives.

    What the client still sends is read for a moment and dropped: unread, it would make the system throw the answer
    away. Then a slow client gets some time to take the rest.
    """
    with suppress(OSError, TimeoutError):
        if client.writer.can_write_eof():
            client.writer.write_eof()
        async with asyncio.timeout(LINGER):
            read = 0
            while read < _LINGER_BYTES and (data := await client.reader.read(MAX_HEAD)):
                read += len(data)
    with suppress(OSError, TimeoutError):
        client.writer.close()
        async with asyncio.timeout(seconds):
            await client.writer.wait_closed()
