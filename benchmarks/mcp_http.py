"""How many calls of a tool that does nothing the service answers in a second: tokens, limits and protocol included."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Bench, PartFailed, Reading, Spread, column
from benchmarks.report import Figure

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request

    from bailiwick.journal.port import Store

BOUND = 0.2
"""Of what the same server answers with an application that only reads the body and returns JSON."""
CLIENTS = 8
TOKEN = "benchmark"  # noqa: S105  opens nothing but this
_BODY = {
    "jsonrpc": "2.0", "id": 1, "method": "tools/call",
    "params": {
        "name": "stats_models", "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        },
    },
}  # fmt: skip
_HEADERS = (
    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    "Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
    f"Mcp-Name: stats_models\r\nAuthorization: Bearer {TOKEN}\r\n"
)


def measure(bench: Bench) -> list[Figure]:
    """Calls in a second."""
    calls = bench.pick(4000, 800)
    parts = {
        "tool": lambda: bench.part("mcp_http", "tool", calls=calls),
        "bare": lambda: bench.part("mcp_http", "bare", calls=calls),
    }
    found = bench.in_turn(parts, bench.pick(3, 1))
    rate, bare = (Spread.of(column(found[name], "rate")) for name in parts)
    return [
        Figure(
            "mcp-http",
            "a no-op tool over HTTP",
            f"≥ {BOUND:g} × a bare application on the same server",
            rate,
            "a second",
            {"bare application": bare},
            rate.middle / bare.middle,
            "× bare",
            BOUND,
            at_least=True,
            note=f"{CLIENTS} connections that are kept open, the newest protocol; token, limits and schemas included",
        )
    ]


def _tool(folder: Path, calls: int) -> Reading:
    return _rate(folder, calls, "tool")


def _bare(folder: Path, calls: int) -> Reading:
    return _rate(folder, calls, "bare")


def _rate(folder: Path, calls: int, what: str) -> Reading:
    """The service in a process of its own, asked over kept connections."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.mcp_http", what, str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        if not line.strip().isdigit():
            raise PartFailed("the service did not start")
        asyncio.run(_ask(int(line), CLIENTS * 4))
        began = time.perf_counter()
        asyncio.run(_ask(int(line), calls))
        return {"rate": calls / (time.perf_counter() - began)}
    finally:
        process.terminate()
        process.wait()


async def _ask(port: int, calls: int) -> None:
    await asyncio.gather(*(_client(port, calls // CLIENTS) for _ in range(CLIENTS)))


async def _client(port: int, calls: int) -> None:
    body = json.dumps(_BODY).encode()
    request = f"{_HEADERS}Content-Length: {len(body)}\r\n\r\n".encode() + body
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(calls):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(one.split(b":")[1]) for one in head.split(b"\r\n") if one.startswith(b"content-length"))
        answer = await reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 200") or b'"models"' not in answer:
            raise PartFailed(f"the service said {head[:40]!r} {answer[:200]!r}")
    writer.close()
    await writer.wait_closed()


PARTS = {"tool": _tool, "bare": _bare}


def _bare_app() -> Starlette:
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def answer(request: Request) -> JSONResponse:
        await request.json()
        return JSONResponse({"models": []})

    return Starlette(routes=[Route("/mcp", answer, methods=["POST"])])


async def _real_app(folder: Path, store: Store) -> Starlette:
    """The real application with a tool that does nothing."""
    from bailiwick.ids import digest
    from bailiwick.service.asgi_app import Parts, create_app
    from bailiwick.service.hosts import Hosts
    from bailiwick.service.limits import Rate, RequestLimits
    from bailiwick.service.mcp import Offer, http_part
    from bailiwick.service.mcp_resources import Resources
    from bailiwick.service.tokens import KIND, ApiTokens

    tokens = ApiTokens(store, folder)
    await store.put_document(KIND, "bench", {"name": "bench", "scope": "run", "digest": digest(TOKEN)})

    async def nothing(_asked: object) -> dict[str, Any]:
        return {"models": []}

    async def no_skills() -> Mapping[str, Any]:
        return {}

    offer = Offer(no_skills, nothing, Resources(store, folder, lambda _row: folder, lambda _folder, _session: []))
    limits = RequestLimits(each=Rate(1e9, 1e9))
    parts = (http_part(offer, most=limits.body),)
    return create_app(Parts(tokens.find, Hosts.of("127.0.0.1", None), parts, limits=limits))


async def _serve(app: Starlette) -> None:
    from bailiwick.service.ports import listen
    from bailiwick.service.serving import make_server

    listening = listen("127.0.0.1", 0)
    await make_server(app, lambda: print(listening.getsockname()[1], flush=True)).serve(sockets=[listening])


async def _serve_real(folder: Path) -> None:
    from bailiwick.clock import SystemClock
    from bailiwick.journal.opening import opened_store

    folder.mkdir(parents=True, exist_ok=True)
    async with opened_store(folder, SystemClock()) as store:
        await _serve(await _real_app(folder, store))


if __name__ == "__main__":
    asyncio.run(_serve(_bare_app()) if sys.argv[1] == "bare" else _serve_real(Path(sys.argv[2])))
