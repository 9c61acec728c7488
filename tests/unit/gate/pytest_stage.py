"""A bench for the pytest check: two small trees of files, and no sandbox around what runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

from bailiwick.gate.backends.pytest import PytestCheck
from bailiwick.gate.model import CheckResult
from bailiwick.gate.port import CheckContext, Which
from bailiwick.gate.spec import CheckSpec
from bailiwick.git.objects import TreeChange
from bailiwick.ids import Json
from bailiwick.processes.command import Command, Exit
from bailiwick.processes.proc import run_process
from bailiwick.sandbox.spec import Bind, SandboxSpec
from bailiwick.sandbox.toolchains import Toolchains

Files = dict[str, str]


@dataclass(frozen=True, slots=True)
class OpenSandbox:
    """The name by which checks know that there is no sandbox."""

    name: str = "none"


@dataclass(slots=True)
class OpenFence:
    """Runs processes as they are, with a clean environment."""

    scratch: Path
    sandbox: OpenSandbox = field(default_factory=OpenSandbox)
    toolchains: Toolchains = field(
        default_factory=lambda: Toolchains(path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    )
    ran: int = 0
    autoload: bool = False
    """Whether pytest loads the plugins that are installed here; without them it starts faster."""

    def sandbox_spec(self, role: str, tree: Path, **_: object) -> SandboxSpec:
        return SandboxSpec("gate", (Bind(tree, tree, write=True),), tree)

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        mark = f"gate-{self.scratch.name}-{os.getpid()}-{self.ran}"
        return {
            "PATH": self.toolchains.path,
            "HOME": str(self.scratch),
            "TMPDIR": str(self.scratch),
            "LANG": "C.UTF-8",
            "BAILIWICK_EFFECT_KEY": mark,
            **({} if self.autoload else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}),
            **(extra or {}),
        }

    async def run(
        self, sandbox_spec: SandboxSpec, argv: tuple[str, ...], *, cancel: asyncio.Event, **options: Any
    ) -> Exit:
        self.ran += 1
        return await run_process(Command(argv, cwd=sandbox_spec.cwd, **options), cancel=cancel)


@dataclass(slots=True)
class PytestCheckSetup:
    """Two trees as files, and the checkouts that were made of them."""

    place: Path
    base: Files
    proposed: Files
    allowed: tuple[str, ...] = ()
    known: dict[str, Json] | None = None
    autoload: bool = False
    made: int = 0
    shown: list[str] = field(default_factory=list)

    def tree(self, which: Which) -> dict[str, bytes]:
        files = self.base if which == "base" else self.proposed
        return {path: dedent(text).encode() for path, text in files.items()}

    def changes(self) -> tuple[TreeChange, ...]:
        old, new = self.tree("base"), self.tree("proposed")
        return tuple(
            TreeChange(path, "A" if path not in old else "D" if path not in new else "M", "100644", "100644", 1, 1)
            for path in sorted(old.keys() | new.keys())
            if old.get(path) != new.get(path)
        )

    async def fresh(self, which: Which, files: Mapping[str, bytes | None] | None = None, /) -> Path:
        self.made += 1
        top = self.place / f"tree-{self.made}"
        for path, data in {**self.tree(which), **(files or {})}.items():
            if data is not None:
                (top / path).parent.mkdir(parents=True, exist_ok=True)
                (top / path).write_bytes(data)
        return top

    async def read(self, which: Which, path: str) -> bytes | None:
        return self.tree(which).get(path)

    async def files(self, which: Which) -> tuple[str, ...]:
        return tuple(self.tree(which))

    def context(self) -> CheckContext:
        scratch = self.place / "scratch"
        scratch.mkdir(exist_ok=True)
        sandboxes = cast("Any", OpenFence(scratch, autoload=self.autoload))
        return CheckContext(
            sandboxes,
            (),
            self.changes(),
            self.fresh,
            self.read,
            self.files,
            asyncio.Event(),
            show=self.shown.append,
            allowed=self.allowed,
            base_results=self.known,
        )

    def check(self, *run: str, timeout: float = 600.0) -> CheckResult:
        """Run the check to its end; the checkouts are removed."""
        spec = CheckSpec("tests", "pytest", run or ("pytest", "-q"), timeout)

        async def go() -> CheckResult:
            return await PytestCheck().run(spec, self.context())

        try:
            return asyncio.run(go())
        finally:
            for path in self.place.glob("tree-*"):
                shutil.rmtree(path, ignore_errors=True)
