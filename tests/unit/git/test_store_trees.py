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

    async def story(vault: GitStore) -> tuple[TreeChange, ...]:
        base = await vault.resolve("HEAD")
        theirs = await vault.write(base, {"src/a.py": b"evil\n", "src/new.py": b"evil\n", "README.md": b"work\n"})
        return await vault.changes(base, await vault.replace(theirs, {"src": base, "nothing": base}))

    assert scene.run(story) == (TreeChange("README.md", "M", "100644", "100644", 1, 1),)


def test_a_path_is_removed_with_all_below_it(scene: RepositorySetup) -> None:
    """None means that it is not there."""

    async def story(vault: GitStore) -> tuple[str, ...]:
        base = await vault.resolve("HEAD")
        return await vault.files(await vault.replace(base, {"src": None, ".gitignore": None}))

    assert scene.run(story) == ("README.md",)


def test_a_file_can_take_the_place_of_a_directory_and_back(scene: RepositorySetup) -> None:
    """Both ways the other has to go."""

    async def story(vault: GitStore) -> list[tuple[str, ...]]:
        base = await vault.resolve("HEAD")
        one = await vault.write(base, {"src": b"a file now\n"})
        two = await vault.replace(one, {"src": base})
        return [await vault.files(one), await vault.files(two)]

    assert scene.run(story) == [
        (".gitignore", "README.md", "src"),
        (".gitignore", "README.md", "src/a.py", "src/b.py"),
    ]


def test_a_program_stays_a_program_when_written(scene: RepositorySetup) -> None:
    """Only bytes were asked for."""
    (scene.repo / "run.sh").write_text("#!/bin/sh\n")
    (scene.repo / "run.sh").chmod(0o755)
    scene.commit({})

    async def story(vault: GitStore) -> tuple[TreeChange, ...]:
        base = await vault.resolve("HEAD")
        return await vault.changes(base, await vault.write(base, {"run.sh": b"#!/bin/sh\nexit 1\n"}))

    assert scene.run(story) == (TreeChange("run.sh", "M", "100755", "100755", 1, 0),)


def test_very_many_paths_at_once_work(scene: RepositorySetup) -> None:
    """There is a bound to what a command line takes."""
    many = {f"d{number % 7}/{'x' * 100}{number}": b"" for number in range(5000)}

    async def story(vault: GitStore) -> tuple[int, int]:
        base = await vault.resolve("HEAD")
        blank = await vault.objects.store(b"")
        big = await vault.objects.edit(base, (), [TreeEntry(path, "100644", blank) for path in many])
        small = await vault.replace(big, dict.fromkeys(many, base))
        return len(await vault.changes(base, big)), len(await vault.changes(base, small))

    assert scene.run(story) == (5000, 0)


@pytest.mark.parametrize("path", ["", "/abs", "a//b", "../x", "a/../b", "a/", "./a", "a\0b"])
def test_what_is_no_path_within_a_tree_is_refused(scene: RepositorySetup, path: str) -> None:
    """A path that git would read differently could touch another file."""

    async def story(vault: GitStore) -> None:
        base = await vault.resolve("HEAD")
        with pytest.raises(GitFailed):
            await vault.write(base, {path: b"x"})
        with pytest.raises(GitFailed):
            await vault.replace(base, {path: None})

    scene.run(story)


def test_git_s_own_name_is_refused_in_a_tree(scene: RepositorySetup) -> None:
    """Such a proposal would write into somebody's repository; git itself only leaves the path out, without a word."""

    async def story(vault: GitStore) -> None:
        base = await vault.resolve("HEAD")
        with pytest.raises(GitFailed, match="not a path within a tree"):
            await vault.write(base, {".git/hooks/pre-commit": b"evil"})
        entry = TreeEntry("a/.GIT/x", "100644", await vault.objects.store(b"evil"))
        with pytest.raises(GitFailed, match="does not take every path"):
            await vault.objects.edit(base, (), [entry])

    scene.run(story)


def test_counts_are_lines_and_none_for_binary_files(scene: RepositorySetup) -> None:
    """A size limit counts lines; a binary file has none."""

    async def story(vault: GitStore) -> tuple[TreeChange, ...]:
        base = await vault.resolve("HEAD")
        files = {"src/a.py": b"1\n2\n3\n", "bin": b"\0\1\2", "src/b.py": None}
        return await vault.changes(base, await vault.write(base, files))

    assert scene.run(story) == (
        TreeChange("bin", "A", "000000", "100644", None, None),
        TreeChange("src/a.py", "M", "100644", "100644", 3, 1),
        TreeChange("src/b.py", "D", "100644", "000000", 0, 1),
    )


def test_a_moved_file_is_one_that_went_and_one_that_came(scene: RepositorySetup) -> None:
    """Rules about paths have to see both."""

    async def story(vault: GitStore) -> list[tuple[str, str]]:
        base = await vault.resolve("HEAD")
        moved = await vault.write(base, {"src/a.py": None, "elsewhere.py": b"x = 1\n"})
        return [(one.path, one.status) for one in await vault.changes(base, moved)]

    assert scene.run(story) == [("elsewhere.py", "A"), ("src/a.py", "D")]


def test_attributes_of_the_tree_hide_nothing_from_the_difference(scene: RepositorySetup) -> None:
    """`* -diff` would turn a change to code into the words `Binary files differ`."""

    async def story(vault: GitStore) -> tuple[str, list[int | None]]:
        base = await vault.resolve("HEAD")
        files = {".gitattributes": b"* -diff binary\n*.py diff=hidden linguist-generated\n", "src/a.py": b"evil()\n"}
        tree = await vault.write(base, files)
        return await vault.diff(base, tree), [one.added for one in await vault.changes(base, tree)]

    text, added = scene.run(story)
    assert "+evil()" in text
    assert added == [2, 1]


def test_a_difference_is_cut_at_the_limit_and_says_so(scene: RepositorySetup) -> None:
    """A prompt or a page gets no megabytes."""

    async def story(vault: GitStore) -> str:
        base = await vault.resolve("HEAD")
        return await vault.diff(base, await vault.write(base, {"big": b"line\n" * 100_000}), limit=1000)

    text = scene.run(story)
    assert len(text) < 1100
    assert text.endswith("the rest of the difference is left out\n")


def test_a_difference_can_be_of_some_paths(scene: RepositorySetup) -> None:
    """A path is taken literally, never as a pattern."""

    async def story(vault: GitStore) -> tuple[str, str]:
        base = await vault.resolve("HEAD")
        tree = await vault.write(base, {"src/a.py": b"1\n", "README.md": b"2\n"})
        return await vault.diff(base, tree, ("src",)), await vault.diff(base, tree, ("*.md", ":(top)README.md"))

    some, none = scene.run(story)
    assert "src/a.py" in some
    assert "README" not in some
    assert none == ""


def test_a_file_that_is_not_there_is_none_and_one_too_large_an_error(scene: RepositorySetup) -> None:
    """Half of a file must not be taken for the file."""

    async def story(vault: GitStore) -> list[bytes | None]:
        base = await vault.resolve("HEAD")
        found = [await vault.blob(base, path) for path in ("nope", "src", "src/a.py/x", "*")]
        with pytest.raises(GitFailed, match="more than 3 bytes"):
            await vault.blob(base, "README.md", limit=3)
        return found

    assert scene.run(story) == [None, None, None, None]


def test_a_file_is_read_once_and_is_still_too_large_for_a_small_limit(scene: RepositorySetup) -> None:
    """A gate asks for the same few files again and again; a change that writes a file is seen at once."""

    async def story(vault: GitStore) -> tuple[list[bytes | None], dict[str, bytes], int]:
        base = await vault.resolve("HEAD")
        first = await vault.blob(base, "README.md")
        started = 0
        run = vault.git.run

        async def counted(*args: str, call: GitOptions) -> Exit:
            nonlocal started
            started += args[0] == "cat-file"
            return await run(*args, call=call)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Git, "run", lambda _self, *args, call: counted(*args, call=call))
            again = [await vault.blob(base, "README.md"), (await vault.blobs(base, ["README.md"]))["README.md"]]
            small = await vault.blobs(base, ["README.md"], limit=3)
        with pytest.raises(GitFailed, match="more than 3 bytes"):
            await vault.blob(base, "README.md", limit=3)
        new = await vault.blob(await vault.write(base, {"README.md": b"new\n"}), "README.md")
        assert again == [first, first]
        return [new], small, started

    assert scene.run(story) == ([b"new\n"], {}, 0)


def test_packing_keeps_every_object_and_what_a_run_keeps_goes_when_released(scene: RepositorySetup) -> None:
    """A tree that no name leads to is in the pack as well: a run that waits knows it by its id alone."""

    async def story(vault: GitStore) -> tuple[bool, bytes | None, int, str]:
        base = await vault.resolve("HEAD")
        commit = await vault.commit(await vault.tree_of(base), (base,), "x", AUTHOR, when=WHEN)
        await vault.keep("a run", commit)
        unnamed = await vault.write(base, {"README.md": b"only known by its id\n"})
        await pack_git_dir(vault.git_dir, WHEN)
        other = GitStore(vault.git, vault.source, vault.git_dir, vault.environment)
        kept, blob = await other.resolve(commit) == commit, await other.blob(unnamed, "README.md")
        loose = len(list((vault.git_dir / "objects").glob("??/*")))
        await vault.release("a run")
        left = await vault.git.line("for-each-ref", "refs/bailiwick/runs", call=vault.objects.call())
        return kept, blob, loose, left

    assert scene.run(story) == (True, b"only known by its id\n", 0, "")
