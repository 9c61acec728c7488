"""A brain of one's own for a test: a folder, an index, a clock that stands still, and the person's git."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bailiwick.brain.frontmatter import write
from bailiwick.brain.model import Note, Status
from bailiwick.brain.service import Brain
from bailiwick.clock import ManualClock
from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment

T = TypeVar("T")
HERE = "shop-1a2b"
THERE = "bank-3c4d"
PLAIN = "# Deploys\n\nDeploys happen on Tuesdays.\n"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do one thing to its end."""
    return asyncio.run(work)


def open_brain(home: Path, clock: ManualClock | None = None, **names: str) -> Brain:
    """The brain of a person whose home this is."""
    env = Environment({"BAILIWICK_HOME": str(home), "HOME": str(home), "PATH": os.environ["PATH"], **names})
    home.mkdir(parents=True, exist_ok=True)
    return Brain.open(load_config(home, {}, environment=env), clock or ManualClock(), env)


@dataclass
class Mind:
    """A brain and what a person does beside it."""

    brain: Brain
    clock: ManualClock

    @property
    def root(self) -> Path:
        """The folder of notes."""
        return self.brain.folder.root

    def git(self, *words: str) -> str:
        """What the person's git says there."""
        who = ("-c", "user.name=Pat", "-c", "user.email=pat@example.org")
        done = subprocess.run(["git", *who, *words], cwd=self.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def puts(self, path: str, text: str) -> Path:
        """A file that somebody made by hand."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def files(self, number: int, text: str, scope: str = "global", status: Status = "approved") -> None:
        """A note as somebody's pull would bring it."""
        note = Note(f"n-{number:08x}", f"note {number}", text, scope=scope, status=status, updated=float(number))
        self.puts(f"notes/{scope}/{number}.md", write(note).decode())

    def titles(self, text: str, scope: str | None = HERE, **more: Any) -> list[str]:
        """The titles of what a query finds."""
        return [found.note.title for found in run(self.brain.query(text, scope, **more))]


def mind_at(home: Path) -> Mind:
    """A new one."""
    clock = ManualClock()
    return Mind(open_brain(home, clock), clock)
