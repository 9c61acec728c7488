"""Taking an agent's files: all that count, nothing that could fool us, bounded."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bailiwick.git.names import is_forbidden_link, is_git_name, shown
from bailiwick.git.runner import GitFailed
from bailiwick.git.snapshot import Snapshot, TreeBounds
from bailiwick.git.store import GitStore
from tests.unit.git.repository_setup import RepositorySetup, make_scene


@pytest.fixture
def scene(tmp_path: Path) -> RepositorySetup:
    return make_scene(tmp_path)


def _take(
    scene: RepositorySetup,
    change: Callable[[Path], object],
    bounds: TreeBounds | None = None,
    exclude: tuple[str, ...] = (),
) -> tuple[dict[str, str], Snapshot]:
    """What differs from the base (path: status) after a change to a checkout, and the snapshot."""

    async def history(git_store: GitStore) -> tuple[dict[str, str], Snapshot]:
        base = await git_store.resolve("HEAD")
        work = scene.top / "work"
        await git_store.checkout(base, work)
        change(work)
        taken = await git_store.survey(work, bounds=bounds, exclude=exclude)
        return {one.path: one.status for one in await git_store.changes(base, taken.tree)}, taken

    return scene.run(history)


def test_an_untouched_checkout_is_the_tree_it_came_from(scene: RepositorySetup) -> None:
    """No change must look like no change, also for files that ignore rules match, links and programs."""
    (scene.repo / "link").symlink_to("README.md")
    (scene.repo / "run.sh").write_text("#!/bin/sh\n")
    (scene.repo / "run.sh").chmod(0o755)
    scene.commit({"kept.log": "tracked though ignored\n", "build/out": "too\n", "crlf.txt": b"a\r\nb\r\n", "empty": ""})
    assert _take(scene, lambda _work: None)[0] == {}


def test_new_changed_deleted_and_retyped_files_are_seen(scene: RepositorySetup) -> None:
    """The four things that can happen to a path."""

    def change(work: Path) -> None:
        scene.put({"new.txt": "1\n", "README.md": "2\n"}, work)
        (work / "src/a.py").unlink()
        (work / "src/b.py").unlink()
        (work / "src/b.py").symlink_to("a.py")

    assert _take(scene, change)[0] == {"new.txt": "A", "README.md": "M", "src/a.py": "D", "src/b.py": "T"}


def test_a_changed_mode_is_a_change(scene: RepositorySetup) -> None:
    """A file that became a program can be run by a tool that could not before."""
    assert _take(scene, lambda work: (work / "README.md").chmod(0o755))[0] == {"README.md": "M"}


def test_the_clock_of_a_file_is_not_trusted(scene: RepositorySetup) -> None:
    """The same size and times with other bytes: git's own cache would take it for unchanged."""

    def change(work: Path) -> None:
        file = work / "src/a.py"
        before = file.stat()
        file.write_text("x = 9\n")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert _take(scene, change)[0] == {"src/a.py": "M"}


def test_ignored_files_are_left_out(scene: RepositorySetup) -> None:
    """What tests and builds leave behind is no part of the work."""

    def change(work: Path) -> None:
        scene.put({"x.log": "1", "build/deep/out": "2", "src/y.log": "3"}, work)

    assert _take(scene, change)[0] == {}


def test_a_changed_ignore_file_counts_and_is_said(scene: RepositorySetup) -> None:
    """What it hides is neither tested nor proposed; people are told that it may hide something."""
    differs, taken = _take(
        scene, lambda work: scene.put({".gitignore": "*.secret\n", "a.secret": "x", "b.log": "y"}, work)
    )
    assert differs == {".gitignore": "M", "b.log": "A"}
    assert taken.notes == (".gitignore: it is not as in the base, so other files may be ignored",)


def test_a_changed_ignore_file_hides_no_file_of_the_base(scene: RepositorySetup) -> None:
    """Else one line would delete the tests from the proposal, or hide changes to them."""

    def change(work: Path) -> None:
        scene.put({".gitignore": "*\n", "src/a.py": "changed\n"}, work)

    assert _take(scene, change)[0] == {".gitignore": "M", "src/a.py": "M"}


def test_excluded_paths_are_not_looked_at(scene: RepositorySetup) -> None:
    """An environment is bound there; it is not the agent's work."""
    scene.commit({"README.md": "x\n"})

    def change(work: Path) -> None:
        scene.put({".venv/lib/x.py": "1", "venv.py": "2", "node_modules/a/.gitignore": "3"}, work)

    assert _take(scene, change, exclude=(".venv", "node_modules/"))[0] == {"venv.py": "A"}


def test_links_are_kept_as_links_and_never_followed(scene: RepositorySetup) -> None:
    """A link out of the tree would bring the host's files into the proposal; a cycle would never end."""

    def change(work: Path) -> None:
        (work / "out").symlink_to("/etc")
        (work / "loop").symlink_to(".")
        (work / "dangling").symlink_to("nowhere")

    assert _take(scene, change)[0] == {"out": "A", "loop": "A", "dangling": "A"}


def test_a_directory_replaced_by_a_link_takes_its_files_out(scene: RepositorySetup) -> None:
    """The files behind the link are not those of the base, even if they have their names."""

    def change(work: Path) -> None:
        (work / "src").rename(scene.top / "moved")
        (work / "src").symlink_to(scene.top / "moved")

    assert _take(scene, change)[0] == {"src": "A", "src/a.py": "D", "src/b.py": "D"}


def test_a_repository_within_the_tree_is_plain_files(scene: RepositorySetup) -> None:
    """Its files count, its `.git` is never read: no submodule comes out of it, and none of its content hides."""

    def change(work: Path) -> None:
        subprocess.run(["git", "init", "-q", str(work / "sub")], check=True)
        scene.put({"sub/f": "1"}, work)
        scene.put({"src/.git": "gitdir: /somewhere\n"}, work)

    differs, taken = _take(scene, change)
    assert differs == {"sub/f": "A"}
    assert sorted(taken.notes) == [
        "src/.git: it has git's own name and is never read",
        "sub/.git: it has git's own name and is never read",
    ]


def test_pipes_and_sockets_are_left_out(scene: RepositorySetup) -> None:
    """Reading a pipe would wait for ever."""

    def change(work: Path) -> None:
        os.mkfifo(work / "pipe")
        with socket.socket(socket.AF_UNIX) as listener:
            here = os.open(work, os.O_PATH)
            listener.bind(f"/proc/self/fd/{here}/socket")
            os.close(here)

    differs, taken = _take(scene, change)
    assert differs == {}
    assert len(taken.notes) == 2


@pytest.mark.parametrize("kind", ["pipe", "huge"])
def test_an_ignore_file_that_git_would_hang_on_is_refused(scene: RepositorySetup, kind: str) -> None:
    """git opens every `.gitignore` it meets: a pipe blocks it, a huge one keeps it busy."""

    def change(work: Path) -> None:
        if kind == "pipe":
            os.mkfifo(work / "src/.gitignore")
        else:
            scene.put({"src/.gitignore": "x\n" * 2**20}, work)

    with pytest.raises(GitFailed, match=r"src/\.gitignore") as caught:
        _take(scene, change)
    assert caught.value.kind == "tree"


@pytest.mark.parametrize(
    "name", ["new\nline", "-rf", "--help", ":(glob)**", "*", "a b", "tab\t", "ünï", "\\", '"', "con", "aux.txt", "x."]
)
def test_odd_names_are_kept_as_they_are(scene: RepositorySetup, name: str) -> None:
    """A name is never an option, a pattern or two lines."""

    def change(work: Path) -> None:
        scene.put({name: "1\n", f"d/{name}": "2\n"}, work)

    async def again(git_store: GitStore) -> bytes | None:
        tree = await git_store.snapshot(scene.top / "work")
        return await git_store.blob(tree, f"d/{name}")

    assert _take(scene, change)[0] == {name: "A", f"d/{name}": "A"}
    assert scene.run(again) == b"2\n"


@pytest.mark.parametrize("name", [".GIT", ".Git ", "git~1", "GIT~1", ".git.", ".git::$INDEX_ALLOCATION", ".g\u200cit"])
def test_names_that_some_file_system_takes_for_git_are_left_out(scene: RepositorySetup, name: str) -> None:
    """On another machine the proposal would write into the repository itself."""
    differs, taken = _take(scene, lambda work: scene.put({f"{name}/hooks/post-checkout": "evil"}, work))
    assert differs == {}
    assert taken.notes == (f"{shown(name)}: it has git's own name and is never read",)


@pytest.mark.parametrize("name", [".gitmodules", ".GITMODULES", "gitmod~1", "gi7eba~1"])
def test_links_that_git_refuses_are_left_out(scene: RepositorySetup, name: str) -> None:
    """One such link must not make the whole tree impossible to take."""
    differs, taken = _take(scene, lambda work: (work / name).symlink_to("README.md"))
    assert differs == {}
    assert taken.notes == (f"{name}: git takes no link of this name",)


def test_names_that_are_not_text_are_left_out(scene: RepositorySetup) -> None:
    """Nobody could write them into a report."""
    differs, taken = _take(scene, lambda work: (work / os.fsdecode(b"\xff\xfe")).write_text("x"))
    assert differs == {}
    assert taken.notes == ("\\xff\\xfe: the name is not UTF-8",)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (TreeBounds(files=4), "5 files"),
        (TreeBounds(one=100), "has more than"),
        (TreeBounds(total=100), "more than 0 MB"),
        (TreeBounds(depth=1), "directories deep"),
        (TreeBounds(looked_at=3), "more than 3 entries"),
    ],
)
def test_a_tree_that_is_too_large_is_refused(scene: RepositorySetup, bounds: TreeBounds, words: str) -> None:
    """An agent can fill its own disk quota, not our vault."""

    def change(work: Path) -> None:
        scene.put({"a/b/large": "x" * 200}, work)

    with pytest.raises(GitFailed, match=words) as caught:
        _take(scene, change, bounds)
    assert caught.value.kind == "tree"


def test_a_file_with_a_huge_hole_is_refused_without_being_read(scene: RepositorySetup) -> None:
    """It costs the agent nothing and us everything."""

    def change(work: Path) -> None:
        with (work / "sparse").open("wb") as file:
            file.truncate(2**40)

    with pytest.raises(GitFailed, match="'sparse' has more than 100 MB"):
        _take(scene, change)


def test_a_very_deep_tree_is_refused(scene: RepositorySetup) -> None:
    """Paths longer than the system takes can be made step by step."""

    def change(work: Path) -> None:
        handle = os.open(work, os.O_RDONLY)
        for _ in range(300):
            os.mkdir("d", dir_fd=handle)
            deeper = os.open("d", os.O_RDONLY, dir_fd=handle)
            os.close(handle)
            handle = deeper
        os.close(handle)

    with pytest.raises(GitFailed, match="directories deep"):
        _take(scene, change)


def test_a_submodule_of_the_base_stays(scene: RepositorySetup) -> None:
    """Its directory is empty in a checkout; that must not look like its removal."""
    scene.git("update-index", "--add", "--cacheinfo", f"160000,{scene.git('rev-parse', 'HEAD')},lib")
    scene.git("commit", "-q", "-m", "sub")
    assert _take(scene, lambda _work: None)[0] == {}


def test_a_tree_without_a_known_base_follows_the_ignore_files(scene: RepositorySetup) -> None:
    """A directory that was made by somebody else has no other rules."""
    scene.put({"a.py": "1", "b.log": "2", ".gitignore": "*.log\n"}, scene.top / "plain")

    async def history(git_store: GitStore) -> tuple[str, ...]:
        return await git_store.files(await git_store.snapshot(scene.top / "plain"))

    assert scene.run(history) == (".gitignore", "a.py")


def test_the_operators_own_tree_is_as_they_see_it(scene: RepositorySetup) -> None:
    """Converted line ends, sparse files and their own ignore rules: `git status` and we must agree."""
    scene.commit({".gitattributes": "*.txt text eol=crlf\n", "w.txt": "a\n", "v.txt": "b\n", "away.py": "z\n"})
    (scene.repo / "w.txt").unlink()
    scene.git("checkout", "-q", "--", "w.txt")
    assert (scene.repo / "w.txt").read_bytes() == b"a\r\n"
    scene.git("update-index", "--skip-worktree", "away.py")
    (scene.repo / "away.py").unlink()
    (scene.repo / ".git/info/exclude").write_text("*.mine\n")
    (scene.home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/own-ignore\n")
    (scene.home / "own-ignore").write_text("*.idea\n")
    scene.put({"x.mine": "1", "y.idea": "2", "staged.log": "3\n", "new.py": "4\n"})
    scene.git("add", "-f", "staged.log")

    async def history(git_store: GitStore) -> dict[str, str]:
        base = await git_store.resolve("HEAD")
        return {one.path: one.status for one in await git_store.changes(base, await git_store.snapshot(scene.repo))}

    assert scene.run(history) == {"staged.log": "A", "new.py": "A"}


def test_a_directory_that_is_not_there_is_an_error_not_an_empty_tree(scene: RepositorySetup) -> None:
    """An empty tree would be proposed as the deletion of everything."""
    with pytest.raises(GitFailed, match="can't be entered"):
        scene.run(lambda git_store: git_store.snapshot(scene.top / "nowhere"))


@pytest.mark.parametrize(
    "name", ["git", ".gitignore", ".github", "git~", "x.git", ".gitkeep", ".git-blame-ignore-revs"]
)
def test_ordinary_names_are_no_git_names(name: str) -> None:
    """These are in many repositories."""
    assert not is_git_name(name)
    assert not is_forbidden_link(name)
