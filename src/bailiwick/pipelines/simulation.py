"""`--simulate good|bad|stuck|cheat`: the real command in a temporary repository, with a scripted agent and a real gate.

Everything happens in a process of its own with a home of its own, so that nothing of it is left in the person's
directories: no run, no branch, no file.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bailiwick.config.variables import Environment, child_environment
from bailiwick.errors import InternalBug, NotReady
from bailiwick.lang.source import read_yaml
from bailiwick.pipelines.model import ISSUE_TO_PR, IssueText, Pattern, slug
from bailiwick.workflows.service import BUNDLED

Play = Literal["good", "bad", "stuck", "cheat"]
PLAYS: tuple[Play, ...] = ("good", "bad", "stuck", "cheat")
GATE = ".bailiwick/gate.yaml"

_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-c", "init.defaultBranch=main")
_WHO = ("-c", "user.name=Bailiwick", "-c", "user.email=simulation@bailiwick.invalid")
_GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}


@dataclass(frozen=True, slots=True)
class SimulatedRepository:
    """Where a play is given: a home, a repository in it, the issue if there is one, the script of the agent."""

    home: Path
    repository: Path
    script: Path
    issue: str = ""
    level: str = "tests"
    kept: bool = False

    def command(self, pattern: Pattern, flags: Sequence[str]) -> list[str]:
        """The command that is run there; where nothing is kept it names no command that would need what is gone."""
        issue = ["--", self.issue] if self.issue else []
        gone = [] if self.kept else ["--temporary"]
        return [sys.executable, "-m", "bailiwick", pattern, "--simulate", str(self.script), *flags, *gone, *issue]

    def environment(self) -> dict[str, str]:
        """The environment of that command: a home of its own, which may lie on a small disk."""
        return child_environment({"BAILIWICK_HOME": str(self.home), "BAILIWICK_RETENTION_MIN_FREE": "100MB"})


def script_of(pattern: Pattern, play: Play) -> Path:
    """The script of the simulated agent."""
    return BUNDLED / pattern / "simulate" / f"{play}.yaml"


@contextmanager
def staged(
    pattern: Pattern, play: Play, keep: Path | None = None, issue: IssueText | None = None
) -> Iterator[SimulatedRepository]:
    """A stage in a temporary directory that is gone at the end, or in `keep`, which has to be empty.

    `issue` is what is asked there; without one it is the issue of the bundled project.
    """
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise NotReady(f"{keep} is not empty", hint="give a directory that does not exist yet", code="BW482")
        keep.mkdir(parents=True, exist_ok=True)
        yield replace(_set_up(keep.resolve(), pattern, script_of(pattern, play), issue), kept=True)
        return
    with tempfile.TemporaryDirectory(prefix="bailiwick-simulate-", ignore_cleanup_errors=True) as folder:
        yield _set_up(Path(folder).resolve(), pattern, script_of(pattern, play), issue)


def _set_up(top: Path, pattern: Pattern, script: Path, issue: IssueText | None) -> SimulatedRepository:
    level = "tests" if _has_pytest(top / "home") else "exit-code"
    project = read_yaml(BUNDLED / pattern / "simulate" / "project.yaml").data
    if not isinstance(project, dict):
        raise InternalBug("the simulated project can't be read")
    files = {**project["files"], GATE: project["gate"]["pytest" if level == "tests" else "unittest"]}
    repository = write_repository(top / "shop", files)
    asked = str(project["issue"]) if pattern == ISSUE_TO_PR else ""
    if issue is not None:
        file = top / "issue" / f"{slug(issue.stem)}.md"
        file.parent.mkdir()
        file.write_text(issue.text, "utf-8")
        asked = str(file)
    return SimulatedRepository(top / "home", repository=repository, script=script, issue=asked, level=level)


def write_repository(root: Path, files: dict[str, str]) -> Path:
    """A git repository with these files in its one commit, out of reach of the person's own git configuration."""
    root.mkdir(parents=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for words in (
        ("init", "--quiet", "--template="),
        ("add", "--all"),
        (*_WHO, "commit", "--quiet", "-m", "A small shop"),
    ):
        _git(root, *words)
    return root


def _git(root: Path, *words: str) -> None:
    try:
        subprocess.run(
            ["git", *_QUIET, *words], cwd=root, env=child_environment(_GIT), check=True, capture_output=True, text=True
        )
    except FileNotFoundError:
        raise NotReady("git is not installed", hint="install git", code="BW482") from None
    except subprocess.CalledProcessError as error:
        raise NotReady(f"git can't make a repository: {error.stderr.strip()}", code="BW482") from None


def _has_pytest(home: Path) -> bool:
    """Whether the Python that a sandbox will have comes with pytest; Bailiwick itself brings none along."""
    from bailiwick.sandbox.toolchains import find_toolchains, resolve_program

    env = Environment()
    tools = find_toolchains(env.text("PATH") or "", env.home(), hidden=(home,), variables=env.child_environment({}))
    python = resolve_program("python3", tools)
    if python is None:
        return False
    command = [str(python), "-I", "-c", "import pytest"]
    return subprocess.run(command, env=child_environment({}), cwd="/", capture_output=True, check=False).returncode == 0


def perform(stage: SimulatedRepository, pattern: Pattern, flags: Sequence[str]) -> int:
    """Run the command on its stage, in front of the person; gives its exit code.

    It ends before we do: Ctrl-C on a terminal reaches it by itself, every other signal is handed on.
    """
    child = subprocess.Popen(stage.command(pattern, flags), cwd=stage.repository, env=stage.environment())
    typed = sys.stdin.isatty()
    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        own = typed and number is signal.SIGINT
        before[number] = signal.signal(number, signal.SIG_IGN if own else lambda n, _: child.send_signal(n))
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
