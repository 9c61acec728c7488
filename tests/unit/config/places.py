"""A person, a machine and repositories to load configuration from, all below one temporary directory."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.config.service import Config, load_config
from bailiwick.config.variables import Environment
from bailiwick.ids import Json


@dataclass
class ConfigLayers:
    """Writes layers and loads what they make."""

    root: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def machine(self) -> Path:
        return self.root / "etc"

    @property
    def person(self) -> Path:
        return self.root / "home" / "config"

    @property
    def repository(self) -> Path:
        return self.root / "repository"

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def write_person(self, text: str) -> Path:
        return self.write(self.person / "config.yaml", text)

    def write_machine(self, text: str) -> Path:
        return self.write(self.machine / "config.yaml", text)

    def write_policy(self, text: str) -> Path:
        return self.write(self.machine / "policy.yaml", text)

    def write_repository(self, text: str) -> Path:
        return self.write(self.repository / ".bailiwick" / "config.yaml", text)

    def git(self, *words: str) -> None:
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        self.repository.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", *identity, *words], cwd=self.repository, check=True, capture_output=True)

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def environment(self) -> Environment:
        import os

        return Environment({"PATH": os.environ["PATH"], "BAILIWICK_HOME": str(self.root / "home"), **self.variables})

    def load(self, flags: Mapping[str, Json] | None = None, cwd: Path | None = None) -> Config:
        where = cwd or self.repository
        where.mkdir(parents=True, exist_ok=True)
        return load_config(where, flags or {}, environment=self.environment(), machine=self.machine)
