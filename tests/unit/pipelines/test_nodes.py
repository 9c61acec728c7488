"""The `worktree` node on a real repository: each deed, and each deed again after a crash."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bailiwick.clock import ManualClock
from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment
from bailiwick.engine.graph import Work as WorkNode
from bailiwick.git.store import GitStore
from bailiwick.git.worktrees import Worktree, Worktrees
from bailiwick.ids import Json
from bailiwick.lang.templates import Templates
from bailiwick.pipelines.nodes import WorktreeKind
from bailiwick.pipelines.simulation import write_repository
from bailiwick.processes.command import Command, Exit
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed
from bailiwick.sandbox.service import Sandboxes

T = TypeVar("T")
RUN = "run1"
BRANCH = "agent/x-1"


class Silence:
    """An attempt that starts no process and tells nobody."""

    def __init__(self) -> None:
        self.cancel = asyncio.Event()
        self.shown: list[str] = []

    async def run(self, command: Command) -> Exit:
        raise AssertionError("a worktree node starts no process of its own")

    def environment(self) -> dict[str, str]:
        return {}

    def show(self, text: str) -> None:
        self.shown.append(text)

    def observe(self, data: dict[str, Json]) -> None:
        pass


@dataclass
class Ground:
    """A repository, a state directory, and the worktree of a run."""

    root: Path
    state: Path
    kind: WorktreeKind
    made: list[Worktree] = field(default_factory=list)

    def does(self, deed: str) -> Done | Failed:
        """One attempt."""
        spec = {"do": deed, "repository": str(self.root), "title": "{{ what }}"}
        node = WorkNode(id="w", type="worktree", spec=spec)
        prepared = self.kind.prepare(node, {"what": "Round it"}.__getitem__, Templates()).value
        here = self.root
        request = AttemptRequest(RUN, RUN, 1, "key", "", node, 1, 1, 1, 1, prepared, here, here, here)
        return _run(self.kind.attempt(request, Silence()))

    def git(self, *words: str) -> str:
        """What the person's git says."""
        return subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=True).stdout


def _run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


async def _no_fence() -> Sandboxes:
    raise AssertionError("only a claim looks at the base")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """A worktree that was claimed."""
    root = write_repository(tmp_path / "shop", {"a.txt": "1\n", ".gitignore": "*.log\n"})
    home = tmp_path / "home"
    config = load_config(root, {}, environment=Environment({"BAILIWICK_HOME": str(home), "HOME": str(tmp_path)}))
    state, clock = config.paths.make_state(), ManualClock()

    async def claimed() -> Worktree:
        git_store = await GitStore.open(state, root)
        return await Worktrees(state, clock).make(git_store, RUN, await git_store.resolve("HEAD"), BRANCH)

    return Ground(root, state, WorktreeKind(config, clock, _no_fence), [_run(claimed())])


def _outputs(result: Done | Failed) -> dict[str, Json]:
    assert isinstance(result, Done), result
    return result.outputs


def test_changes_are_files_and_nothing_else(ground: Ground) -> None:
    """Ignored files don't count, nor does what the agent does to its own git."""
    tree = ground.made[0].tree
    assert _outputs(ground.does("changes"))["change"]["count"] == 0
    (tree / "build.log").write_text("noise")
    subprocess.run(["git", "-C", tree, "branch", "other"], check=True, capture_output=True)
    assert _outputs(ground.does("changes"))["change"]["count"] == 0
    (tree / "b.txt").write_text("2\n")
    (tree / "a.txt").unlink()
    assert _outputs(ground.does("changes"))["change"]["paths"] == ["a.txt", "b.txt"]


def test_kept_work_is_a_branch_and_the_worktree_goes(ground: Ground) -> None:
    """One commit on the base that says what it is; the person's own files are untouched."""
    (ground.made[0].tree / "b.txt").write_text("2\n")
    kept = _outputs(ground.does("keep"))["kept"]
    assert (kept["branch"], kept["base"]) == (BRANCH, ground.git("rev-parse", "HEAD").strip())
    assert ground.git("show", f"{BRANCH}:b.txt") == "2\n"
    assert "not proposed" in ground.git("log", "-1", "--format=%s", BRANCH)
    assert ground.git("status", "--porcelain") == ""
    assert not ground.made[0].path.exists()


def test_keeping_again_after_a_crash_makes_the_same_commit(ground: Ground, tmp_path: Path) -> None:
    """The branch was there already, the worktree too: nothing is done twice and nothing fails."""
    (ground.made[0].tree / "b.txt").write_text("2\n")
    saved = tmp_path / "saved"
    subprocess.run(["cp", "-a", ground.made[0].path, saved], check=True)
    first = _outputs(ground.does("keep"))["kept"]
    saved.rename(ground.made[0].path)
    assert _outputs(ground.does("keep"))["kept"] == first
    assert not ground.made[0].path.exists()


def test_nothing_to_keep_makes_no_branch(ground: Ground) -> None:
    """An agent that refused leaves nothing behind."""
    assert _outputs(ground.does("keep"))["kept"]["branch"] == ""
    assert ground.git("branch", "--list", "agent/*") == ""


def test_somebody_elses_branch_of_that_name_is_never_moved(ground: Ground) -> None:
    """Then the work stays in its worktree, and the node fails with words."""
    ground.git("-c", "user.name=a", "-c", "user.email=a@x", "commit", "-q", "--allow-empty", "-m", "theirs")
    ground.git("branch", BRANCH)
    before = ground.git("rev-parse", BRANCH)
    (ground.made[0].tree / "b.txt").write_text("2\n")
    result = ground.does("keep")
    assert isinstance(result, Failed)
    assert result.failure.kind == "not_ready"
    assert ground.git("rev-parse", BRANCH) == before
    assert (ground.made[0].tree / "b.txt").exists()


def test_releasing_twice_is_no_error(ground: Ground) -> None:
    """A crash after the first one must not stop the run."""
    assert (_outputs(ground.does("release")), ground.made[0].path.exists()) == ({}, False)
    assert _outputs(ground.does("release")) == {}


def test_a_lost_worktree_is_said_as_such(ground: Ground) -> None:
    """Its changes can't be looked at any more."""
    ground.does("release")
    result = ground.does("changes")
    assert isinstance(result, Failed)
    assert "gone" in result.failure.message
    assert "--fresh" in result.failure.message


def test_a_directory_that_is_no_repository_fails_with_words(ground: Ground, tmp_path: Path) -> None:
    """The node fails, the process doesn't."""
    ground.root = tmp_path
    result = ground.does("changes")
    assert isinstance(result, Failed)
    assert result.failure.kind == "not_ready"
