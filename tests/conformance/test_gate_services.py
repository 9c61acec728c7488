"""Containers for tests on a real engine: a gate whose tests talk to one, and what is left of it, which is nothing."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import socket
import subprocess
import tarfile
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bailiwick.egress.relay import Address, dial
from bailiwick.gate.model import GateReport
from bailiwick.gate.report import failing_text
from bailiwick.gate.service import GateInterrupted, GateRequest, run_gate
from bailiwick.gate.services import ServiceContainers, open_services
from bailiwick.gate.spec import GateSpec, Service
from bailiwick.git.store import GitStore
from bailiwick.processes.command import Exit
from bailiwick.sandbox.backends.container import ContainerBackend
from bailiwick.sandbox.backends.container_engine import OWNER, find_engine, owner_label
from bailiwick.sandbox.backends.container_group import ContainerGroup, open_group
from bailiwick.sandbox.failures import EnvironmentFailed
from bailiwick.sandbox.spec import service_door
from tests.conformance.docker_engine import ask, containers, engine
from tests.needs import need
from tests.security.gatehouse import make_tools
from tests.unit.gate.gate_stage import GateSetup, make_stage, real_sandbox, spec_of

__all__ = ["engine"]
pytestmark = pytest.mark.slow

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
    need("busybox")
    busybox = str(shutil.which("busybox"))
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
def stage(tmp_path: Path) -> GateSetup:
    """A repository whose tests ask a service."""
    made = make_stage(tmp_path, real_sandbox())
    made.scene.commit({"app.py": APP, "tests/test_web.py": TESTS, "tests/__init__.py": ""})
    return made


@pytest.fixture
def operator(stage: GateSetup, monkeypatch: pytest.MonkeyPatch) -> GateSetup:
    """The same, and the operator has pytest."""
    monkeypatch.setenv("PATH", f"{make_tools(stage.scene.top / 'tools')}:/usr/bin:/bin")
    return stage


async def judge(stage: GateSetup, engine: Mapping[str, str], git_store: GitStore, spec: GateSpec) -> GateReport:
    """The gate's word on a small change."""
    base = await git_store.resolve("HEAD")
    tree = await git_store.write(await git_store.tree_of(base), {"app.py": f"{APP}\n# more\n".encode()})
    return await run_gate(
        GateRequest(base, tree),
        spec,
        git_store,
        stage.sandboxes,
        replace(stage.places, engine=engine),
        cancel=stage.cancel,
        show=stage.shown.append,
        clock=stage.clock,
    )


def fails(engine: Mapping[str, str], stage: GateSetup, service: Service, seconds: float = 30.0) -> EnvironmentFailed:
    """Why a service can't be had."""

    async def go() -> EnvironmentFailed | None:
        means = ServiceContainers(asyncio.Event(), stage.shown.append, engine, seconds)
        async with open_services((service,), stage.sandboxes, means) as (sandboxes, failed):
            assert sandboxes.relay is None
            assert containers(engine) == []
        return failed

    failed = asyncio.run(asyncio.wait_for(go(), 600))
    assert failed is not None
    return failed


@pytest.mark.parametrize(("sandbox", "check"), [("bwrap", PYTEST), ("container", UNITTEST)])
def test_tests_of_a_gate_talk_to_its_service(
    engine: Mapping[str, str],
    images: Images,
    operator: GateSetup,
    sandbox: str,
    check: str,
) -> None:
    """The sandbox has no network; all the same a test finds the service at the address where people run it."""
    stage = operator
    if sandbox == "container":
        stage.sandbox = ContainerBackend(stage.scratch, engine)
    report = stage.run(
        lambda git_store: judge(stage, engine, git_store, spec_of(GATE.format(image=images.web, check=check)))
    )
    assert report.verdict == "green", failing_text(report)
    assert f"web: ready at 127.0.0.1:{PORT}" in stage.shown
    assert containers(engine) == []


@pytest.mark.parametrize("sandbox", ["bwrap", "container"])
def test_a_door_of_the_gate_leads_to_its_address(engine: Mapping[str, str], stage: GateSetup, sandbox: str) -> None:
    """The way from a test to a service, with a service on loopback: all of it but the container."""
    if sandbox == "container":
        stage.sandbox = ContainerBackend(stage.scratch, engine)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n42")
        writer.close()

    async def go() -> Exit:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            address = Address(server.sockets[0].getsockname()[1], None)
            sandboxes = replace(stage.sandboxes, relay={service_door(PORT): address})
            argv = ("python3", "-B", "-c", f"{APP}\nprint(fetch(), fetch())")
            return await sandboxes.run(sandboxes.sandbox_spec("gate", stage.scene.repo), argv, timeout=60)

    end = asyncio.run(asyncio.wait_for(go(), 600))
    assert (end.code, end.stdout) == (0, b"42 42\n"), end.stderr


def test_an_image_that_is_nowhere_is_the_environments_fault(engine: Mapping[str, str], stage: GateSetup) -> None:
    """No check is run and nothing is told to the agent: it could not repair this."""
    spec = spec_of(GATE.format(image=GONE, check=UNITTEST))
    report = stage.run(lambda git_store: judge(stage, engine, git_store, spec))
    assert (report.verdict, [check.name for check in report.checks]) == ("environment", ["services"])
    assert f"the image {GONE} is not here and can't be fetched: " in report.checks[0].findings[0].what
    assert "refused" in report.checks[0].findings[0].what
    assert report.checks[0].hint.startswith(f"docker pull {GONE}")
    assert containers(engine) == []


def test_a_service_that_ends_at_once_is_quoted(engine: Mapping[str, str], images: Images, stage: GateSetup) -> None:
    """Most often a variable is missing, and only the container says which."""
    failed = fails(engine, stage, Service("db", images.brief))
    assert "ended with code 3 before it was ready" in failed.what
    assert failed.output == "no password is set"


def test_a_ready_that_is_not_in_the_image_is_told_without_waiting(
    engine: Mapping[str, str], images: Images, stage: GateSetup
) -> None:
    """It will not come: two minutes of waiting would only hide the typo."""
    failed = fails(engine, stage, Service("web", images.web, ("pg_isredy",)))
    assert "no such command as its `ready`" in failed.what
    assert "pg_isredy" in failed.what


def test_a_service_that_is_never_ready_is_given_up(engine: Mapping[str, str], images: Images, stage: GateSetup) -> None:
    """The last word of `ready` says what it waited for; a port that is named has to answer."""
    never = ("/bin/busybox", "sh", "-c", "echo still starting; exit 1")
    failed = fails(engine, stage, Service("web", images.web, never), seconds=0.5)
    assert "was not ready after 0 s: its `ready` says: still starting" in failed.what
    failed = fails(engine, stage, Service("web", images.web, ports=(9998, 9999)), seconds=0.5)
    assert failed.what.endswith("port 9998, 9999")


def test_an_interruption_while_waiting_leaves_nothing(
    engine: Mapping[str, str], images: Images, stage: GateSetup
) -> None:
    """Ctrl-C must be heard while a service starts, and not leave a database running."""

    class Ends(list[str]):
        """Interrupts as soon as the container is to be started."""

        def append(self, text: str) -> None:
            super().append(text)
            asyncio.get_running_loop().call_later(0.7, stage.cancel.set)

    stage.shown = Ends()
    never = GATE.format(image=images.web, check=UNITTEST).replace("hello'", "bye'")
    with pytest.raises(GateInterrupted):
        stage.run(lambda git_store: judge(stage, engine, git_store, spec_of(never)))
    assert stage.shown == [f"web: starting {images.web}"]
    assert containers(engine) == []


def test_what_a_killed_process_left_is_removed_by_the_next(engine: Mapping[str, str], images: Images) -> None:
    """Kill -9 leaves no time to clean up; what a living process has is not touched."""
    host, boot, pidns, _, _ = owner_label().split("/")
    line = ("run", "--detach", "--network", "none", "--label")
    ask(engine, *line, f"{OWNER}={host}/{boot}/{pidns}/4194304/1", images.web)
    alive = ask(engine, *line, f"{OWNER}={owner_label()}", images.web).strip()

    async def history(group: ContainerGroup) -> None:
        assert containers(engine) == [alive[:12]]

    try:
        in_yard(engine, history)
        assert containers(engine) == [alive[:12]]
    finally:
        ask(engine, "rm", "--force", alive)


def test_a_container_is_bounded_and_has_no_network_but_its_loopback(engine: Mapping[str, str], images: Images) -> None:
    """Its image is others' work, and tests make it do things: it must not reach what this machine offers."""

    async def history(group: ContainerGroup) -> None:
        assert await group.fetch(images.web) == (f"{PORT}/tcp",)
        web = await group.start("web", images.web, {})
        form = "{{.HostConfig.PidsLimit}} {{.HostConfig.PortBindings}} {{.HostConfig.SecurityOpt}}"
        assert ask(engine, "inspect", "--format", form, web).split() == ["512", "map[]", "[no-new-privileges]"]
        addresses = await group.execute(web, ("/bin/busybox", "ip", "-o", "-4", "addr"), 20)
        assert [line.split()[1:4] for line in addresses.stdout.splitlines()] == [[b"lo", b"inet", b"127.0.0.1/8"]]
        routes = await group.execute(web, ("/bin/busybox", "ip", "route"), 20)
        assert (routes.code, routes.stdout) == (0, b"")
        with socket.create_server(("0.0.0.0", 0)) as ours:
            port = str(ours.getsockname()[1])
            end = await group.execute(web, ("/bin/busybox", "nc", "-w", "5", "127.0.0.1", port), 20)
        assert end.code != 0
        assert b"refused" in end.stderr

    in_yard(engine, history)


def test_each_container_is_reached_on_its_own_loopback_and_we_stay_on_ours(
    engine: Mapping[str, str], images: Images
) -> None:
    """Two services have the same address: what leads to one must not lead to the other, nor to this machine."""

    async def history(group: ContainerGroup) -> None:
        for text in ("one", "two"):
            container = await group.start(text, images.web, {})
            ask = f"/bin/busybox wget -q -O /dev/null http://127.0.0.1:{PORT}/answer"
            write = f"echo -n {text} > /www/answer; until {ask}; do :; done"
            assert (await group.execute(container, ("/bin/busybox", "sh", "-c", write), 20)).code == 0
            pid = (await group.state(container)).pid
            network = group.network(container, pid)
            assert network is not None
            made = await dial(Address(PORT, network))
            await made.send(b"GET /answer HTTP/1.0\r\n\r\n")
            assert (await made.reader.read()).endswith(b"\r\n\r\n" + text.encode())
            await made.close()
            with pytest.raises(ConnectionRefusedError):
                await dial(Address(PORT + 1, network))
        threads = [Path(f"/proc/self/task/{thread.native_id}/ns/net") for thread in threading.enumerate()]
        assert {thread.readlink() for thread in threads} == {before}

    before = Path("/proc/self/ns/net").readlink()
    in_yard(engine, history)
    assert not [link for link in Path("/proc/self/fd").iterdir() if is_network(link)]


def is_network(link: Path) -> bool:
    """Whether an open file of ours is a network."""
    try:
        return str(link.readlink()).startswith("net:")
    except OSError:
        return False


def test_a_number_that_is_another_process_by_now_gives_no_network(engine: Mapping[str, str], images: Images) -> None:
    """Behind the door would be another's loopback, or this machine's; an engine elsewhere has numbers of its own."""

    async def history(group: ContainerGroup) -> None:
        one, two = [await group.start(name, images.web, {}) for name in ("one", "two")]
        other = (await group.state(two)).pid
        assert group.network(two, other) is not None
        assert [group.network(one, pid) for pid in (other, os.getpid(), 4194304, 0)] == [None] * 4

    in_yard(engine, history)


def in_yard(engine: Mapping[str, str], history: Callable[[ContainerGroup], Awaitable[None]]) -> None:
    """Tell a story in a yard of its own."""

    async def go() -> None:
        async with open_group(await find_engine(engine), asyncio.Event()) as group:
            await history(group)

    asyncio.run(asyncio.wait_for(go(), 600))
