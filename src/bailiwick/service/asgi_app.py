"""The one web application. Each later part is mounted here, behind the same names, tokens and limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from bailiwick.clock import Clock, SystemClock
from bailiwick.errors import NotReady
from bailiwick.service.asgi import App, Context, Receive, Send, answer
from bailiwick.service.auth import AuthMiddleware, Identify
from bailiwick.service.hosts import HostCheck, Hosts
from bailiwick.service.limits import Drain, RateCounter, RequestLimits, SizeLimit, TokenLimit
from bailiwick.service.tokens import Scope, TokenAccess

if TYPE_CHECKING:
    from starlette.applications import Starlette

MISSING_EXTRA = "BW602"
NEEDED = ("mcp", "starlette", "uvicorn")


async def _always() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that is served at a path. `open` holds while it is served."""

    path: str
    app: App
    needed: Scope
    open: Callable[[], AbstractAsyncContextManager[None]] | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """What the application is made of. `ready` gives the reason why it can't serve yet, "" where it can."""

    find: Callable[[str], Awaitable[TokenAccess | None]]
    hosts: Hosts
    parts: tuple[Part, ...] = ()
    anonymous: bool = False
    limits: RequestLimits = field(default_factory=RequestLimits)
    clock: Clock = field(default_factory=SystemClock)
    ready: Callable[[], Awaitable[str]] = _always


def require_extra() -> None:
    """Raise `NotReady` where the packages of the service are not installed."""
    import importlib.util

    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        what = f"the service needs packages that are not installed: {', '.join(missing)}"
        raise NotReady(what, hint="pip install 'bailiwick[service]'", code=MISSING_EXTRA)


def create_app(parts: Parts) -> Starlette:
    """The application: the parts, /healthz and /readyz, behind checks of host, origin, token, rate and size."""
    require_extra()
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.routing import BaseRoute, Route

    routes: list[BaseRoute] = [
        Route("/healthz", cast("Any", Health(_always))),
        Route("/readyz", cast("Any", Health(parts.ready))),
    ]
    routes += [Route(part.path, cast("Any", AuthMiddleware(part.app, part.needed))) for part in parts.parts]
    limits = parts.limits
    refused = RateCounter(limits.refused, parts.clock)
    layers: list[tuple[Any, dict[str, Any]]] = [
        (Drain, {"most": limits.drain, "seconds": limits.drain_seconds}),
        (HostCheck, {"hosts": parts.hosts}),
        (Identify, {"find": parts.find, "refused": refused, "anonymous": parts.anonymous}),
        (TokenLimit, {"each": RateCounter(limits.each, parts.clock)}),
        (SizeLimit, {"most": limits.body, "seconds": limits.body_seconds}),
    ]
    middleware = [Middleware(kind, **options) for kind, options in layers]
    return Starlette(routes=routes, middleware=middleware, lifespan=_lifespan(parts.parts))


def _lifespan(parts: tuple[Part, ...]) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def hold(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                if part.open is not None:
                    await stack.enter_async_context(part.open())
            yield

    return hold


@dataclass(frozen=True, slots=True)
class Health:
    """Says whether we are there, or ready; nothing else, as anybody may ask."""

    reason: Callable[[], Awaitable[str]]

    async def __call__(self, _context: Context, _receive: Receive, send: Send) -> None:
        why = await self.reason()
        await answer(send, 503 if why else 200, {"status": why or "ok"})
