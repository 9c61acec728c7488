"""A shell for a person in the sandbox of an agent or of the gate, on their own terminal."""

from __future__ import annotations

import asyncio
import secrets
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bailiwick.clock import SystemClock
from bailiwick.config.paths import make_private
from bailiwick.config.service import Config
from bailiwick.config.variables import Environment
from bailiwick.egress.proxy import EgressProxy, allow_list
from bailiwick.egress.upstream_proxy import UpstreamProxy
from bailiwick.environments.prepared import prepare_environment
from bailiwick.environments.recipes import Recipe, bin_folders, tool_variables
from bailiwick.errors import NotReady
from bailiwick.git.store import GitStore
from bailiwick.processes.command import Command
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.removal import sweep
from bailiwick.sandbox.failures import EnvironmentFailed
from bailiwick.sandbox.service import Sandboxes, make_sandbox, open_sandboxes
from bailiwick.sandbox.spec import EGRESS_PORT, Bind, SandboxSpec

SHELLS = ("/bin/bash", "/bin/sh")
_PROMPT = "[sandbox] \\w\\$ "

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Stage:
    """What the shell is opened with."""

    config: Config
    sandboxes: Sandboxes
    role: Literal["agent", "gate"]
    say: Say


async def open_shell(config: Config, role: Literal["agent", "gate"], command: tuple[str, ...], say: Say) -> int:
    """Run a command, or a shell, in the sandbox of that role, on our terminal; gives its exit code.

    It works on a fresh copy of the repository's files with the environment that the gate prepares, and the copy is gone
    at the end. Raises `NotReady` where there is no sandbox.
    """
    sandboxes = await open_sandboxes(config, attended=True)
    stage = _Stage(config, sandboxes, role, say)
    async with _copy(stage) as (tree, prepared), AsyncExitStack() as stack:
        hosts = tuple(config.get("sandbox.allow") or ()) if role == "agent" else ()
        doors = ("egress",) if hosts and sandboxes.sandbox.name != "none" else ()
        sandbox_spec = sandboxes.sandbox_spec(role, tree, environment=prepared, doors=doors)
        say(f"{sandboxes.sandbox.name}, as {role}; a copy of your files at {sandbox_spec.cwd}, gone when you leave")
        on_door = await _doorman(stack, config, hosts)
        box = make_sandbox(sandboxes.sandbox.name, sandboxes.scratch, terminal=sys.stdin.isatty())
        sandbox = await stack.enter_async_context(box.enter(sandbox_spec, on_door))
        argv = command or (next(s for s in SHELLS if Path(s).exists()), "-i")
        return await _foreground(sandbox.command(argv, _variables(stage, sandbox_spec, prepared, doors)))


@asynccontextmanager
async def _copy(stage: _Stage) -> AsyncIterator[tuple[Path, tuple[Bind, ...]]]:
    """A fresh directory with the repository's files as they are now, and what the gate mounts on top of them."""
    folder = make_private(stage.sandboxes.scratch / f"shell-{secrets.token_hex(6)}")
    tree = folder / "tree"
    prepared: tuple[Bind, ...] = ()
    try:
        repository = stage.config.repository
        if repository is not None and repository.git:
            git_store = await GitStore.open(stage.config.paths.make_state(), repository.root)
            tree.mkdir(mode=0o755)
            await git_store.checkout(await git_store.snapshot(repository.root), tree)
            prepared = await _environment(stage, git_store)
        else:
            stage.say("this is not a git repository: the sandbox is empty")
            tree.mkdir(mode=0o755)
        yield tree, prepared
    finally:
        await asyncio.to_thread(sweep, folder)


async def _environment(stage: _Stage, git_store: GitStore) -> tuple[Bind, ...]:
    """What the gate prepares for this base; where that fails the person is told, and can look why."""
    from bailiwick.gate.from_config import gate_for, places_of
    from bailiwick.gate.service import environment_builder

    try:
        base = await git_store.resolve(stage.config.get("base") or "HEAD")
        spec = await gate_for(stage.config, git_store, base, stage.sandboxes)
        places = places_of(stage.config)
        builder = environment_builder(
            git_store, stage.sandboxes, places, cancel=asyncio.Event(), show=stage.say, clock=SystemClock()
        )
        return (await prepare_environment(Recipe(spec.prepare, spec.copy), base, builder)).binds
    except (EnvironmentFailed, NotReady) as error:
        stage.say(f"without the prepared environment: {error.what}")
        return ()


async def _doorman(
    stack: AsyncExitStack, config: Config, hosts: tuple[str, ...]
) -> Callable[[str, socket.socket], None]:
    """Has the listener for other hosts served until the stack is left."""
    parent = UpstreamProxy(config.get("network.proxy") or "", config.get("network.no_proxy") or "")
    proxy = EgressProxy(allow_list(hosts), parent=parent)
    stack.push_async_callback(proxy.close)
    tasks: set[asyncio.Task[None]] = set()

    def on_door(name: str, listener: socket.socket) -> None:
        tasks.add(asyncio.get_running_loop().create_task(proxy.serve(listener)))

    return on_door


def _variables(
    stage: _Stage, sandbox_spec: SandboxSpec, prepared: tuple[Bind, ...], doors: tuple[str, ...]
) -> dict[str, str]:
    """The environment that the role has, and what a person at a terminal needs."""
    env = stage.sandboxes.env({**tool_variables(prepared), EFFECT_MARK: f"shell-{secrets.token_hex(8)}"})
    here = sandbox_spec.cwd if stage.sandboxes.sandbox.name == "none" else None
    env["PATH"] = ":".join([*map(str, bin_folders(prepared, here)), env["PATH"]])
    if sys.stdin.isatty():
        env |= {"TERM": Environment().text("TERM") or "dumb", "PS1": _PROMPT}
    if doors:
        proxy = f"http://127.0.0.1:{EGRESS_PORT}"
        env |= {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NO_PROXY": "127.0.0.1,localhost"}
    return env


async def _foreground(command: Command) -> int:
    """Run a command with our own input and output; what it prints is the person's to see as it is."""
    process = subprocess.Popen(  # noqa: ASYNC220 - a start is short, and asyncio's own would take the terminal's place
        command.argv, env=dict(command.env), cwd=command.cwd, pass_fds=command.pass_fds
    )
    code = await asyncio.to_thread(process.wait)
    return code if code >= 0 else 128 - code
