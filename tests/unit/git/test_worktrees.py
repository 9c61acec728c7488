"""Worktrees of agents: whole or not there, one per run, removed whatever is in them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.errors import NotReady
from bailiwick.git.store import GitStore
from bailiwick.git.worktrees import Worktree, Worktrees
from bailiwick.removal import sweep
from tests.unit.git.repository_setup import RepositorySetup, make_scene


@pytest.fixture
def scene(tmp_path: Path) -> RepositorySetup:
    return make_scene(tmp_path)


def _make(scene: RepositorySetup, run: str = "run-1", prepared: tuple[str, ...] = ()) -> Worktree:
    async def history(git_store: GitStore) -> Worktree:
        base = await git_store.resolve("HEAD")
        return await _trees(scene).make(git_store, run, base, "agent/fix-1", prepared=prepared)

    return scene.run(history)


def _trees(scene: RepositorySetup) -> Worktrees:
    return Worktrees(scene.state, ManualClock())


def test_an_agent_gets_files_history_and_a_clean_branch(scene: RepositorySetup) -> None:
    """Its git works as it is used to: status, log, diff, commit; and leads nowhere."""
    scene.commit({"README.md": "two\n", ".gitattributes": "*.md text eol=crlf\n", "kept.log": "ignored\n"}, "two")
    worktree = _make(scene, prepared=(".venv", "node modules"))
    scene.put({".venv/x": "1", "node modules/y": "2"}, worktree.tree)
    assert scene.git("status", "--porcelain", "--branch", cwd=worktree.tree) == "## agent/fix-1"
    assert scene.git("log", "--format=%s", cwd=worktree.tree) == "two\none"
    assert scene.git("remote", cwd=worktree.tree) == ""
    scene.put({"new.py": "1\n"}, worktree.tree)
    scene.git("add", "-A", cwd=worktree.tree)
    scene.git("commit", "-q", "-m", "mine", cwd=worktree.tree)
    assert "alternates" not in {path.name for path in worktree.tree.glob(".git/objects/info/*")}
    assert str(scene.repo) not in (worktree.tree / ".git/config").read_text()


def test_only_a_part_of_a_long_history_is_given(scene: RepositorySetup, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worktree of a repository with a long past is made in time."""
    monkeypatch.setattr("bailiwick.git.worktrees.DEPTH", 2)
    for number in range(4):
        scene.commit({"README.md": f"{number}\n"}, f"number {number}")
    worktree = _make(scene)
    assert scene.git("log", "--format=%s", cwd=worktree.tree) == "number 3\nnumber 2"


def test_the_owner_record_is_out_of_the_agents_reach(scene: RepositorySetup) -> None:
    """An agent sees `tree` only; who owns it and what it came from is beside it."""
    worktree = _make(scene)
    assert sorted(path.name for path in worktree.path.iterdir()) == ["owner.json", "tree"]
    assert worktree.owner.pid == os.getpid()
    assert (worktree.branch, worktree.base) == ("agent/fix-1", scene.git("rev-parse", "HEAD"))
    assert worktree.repository == scene.repo
    assert (worktree.path.stat().st_mode & 0o777, worktree.path.parent.stat().st_mode & 0o777) == (0o700, 0o700)


def test_made_again_it_is_the_same_with_the_work_in_it(scene: RepositorySetup) -> None:
    """A run that resumes goes on where it was."""
    first = _make(scene)
    scene.put({"work.py": "1\n"}, first.tree)
    assert _make(scene) == first
    assert (first.tree / "work.py").read_text() == "1\n"
    assert asyncio.run(_trees(scene).find("run-1")) == first
    assert asyncio.run(_trees(scene).find("run-2")) is None


def test_a_snapshot_of_it_knows_its_base(scene: RepositorySetup) -> None:
    """Also in another process: a tracked file that is ignored does not look deleted."""
    scene.commit({"kept.log": "ignored but tracked\n"})
    worktree = _make(scene)

    async def history(git_store: GitStore) -> bool:
        return await git_store.snapshot(worktree.tree) == await git_store.tree_of(worktree.base)

    assert scene.run(history)


def test_thirty_two_at_once_from_several_processes_all_succeed(scene: RepositorySetup) -> None:
    """git's own locks would refuse most of them."""
    code = textwrap.dedent(
        """
        import asyncio, sys
        from pathlib import Path
        from bailiwick.clock import SystemClock
        from bailiwick.git.store import GitStore
        from bailiwick.git.worktrees import Worktrees

        async def main(state, repo, first):
            vault = await GitStore.open(state, repo)
            base = await vault.resolve("HEAD")
            trees = Worktrees(state, SystemClock())
            makes = [trees.make(vault, f"run-{n}", base, f"agent/x-{n}") for n in range(first, first + 8)]
            await asyncio.gather(*makes)

        asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))
        """
    )
    argv = [sys.executable, "-c", code, str(scene.state), str(scene.repo)]
    started = [subprocess.Popen([*argv, str(first)], stderr=subprocess.PIPE) for first in range(0, 32, 8)]
    for process in started:
        assert process.communicate(timeout=600)[1] == b""
    made = asyncio.run(_trees(scene).list())
    assert len(made) == 32
    assert all((worktree.tree / "src/a.py").read_text() == "x = 1\n" for worktree in made)
    assert sorted(path.name for path in (scene.state / "worktrees").glob(".*")) == [".locks"]


def test_of_two_who_make_the_same_one_both_get_it(scene: RepositorySetup) -> None:
    """A second process that resumes the same run must not break the first one's tree."""

    async def history(git_store: GitStore) -> list[Worktree]:
        base = await git_store.resolve("HEAD")
        return await asyncio.gather(*(_trees(scene).make(git_store, "one", base, "agent/x") for _ in range(4)))

    assert len({worktree.path for worktree in scene.run(history)}) == 1


def test_a_crash_in_the_middle_leaves_nothing_that_counts(scene: RepositorySetup) -> None:
    """A half-filled directory is found as an orphan, never as a worktree; the next attempt makes a whole one."""
    folder = scene.state / "worktrees"
    half = folder / ".new-999999999-1-abc" / "tree"
    half.mkdir(parents=True)
    mine = folder / f".new-{os.getpid()}-{Path('/proc/self/stat').read_text().split()[21]}-abc"
    mine.mkdir()
    assert asyncio.run(_trees(scene).list()) == ()
    orphans = asyncio.run(_trees(scene).orphans(lambda _run: True))
    assert [orphan.path for orphan in orphans] == [half.parent]
    asyncio.run(_trees(scene).remove(orphans[0]))
    assert not half.parent.exists()
    assert _make(scene).tree.is_dir()


def test_only_worktrees_of_runs_that_are_over_are_orphans(scene: RepositorySetup) -> None:
    """A living run's work is not to be cleaned away."""
    _make(scene, "alive")
    dead = _make(scene, "dead")
    nobodys = scene.state / "worktrees" / "0123"
    nobodys.mkdir()
    found = asyncio.run(_trees(scene).orphans(lambda run: run == "alive"))
    assert {(orphan.path, orphan.run) for orphan in found} == {(dead.path, "dead"), (nobodys, "")}


def test_a_failed_make_leaves_nothing(scene: RepositorySetup) -> None:
    """A base that is not there: no directory, and the next attempt is free to go."""

    async def history(git_store: GitStore) -> None:
        await _trees(scene).make(git_store, "run-1", "0" * 40, "agent/x")

    with pytest.raises(NotReady):
        scene.run(history)
    assert sorted(path.name for path in (scene.state / "worktrees").iterdir()) == [".locks"]


def test_a_branch_that_is_not_ours_makes_no_worktree(scene: RepositorySetup) -> None:
    """What can't be proposed later is refused before it costs anything."""

    async def history(git_store: GitStore) -> None:
        await _trees(scene).make(git_store, "run-1", await git_store.resolve("HEAD"), "main")

    with pytest.raises(NotReady, match="not a branch of ours"):
        scene.run(history)


def test_it_is_removed_whatever_the_agent_left(scene: RepositorySetup) -> None:
    """Closed directories, odd names, links to our files: all gone, and nothing behind a link is touched."""
    worktree = _make(scene)
    outside = scene.top / "outside"
    scene.put({"keep": "1", "dir/keep": "2"}, outside)
    locked = worktree.tree / "locked/inner"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x")
    (worktree.tree / "out").symlink_to(outside)
    (worktree.tree / "file-out").symlink_to(outside / "keep")
    (worktree.tree / os.fsdecode(b"\xff\n")).mkdir()
    os.mkfifo(worktree.tree / "pipe")
    locked.chmod(0)
    locked.parent.chmod(0o500)
    worktree.tree.chmod(0)
    asyncio.run(_trees(scene).remove(worktree))
    assert not worktree.path.exists()
    assert sorted(path.name for path in worktree.path.parent.iterdir()) == [".locks"]
    assert (outside / "keep").read_text() == "1"
    assert (outside / "dir/keep").read_text() == "2"
    asyncio.run(_trees(scene).remove(worktree))


@pytest.mark.skipif(os.geteuid() != 0, reason="root can become a user without rights")
def test_closed_directories_are_removed_without_root(tmp_path: Path) -> None:
    """Only root may walk where nobody may; the rest of us has to open the doors first."""
    top = tmp_path / "top"
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/file").write_text("x")
    for path in (tmp_path, *tmp_path.parents):
        if path != Path("/") and path.stat().st_mode & 0o005 != 0o005:
            path.chmod(path.stat().st_mode | 0o005)
    for path in (tmp_path, top, top / "a", top / "a/b", top / "a/b/file"):
        os.chown(path, 65534, 65534)
    (top / "a/b").chmod(0)
    (top / "a").chmod(0o100)
    os.setegid(65534)
    os.seteuid(65534)
    try:
        sweep(top)
    finally:
        os.seteuid(0)
        os.setegid(0)
    assert not top.exists()


def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    """Neither the stack, nor the longest path, nor the number of open files may stop it."""
    top = tmp_path / "top"
    top.mkdir()
    handle = os.open(top, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("some-directory", dir_fd=handle)
        deeper = os.open("some-directory", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = deeper
    os.close(handle)
    sweep(top)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_ours_is_never_removed(scene: RepositorySetup) -> None:
    """A record that was tampered with must not lead elsewhere."""
    worktree = _make(scene)
    with pytest.raises(NotReady) as caught:
        asyncio.run(_trees(scene).remove(replace(worktree, path=scene.repo)))
    assert caught.value.code == "BW421"
    assert scene.repo.is_dir()
