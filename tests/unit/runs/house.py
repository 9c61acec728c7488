"""A state directory with real runs: workflows written to disk, walked in this process, commands called as people do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bailiwick.app.service import App, open_app
from bailiwick.cli.root import run as run_command
from bailiwick.journal.rows import ClaimFilter, RunRow
from bailiwick.lang.load import load
from bailiwick.processes.owner import current_owner
from bailiwick.runs.control import Control
from bailiwick.runs.find import find_run
from bailiwick.runs.start import StartRequest, start
from bailiwick.runtime.worker import Worker

if TYPE_CHECKING:
    import pytest

ASKS = """
version: 1
name: flow
start: build
nodes:
  - {id: build, type: script, script: scripts/build.sh, outputs: [{key: count}], next: check}
  - {id: check, type: branch, path: count, conditions: [{op: ">=", value: "10", next: ask}], default: done}
  - {id: ask, type: ask, question: "Deploy {{ count }}?", choices: ["yes", "no"], next: pick}
  - {id: pick, type: branch, path: ask, cases: {"yes": boom}, default: done}
  - {id: boom, type: script, script: scripts/boom.sh, next: done}
  - {id: done, type: terminal}
"""
SCRIPTS = {
    "build.sh": 'echo "{\\"count\\": 12}"\n',
    "boom.sh": "printf 'bad \\033[31mnews\\n' >&2\nexit 3\n",
}


@dataclass(slots=True)
class Answer:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as the one JSON document it has to be."""
        return json.loads(self.out)


@dataclass(slots=True)
class Machine:
    """One person's machine."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    def write(self, text: str = ASKS, name: str = "flow", scripts: dict[str, str] | None = None) -> Path:
        """A workflow directory."""
        folder = self.root / "work" / name
        (folder / "scripts").mkdir(parents=True, exist_ok=True)
        (folder / "workflow.yaml").write_text(text)
        for file, body in (SCRIPTS if scripts is None else scripts).items():
            (folder / "scripts" / file).write_text(body)
        return folder

    def start(self, folder: Path, key: str = "default", *, fresh: bool = False) -> RunRow:
        """Create a run; nobody walks it yet."""

        async def create(app: App) -> RunRow:
            start_request = StartRequest(load(folder, _beside), {}, key, fresh=fresh)
            return (await start(app.runtime, start_request)).row

        row: RunRow = self.inside(create)
        return row

    def walk(self) -> None:
        """Walk every run that is ready until none can go on."""

        async def walk(app: App) -> None:
            worker = Worker(app.runtime, current_owner("test"), ClaimFilter(), 4)
            await worker.run(_always)

        self.inside(walk)

    def resume(self, name: str) -> None:
        """Let a stopped or failed run go on, and walk."""

        async def resume(app: App) -> None:
            row = await find_run(app.runtime.store, name)
            await Control(app.runtime, "test").resume(row)

        self.inside(resume)
        self.walk()

    def run(self, folder: Path, key: str = "default") -> None:
        """Create a run and walk it as far as it goes."""
        self.start(folder, key)
        self.walk()

    def inside(self, act: Callable[[App], Any]) -> Any:
        """Do something with an open session."""

        async def open_and_act() -> Any:
            async with open_app() as app:
                return await act(app)

        return asyncio.run(open_and_act())

    def say(self, *words: str) -> Answer:
        """Call a command."""
        self.capsys.readouterr()
        code = run_command(list(words))
        captured = self.capsys.readouterr()
        return Answer(code, captured.out, captured.err)


async def _always() -> bool:
    return True


def _beside(name: str, caller: Path) -> Path | None:
    found = caller.parent / name
    return found if found.is_dir() else None
