"""The container sandbox on a real engine: what holds for it besides what holds for every sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bailiwick.processes.command import Exit
from bailiwick.processes.proc import run_process
from bailiwick.sandbox.backends.container import ContainerBackend, ContainerSandbox
from bailiwick.sandbox.backends.container_engine import LABEL, OWNER, owner_label
from bailiwick.sandbox.port import SandboxBackend
from bailiwick.sandbox.spec import INNER, Bind, SandboxSpec
from bailiwick.testing.polling import until
from bailiwick.testing.sandbox_conformance import SandboxConformance
from tests.conformance.docker_engine import ask, containers, engine

__all__ = ["engine"]
_T = TypeVar("_T")

HOST = """
import asyncio, json, sys
from pathlib import Path
from bailiwick.sandbox.backends.container import ContainerBackend
from bailiwick.sandbox.spec import INNER, Bind, SandboxSpec
from bailiwick.processes.proc import run_process

async def main(tree, scratch, variables):
    sandbox = ContainerBackend(Path(scratch), json.loads(variables))
    async with sandbox.enter(SandboxSpec("agent", (Bind(Path(tree), INNER, write=True),))) as room:
        script = "trap '' TERM; (setsid sleep 1000 &) ; echo > started; sleep 1000"
        await run_process(room.command(("/bin/sh", "-c", script), {"PATH": "/usr/bin:/bin"}), cancel=asyncio.Event())

asyncio.run(main(*sys.argv[1:]))
"""


def play(history: Coroutine[Any, Any, _T]) -> _T:
    """Run a test's story to its end."""
    return asyncio.run(asyncio.wait_for(history, 600))


@pytest.fixture
def sandbox(engine: Mapping[str, str], tmp_path: Path) -> ContainerBackend:
    """A sandbox on the engine of the tests."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return ContainerBackend(scratch, engine)


@pytest.fixture
def sandbox_spec(tmp_path: Path) -> SandboxSpec:
    """A cage with a tree."""
    tree = tmp_path / "tree"
    tree.mkdir()
    return SandboxSpec("agent", (Bind(tree, INNER, write=True),))


@pytest.mark.nightly
class TestContainer(SandboxConformance):
    """The suite, with an engine of containers; the engine and its image are found once."""

    found: ContainerBackend | None = None

    @pytest.fixture(autouse=True)
    def _find(self, engine: Mapping[str, str]) -> None:
        if TestContainer.found is None:
            TestContainer.found = ContainerBackend(None, engine)

    def sandbox(self, tmp_path: Path) -> SandboxBackend:
        assert self.found is not None
        self.found._scratch = tmp_path / "scratch"
        return self.found


async def shell(room: ContainerSandbox, script: str, env: Mapping[str, str] | None = None) -> Exit:
    """Run a line of shell inside."""
    command = room.command(("/bin/sh", "-c", script), {"PATH": "/usr/bin:/bin", **(env or {})}, timeout=600)
    return await run_process(command, cancel=asyncio.Event())


def test_a_host_that_is_killed_takes_its_container_along(engine: Mapping[str, str], tmp_path: Path) -> None:
    """Kill -9 leaves no time to clean up: the shim sees its link close, whatever the program does about signals."""
    tree, scratch = tmp_path / "tree", tmp_path / "scratch"
    tree.mkdir()
    scratch.mkdir()
    arguments = [sys.executable, "-c", HOST, str(tree), str(scratch), json.dumps(dict(engine))]
    with subprocess.Popen(arguments, start_new_session=True) as host:
        until(lambda: (tree / "started").exists() or host.poll() is not None, what="the program")
        assert containers(engine)
        host.send_signal(signal.SIGKILL)
    until(lambda: not containers(engine), what="the end of the container")


def test_a_container_of_a_dead_process_is_removed_by_the_next(
    engine: Mapping[str, str],
    sandbox: ContainerBackend,
    sandbox_spec: SandboxSpec,
) -> None:
    """Where the engine itself was down when its host died, something can be left; a living one's is not touched."""

    async def history() -> None:
        async with sandbox.enter(sandbox_spec) as room:
            await shell(room, "true")
        image = ask(engine, "image", "ls", "--quiet", "bailiwick-sandbox").split()[0]
        host, boot, pidns, _, _ = owner_label().split("/")
        dead = ask(engine, "create", "--label", f"{OWNER}={host}/{boot}/{pidns}/4194304/1", image, "true").strip()
        alive = ask(engine, "create", "--label", f"{OWNER}={owner_label()}", image, "true").strip()
        foreign = ask(engine, "create", "--label", f"{OWNER}=elsewhere/{boot}/{pidns}/4194304/1", image, "true").strip()
        try:
            async with ContainerBackend(None, engine).enter(sandbox_spec):
                left = containers(engine)
            assert dead[:12] not in left
            assert {alive[:12], foreign[:12]} <= set(left)
        finally:
            ask(engine, "rm", "--force", alive, foreign)

    play(history())


def test_a_secret_of_the_program_is_its_own(
    engine: Mapping[str, str],
    sandbox: ContainerBackend,
    sandbox_spec: SandboxSpec,
    tmp_path: Path,
) -> None:
    """Neither argument lists, nor what the engine tells about a container, nor a file hold its environment."""

    async def history() -> None:
        async with sandbox.enter(sandbox_spec) as room:
            env = {"PATH": "/usr/bin:/bin", "TOKEN": "s3cret-value"}
            script = "echo > started; while [ ! -e stop ]; do sleep 0.05; done; echo $TOKEN"
            command = room.command(("/bin/sh", "-c", script), env, timeout=600)
            assert "s3cret" not in str(command)
            running = asyncio.ensure_future(run_process(command, cancel=asyncio.Event()))
            await asyncio.to_thread(until, (tmp_path / "tree/started").exists, 60)
            assert "s3cret" not in ask(engine, "inspect", *containers(engine))
            files = [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()]
            assert not any(b"s3cret" in path.read_bytes() for path in files)
            (tmp_path / "tree/stop").touch()
            assert (await running).stdout == b"s3cret-value\n"

    play(history())


def test_nothing_of_the_engine_or_the_machine_is_seen(sandbox: ContainerBackend, sandbox_spec: SandboxSpec) -> None:
    """No system files of the kernel, no name servers of the operator, no letters, and process 1 is a closed book."""

    async def history() -> None:
        async with sandbox.enter(sandbox_spec) as room:
            seen = await shell(
                room, "ls -A /sys /.bailiwick/room; cat /etc/resolv.conf; cat /proc/1/environ /proc/1/mem"
            )
            assert seen.stdout.decode().split() == ["/.bailiwick/room:", "/sys:"]
            assert seen.stderr.count(b"Permission denied") == 2

    play(history())


def test_both_filters_of_system_calls_are_in_force(sandbox: ContainerBackend, sandbox_spec: SandboxSpec) -> None:
    """The engine's list of what is allowed, and ours of what is refused: an engine of another age differs."""

    async def history() -> None:
        async with sandbox.enter(sandbox_spec) as room:
            probe = (
                "import socket\ntry: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)\nexcept OSError as e: print(e)"
            )
            seen = await shell(room, f"grep Seccomp_filters /proc/self/status; python3 -c '{probe}'")
            assert seen.stdout.split(b"\n")[0].split()[-1] == b"2"
            assert b"Operation not permitted" in seen.stdout

    play(history())


def test_what_survives_its_program_does_not_survive_the_room(
    engine: Mapping[str, str],
    sandbox: ContainerBackend,
    sandbox_spec: SandboxSpec,
) -> None:
    """A container ends with its first process; one whose command line was killed ends when the room is left."""

    async def history() -> None:
        async with sandbox.enter(sandbox_spec) as room:
            command = room.command(
                ("/bin/sh", "-c", "trap '' TERM; echo > started; sleep 1000"), {"PATH": "/usr/bin:/bin"}
            )
            process = await asyncio.to_thread(
                subprocess.Popen, command.argv, env=dict(command.env), stdin=subprocess.DEVNULL
            )
            tree = sandbox_spec.binds[0].source
            await asyncio.to_thread(until, (tree / "started").exists, 60)
            process.kill()
            process.wait()
            assert containers(engine)
        assert containers(engine) == []
        assert list((tree.parent / "scratch").iterdir()) == []

    play(history())


def test_the_image_is_made_once(engine: Mapping[str, str], sandbox: ContainerBackend) -> None:
    """It is named by what is in it; a second sandbox finds it there."""

    async def history() -> None:
        assert (await sandbox.check()).ok
        before = ask(engine, "image", "ls", "--quiet", "--no-trunc")
        assert (await ContainerBackend(None, engine).check()).ok
        assert ask(engine, "image", "ls", "--quiet", "--no-trunc") == before
        assert containers(engine) == []

    play(history())


def test_a_check_tells_what_it_is_made_of(sandbox: ContainerBackend) -> None:
    """The first lines of a run repeat it, with what is not protected."""
    standing = play(sandbox.check())
    assert standing.ok
    assert "docker" in standing.found
    assert ("a uid of its own" in standing.found) is (os.geteuid() == 0)
    assert standing.unprotected


def test_rooms_are_told_apart_by_their_label(
    engine: Mapping[str, str], sandbox: ContainerBackend, sandbox_spec: SandboxSpec
) -> None:
    """Leaving one room must not end what runs in another."""

    async def history() -> None:
        tree = sandbox_spec.binds[0].source
        async with sandbox.enter(sandbox_spec) as outer:
            script = "echo > started; while [ ! -e stop ]; do sleep 0.05; done; echo done"
            running = asyncio.ensure_future(shell(outer, script))
            await asyncio.to_thread(until, (tree / "started").exists, 60)
            async with sandbox.enter(SandboxSpec("gate", cwd=Path("/"))) as inner:
                assert (await shell(inner, "echo inner")).stdout == b"inner\n"
            labels = ask(engine, "ps", "--format", "{{.Label " + json.dumps(LABEL) + "}}").split()
            assert len(labels) == 1
            (tree / "stop").touch()
            assert (await running).stdout == b"done\n"

    play(history())
