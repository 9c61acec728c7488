"""A bench for the checks of other languages' runners: two small trees, the real runners, no sandbox around them."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

from bailiwick.gate.backends import find_check
from bailiwick.gate.model import CheckResult
from bailiwick.gate.port import CheckContext, Which
from bailiwick.gate.spec import CheckSpec
from tests.unit.gate.pytest_stage import OpenFence, PytestCheckSetup

COMMANDS: dict[str, tuple[str, ...]] = {
    "node-test": ("npm", "test"),
    "vitest": ("npx", "vitest", "run"),
    "jest": ("npx", "jest"),
    "mocha": ("npx", "mocha"),
    "go-test": ("go", "test", "./..."),
    "cargo-test": ("cargo", "test", "--offline"),
}


@cache
def rust_programs() -> Path:
    """Where the Rust toolchain itself is."""
    env = {"PATH": os.environ["PATH"], "HOME": pwd.getpwuid(os.getuid()).pw_dir}
    command = ["rustc", "--print", "sysroot"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return Path(said.stdout.strip()) / "bin"


@dataclass(slots=True)
class RunnerStage(PytestCheckSetup):
    """Two trees of another language. `modules` is a node_modules that every checkout gets."""

    kind: str = "node-test"
    modules: Path | None = None

    async def fresh(self, which: Which, files: Mapping[str, bytes | None] | None = None, /) -> Path:
        top = await PytestCheckSetup.fresh(self, which, files)
        if self.modules is not None:
            (top / "node_modules").symlink_to(self.modules)
        return top

    def context(self) -> CheckContext:
        context = PytestCheckSetup.context(self)
        if self.kind == "cargo-test":  # the home inside is another, in which rustup would find no toolchain
            sandboxes = cast("OpenFence", context.sandboxes)
            sandboxes.toolchains = replace(sandboxes.toolchains, path=f"{rust_programs()}:{sandboxes.toolchains.path}")
        return context

    def check(self, *run: str, timeout: float = 600.0) -> CheckResult:
        """Run the check to its end; the checkouts are removed."""
        spec = CheckSpec("tests", self.kind, run or COMMANDS[self.kind], timeout)

        async def go() -> CheckResult:
            return await find_check(self.kind).run(spec, self.context())

        try:
            return asyncio.run(go())
        finally:
            for path in self.place.glob("tree-*"):
                shutil.rmtree(path, ignore_errors=True)


def is_green(result: CheckResult) -> bool:
    """Whether nothing about a check is red and nobody is asked."""
    return result.outcome == "passed" and not any(f.blocks or f.parks for f in result.findings)
