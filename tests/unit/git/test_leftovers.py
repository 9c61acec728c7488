"""What a killed process left behind, or has still under way: the next one clears it, or finds it done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.git.publish import PushRemote
from bailiwick.git.runner import GitFailed
from bailiwick.git.store import GitStore
from bailiwick.git.worktrees import Worktrees
from bailiwick.testing.git_server import GitServer
from tests.unit.git.repository_setup import AUTHOR, WHEN, RepositorySetup, make_scene

TOKEN = "token-that-may-write"


@pytest.fixture
def scene(tmp_path: Path) -> RepositorySetup:
    return make_scene(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with GitServer(tmp_path / "served", {TOKEN: "write"}) as running:
        running.make("o/r")
        yield running


def left_of(folder: Path, name: str) -> list[Path]:
    """A worktree that was being made, and one that was being removed, by processes that are gone."""
    left = [folder / f".new-999999999-1-{name}", folder / f".gone-999999999-{name}"]
    for path in left:
        (path / "tree" / "deep").mkdir(parents=True)
    return left


def test_a_worktree_is_made_over_what_a_crash_left_of_it(scene: RepositorySetup) -> None:
    """Each crash would leave a copy of the repository otherwise; another run's is not touched."""
    trees = Worktrees(scene.state, ManualClock())

    async def history(git_store: GitStore) -> str:
        made = await trees.make(git_store, "run-1", await git_store.resolve("HEAD"), "agent/x")
        await trees.remove(made)
        others = left_of(trees.folder, "0123456789abcdef")
        left = left_of(trees.folder, made.id)
        again = await trees.make(git_store, "run-1", await git_store.resolve("HEAD"), "agent/x")
        assert [path for path in left if path.exists()] == []
        assert [path for path in others if not path.exists()] == []
        return again.id

    assert asyncio.run(trees.list()) == ()
    assert scene.run(history) == asyncio.run(trees.list())[0].id


@pytest.mark.parametrize("whole", [True, False])
def test_clearing_a_run_leaves_nothing_of_its_worktree(scene: RepositorySetup, whole: bool) -> None:
    """Also where the process before was killed while it removed it, and there is no worktree any more."""
    trees = Worktrees(scene.state, ManualClock())

    async def history(git_store: GitStore) -> None:
        made = await trees.make(git_store, "run-1", await git_store.resolve("HEAD"), "agent/x")
        if not whole:
            await trees.remove(made)
        left_of(trees.folder, made.id)
        await trees.clear("run-1")
        await trees.clear("run-1")

    scene.run(history)
    assert [path.name for path in trees.folder.iterdir()] == [".locks"]


def test_a_vault_that_was_half_made_is_made_anew(scene: RepositorySetup) -> None:
    """And nothing of the first attempt stays."""
    folder = scene.state / "git"

    async def name(git_store: GitStore) -> str:
        return git_store.git_dir.name

    git_dir = folder / scene.run(name)
    git_dir.rename(folder / f"new-{git_dir.name}")
    (folder / f"new-{git_dir.name}" / "HEAD").unlink()
    scene.run(lambda git_store: git_store.resolve("HEAD"))
    assert (git_dir / "HEAD").is_file()
    assert list(folder.glob("new-*")) == []


def test_the_branch_that_keeps_the_work_of_a_run_is_found_again(scene: RepositorySetup) -> None:
    """Its worktree is gone, and the process that knew the name too."""

    async def history(git_store: GitStore) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]:
        base = await git_store.resolve("HEAD")
        made = await git_store.commit(await git_store.tree_of(base), (base,), "unfinished", AUTHOR, when=WHEN)
        await git_store.keep("run-1", made)
        before = await git_store.branches_at(made)
        await git_store.branch("agent/x-1", made, expect=None)
        assert await git_store.kept("another") == ()
        return await git_store.kept("run-1"), before, await git_store.branches_at(made), made

    kept, before, after, made = scene.run(history)
    assert (kept, before, after) == ((made,), (), ("agent/x-1",))


@pytest.mark.parametrize(("arrives", "wins"), [("$3", True), ("$(git rev-parse refs/heads/main)", False)])
def test_a_push_that_another_git_was_faster_with_is_done(
    scene: RepositorySetup, server: GitServer, arrives: str, wins: bool
) -> None:
    """A git outlives the process that was killed: its push may end during ours. Only the same commit counts."""
    there = server.path_of("o/r")
    scene.git("push", "-q", str(there), "HEAD:refs/heads/main")
    hook = there / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\ngit update-ref "$1" "{arrives}"\n')
    hook.chmod(0o755)

    async def history(git_store: GitStore) -> str:
        base = await git_store.resolve("HEAD")
        made = await git_store.commit(await git_store.tree_of(base), (base,), "ours", AUTHOR, when=WHEN)
        try:
            await git_store.push(PushRemote(server.url_of("o/r"), TOKEN), made, "agent/x", expect=None)
        except GitFailed as error:
            return error.kind
        return "done"

    assert scene.run(history) == ("done" if wins else "rejected")
