"""Projects to work on, and the parts around a bench. Without a sandbox where that is not what is tried."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bailiwick.config.paths import Paths
from bailiwick.git.objects import FILE, NOTHING, TreeChange
from bailiwick.routing.model import CheckOutcome, FileOut, Result
from bailiwick.sandbox.backends.none import NoSandboxBackend
from bailiwick.sandbox.port import SandboxBackend
from bailiwick.sandbox.service import Sandboxes
from bailiwick.sandbox.toolchains import Toolchains, find_toolchains
from bailiwick.skills.project_files import CallSetting, ProjectFiles, Watching
from bailiwick.skills.site import Check, CheckArguments, Which
from bailiwick.skills.trials import CheckRun

DONE = Result("pass", "red", "tdd", "done")


@dataclass(slots=True)
class FakeSite:
    """A site of two mappings, and what the tests are to say on each."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    says: Mapping[Which, CheckRun] = field(default_factory=dict)
    root: Path = Path("/project")
    ran: list[Which] = field(default_factory=list)

    @property
    def changes(self) -> tuple[TreeChange, ...]:
        found = []
        for path in sorted(self.before.keys() | self.after.keys()):
            if self.before.get(path) == self.after.get(path):
                continue
            new, gone = path not in self.before, path not in self.after
            modes = (NOTHING if new else FILE, NOTHING if gone else FILE)
            found.append(TreeChange(path, "A" if new else "D" if gone else "M", *modes, 1, 0))
        return tuple(found)

    async def read(self, which: Which, path: str) -> bytes | None:
        text = (self.before if which == "before" else self.after).get(path)
        return None if text is None else text.encode()

    async def files(self, which: Which) -> tuple[str, ...]:
        return tuple(self.before if which == "before" else self.after)

    async def run(self, which: Which, command: str) -> CheckRun:
        self.ran.append(which)
        return self.says[which]


def judged(check: Check, result: Result, site: FakeSite, asked: CheckArguments) -> CheckOutcome:
    """What a check says."""

    async def history() -> CheckOutcome:
        return await check(result, site, asked)

    return asyncio.run(history())


@cache
def _tools() -> Toolchains:
    """What this machine has on PATH, looked at once."""
    return find_toolchains(os.environ["PATH"], Path.home(), hidden=(), variables={})


@dataclass(slots=True)
class ProjectSetup:
    """Where a project, our own directories and a fence are."""

    top: Path
    sandbox: SandboxBackend | None = None
    marks: Mapping[str, str] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.top / "project"

    @property
    def paths(self) -> Paths:
        return Paths(self.top / "config", self.top / "state", self.top / "cache", self.top / "run")

    @property
    def scratch(self) -> Path:
        folder = self.top / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    async def sandboxes(self) -> Sandboxes:
        return Sandboxes(self.sandbox or NoSandboxBackend(self.scratch), _tools(), self.scratch, marks=self.marks)

    def write(self, files: Mapping[str, str]) -> None:
        """Write files of the project, as a person would."""
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text, "utf-8")

    def listed(self) -> dict[str, str]:
        """The project's files now, without those of git."""
        found = (path for path in sorted(self.root.rglob("*")) if path.is_file() and ".git" not in path.parts)
        return {path.relative_to(self.root).as_posix(): path.read_text("utf-8") for path in found}

    def bench(
        self, check: Check | None = None, asked: CheckArguments | None = None, *, writes: bool = True
    ) -> ProjectFiles:
        setting = CallSetting(self.sandboxes, self.paths, Path.home())
        watching = Watching(asyncio.Event(), self.shown.append)
        return ProjectFiles(self.root, setting, watching, check, asked or CheckArguments(), writes=writes)


def given(files: Mapping[str, str]) -> list[FileOut]:
    """What a model without tools gives."""
    return [FileOut(path, content) for path, content in files.items()]
