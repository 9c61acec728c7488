"""The sandbox around a turn: what an agent's programs see, where their network ends, and what they carry with them."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bailiwick.agents.broker_access import BrokerAccess, TurnAccess
from bailiwick.agents.clouds import SWITCHES, Cloud, cloud_of, copy_small
from bailiwick.agents.credentials import LOGINS, SECRET_VARIABLES
from bailiwick.agents.port import Turn
from bailiwick.agents.profiles import carry_profiles
from bailiwick.clock import SystemClock
from bailiwick.config.paths import make_private
from bailiwick.environments.prepared import bin_folders, binds_of, tool_variables
from bailiwick.ids import Json, digest
from bailiwick.processes.proc import plain_line
from bailiwick.sandbox.disk import reclaim, size_words, watch_disk
from bailiwick.sandbox.ownership import give_back, uid_of
from bailiwick.sandbox.port import Sandbox
from bailiwick.sandbox.service import Sandboxes
from bailiwick.sandbox.spec import EGRESS_PORT, INNER, MODEL_PORT, Bind, SandboxLimits, SandboxSpec
from bailiwick.sandbox.toolchain_trees import follow
from bailiwick.sandbox.toolchains import binds_for, resolve_program

UNFENCED: Mapping[str, dict[str, Json]] = {
    "claude": {"permission_mode": "acceptEdits", "allowed_tools": ["Read", "Edit", "Write", "Glob", "Grep"]},
    "codex": {"sandbox": "workspace-write"},
}
"""What an agent may do where no fence is around it: edit files where it works. Its other commands are denied, or are
run in the CLI's own sandbox."""
FENCED: dict[str, Json] = {"skip_permissions": True, "sandboxed": True}
"""Inside the sandbox it may run what it likes: the sandbox says what that can reach."""
CARRIED = ("CLAUDE_CODE_", "CODEX_", "COPILOT_")
"""Variables of the CLIs themselves that are carried in, unless they hold a secret."""
_NOT_CARRIED = frozenset({"TOKEN", "KEY", "SECRET", "SOCKET", "PORT", "SESSION", "MESSAGING", "ENTRYPOINT"})
"""Words in their names that make them a secret, or of the session that we were started in: nothing leads back there."""
_LOGIN_FOLDERS = frozenset(name for login in LOGINS.values() for name in login.folders)
OWN = ("BAILIWICK_RUN", "BAILIWICK_ROOT", "BAILIWICK_EFFECT_KEY", "BAILIWICK_NODE", "BAILIWICK_WORKSPACE")
VENDOR_HOSTS: Mapping[str, tuple[str, ...]] = {
    "claude": ("api.anthropic.com", "console.anthropic.com", "claude.ai"),
    "codex": ("api.openai.com", "auth.openai.com", "chatgpt.com"),
    "copilot": ("api.github.com", "api.githubcopilot.com", "*.githubcopilot.com", "github.com"),
}
"""Where a CLI has to reach by itself when its credential can't be brokered."""


@dataclass(frozen=True, slots=True)
class TurnSandboxRequest:
    """Whose turn it is: the run tree it belongs to, and the prepared environment of its worktree, if it has one.

    `show` tells whoever watches what was refused; `over` ends the turn when it has written too much.
    """

    root: str
    workspace: Path
    environment: str = ""
    show: Callable[[str], None] = lambda _text: None
    over: Callable[[str], None] = lambda _why: None


@dataclass(slots=True)
class TurnSandbox:
    """Puts turns behind the sandbox."""

    sandboxes: Sandboxes
    state: Path
    cache: Path
    allow: tuple[str, ...] = ()
    proxy: str = ""
    no_proxy: str = ""
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def isolates(self) -> bool:
        """Whether the sandbox is one."""
        return self.sandboxes.sandbox.name != "none"

    def options(self, backend: str) -> dict[str, Json]:
        """What an agent may do without asking."""
        return dict(FENCED) if self.isolates else dict(UNFENCED.get(backend, {}))

    def inside(self, program: str) -> str:
        """A program of the host by the name it has inside: links are not bound, what they lead to is."""
        if not self.isolates or not program.startswith("/"):
            return program
        path = Path(program)
        chosen = resolve_program(path.name, self.sandboxes.toolchains) if path.parent.name == "shims" else None
        return str(follow(chosen or path))

    def dress(self, access: TurnAccess, backend: str, sandbox_request: TurnSandboxRequest) -> TurnAccess:
        """The turn with a clean environment, a home and a temporary directory of its own."""
        turn = access.turn
        own_home = self.isolates or not access.exposed
        home = (
            make_private(self.state / "homes" / sandbox_request.root) if own_home else Path(turn.env.get("HOME", "/"))
        )
        scratch = make_private(self.sandboxes.scratch / f"turn-{digest(turn.key)[:16]}")
        kept = {
            name: value for name, value in turn.env.items() if name in OWN or _is_carried(name, exposed=access.exposed)
        }
        carried = carry_profiles(turn.env, home) if backend == "codex" and not access.exposed else {}
        folders = LOGINS[backend].folders if access.exposed and backend in LOGINS else {}
        carried |= {name: turn.env[name] for name in folders if name in turn.env}
        cloud = cloud_of(turn.env.get) if access.exposed and backend == "claude" else None
        carried |= cloud.carried(turn.env) if cloud else {}
        env = self.sandboxes.env({**kept, **carried, "HOME": str(home), "TMPDIR": str(scratch)})
        vendor = cloud.reached(turn.env) if cloud else VENDOR_HOSTS.get(backend, ())
        options = {**turn.options, "hosts": [*self.allow, *(vendor if access.exposed else ())]}
        if cloud is not None and own_home:
            options["shown"] = self._shown(cloud, turn.env, home)
        return replace(access, turn=replace(turn, env=env, options=options))

    def _shown(self, cloud: Cloud, env: Mapping[str, str], home: Path) -> list[Json]:
        """The files of a cloud account, as pairs of where they are and where the program looks for them, read-only.

        As root a sandbox has a user of its own, who can't read them: it gets a copy that is gone after the turn.
        """
        below = home / cloud.folder
        shutil.rmtree(below, ignore_errors=True)
        pairs: list[Json] = []
        for path in cloud.shown(env):
            is_folder = path == cloud.home(env)
            if is_folder and os.geteuid() == 0:
                copy_small(path, below)
                continue
            target = below if is_folder else path
            if is_folder:
                below.mkdir(mode=0o700, parents=True)
            pairs.append([str(path), str(target)])
        return pairs

    @asynccontextmanager
    async def around(
        self,
        access: TurnAccess,
        sandbox_request: TurnSandboxRequest,
        files: tuple[Path, ...],
        broker_access: BrokerAccess | None,
    ) -> AsyncIterator[tuple[Turn, Sandbox]]:
        """A room for the programs of a turn that was dressed, and the turn as it is seen from inside."""
        turn = access.turn
        scratch = Path(turn.env["TMPDIR"])
        hosts = tuple(map(str, turn.options["hosts"]))
        doors = (*(("model",) if access.grant else ()), *(("egress",) if hosts else ()))
        sandbox_spec = replace(self._sandbox_spec(turn, sandbox_request, files, doors), owner=sandbox_request.root)
        async with AsyncExitStack() as stack:
            stack.callback(shutil.rmtree, scratch, ignore_errors=True)
            if "shown" in turn.options and (cloud := cloud_of(turn.env.get)) is not None:
                stack.callback(shutil.rmtree, Path(turn.env["HOME"]) / cloud.folder, ignore_errors=True)
            filled = _Filled(sandbox_spec.written, sandbox_spec.limits, sandbox_request, self.state)
            stack.push_async_callback(filled.clear)
            stack.callback(self._return, turn.cwd, sandbox_spec, turn.cwd.stat().st_uid)
            doorman = _Doorman(self, stack=stack, hosts=hosts, broker_access=broker_access, show=sandbox_request.show)
            sandbox = await stack.enter_async_context(self.sandboxes.sandbox.enter(sandbox_spec, doorman))
            watch = asyncio.ensure_future(watch_disk(sandbox_spec.written, sandbox_spec.limits, filled))
            stack.callback(watch.cancel)
            yield self._seen(access, sandbox_request), sandbox

    def _return(self, folder: Path, sandbox_spec: SandboxSpec, owner: int) -> None:
        """Give a person's own directory back to them: as root it belonged to the sandbox's user for the turn."""
        if os.geteuid() == 0 and self.isolates and not folder.is_relative_to(self.state):
            give_back(folder, uid_of(sandbox_spec), owner)

    def _sandbox_spec(
        self, turn: Turn, sandbox_request: TurnSandboxRequest, files: tuple[Path, ...], doors: tuple[str, ...]
    ) -> SandboxSpec:
        """A worktree lies where its environment was prepared for; any other directory where it is on the host."""
        own = (Path(turn.env["HOME"]), Path(turn.env["TMPDIR"]))
        logins = [Path(value) for name, value in turn.env.items() if name in _LOGIN_FOLDERS and Path(value).is_dir()]
        reads = [Bind(path, path, write=True) for path in (*own, *logins)]
        reads += dict.fromkeys(bind for file in files for bind in binds_for(file))
        reads += [Bind(Path(source), Path(target)) for source, target in turn.options.get("shown", ())]
        if sandbox_request.environment:
            prepared = binds_of(self.cache, sandbox_request.environment)
            return self.sandboxes.sandbox_spec("agent", turn.cwd, doors=doors, reads=tuple(reads), environment=prepared)
        places = dict.fromkeys((sandbox_request.workspace, turn.cwd))
        reads += [Bind(path, path, write=True) for path in places]
        return replace(self.sandboxes.sandbox_spec("agent", None, doors=doors, reads=tuple(reads)), cwd=turn.cwd)

    def _seen(self, access: TurnAccess, sandbox_request: TurnSandboxRequest) -> Turn:
        turn = access.turn
        if not self.isolates:
            return turn
        env = {**turn.env, **self._tools(turn.env.get("PATH", ""), sandbox_request.environment)}
        if turn.options["hosts"]:
            proxy = f"http://127.0.0.1:{EGRESS_PORT}"
            env |= {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NO_PROXY": "127.0.0.1,localhost"}
        base_url = f"http://127.0.0.1:{MODEL_PORT}" if access.grant else turn.base_url
        inner = INNER if sandbox_request.environment else turn.cwd
        return replace(turn, env=env, cwd=inner, tree=turn.cwd, base_url=base_url)

    def _tools(self, path: str, environment: str) -> dict[str, str]:
        """What makes the gate's commands work in the agent's sandbox: the tools of the prepared environment first."""
        if not environment:
            return {}
        prepared = binds_of(self.cache, environment)
        folders = map(str, bin_folders(prepared))
        found = {"PATH": ":".join([*folders, path]), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**tool_variables(prepared), **found}

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Serve on a door while the turn goes on."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


@dataclass(slots=True)
class _Doorman:
    """Gives the listeners that were made inside to those who answer there."""

    turn_sandbox: TurnSandbox
    stack: AsyncExitStack
    hosts: tuple[str, ...]
    broker_access: BrokerAccess | None
    show: Callable[[str], None]

    def __call__(self, name: str, listening: socket.socket) -> None:
        if name == "model" and self.broker_access is not None:
            self.stack.callback(self.broker_access.hang_up, listening)
            self.turn_sandbox.begin(self.broker_access.listen(listening))
        elif name == "egress":
            from bailiwick.egress.hosts import AllowList
            from bailiwick.egress.proxy import EgressProxy
            from bailiwick.egress.upstream_proxy import UpstreamProxy

            turn_sandbox = self.turn_sandbox
            allowed = AllowList.of(turn_sandbox.allow, [host for host in self.hosts if host not in turn_sandbox.allow])
            proxy = EgressProxy(allowed, self._refused, UpstreamProxy(turn_sandbox.proxy, turn_sandbox.no_proxy))
            self.stack.push_async_callback(proxy.close)
            self.turn_sandbox.begin(proxy.serve(listening))
        else:
            listening.close()

    def _refused(self, host: str, why: str) -> None:
        self.show(f"the sandbox refused a connection to {plain_line(host.encode('utf-8', 'replace'), 200)}: {why}")


def _is_carried(name: str, *, exposed: bool) -> bool:
    if name in SECRET_VARIABLES or name in _LOGIN_FOLDERS or name in SWITCHES:
        return exposed
    return name.startswith(CARRIED) and _NOT_CARRIED.isdisjoint(name.split("_"))


@dataclass(slots=True)
class _Filled:
    """Ends a turn that wrote too much, and gives the space back when its programs are gone.

    Only what lies among our own files is cleared: a person's directory is left as it is.
    """

    paths: tuple[Path, ...]
    limits: SandboxLimits
    sandbox_request: TurnSandboxRequest
    state: Path
    why: str = ""
    since: float = field(default_factory=lambda: SystemClock().now())

    def __call__(self, why: str) -> None:
        self.why = why
        self.sandbox_request.show(f"the turn is ended: {why}")
        self.sandbox_request.over(why)

    async def clear(self) -> None:
        """Remove what filled the disk, if anything did."""
        own = [path for path in self.paths if path.resolve().is_relative_to(self.state.resolve())]
        if not self.why or not own:
            return
        freed = await asyncio.to_thread(reclaim, own, self.limits, self.since)
        self.sandbox_request.show(f"{freed.files} files with {size_words(freed.bytes)} that it wrote were removed")
