"""The vault: commits come in, trees and commits are made, differences are told."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from bailiwick.errors import NotFound, NotReady, UsageError
from bailiwick.git.runner import GitFailed
from bailiwick.git.store import GitStore
from tests.unit.git.repository_setup import AUTHOR, WHEN, RepositorySetup, make_scene


@pytest.fixture
def scene(tmp_path: Path) -> RepositorySetup:
    return make_scene(tmp_path)


def _refusal(scene: RepositorySetup, ref: str = "HEAD", repository: Path | None = None) -> NotReady:
    async def history() -> None:
        await (await scene.open(repository)).resolve(ref)

    with pytest.raises(NotReady) as caught:
        asyncio.run(history())
    return caught.value


def test_a_commit_of_the_operator_is_found_and_brought_in(scene: RepositorySetup) -> None:
    """From here on the operator may rewrite or clean up their repository: the run has what it needs."""
    head = scene.git("rev-parse", "HEAD")

    async def history(git_store: GitStore) -> tuple[str, bytes | None]:
        found = await git_store.resolve("main")
        scene.git("update-ref", "-d", "refs/heads/main")
        return found, await git_store.blob(found, "src/a.py")

    assert scene.run(history) == (head, b"x = 1\n")


def test_the_operators_repository_is_the_same_afterwards(scene: RepositorySetup) -> None:
    """Index, HEAD, refs and uncommitted files are the person's own."""
    scene.put({"README.md": "changed\n", "new.txt": "new\n"})
    scene.git("add", "new.txt")

    def look() -> tuple[str, str, bytes]:
        return scene.git("status", "--porcelain"), scene.git("for-each-ref"), (scene.repo / ".git/index").read_bytes()

    before = look()

    async def history(git_store: GitStore) -> None:
        base = await git_store.resolve("HEAD")
        tree = await git_store.snapshot(scene.repo)
        commit = await git_store.commit(tree, (base,), "x", AUTHOR, when=WHEN)
        await git_store.branch("agent/x", commit, expect=None)
        await git_store.delete_branch("agent/x", expect=commit)

    scene.run(history)
    assert look() == before


@pytest.mark.parametrize("ref", ["HEAD~1", "v1", "topic", "refs/heads/topic", "HEAD^{commit}~1"])
def test_any_way_to_name_a_commit_works(scene: RepositorySetup, ref: str) -> None:
    """People say it as they are used to."""
    first = scene.git("rev-parse", "HEAD")
    scene.git("tag", "-a", "-m", "tag", "v1")
    scene.git("branch", "topic")
    scene.commit({"README.md": "two\n"})
    assert scene.run(lambda git_store: git_store.resolve(ref)) == first


@pytest.mark.parametrize("ref", ["", "-x", "--all", "nope", "HEAD:README.md", "a\nb", "0" * 40])
def test_what_names_no_commit_is_refused_with_the_name(scene: RepositorySetup, ref: str) -> None:
    """A name is never an option, and a wrong one is said back."""
    with pytest.raises(NotFound) as caught:
        scene.run(lambda git_store: git_store.resolve(ref))
    assert caught.value.code == "BW418"


def test_a_directory_without_git_is_said(tmp_path: Path) -> None:
    """The commonest mistake: the wrong directory."""
    scene = RepositorySetup(tmp_path)
    (tmp_path / "plain").mkdir()
    error = _refusal(scene, repository=tmp_path / "plain")
    assert (error.code, error.exit_code) == ("BW411", 8)


def test_a_directory_that_does_not_exist_is_said(tmp_path: Path) -> None:
    """A typing error in a path."""
    assert _refusal(RepositorySetup(tmp_path), repository=tmp_path / "nowhere").code == "BW411"


def test_a_bare_repository_is_refused(scene: RepositorySetup) -> None:
    """There is no work tree in it that a person could look at."""
    scene.git("clone", "-q", "--bare", str(scene.repo), str(scene.top / "bare.git"))
    assert _refusal(scene, repository=scene.top / "bare.git").code == "BW412"


def test_a_repository_without_commits_is_said(tmp_path: Path) -> None:
    """There is nothing to start from."""
    scene = RepositorySetup(tmp_path)
    scene.repo.mkdir()
    scene.home.mkdir()
    scene.git("init", "-q")
    error = _refusal(scene)
    assert (error.code, error.hint) == ("BW413", "make the first commit")


def test_a_damaged_repository_is_said(scene: RepositorySetup) -> None:
    """A missing object must not come out as an empty or half history."""
    tree = scene.git("rev-parse", "HEAD^{tree}")
    (scene.repo / ".git/objects" / tree[:2] / tree[2:]).unlink()
    error = _refusal(scene)
    assert (error.code, error.hint) == ("BW415", "run `git fsck`")


def test_a_damaged_history_leaves_nothing_half_in_the_vault(scene: RepositorySetup) -> None:
    """Once the operator has repaired it, the same call works: no half-fetched commit is taken for a whole one."""
    tree = scene.git("rev-parse", "HEAD^{tree}")
    file = scene.repo / ".git/objects" / tree[:2] / tree[2:]
    kept = file.read_bytes()
    file.unlink()
    _refusal(scene)
    file.write_bytes(kept)

    async def history(git_store: GitStore) -> tuple[str, ...]:
        return await git_store.files(await git_store.resolve("HEAD"))

    assert "src/a.py" in scene.run(history)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file to another user needs root")
def test_a_repository_of_another_user_needs_the_operators_word(scene: RepositorySetup) -> None:
    """Whoever owns its files decides what is in it; git's own list of trusted directories is asked."""
    os.chown(scene.repo / ".git", 4242, 4242)
    error = _refusal(scene)
    assert (error.code, str(scene.repo) in error.hint) == ("BW414", True)
    (scene.home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {scene.repo}\n")
    assert scene.run(lambda git_store: git_store.resolve("HEAD")) == scene.git("rev-parse", "HEAD")


def test_a_shallow_clone_works(scene: RepositorySetup) -> None:
    """What build machines have."""
    scene.commit({"README.md": "two\n"})
    scene.git("clone", "-q", "--depth=1", f"file://{scene.repo}", str(scene.top / "shallow"))

    async def history() -> tuple[str, ...]:
        git_store = await scene.open(scene.top / "shallow")
        commit = await git_store.resolve("HEAD")
        made = await git_store.commit(await git_store.tree_of(commit), (commit,), "x", AUTHOR, when=WHEN)
        await git_store.branch("agent/x", made, expect=None)
        return await git_store.files(commit)

    assert "src/a.py" in asyncio.run(history())
    assert scene.git("log", "--format=%s", "agent/x", cwd=scene.top / "shallow") == "x\nmore"


def test_a_detached_head_and_a_linked_work_tree_work(scene: RepositorySetup) -> None:
    """Both have a HEAD of their own; the vault is shared by all trees of a repository."""
    first = scene.git("rev-parse", "HEAD")
    second = scene.commit({"README.md": "two\n"})
    scene.git("worktree", "add", "-q", "--detach", str(scene.top / "linked"), first)

    async def history() -> tuple[str, str, bool]:
        main, linked = await scene.open(), await scene.open(scene.top / "linked")
        return await main.resolve("HEAD"), await linked.resolve("HEAD"), main.git_dir == linked.git_dir

    assert asyncio.run(history()) == (second, first, True)


def test_a_subdirectory_leads_to_its_repository(scene: RepositorySetup) -> None:
    """People start where they stand."""

    async def history() -> Path:
        return (await scene.open(scene.repo / "src")).repository

    assert asyncio.run(history()) == scene.repo


def test_a_repository_with_other_hashes_works(tmp_path: Path) -> None:
    """SHA-256 repositories have longer ids everywhere."""
    scene = RepositorySetup(tmp_path)
    scene.repo.mkdir()
    scene.home.mkdir()
    scene.git("init", "-q", "--object-format=sha256")
    scene.commit({"a": "1\n"})

    async def history(git_store: GitStore) -> tuple[str, str]:
        base = await git_store.resolve("HEAD")
        await git_store.checkout(base, tmp_path / "out")
        scene.put({"b": "2\n"}, tmp_path / "out")
        tree = await git_store.snapshot(tmp_path / "out")
        tree = await git_store.write(tree, {"a": None})
        commit = await git_store.commit(tree, (base,), "x", AUTHOR, when=WHEN)
        await git_store.branch("agent/x", commit, expect=None)
        return commit, (await git_store.diff(base, commit))[:5]

    commit, text = scene.run(history)
    assert (len(commit), text) == (64, "diff ")
    assert scene.git("ls-tree", "--name-only", "agent/x") == "b"


def test_submodules_and_large_files_are_found_and_refused_unless_allowed(scene: RepositorySetup) -> None:
    """Their contents would be missing from the tree; a run that needs them would fail late and expensively."""
    scene.git("update-index", "--add", "--cacheinfo", f"160000,{scene.git('rev-parse', 'HEAD')},lib")
    scene.git("commit", "-q", "-m", "sub")
    with_module = scene.git("rev-parse", "HEAD")
    with_lfs = scene.commit({".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})

    async def history(git_store: GitStore) -> list[str]:
        codes = []
        for commit in (with_module, with_lfs):
            await git_store.resolve(commit)
            try:
                await git_store.check(commit, submodules=commit == with_lfs)
            except NotReady as error:
                codes.append(error.code)
            await git_store.check(commit, submodules=True, lfs=True)
        return codes

    assert scene.run(history) == ["BW416", "BW417"]


def test_a_checkout_has_exact_bytes_modes_and_links(scene: RepositorySetup) -> None:
    """Attributes of a tree that convert line ends or expand words do not apply: bytes are what is committed."""
    (scene.repo / "link").symlink_to("/etc/passwd")
    (scene.repo / "tool.sh").write_text("#!/bin/sh\n")
    (scene.repo / "tool.sh").chmod(0o755)
    base = scene.commit({"w.txt": "a\n$Id$\n", ".gitattributes": "*.txt text eol=crlf ident\n"})

    async def history(git_store: GitStore) -> None:
        await git_store.checkout(await git_store.resolve(base), scene.top / "out")

    scene.run(history)
    out = scene.top / "out"
    assert (out / "w.txt").read_bytes() == b"a\n$Id$\n"
    assert (out / "link").readlink() == Path("/etc/passwd")
    assert stat.S_IMODE((out / "tool.sh").stat().st_mode) & 0o100
    assert not stat.S_IMODE((out / "README.md").stat().st_mode) & 0o111
    assert not (out / ".git").exists()


def test_a_checkout_goes_into_an_empty_directory_only(scene: RepositorySetup) -> None:
    """A link that lies there already would be written through."""
    (scene.top / "elsewhere").mkdir()
    (scene.top / "full").mkdir()
    (scene.top / "full/src").symlink_to(scene.top / "elsewhere")
    (scene.top / "alias").symlink_to(scene.top / "elsewhere")

    async def history(git_store: GitStore) -> None:
        base = await git_store.resolve("HEAD")
        for into in ("full", "alias"):
            with pytest.raises(GitFailed) as caught:
                await git_store.checkout(base, scene.top / into)
            assert caught.value.kind == "refused"

    scene.run(history)
    assert list((scene.top / "elsewhere").iterdir()) == []


def test_a_commit_says_who_and_when(scene: RepositorySetup) -> None:
    """Neither the machine's user nor its clock has a say: the same words give the same commit."""

    async def history(git_store: GitStore) -> tuple[str, str]:
        base = await git_store.resolve("HEAD")
        tree = await git_store.tree_of(base)
        one = await git_store.commit(tree, (base,), "Say ü\n\nbody\n", AUTHOR, when=WHEN)
        two = await git_store.commit(tree, (base,), "Say ü\n\nbody\n", AUTHOR, when=WHEN)
        await git_store.branch("agent/x", one, expect=None)
        return one, two

    one, two = scene.run(history)
    assert one == two
    shown = scene.git("log", "-1", "--format=%an|%ae|%cn|%at|%s|%b", "agent/x")
    assert shown == "Ann Other|ann@example.org|Ann Other|1700000000|Say ü|body"


@pytest.mark.parametrize("author", ["", "Ann", "<a@b>", "Ann <a@b", "Ann <a@b>\nx", "Ann\n <a@b>", "A <a b@c>"])
def test_an_author_that_is_no_person_is_refused(scene: RepositorySetup, author: str) -> None:
    """A line break in a name would write headers of the commit."""

    async def history(git_store: GitStore) -> None:
        base = await git_store.resolve("HEAD")
        await git_store.commit(await git_store.tree_of(base), (base,), "x", author, when=WHEN)

    with pytest.raises(UsageError, match="does not name a person"):
        scene.run(history)


def test_a_commit_can_be_signed_with_the_operators_key(scene: RepositorySetup) -> None:
    """Repositories that ask for signatures would refuse the proposal otherwise."""
    key = scene.top / "key"
    os.spawnvp(os.P_WAIT, "ssh-keygen", ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
    scene.git("config", "gpg.format", "ssh")
    scene.git("config", "user.signingKey", f"{key}.pub")

    async def history(git_store: GitStore) -> None:
        base = await git_store.resolve("HEAD")
        commit = await git_store.commit(await git_store.tree_of(base), (base,), "x", AUTHOR, when=WHEN, sign=True)
        await git_store.branch("agent/x", commit, expect=None)

    scene.run(history)
    assert "BEGIN SSH SIGNATURE" in scene.git("cat-file", "commit", "agent/x")
