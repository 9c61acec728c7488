"""Containers for tests on a real engine: a gate whose tests talk to one, and what is left of it, which is nothing."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from bailiwick.fence.backends.container import ContainerSandbox
from bailiwick.fence.backends.container_engine import OWNER, find_engine, owner_label
from bailiwick.fence.backends.container_yard import Yard, open_yard
from bailiwick.fence.cage import service_door
from bailiwick.fence.failures import EnvironmentFailed
from bailiwick.fence.relay import Relay
from bailiwick.fence.vault import Vault
from bailiwick.gate.model import Report
from bailiwick.gate.report import failing_text
from bailiwick.gate.service import Ask, GateInterrupted, run_gate
from bailiwick.gate.services import UNPROTECTED, Means, open_services
from bailiwick.gate.spec import GateSpec, Service
from bailiwick.runtime.kinds import Exit
from tests.conformance.docker_engine import ask, containers, engine
from tests.security.gatehouse import make_tools
from tests.unit.gate.gate_stage import Stage, make_stage, real_sandbox, spec_of

__all__ = ["engine"]
pytestmark = pytest.mark.timeout(180)

PORT = 8080
GONE = "127.0.0.1:9/bailiwick/none:1"
"""An image that is nowhere, of a registry that nobody runs."""
GATE = """
services:
  web:
    image: {image}
    env: {{GREETING: hello}}
    ready: [/bin/busybox, sh, -c, 'test "$GREETING" = hello']
checks:
  - {{name: tests, {check}, timeout: 1m}}
"""
PYTEST = "kind: pytest, run: [pytest, -q]"
UNITTEST = "run: [python3, -B, -m, unittest, tests.test_web]"
APP = """
import urllib.request

def fetch():
    return urllib.request.urlopen("http://127.0.0.1:8080/answer", timeout=10).read().decode()
"""
TESTS = """
import unittest
from app import fetch

class TestWeb(unittest.TestCase):
    def test_answer(self):
        self.assertEqual(fetch(), "42")

def test_answer():
    assert fetch() == "42"
"""


@dataclass(frozen=True, slots=True)
class Images:
    """Images of the engine: one that serves a file, one that says a word and ends."""

    web: str = "bailiwick-test-web:1"
    brief: str = "bailiwick-test-brief:1"


@pytest.fixture(scope="module")
def images(engine: Mapping[str, str]) -> Iterator[Images]:
    """The images, made of one program that needs nothing else."""
    busybox = shutil.which("busybox")
    if busybox is None:
        why = "busybox is not installed (apt-get install busybox-static)"
        if os.environ.get("CI") == "true":
            pytest.fail(f"services of gates are not tested: {why}")
        pytest.skip(f"services of gates are NOT tested here: {why}")
    made = Images()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.add(os.path.realpath(busybox), "bin/busybox")
        answer = tarfile.TarInfo("www/answer")
        answer.size, answer.mode = 2, 0o644
        tar.addfile(answer, io.BytesIO(b"42"))
    serve = 'CMD ["/bin/busybox", "httpd", "-f", "-p", "8080", "-h", "/www"]'
    end = 'CMD ["/bin/busybox", "sh", "-c", "echo no password is set >&2; exit 3"]'
    for name, command in ((made.web, serve), (made.brief, end)):
        line = ["docker", "import", "--change", f"EXPOSE {PORT}", "--change", command, "-", name]
        subprocess.run(line, env=dict(engine), input=content.getvalue(), capture_output=True, check=True, timeout=60)
    yield made
    ask(engine, "image", "rm", "--force", made.web, made.brief)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A repository whose tests ask a service."""
    made = make_stage(tmp_path, real_sandbox())
    made.scene.commit({"app.py": APP, "tests/test_web.py": TESTS, "tests/__init__.py": ""})
    return made


@pytest.fixture
def operator(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """The same, and the operator has pytest."""
    monkeypatch.setenv("PATH", f"{make_tools(stage.scene.top / 'tools')}:/usr/bin:/bin")
    return stage


@pytest.fixture
def reachable(request: pytest.FixtureRequest) -> list[IPv4Network]:
    """The networks of this machine that the guard of all tests lets a test reach besides loopback.

    The guard is not for a test to get around: where it knows no such list, what needs it is not tried.
    """
    try:
        found: list[IPv4Network] = request.getfixturevalue("own_networks")
    except pytest.FixtureLookupError:
        pytest.skip("A GATE WITH ITS SERVICE IS NOT TRIED AS A WHOLE: tests reach loopback only")
    return found


class Watching(list[str]):
    """Hears a gate, and names its private network to the guard as soon as it is there."""

    def __init__(self, engine: Mapping[str, str], reachable: list[IPv4Network]) -> None:
        super().__init__()
        self._engine = engine
        self._reachable = reachable

    def append(self, text: str) -> None:
        super().append(text)
        if ": starting " in text:
            form = "{{range .IPAM.Config}}{{.Subnet}} {{end}}"
            subnets = ask(self._engine, "network", "inspect", "--format", form, *left(self._engine)[1]).split()
            self._reachable[:] = [IPv4Network(subnet) for subnet in subnets]


async def judge(stage: Stage, engine: Mapping[str, str], vault: Vault, spec: GateSpec) -> Report:
    """The gate's word on a small change."""
    base = await vault.resolve("HEAD")
    tree = await vault.write(await vault.tree_of(base), {"app.py": f"{APP}\n# more\n".encode()})
    return await run_gate(
        Ask(base, tree), spec, vault, stage.fence, replace(stage.places, engine=engine),
        cancel=stage.cancel, show=stage.shown.append, clock=stage.clock,
    )  # fmt: skip


def left(engine: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The containers, and the networks of ours, that there are."""
    networks = ask(engine, "network", "ls", "--quiet", "--filter", f"label={OWNER}")
    return containers(engine), networks.split()


def fails(engine: Mapping[str, str], stage: Stage, service: Service, seconds: float = 30.0) -> EnvironmentFailed:
    """Why a service can't be had."""

    async def go() -> EnvironmentFailed | None:
        means = Means(asyncio.Event(), stage.shown.append, engine, seconds)
        async with open_services((service,), stage.fence, means) as (fence, failed):
            assert fence.relay is None
            assert left(engine) == ([], [])
        return failed

    failed = asyncio.run(asyncio.wait_for(go(), 60))
    assert failed is not None
    return failed


@pytest.mark.parametrize(("sandbox", "check"), [("bwrap", PYTEST), ("container", UNITTEST)])
def test_tests_of_a_gate_talk_to_its_service(
    engine: Mapping[str, str],
    images: Images,
    operator: Stage,
    reachable: list[IPv4Network],
    sandbox: str,
    check: str,
) -> None:
    """The sandbox has no network; all the same a test finds the service at the address where people run it."""
    stage = operator
    if sandbox == "container":
        stage.sandbox = ContainerSandbox(stage.scratch, engine)
    stage.shown = Watching(engine, reachable)
    report = stage.run(lambda vault: judge(stage, engine, vault, spec_of(GATE.format(image=images.web, check=check))))
    assert report.verdict == "green", failing_text(report)
    assert UNPROTECTED in report.unprotected
    assert f"web: ready at 127.0.0.1:{PORT}" in stage.shown
    assert left(engine) == ([], [])


@pytest.mark.parametrize("sandbox", ["bwrap", "container"])
def test_a_door_of_the_gate_leads_to_its_address(engine: Mapping[str, str], stage: Stage, sandbox: str) -> None:
    """The way from a test to a service, with a service on loopback: all of it but the container."""
    if sandbox == "container":
        stage.sandbox = ContainerSandbox(stage.scratch, engine)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n42")
        writer.close()

    async def go() -> Exit:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            address = ("127.0.0.1", server.sockets[0].getsockname()[1])
            fence = replace(stage.fence, relay=Relay({service_door(PORT): address}))
            argv = ("python3", "-B", "-c", f"{APP}\nprint(fetch(), fetch())")
            return await fence.run(fence.cage("gate", stage.scene.repo), argv, timeout=60)

    end = asyncio.run(asyncio.wait_for(go(), 90))
    assert (end.code, end.stdout) == (0, b"42 42\n"), end.stderr


def test_an_image_that_is_nowhere_is_the_environments_fault(engine: Mapping[str, str], stage: Stage) -> None:
    """No check is run and nothing is told to the agent: it could not repair this."""
    spec = spec_of(GATE.format(image=GONE, check=UNITTEST))
    report = stage.run(lambda vault: judge(stage, engine, vault, spec))
    assert (report.verdict, [check.name for check in report.checks]) == ("environment", ["services"])
    assert f"the image {GONE} is not here and can't be fetched: " in report.checks[0].findings[0].what
    assert "refused" in report.checks[0].findings[0].what
    assert report.checks[0].hint.startswith(f"docker pull {GONE}")
    assert left(engine) == ([], [])


def test_a_service_that_ends_at_once_is_quoted(engine: Mapping[str, str], images: Images, stage: Stage) -> None:
    """Most often a variable is missing, and only the container says which."""
    failed = fails(engine, stage, Service("db", images.brief))
    assert "ended with code 3 before it was ready" in failed.what
    assert failed.output == "no password is set"


def test_a_ready_that_is_not_in_the_image_is_told_without_waiting(
    engine: Mapping[str, str], images: Images, stage: Stage
) -> None:
    """It will not come: two minutes of waiting would only hide the typo."""
    failed = fails(engine, stage, Service("web", images.web, ("pg_isredy",)))
    assert "no such command as its `ready`" in failed.what
    assert "pg_isredy" in failed.what


def test_a_service_that_is_never_ready_is_given_up(engine: Mapping[str, str], images: Images, stage: Stage) -> None:
    """The last word of `ready` says what it waited for; a port that is named has to answer."""
    never = ("/bin/busybox", "sh", "-c", "echo still starting; exit 1")
    failed = fails(engine, stage, Service("web", images.web, never), seconds=0.5)
    assert "was not ready after 0 s: its `ready` says: still starting" in failed.what
    failed = fails(engine, stage, Service("web", images.web, ports=(9998, 9999)), seconds=0.5)
    assert failed.what.endswith("port 9998, 9999")


def test_an_interruption_while_waiting_leaves_nothing(engine: Mapping[str, str], images: Images, stage: Stage) -> None:
    """Ctrl-C must be heard while a service starts, and not leave a database running."""

    class Ends(list[str]):
        """Interrupts as soon as the container is to be started."""

        def append(self, text: str) -> None:
            super().append(text)
            asyncio.get_running_loop().call_later(0.7, stage.cancel.set)

    stage.shown = Ends()
    never = GATE.format(image=images.web, check=UNITTEST).replace("hello'", "bye'")
    with pytest.raises(GateInterrupted):
        stage.run(lambda vault: judge(stage, engine, vault, spec_of(never)))
    assert stage.shown == [f"web: starting {images.web}"]
    assert left(engine) == ([], [])


def test_what_a_killed_process_left_is_removed_by_the_next(engine: Mapping[str, str], images: Images) -> None:
    """Kill -9 leaves no time to clean up; what a living process has is not touched."""
    host, boot, pidns, _, _ = owner_label().split("/")
    dead = f"{OWNER}={host}/{boot}/{pidns}/4194304/1"
    lost = ask(engine, "network", "create", "--internal", "--label", dead, "bailiwick-test-dead").strip()
    ask(engine, "run", "--detach", "--network", lost, "--label", dead, images.web)
    alive = ask(engine, "network", "create", "--internal", "--label", f"{OWNER}={owner_label()}", "bailiwick-test-own")

    async def story(yard: Yard) -> None:
        found, networks = left(engine)
        assert found == []
        assert len(networks) == 2

    try:
        in_yard(engine, story)
        assert left(engine) == ([], [alive.strip()[:12]])
    finally:
        ask(engine, "network", "rm", alive.strip())


def test_a_container_is_bounded_and_serves_on_its_private_network_alone(
    engine: Mapping[str, str], images: Images
) -> None:
    """Its image is others' work, and tests make it do things. It answers at the address that is told, or by name."""

    async def story(yard: Yard) -> None:
        assert await yard.fetch(images.web) == (f"{PORT}/tcp",)
        network = json.loads(ask(engine, "network", "inspect", yard.network))[0]
        assert network["Internal"] is True
        assert list(network["Options"].values()) == ["false"]
        web, other = [await yard.start(name, images.web, {}) for name in ("web", "other")]
        form = "{{.HostConfig.PidsLimit}} {{.HostConfig.PortBindings}} {{.HostConfig.SecurityOpt}}"
        assert ask(engine, "inspect", "--format", form, web).split() == ["512", "map[]", "[no-new-privileges]"]
        address = (await yard.state(web)).address
        for host in (address, "web"):
            end = await yard.execute(
                other, ("/bin/busybox", "wget", "-q", "-O", "-", f"http://{host}:{PORT}/answer"), 20
            )
            assert (end.code, end.stdout) == (0, b"42"), end.stderr

    in_yard(engine, story)


def in_yard(engine: Mapping[str, str], story: Callable[[Yard], Awaitable[None]]) -> None:
    """Tell a story in a yard of its own."""

    async def go() -> None:
        async with open_yard(await find_engine(engine), asyncio.Event()) as yard:
            await story(yard)

    asyncio.run(asyncio.wait_for(go(), 60))
