"""`serve`: the application on a socket, a worker beside it, and an end in order when the machine says so."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bailiwick.app.night import NIGHT, night_is_over
from bailiwick.app.retention import keep_to_retention
from bailiwick.app.service import App
from bailiwick.errors import StoreUnavailable
from bailiwick.journal.rows import ClaimFilter
from bailiwick.processes.owner import current_owner
from bailiwick.processes.proc import become_subreaper
from bailiwick.runtime.supervise import Supervisor
from bailiwick.runtime.worker import Worker
from bailiwick.service.asgi_app import Part, Parts, create_app
from bailiwick.service.hosts import Hosts
from bailiwick.service.limits import RequestLimits
from bailiwick.service.tokens import ApiTokens

if TYPE_CHECKING:
    from starlette.applications import Starlette

HEARD: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DRAIN: Final = 5
"""Seconds that open requests have when the service ends; then they are told to stop."""
KEEP_ALIVE: Final = 30
HEADERS: Final = 20.0
"""Seconds that a client has to send the head of a request."""
CONNECTIONS: Final = 1000
UPGRADE: Final = "upgrade"


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the command line and the configuration ask for. `concurrency` 0: no worker."""

    host: str
    port: int
    public_url: str | None = None
    anonymous: bool = False
    concurrency: int = 4
    limits: RequestLimits = field(default_factory=RequestLimits)


def application(app: App, tokens: ApiTokens, wanted: ServeOptions, parts: tuple[Part, ...]) -> Starlette:
    """The application of a session."""

    async def ready() -> str:
        try:
            await app.runtime.store.next_wake()
        except StoreUnavailable as error:
            return error.what
        return ""

    hosts = Hosts.of(wanted.host, wanted.public_url)
    return create_app(
        Parts(
            tokens.find,
            hosts=hosts,
            parts=parts,
            anonymous=wanted.anonymous,
            limits=wanted.limits,
            clock=app.runtime.clock,
            ready=ready,
        )
    )


async def run_service(
    app: App, served: Starlette, listening: socket.socket, wanted: ServeOptions, ready: Callable[[], None]
) -> str:
    """Serve until told to stop; gives why: the name of a signal, or `upgrade` where a newer version is installed."""
    become_subreaper()
    keeper = ServiceRunner(app, make_server(served, ready), wanted.concurrency)
    with keeper.hearing():
        return await keeper.run(listening)


def make_server(app: Starlette, ready: Callable[[], None]) -> Any:
    """The web server: one process, our own signals, nothing believed that a proxy says of the client."""
    import uvicorn

    class Server(uvicorn.Server):
        """Leaves signals to us: a worker ends beside it."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready()

    config = uvicorn.Config(
        app,
        http=patient_protocol(),
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=DRAIN,
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=65_536,
    )
    return Server(config)


def patient_protocol() -> Any:
    """HTTP/1.1 with a bound on how long the head of a request may take."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        """Ends a connection whose client begins a request and does not go on."""

        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                self._rest()
            elif self.conn.trailing_data[0]:
                self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._rest()
            super().connection_lost(exc)

        def _watch(self) -> None:
            if self._late is None:
                self._late = self.loop.call_later(HEADERS, self.transport.abort)

        def _rest(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Protocol


class ServiceRunner:
    """Runs the web server and the worker side by side, and ends both."""

    def __init__(self, app: App, server: Any, concurrency: int) -> None:
        self._app = app
        self._server = server
        self._stop = asyncio.Event()
        self._why = ""
        self._problem: BaseException | None = None
        owner = current_owner("bailiwick serve")
        self._worker = Worker(app.runtime, owner, ClaimFilter(), concurrency) if concurrency else None

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Listen to signals."""
        loop = asyncio.get_running_loop()
        for number in HEARD:
            loop.add_signal_handler(number, self._heard, number.name)
        try:
            yield
        finally:
            for number in HEARD:
                loop.remove_signal_handler(number)

    def _heard(self, name: str) -> None:
        """A first signal ends us in order, a second one at once."""
        if self._why:
            self._server.force_exit = True
        self.stop(name)

    def stop(self, why: str) -> None:
        """End in order."""
        self._why = self._why or why
        self._server.should_exit = True
        if self._worker is not None and self._worker.draining in ("", NIGHT):
            self._worker.drain(why, now=True)
        self._stop.set()

    async def run(self, listening: socket.socket) -> str:
        """Serve until `stop`."""
        supervisor = Supervisor(self._crashed)
        web = supervisor.start(self._serve(listening), "web")
        walks = supervisor.start(self._walk(), "worker")
        if self._worker is not None:
            supervisor.start(self._end_with_night(self._worker), "night")
        await self._stop.wait()
        await asyncio.wait({web, walks})
        await supervisor.close()
        if self._problem is not None:
            raise self._problem
        return self._why

    async def _serve(self, listening: socket.socket) -> None:
        await self._server.serve(sockets=[listening])
        self.stop(self._why or "the web server ended")

    async def _walk(self) -> None:
        if self._worker is None:
            return

        async def never() -> bool:
            return False

        await keep_to_retention(self._app)
        await self._worker.run(never)
        if self._worker.draining != NIGHT:
            self.stop(self._worker.draining or UPGRADE)

    async def _end_with_night(self, worker: Worker) -> None:
        """Start no more work once the night is over; clients are answered as before."""
        if await night_is_over(self._app) and not worker.draining:
            worker.drain(NIGHT, now=False)

    def _crashed(self, _name: str, error: BaseException) -> None:
        self._problem = self._problem or error
        self.stop("a fault")


def url_of(host: str, listening: socket.socket) -> str:
    """How this machine reaches us."""
    port = listening.getsockname()[1]
    name = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104  compared with
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def client_snippet(url: str) -> dict[str, Any]:
    """What a client's `.mcp.json` needs to reach us over HTTP; the token comes from a variable, never from the file."""
    entry = {"type": "http", "url": f"{url}/mcp", "headers": {"Authorization": "Bearer ${BW_TOKEN}"}}
    return {"mcpServers": {"bailiwick": entry}}
