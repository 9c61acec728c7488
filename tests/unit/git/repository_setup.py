"""A repository of an operator with some history, and our vault beside it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bailiwick.config.variables import Environment
from bailiwick.git.store import GitStore

WHEN = 1_700_000_000.0
AUTHOR = "Ann Other <ann@example.org>"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RepositorySetup:
    """Where everything is."""

    top: Path

    @property
    def repo(self) -> Path:
        """The operator's work tree."""
        return self.top / "repo"

    @property
    def state(self) -> Path:
        """Our state directory."""
        return self.top / "state"

    @property
    def home(self) -> Path:
        """The operator's home directory."""
        return self.top / "home"

    def git(self, *args: str, cwd: Path | None = None) -> str:
        """Run the operator's git."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        env |= {f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER") for what, text in _PERSON.items()}
        argv = ["git", "-c", "protocol.file.allow=always", *args]
        done = subprocess.run(argv, cwd=cwd or self.repo, env=env, capture_output=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return os.fsdecode(done.stdout).rstrip("\n")

    def put(self, files: dict[str, str | bytes], under: Path | None = None) -> None:
        """Write some files into the operator's work tree, or below another directory."""
        for path, content in files.items():
            file = (under or self.repo) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, files: dict[str, str | bytes], message: str = "more") -> str:
        """Commit some files; the id."""
        self.put(files)
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    async def open(self, repository: Path | None = None) -> GitStore:
        """Our vault."""
        names = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        return await GitStore.open(self.state, repository or self.repo, environment=Environment(names))

    def run(self, history: Callable[[GitStore], Awaitable[_T]]) -> _T:
        """Tell a story with the vault."""

        async def tell() -> _T:
            return await history(await self.open())

        return asyncio.run(tell())


_PERSON = {"NAME": "Op Erator", "EMAIL": "op@example.org", "DATE": "2024-01-01T00:00:00Z"}


def make_scene(top: Path) -> RepositorySetup:
    """A scene with one commit on `main`."""
    scene = RepositorySetup(top)
    scene.repo.mkdir(parents=True)
    scene.home.mkdir()
    scene.git("init", "-q", "-b", "main")
    scene.commit(
        {"README.md": "hello\n", "src/a.py": "x = 1\n", "src/b.py": "y = 2\n", ".gitignore": "*.log\nbuild/\n"}, "one"
    )
    return scene
