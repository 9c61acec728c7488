"""The two doors of a sandbox lead to the model and to listed hosts, and nowhere else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bailiwick.agents.broker.grants import Grant, Upstream
from bailiwick.agents.broker.server import Broker
from bailiwick.agents.prices import free
from bailiwick.egress.hosts import AllowList
from bailiwick.egress.proxy import EgressProxy
from bailiwick.processes.proc import EFFECT_MARK, run_process
from bailiwick.sandbox.backends.bwrap import BwrapBackend
from bailiwick.sandbox.port import Sandbox
from bailiwick.sandbox.spec import EGRESS_PORT, INNER, MODEL_PORT, Bind, SandboxSpec
from bailiwick.testing.model_server.script import Say
from bailiwick.testing.model_server.server import ModelServer

pytestmark = pytest.mark.needs("sandbox")

ASK = """
import socket, sys
port, text = int(sys.argv[1]), sys.argv[2].encode().decode("unicode_escape").encode()
with socket.create_connection(("127.0.0.1", port), 5) as line:
    line.settimeout(5)
    line.sendall(text)
    print(line.recv(4096).decode("utf-8", "replace").splitlines()[0])
"""
BODY = '{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}'


@dataclass(slots=True)
class SandboxWithListeners:
    """A sandbox with both doors, who answers there, and what was refused."""

    room: Sandbox
    broker: Broker
    grant: Grant
    refused: list[tuple[str, str]] = field(default_factory=list)

    async def ask(self, port: int, text: str) -> str:
        """The first line that a program inside gets for what it sends."""
        env = {"PATH": "/usr/bin:/bin", EFFECT_MARK: "doors"}
        command = self.room.command(("python3", "-I", "-c", ASK, str(port), text), env, timeout=600)
        end = await run_process(command, cancel=asyncio.Event())
        return (end.stdout + end.stderr).decode().strip()

    async def model(self, token: str, path: str = "/v1/messages", host: str = "") -> str:
        """The answer to a call of the model."""
        named = host or f"127.0.0.1:{MODEL_PORT}"
        fields = (f"Host: {named}", f"x-api-key: {token}", f"Content-Length: {len(BODY)}", "", "")
        head = "\\r\\n".join((f"POST {path} HTTP/1.1", *fields))
        return await self.ask(MODEL_PORT, head + BODY.replace('"', '\\"'))


@asynccontextmanager
async def open_house(folder: Path) -> AsyncIterator[SandboxWithListeners]:
    """A house whose model is a scripted server; `files.example` is the one listed host."""
    tree = folder / "tree"
    tree.mkdir()
    broker = Broker()
    refused: list[tuple[str, str]] = []
    egress = EgressProxy(AllowList.of(["files.example"]), lambda host, why: refused.append((host, why)))
    tasks: list[asyncio.Future[object]] = []

    def on_door(name: str, listening: socket.socket) -> None:
        work = broker.listen(listening) if name == "model" else egress.serve(listening)
        tasks.append(asyncio.ensure_future(work))

    async with ModelServer({"scene": [Say("Hello.")] * 3}) as server:
        await broker.start()
        grant = broker.grant("turn", Upstream(server.url("scene"), {"x-api-key": "real-key"}), price=free)
        sandbox_spec = SandboxSpec("agent", (Bind(tree, INNER, write=True),), doors=("model", "egress"))
        async with BwrapBackend().enter(sandbox_spec, on_door) as room:
            yield SandboxWithListeners(room, broker, grant, refused)
        await egress.close()
        await broker.close()
        await asyncio.gather(*tasks)


def inside(folder: Path, *asked: tuple[int, str]) -> tuple[list[str], list[tuple[str, str]]]:
    """The answers to plain requests, and what was refused."""

    async def main() -> tuple[list[str], list[tuple[str, str]]]:
        async with open_house(folder) as house:
            return [await house.ask(port, text) for port, text in asked], house.refused

    return asyncio.run(main())


def test_the_model_answers_inside_and_only_while_the_turn_goes_on(tmp_path: Path) -> None:
    """The token is worth nothing without the turn; the real key never was inside."""

    async def main() -> list[str]:
        async with open_house(tmp_path) as house:
            during = await house.model(house.grant.token)
            house.broker.revoke(house.grant)
            return [during, await house.model(house.grant.token), await house.model("made-up")]

    during, after, made_up = asyncio.run(main())
    assert during.endswith("200 OK"), during
    assert " 401 " in after
    assert " 401 " in made_up


@pytest.mark.parametrize(
    "path", ["/v1/files", "/admin", "/v1/../secret", "//evil.example/v1/messages", "/v1/messages/batches"]
)
def test_the_broker_forwards_only_what_a_model_is_asked(path: str, tmp_path: Path) -> None:
    """Files, batches and accounts of the vendor are none of an agent's business."""

    async def main() -> str:
        async with open_house(tmp_path) as house:
            return await house.model(house.grant.token, path)

    assert asyncio.run(main()).split()[1] in ("400", "403", "404", "405")


def test_the_brokers_port_is_no_proxy(tmp_path: Path) -> None:
    """Neither CONNECT nor a whole address reaches another host through it."""
    answers, _ = inside(
        tmp_path,
        (MODEL_PORT, "CONNECT evil.example:443 HTTP/1.1\\r\\nHost: evil.example:443\\r\\n\\r\\n"),
        (MODEL_PORT, "GET http://evil.example/ HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n"),
    )
    assert all(" 200 " not in answer and answer for answer in answers), answers


FORBIDDEN = (
    "evil.example:443", "files.example:22", "files.example.evil.example:443", "127.0.0.1:443", "localhost:443",
    "169.254.169.254:80", "[::1]:443", "2130706433:443", "0x7f000001:443", "0177.0.0.1:443", "10.0.0.1:443",
    "[::ffff:127.0.0.1]:443", "files.example@evil.example:443", "metadata.google.internal:80",
)  # fmt: skip


def test_the_other_door_leads_to_listed_hosts_only_and_each_refusal_is_noted(tmp_path: Path) -> None:
    """However an address is written; whoever looks at the log sees what was tried."""
    asked = [(EGRESS_PORT, f"CONNECT {host} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n") for host in FORBIDDEN]
    answers, refused = inside(tmp_path, *asked)
    assert all(" 200 " not in answer and answer.startswith("HTTP/1.1 4") for answer in answers), answers
    assert len(refused) == len(FORBIDDEN)
