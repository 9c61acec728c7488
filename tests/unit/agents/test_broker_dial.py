"""How the broker reaches a vendor: by TLS with certificates that are trusted, through a proxy where there is one."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from bailiwick.agents.backends.openai import OpenaiBackend
from bailiwick.agents.broker.grants import Grant, Upstream
from bailiwick.agents.broker.server import Broker
from bailiwick.agents.broker.upstreams import upstream_for
from bailiwick.agents.credentials import Credential
from bailiwick.agents.port import Answered, Trouble, Used
from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment
from bailiwick.testing.model_server.server import ModelServer
from tests.unit.agents.asking import ask, turn
from tests.unit.agents.broker_stage import BrokerSetup, Vendor, per_million, said

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

needs_openssl = pytest.mark.needs("openssl")


def play(history: Coroutine[Any, Any, None]) -> None:
    """Run a test's story to its end."""
    asyncio.run(asyncio.wait_for(history, 600))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that nobody but its holder trusts, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


async def ask_secure(
    certificate: tuple[Path, Path], trusted: Path | None, proxy: str | None = None
) -> tuple[int, Grant]:
    """The status of a question to a vendor on TLS."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    vendor = Vendor(said({"model": "m-1"}))
    server = await asyncio.start_server(vendor.serve, "127.0.0.1", 0, ssl=context)
    broker = Broker()
    await broker.start()
    try:
        url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        grant = broker.grant("k", Upstream(url, {"x-api-key": "k"}, proxy=proxy, ca_file=trusted), price=per_million)
        status, _, _ = await BrokerSetup(broker, vendor, grant).ask()
        return status, grant
    finally:
        await broker.close()
        server.close()
        await server.wait_closed()


@needs_openssl
def test_a_vendor_is_believed_only_with_a_certificate_that_is_trusted(certificate: tuple[Path, Path]) -> None:
    """A credential must never be sent to whoever answers."""

    async def history() -> None:
        assert (await ask_secure(certificate, certificate[0]))[0] == 200
        status, grant = await ask_secure(certificate, None)
        assert status == 502
        (trouble,) = grant.facts()
        assert isinstance(trouble, Trouble)
        assert "certificate" in trouble.message.lower()

    play(history())


@needs_openssl
def test_a_proxy_carries_bytes_and_sees_no_credential(certificate: tuple[Path, Path]) -> None:
    """TLS is spoken with the vendor; a proxy that refuses is told as such."""
    asked: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        if "Basic dTpw" not in asked[-1]:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            writer.close()
            return
        name, _, port = asked[-1].split(" ")[1].rpartition(":")
        there, back = await asyncio.open_connection(name, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()

    async def history() -> None:
        server = await asyncio.start_server(proxy, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        assert (await ask_secure(certificate, certificate[0], f"http://u:p@127.0.0.1:{port}"))[0] == 200
        assert asked[0].startswith("CONNECT localhost:")
        status, grant = await ask_secure(certificate, certificate[0], f"127.0.0.1:{port}")
        assert status == 502
        assert "the proxy does not let us through" in str(grant.facts())
        server.close()
        await server.wait_closed()

    play(history())


def test_a_gateway_of_the_operators_gets_the_credential_that_was_made_for_it(tmp_path: Path) -> None:
    """A gateway's token sent to the vendor would be given away, and the other way round."""
    config = load_config(tmp_path, {}, environment=Environment({"BAILIWICK_HOME": str(tmp_path)}))
    key = Credential("n", "claude", "api_key", token="k")
    plain = upstream_for(key, config, environment=Environment({}))
    assert plain is not None
    assert (plain.base_url, plain.headers, plain.proxy) == ("https://api.anthropic.com", {"x-api-key": "k"}, None)
    gateway = upstream_for(key, config, environment=Environment({"ANTHROPIC_BASE_URL": "http://gate:1"}))
    assert gateway is not None
    assert gateway.base_url == "http://gate:1"
    chosen = upstream_for(key, config, "http://here:2", Environment({"ANTHROPIC_BASE_URL": "http://gate:1"}))
    assert chosen is not None
    assert chosen.base_url == "http://here:2"


def test_what_can_not_be_brokered_has_no_upstream(tmp_path: Path) -> None:
    """A login or a cloud account is held by the agent's own process, and said to be."""
    config = load_config(tmp_path, {}, environment=Environment({"BAILIWICK_HOME": str(tmp_path)}))
    for credential in (
        Credential("n", "claude", "login", exposed=True),
        Credential("n", "copilot", "login", token="t", exposed=True),
        Credential("n", "claude", "bedrock", exposed=True),
        Credential("n", "copilot", "api_key", token="t"),
        Credential("claude", "claude", "none"),
    ):
        assert upstream_for(credential, config, environment=Environment({})) is None


def test_the_proxy_is_used_unless_the_host_is_excepted(tmp_path: Path) -> None:
    """The network's own settings hold for the broker too."""
    names = {"BAILIWICK_HOME": str(tmp_path), "HTTPS_PROXY": "http://p:3128", "NO_PROXY": "localhost,.corp.example"}
    config = load_config(tmp_path, {}, environment=Environment(names))
    key = Credential("n", "openai", "api_key", token="k")
    outside = upstream_for(key, config, environment=Environment({}))
    inside = upstream_for(key, config, "https://models.corp.example/v1", Environment({}))
    assert outside is not None
    assert inside is not None
    assert (outside.proxy, inside.proxy) == ("http://p:3128", None)
    assert inside.target("/v1/models") == "/v1/models"


def test_a_backend_works_through_the_broker_as_it_does_without() -> None:
    """The whole way: an address and a token for the turn, the model's answer, its count from the wire."""

    async def history() -> None:
        async with ModelServer() as server:
            broker = Broker()
            await broker.start()
            grant = broker.grant(
                "k", Upstream(server.url("plain"), {"authorization": "Bearer real"}), price=per_million
            )
            events = await ask(OpenaiBackend(), turn(model="m-1", base_url=grant.base_url, token=grant.token))
            await broker.close()
            assert events[-1] == Answered("Hello from the script.", stop="stop")
            assert grant.facts() == [Used(1200, 50, 1000, 0.0017, model="m-1")]
            assert server.requests[0].headers["authorization"] == "Bearer real"

    play(history())
