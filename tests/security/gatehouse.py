"""A repository with a gate, and the gate's word on what an agent would leave in a work tree of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.clock import SystemClock
from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment
from bailiwick.gate.from_config import gate_for
from bailiwick.gate.model import GateReport
from bailiwick.gate.service import GatePlaces, GateRequest, run_gate
from bailiwick.git.store import GitStore
from bailiwick.sandbox.service import Sandboxes, open_sandboxes
from tests.needs import need
from tests.security.shop import BASE

NEEDED = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
"""What pytest consists of; with all the plugins of this project it would take five times as long to start."""


def make_tools(folder: Path) -> Path:
    """An environment as an operator has it, with pytest and nothing else; gives its programs."""
    import importlib.util
    import sys

    packages = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    base = Path(os.path.realpath(sys.executable))
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    (folder / "bin" / "python3").symlink_to(base)
    (folder / "bin" / "python").symlink_to("python3")
    for name in NEEDED:
        found = importlib.util.find_spec(name)
        assert found, name
        assert found.origin, name
        source = Path(found.origin)
        if source.name == "__init__.py":
            shutil.copytree(source.parent, packages / name)
        else:
            shutil.copy2(source, packages)
    script = folder / "bin" / "pytest"
    script.write_text(f"#!{folder}/bin/python3\nimport sys\nimport pytest\nsys.exit(pytest.console_main())\n")
    script.chmod(0o755)
    subprocess.run([script.with_name("python3"), "-m", "compileall", "-q", packages], check=True, capture_output=True)
    subprocess.run([script, "--version"], check=True, capture_output=True)
    return folder / "bin"


@dataclass(slots=True)
class Gatehouse:
    """Judges changes. What is learnt about a base is kept, as it is for people."""

    folder: Path
    tools: Path = field(init=False)
    _made: dict[str, tuple[Path, str]] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self.tools = make_tools(self.folder / "tools")

    def judge(self, files: Mapping[str, str | bytes | None], base: Mapping[str, str] | None = None) -> GateReport:
        """The gate's report on the base with these files changed."""
        need("sandbox")
        repository, commit = self._repository(base or {})
        return asyncio.run(self._judge(repository, commit, files))

    def _repository(self, extra: Mapping[str, str]) -> tuple[Path, str]:
        key = repr(sorted(extra.items()))
        if key not in self._made:
            root = self.folder / f"repository-{len(self._made)}"
            write(root, {**BASE, **extra})
            git = ("git", "-C", str(root), "-c", "user.name=A", "-c", "user.email=a@example.org")
            for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "base")):
                subprocess.run([*git, *words], check=True, capture_output=True)
            named = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
            self._made[key] = root, named.stdout.strip()
        return self._made[key]

    async def _judge(self, repository: Path, commit: str, files: Mapping[str, str | bytes | None]) -> GateReport:
        environment = Environment(
            {
                "BAILIWICK_HOME": str(self.folder / "home"),
                "PATH": f"{self.tools}:/usr/bin:/bin",
                "HOME": str(self.folder),
            }
        )
        config = load_config(repository, {}, environment=environment)
        sandboxes: Sandboxes = await open_sandboxes(config, attended=True, environment=environment)
        git_store = await GitStore.open(config.paths.state, repository, environment=environment)
        self._count += 1
        work = self.folder / f"work-{self._count}"
        await git_store.resolve(commit)
        await git_store.checkout(commit, work)
        write(work, files)
        tree = await git_store.snapshot(work)
        spec = await gate_for(config, git_store, commit, sandboxes)
        places = GatePlaces(config.paths.cache, config.paths.state)
        return await run_gate(
            GateRequest(commit, tree),
            spec,
            git_store,
            sandboxes,
            places,
            cancel=asyncio.Event(),
            show=lambda _line: None,
            clock=SystemClock(),
        )


def write(root: Path, files: Mapping[str, str | bytes | None]) -> None:
    """Put files into a directory; None removes one, `-> name` makes a link in its place."""
    for name, text in files.items():
        path = root / name
        if text is None:
            path.unlink(missing_ok=True)
        elif isinstance(text, bytes):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        elif text.startswith("-> "):
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
            path.symlink_to(text[3:])
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            if text.startswith("#!"):
                path.chmod(0o755)


def reasons(report: GateReport) -> str:
    """Why it is not green, for the message of a failed test."""
    found = [f"{f.code}: {f.what}" for check in report.checks for f in check.findings]
    return "\n".join(
        [report.verdict, *found, *(f"{c.name} {c.outcome} {c.failing} {c.output[-800:]}" for c in report.checks)]
    )


RED = ("failed", "red_on_base")


def said(report: GateReport) -> list[str]:
    """The lines by which a report tells a person why it is not green."""
    found = [*report.findings, *report.weakening, *(f for check in report.checks for f in check.findings)]
    return [
        *(f"{f.code}: {f.what}" for f in found if f.blocks or f.parks),
        *(f"{doubt.path}: {doubt.what}" for doubt in report.doubts),
        *(f"{check.name}: {test} fails" for check in report.checks if check.outcome in RED for test in check.failing),
        *(f"{check.name} ended with {check.code}" for check in report.failing if not check.failing),
        *(f"{check.name}: {check.hint}" for check in report.checks if check.outcome == "environment" and check.hint),
        *(f"{path} needs a person's approval" for path in report.wanted),
    ]
