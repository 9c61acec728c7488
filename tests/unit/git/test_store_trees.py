"""Trees made of trees, and how they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.git.objects import TreeChange, TreeEntry
from bailiwick.git.packing import pack_git_dir
from bailiwick.git.runner import Git, GitFailed, GitOptions
from bailiwick.git.store import GitStore
from bailiwick.processes.command import Exit
from tests.unit.git.repository_setup import AUTHOR, WHEN, RepositorySetup, make_scene


@pytest.fixture
def scene(tmp_path: Path) -> RepositorySetup:
    return make_scene(tmp_path)


def test_paths_can_be_taken_from_another_tree(scene: RepositorySetup) -> None:
    """Protected paths go back to how the base has them, whole directories too; new ones go."""

    async def history(git_store: GitStore) -> tuple[TreeChange, ...]:
        base = await git_store.resolve("HEAD")
        theirs = await git_store.write(base, {"src/a.py": b"evil\n", "src/new.py": b"evil\n", "README.md": b"work\n"})
        return await git_store.changes(base, await git_store.replace(theirs, {"src": base, "nothing": base}))

    assert scene.run(history) == (TreeChange("README.md", "M", "100644", "100644", 1, 1),)


def test_a_path_is_removed_with_all_below_it(scene: RepositorySetup) -> None:
    """None means that it is not there."""

    async def history(git_store: GitStore) -> tuple[str, ...]:
        base = await git_store.resolve("HEAD")
        return await git_store.files(await git_store.replace(base, {"src": None, ".gitignore": None}))

    assert scene.run(history) == ("README.md",)


def test_a_file_can_take_the_place_of_a_directory_and_back(scene: RepositorySetup) -> None:
    """Both ways the other has to go."""

    async def history(git_store: GitStore) -> list[tuple[str, ...]]:
        base = await git_store.resolve("HEAD")
        one = await git_store.write(base, {"src": b"a file now\n"})
        two = await git_store.replace(one, {"src": base})
        return [await git_store.files(one), await git_store.files(two)]

    assert scene.run(history) == [
        (".gitignore", "README.md", "src"),
        (".gitignore", "README.md", "src/a.py", "src/b.py"),
    ]


def test_a_program_stays_a_program_when_written(scene: RepositorySetup) -> None:
    """Only bytes were asked for."""
    (scene.repo / "run.sh").write_text("#!/bin/sh\n")
    (scene.repo / "run.sh").chmod(0o755)
    scene.commit({})

    async def history(git_store: GitStore) -> tuple[TreeChange, ...]:
        base = await git_store.resolve("HEAD")
        return await git_store.changes(base, await git_store.write(base, {"run.sh": b"#!/bin/sh\nexit 1\n"}))

    assert scene.run(history) == (TreeChange("run.sh", "M", "100755", "100755", 1, 0),)


def test_very_many_paths_at_once_work(scene: RepositorySetup) -> None:
    """There is a bound to what a command line takes."""
    many = {f"d{number % 7}/{'x' * 100}{number}": b"" for number in range(5000)}

    async def history(git_store: GitStore) -> tuple[int, int]:
        base = await git_store.resolve("HEAD")
        blank = await git_store.store(b"")
        big = await git_store.edit(base, (), [TreeEntry(path, "100644", blank) for path in many])
        small = await git_store.replace(big, dict.fromkeys(many, base))
        return len(await git_store.changes(base, big)), len(await git_store.changes(base, small))

    assert scene.run(history) == (5000, 0)


@pytest.mark.parametrize("path", ["", "/abs", "a//b", "../x", "a/../b", "a/", "./a", "a\0b"])
def test_what_is_no_path_within_a_tree_is_refused(scene: RepositorySetup, path: str) -> None:
    """A path that git would read differently could touch another file."""

    async def history(git_store: GitStore) -> None:
        base = await git_store.resolve("HEAD")
        with pytest.raises(GitFailed):
            await git_store.write(base, {path: b"x"})
        with pytest.raises(GitFailed):
            await git_store.replace(base, {path: None})

    scene.run(history)


def test_git_s_own_name_is_refused_in_a_tree(scene: RepositorySetup) -> None:
    """Such a proposal would write into somebody's repository; git itself only leaves the path out, without a word."""

    async def history(git_store: GitStore) -> None:
        base = await git_store.resolve("HEAD")
        with pytest.raises(GitFailed, match="not a path within a tree"):
            await git_store.write(base, {".git/hooks/pre-commit": b"evil"})
        entry = TreeEntry("a/.GIT/x", "100644", await git_store.store(b"evil"))
        with pytest.raises(GitFailed, match="does not take every path"):
            await git_store.edit(base, (), [entry])

    scene.run(history)


def test_counts_are_lines_and_none_for_binary_files(scene: RepositorySetup) -> None:
    """A size limit counts lines; a binary file has none."""

    async def history(git_store: GitStore) -> tuple[TreeChange, ...]:
        base = await git_store.resolve("HEAD")
        files = {"src/a.py": b"1\n2\n3\n", "bin": b"\0\1\2", "src/b.py": None}
        return await git_store.changes(base, await git_store.write(base, files))

    assert scene.run(history) == (
        TreeChange("bin", "A", "000000", "100644", None, None),
        TreeChange("src/a.py", "M", "100644", "100644", 3, 1),
        TreeChange("src/b.py", "D", "100644", "000000", 0, 1),
    )


def test_a_moved_file_is_one_that_went_and_one_that_came(scene: RepositorySetup) -> None:
    """Rules about paths have to see both."""

    async def history(git_store: GitStore) -> list[tuple[str, str]]:
        base = await git_store.resolve("HEAD")
        moved = await git_store.write(base, {"src/a.py": None, "elsewhere.py": b"x = 1\n"})
        return [(one.path, one.status) for one in await git_store.changes(base, moved)]

    assert scene.run(history) == [("elsewhere.py", "A"), ("src/a.py", "D")]


def test_attributes_of_the_tree_hide_nothing_from_the_difference(scene: RepositorySetup) -> None:
    """`* -diff` would turn a change to code into the words `Binary files differ`."""

    async def history(git_store: GitStore) -> tuple[str, list[int | None]]:
        base = await git_store.resolve("HEAD")
        files = {".gitattributes": b"* -diff binary\n*.py diff=hidden linguist-generated\n", "src/a.py": b"evil()\n"}
        tree = await git_store.write(base, files)
        return await git_store.diff(base, tree), [one.added for one in await git_store.changes(base, tree)]

    text, added = scene.run(history)
    assert "+evil()" in text
    assert added == [2, 1]


def test_a_difference_is_cut_at_the_limit_and_says_so(scene: RepositorySetup) -> None:
    """A prompt or a page gets no megabytes."""

    async def history(git_store: GitStore) -> str:
        base = await git_store.resolve("HEAD")
        return await git_store.diff(base, await git_store.write(base, {"big": b"line\n" * 100_000}), limit=1000)

    text = scene.run(history)
    assert len(text) < 1100
    assert text.endswith("the rest of the difference is left out\n")


def test_a_difference_can_be_of_some_paths(scene: RepositorySetup) -> None:
    """A path is taken literally, never as a pattern."""

    async def history(git_store: GitStore) -> tuple[str, str]:
        base = await git_store.resolve("HEAD")
        tree = await git_store.write(base, {"src/a.py": b"1\n", "README.md": b"2\n"})
        return await git_store.diff(base, tree, ("src",)), await git_store.diff(base, tree, ("*.md", ":(top)README.md"))

    some, none = scene.run(history)
    assert "src/a.py" in some
    assert "README" not in some
    assert none == ""


def test_a_file_that_is_not_there_is_none_and_one_too_large_an_error(scene: RepositorySetup) -> None:
    """Half of a file must not be taken for the file."""

    async def history(git_store: GitStore) -> list[bytes | None]:
        base = await git_store.resolve("HEAD")
        found = [await git_store.blob(base, path) for path in ("nope", "src", "src/a.py/x", "*")]
        with pytest.raises(GitFailed, match="more than 3 bytes"):
            await git_store.blob(base, "README.md", limit=3)
        return found

    assert scene.run(history) == [None, None, None, None]


def test_a_file_is_read_once_and_is_still_too_large_for_a_small_limit(scene: RepositorySetup) -> None:
    """A gate asks for the same few files again and again; a change that writes a file is seen at once."""

    async def history(git_store: GitStore) -> tuple[list[bytes | None], dict[str, bytes], int]:
        base = await git_store.resolve("HEAD")
        first = await git_store.blob(base, "README.md")
        started = 0
        run = git_store.git.run

        async def counted(*args: str, call: GitOptions) -> Exit:
            nonlocal started
            started += args[0] == "cat-file"
            return await run(*args, call=call)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Git, "run", lambda _self, *args, call: counted(*args, call=call))
            again = [await git_store.blob(base, "README.md"), (await git_store.blobs(base, ["README.md"]))["README.md"]]
            small = await git_store.blobs(base, ["README.md"], limit=3)
        with pytest.raises(GitFailed, match="more than 3 bytes"):
            await git_store.blob(base, "README.md", limit=3)
        new = await git_store.blob(await git_store.write(base, {"README.md": b"new\n"}), "README.md")
        assert again == [first, first]
        return [new], small, started

    assert scene.run(history) == ([b"new\n"], {}, 0)


def test_packing_keeps_every_object_and_what_a_run_keeps_goes_when_released(scene: RepositorySetup) -> None:
    """A tree that no name leads to is in the pack as well: a run that waits knows it by its id alone."""

    async def history(git_store: GitStore) -> tuple[bool, bytes | None, int, str]:
        base = await git_store.resolve("HEAD")
        commit = await git_store.commit(await git_store.tree_of(base), (base,), "x", AUTHOR, when=WHEN)
        await git_store.keep("a run", commit)
        unnamed = await git_store.write(base, {"README.md": b"only known by its id\n"})
        await pack_git_dir(git_store.git_dir, WHEN)
        other = GitStore(git_store.git, git_store.source, git_store.git_dir, git_store.environment)
        kept, blob = await other.resolve(commit) == commit, await other.blob(unnamed, "README.md")
        loose = len(list((git_store.git_dir / "objects").glob("??/*")))
        await git_store.release("a run")
        left = await git_store.git.line("for-each-ref", "refs/bailiwick/runs", call=git_store.call())
        return kept, blob, loose, left

    assert scene.run(history) == (True, b"only known by its id\n", 0, "")
