"""A service without the rest of the house: answers from a table, a real socket, the official client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.runtime.supervise import Supervisor
from bailiwick.service.asgi_app import Part, Parts, create_app
from bailiwick.service.hosts import Hosts
from bailiwick.service.limits import RequestLimits
from bailiwick.service.mcp import Offer, http_part
from bailiwick.service.mcp_resources import Resources
from bailiwick.service.mcp_tools import ToolRequest
from bailiwick.service.ports import listen
from bailiwick.service.serving import make_server
from bailiwick.service.tokens import TokenAccess
from bailiwick.skills.model import Skill

TOKENS: dict[str, TokenAccess] = {
    "reading": TokenAccess("reader", "read"),
    "running": TokenAccess("runner", "run"),
    "ruling": TokenAccess("operator", "admin"),
}
REVIEW = Skill("review", "Find faults in files.", "# Review\n\nName the line.", "bundled", "x", "0" * 64)


@dataclass
class Office:
    """Answers tools: `tier` at once, `brain_query` with progress, `debug` when it is told to stop; others fail."""

    asked: list[ToolRequest] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    working: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, asked: ToolRequest) -> dict[str, Json]:
        self.asked.append(asked)
        match asked.tool.name:
            case "tier":
                return {"tiers": [{"model": "tiny", "reachable": True}]}
            case "brain_query":
                asked.show("looking")
                asked.show("found one")
                return {"notes": [{"id": "n1"}]}
            case "debug":
                self.working.set()
                await asked.cancel.wait()
                self.stopped.set()
                return {"status": "error", "message": "cancelled"}
            case "session_log":
                raise UsageError("there is no log of this session", hint="name another")
            case _:
                raise RuntimeError("a mistake of ours, with /a/private/path")


class NoRuns:
    """A store without runs."""

    async def runs(self, _which: RunFilter, **_: object) -> list[RunRow]:
        return []

    async def run(self, _run_id: str) -> RunRow | None:
        return None


def no_log(_folder: Path, _session: str) -> Sequence[Mapping[str, Json]]:
    return []


async def skills() -> Mapping[str, Skill]:
    return {"review": REVIEW}


def offer(office: Office, folder: Path) -> Offer:
    """What the office offers."""
    store: Any = NoRuns()
    resources = Resources(store, folder, lambda _row: folder, no_log)
    return Offer(skills, office, resources, tell=office.troubles.append)


def parts(*mounted: Part, limits: RequestLimits | None = None, anonymous: bool = False) -> Parts:
    """An application with the three tokens."""

    async def find(text: str) -> TokenAccess | None:
        return TOKENS.get(text)

    return Parts(find, Hosts.of("127.0.0.1", None), mounted, anonymous, limits or RequestLimits())


@asynccontextmanager
async def running(made: Parts) -> AsyncIterator[str]:
    """The application on a socket; gives its address."""
    listening = listen("127.0.0.1", 0)
    ready = asyncio.Event()
    server = make_server(create_app(made), ready.set)
    problems: list[BaseException] = []
    supervisor = Supervisor(lambda _name, error: problems.append(error))
    task = supervisor.start(server.serve(sockets=[listening]), "web")
    await ready.wait()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await asyncio.wait({task})
        assert problems == []


@asynccontextmanager
async def client(url: str, token: str, mode: str = "auto") -> AsyncIterator[Any]:
    """The official client, connected over HTTP."""
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=600) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as connected:
            yield connected


def mcp_part(office: Office, folder: Path) -> Part:
    """The MCP server of the office."""
    return http_part(offer(office, folder), most=1_000_000)
