"""Running the installed command as a person does: its own process, its own home, no terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
BAILIWICK = Path(sys.executable).parent / "bailiwick"


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its one JSON document."""
        return json.loads(self.out)


@dataclass
class Person:
    """Somebody at a machine of their own: a home and a working directory."""

    home: Path
    cwd: Path
    extra: dict[str, str] = field(default_factory=dict)

    def env(self) -> dict[str, str]:
        """Nothing of the developer's own settings."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("BAILIWICK", "AGENT_"))}
        return {**kept, "BAILIWICK_HOME": str(self.home), "NO_COLOR": "1", **self.extra}

    def runs(self, *args: str | Path, timeout: float = 600) -> Result:
        """Run a command to its end."""
        done = subprocess.run(
            [BAILIWICK, *args],
            cwd=self.cwd,
            env=self.env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def starts(self, *args: str | Path) -> subprocess.Popen[str]:
        """Start a command that somebody else will end."""
        return subprocess.Popen(
            [BAILIWICK, *args],
            cwd=self.cwd,
            env=self.env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def workflow(self, name: str, text: str, **scripts: str) -> Path:
        """A workflow directory with scripts (`do_sh` becomes scripts/do.sh)."""
        folder = self.cwd / name
        (folder / "scripts").mkdir(parents=True)
        (folder / "workflow.yaml").write_text(text)
        for key, body in scripts.items():
            stem, _, suffix = key.rpartition("_")
            (folder / "scripts" / f"{stem}.{suffix}").write_text(body)
        return folder


def end(process: subprocess.Popen[str]) -> None:
    """Make sure that a process is gone."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.communicate()
