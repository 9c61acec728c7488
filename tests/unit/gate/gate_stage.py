"""A repository, a fence and a gate to try. Without a sandbox where that is not what is tried: it works everywhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bailiwick.clock import ManualClock
from bailiwick.config.variables import Environment
from bailiwick.environments.prepared import EnvironmentBuilder
from bailiwick.environments.registries import Registries
from bailiwick.gate.model import GateReport
from bailiwick.gate.service import GatePlaces, GateRequest, run_gate
from bailiwick.gate.spec import FILE, GateSpec, read_gate
from bailiwick.git.store import GitStore
from bailiwick.sandbox.backends.none import NoSandboxBackend
from bailiwick.sandbox.port import SandboxBackend
from bailiwick.sandbox.service import Sandboxes
from bailiwick.sandbox.toolchains import Toolchains, find_toolchains
from tests.needs import need
from tests.unit.git.repository_setup import RepositorySetup, make_scene

_T = TypeVar("_T")


@dataclass(slots=True)
class GateSetup:
    """Where a gate is tried."""

    scene: RepositorySetup
    sandbox: SandboxBackend
    shown: list[str] = field(default_factory=list)
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    clock: ManualClock = field(default_factory=ManualClock)
    registries: Registries = field(default_factory=Registries)

    @property
    def scratch(self) -> Path:
        """Where checkouts are made."""
        folder = self.scene.top / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def sandboxes(self) -> Sandboxes:
        """A fence with the operator's tools."""
        return Sandboxes(self.sandbox, _tools(self.scene.home), self.scratch)

    @property
    def places(self) -> GatePlaces:
        """Where things are kept."""
        return GatePlaces(self.scene.top / "cache", self.scene.state, registries=self.registries)

    def builder(self, git_store: GitStore) -> EnvironmentBuilder:
        """What environments are made with."""
        return EnvironmentBuilder(
            git_store,
            self.sandboxes,
            self.places.cache,
            self.scene.repo,
            self.clock,
            self.registries,
            cancel=self.cancel,
            show=self.shown.append,
        )

    async def open(self) -> GitStore:
        """The vault."""
        return await self.scene.open()

    def run(self, history: Callable[[GitStore], Awaitable[_T]]) -> _T:
        """Tell a story with the vault; each has a loop, and so an event, of its own."""
        self.cancel = asyncio.Event()
        return self.scene.run(history)

    def check(self, edit: dict[str, str | None], spec: GateSpec, **ask: Any) -> GateReport:
        """Edit a copy of HEAD and run the gate on it."""

        async def history(git_store: GitStore) -> GateReport:
            base = await git_store.resolve("HEAD")
            files = {path: None if text is None else text.encode() for path, text in edit.items()}
            tree = await git_store.write(await git_store.tree_of(base), files)
            return await self.gate(git_store, GateRequest(base, tree, **ask), spec)

        return self.run(history)

    async def gate(self, git_store: GitStore, ask: GateRequest, spec: GateSpec) -> GateReport:
        """Run the gate."""
        return await run_gate(
            ask,
            spec,
            git_store,
            self.sandboxes,
            self.places,
            cancel=self.cancel,
            show=self.shown.append,
            clock=self.clock,
        )


def _tools(home: Path) -> Toolchains:
    variables = {name: value for name in ("PYENV_VERSION",) if (value := Environment().text(name))}
    return find_toolchains(os.environ["PATH"], home, hidden=(), variables=variables)


def make_stage(top: Path, sandbox: SandboxBackend | None = None) -> GateSetup:
    """A stage with one commit in its repository."""
    scene = make_scene(top)
    (top / "scratch").mkdir()
    return GateSetup(scene, sandbox or NoSandboxBackend(top / "scratch"))


def spec_of(text: str) -> GateSpec:
    """A gate from its file."""
    return read_gate(text.encode(), FILE, "base")


def real_sandbox() -> SandboxBackend:
    """The sandbox that this machine has; the test is skipped where there is none, and fails in CI."""
    from bailiwick.sandbox.backends.bwrap import BwrapBackend

    need("sandbox")
    return BwrapBackend()
