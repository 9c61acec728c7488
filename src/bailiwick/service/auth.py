"""Every request shows a token; what is behind it is told from `TokenAccess`, and each part says what it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bailiwick.service.asgi import ACCESS, App, Context, Receive, Send, header, refuse
from bailiwick.service.hosts import is_loopback
from bailiwick.service.limits import RateCounter, address_of, slow_down
from bailiwick.service.tokens import ANONYMOUS, Scope, TokenAccess

OPEN = frozenset({"/healthz", "/readyz"})
"""What anybody may ask: it says nothing but whether we are there."""
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip")
_REALM = 'Bearer realm="bailiwick"'


@dataclass(frozen=True, slots=True)
class Identify:
    """Finds who asks, or answers 401; an address that keeps asking so has to wait, and only for that.

    Whoever shows a token that is known is let in at once, however often others from the same address were not.
    `anonymous`: whoever asks from this very machine without a token may read.
    """

    app: App
    find: Callable[[str], Awaitable[TokenAccess | None]]
    refused: RateCounter
    anonymous: bool = False

    async def __call__(self, context: Context, receive: Receive, send: Send) -> None:
        if context["type"] == "http" and context["path"] not in OPEN:
            given = header(context, b"authorization")
            access = await self._who(context, given)
            if access is None and (seconds := self.refused.take(address_of(context))) > 0:
                await slow_down(send, seconds)
                return
            if access is None:
                what = "a token is needed" if given is None else "this token is not known"
                challenge = _REALM if given is None else f'{_REALM}, error="invalid_token"'
                hint = "send `Authorization: Bearer …` with the token that `bailiwick serve` names"
                await refuse(send, 401, what=what, hint=hint, more=((b"www-authenticate", challenge.encode()),))
                return
            context[ACCESS] = access
        await self.app(context, receive, send)

    async def _who(self, context: Context, given: str | None) -> TokenAccess | None:
        if given is None:
            return ANONYMOUS if self.anonymous and _is_near(context) else None
        kind, _, token = given.partition(" ")
        return await self.find(token.strip()) if kind.lower() == "bearer" else None


def _is_near(context: Context) -> bool:
    """Whether a request comes from this machine and was not passed on by a proxy of it."""
    client = context.get("client")
    passed_on = any(name in _FORWARDED for name, _ in context["headers"])
    return client is not None and is_loopback(client[0]) and not passed_on


@dataclass(frozen=True, slots=True)
class AuthMiddleware:
    """Lets through whoever's token reaches far enough for one part, or answers 403 with the scope that is needed."""

    app: App
    needed: Scope

    async def __call__(self, context: Context, receive: Receive, send: Send) -> None:
        access: TokenAccess | None = context.get(ACCESS)
        if access is None or not access.reaches(self.needed):
            challenge = f'{_REALM}, error="insufficient_scope", scope="{self.needed}"'
            hint = f"use a token with scope {self.needed}: bailiwick serve token add NAME --scope {self.needed}"
            what = f"this needs the scope {self.needed}"
            await refuse(send, 403, what=what, hint=hint, more=((b"www-authenticate", challenge.encode()),))
            return
        await self.app(context, receive, send)


def access_of(context: Context) -> TokenAccess:
    """Who asks. Only behind `Identify`."""
    found: TokenAccess = context[ACCESS]
    return found
