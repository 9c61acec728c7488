"""The ways out: branches in the operator's repository, pushes to a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bailiwick.git.publish import PushRemote, branch_ref
from bailiwick.git.runner import GitFailed
from bailiwick.git.store import GitStore
from bailiwick.testing.git_server import GitServer
from tests.unit.git.repository_setup import AUTHOR, WHEN, RepositorySetup, make_scene

TOKEN = "token-that-may-write"
READER = "token-that-may-read"


@pytest.fixture
def scene(tmp_path: Path) -> RepositorySetup:
    return make_scene(tmp_path)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with GitServer(tmp_path / "served", {TOKEN: "write", READER: "read", "known-nobody": "none"}) as running:
        running.make("o/r")
        yield running


async def _commit(git_store: GitStore, parent: str, message: str) -> str:
    return await git_store.commit(await git_store.tree_of(parent), (parent,), message, AUTHOR, when=WHEN)


@pytest.mark.parametrize(
    "name",
    [
        "main",
        "agent",
        "agent/",
        "/agent/x",
        "agents/x",
        "agent//x",
        "agent/../main",
        "agent/x..y",
        "agent/x.lock",
        "agent/.x",
        "agent/x.",
        "agent/-x",
        "agent/x y",
        "agent/x:y",
        "agent/x~1",
        "agent/x^",
        "agent/*",
        "agent/x\n",
        "agent/x@{1}",
        "agent/ü",
        "refs/heads/agent/x",
        "+agent/x",
        "agent/" + "x" * 300,
        "agent/x/",
    ],
)
def test_only_literal_branches_of_ours_are_known(name: str) -> None:
    """What is written is below agent/, and nothing in a name has a meaning."""
    with pytest.raises(GitFailed) as caught:
        branch_ref(name)
    assert caught.value.kind == "refused"


@pytest.mark.parametrize("name", ["agent/fix-it-1a2b", "agent/a/b", "agent/v1.2_x", "agent/0"])
def test_ordinary_branches_of_ours_are_taken(name: str) -> None:
    """The names that issues get."""
    assert branch_ref(name) == f"refs/heads/{name}"


def test_a_branch_is_made_moved_and_deleted_where_it_is_expected(scene: RepositorySetup) -> None:
    """Each step twice: a run that crashed in between comes by again."""

    async def history(git_store: GitStore) -> list[str]:
        base = await git_store.resolve("HEAD")
        one = await _commit(git_store, base, "one")
        two = await _commit(git_store, one, "two")
        seen = []
        for _ in range(2):
            await git_store.branch("agent/x", one, expect=None)
        seen.append(scene.git("log", "-1", "--format=%s", "agent/x"))
        for _ in range(2):
            await git_store.branch("agent/x", two, expect=one)
        seen.append(scene.git("log", "-1", "--format=%s", "agent/x"))
        for _ in range(2):
            await git_store.delete_branch("agent/x", expect=two)
        return [*seen, scene.git("branch", "--list", "agent/*")]

    assert scene.run(history) == ["one", "two", ""]


def test_a_branch_that_somebody_changed_is_left_alone(scene: RepositorySetup) -> None:
    """Their commits are theirs."""

    async def history(git_store: GitStore) -> tuple[str, str]:
        base = await git_store.resolve("HEAD")
        one = await _commit(git_store, base, "one")
        scene.git("branch", "agent/x", base)
        for expect in (None, one):
            with pytest.raises(GitFailed) as caught:
                await git_store.branch("agent/x", one, expect=expect)
            assert caught.value.kind == "rejected"
        with pytest.raises(GitFailed):
            await git_store.delete_branch("agent/x", expect=one)
        return base, scene.git("rev-parse", "agent/x")

    base, found = scene.run(history)
    assert base == found


def test_a_branch_that_is_checked_out_is_refused(scene: RepositorySetup) -> None:
    """Moving it would make the person's work tree look full of changes."""

    async def history(git_store: GitStore) -> None:
        base = await git_store.resolve("HEAD")
        scene.git("checkout", "-q", "-b", "agent/x")
        with pytest.raises(GitFailed, match="checked out") as caught:
            await git_store.branch("agent/x", await _commit(git_store, base, "one"), expect=base)
        assert caught.value.kind == "refused"

    scene.run(history)
    assert scene.git("status", "--porcelain") == ""


def test_of_many_who_make_one_branch_at_once_one_wins(scene: RepositorySetup) -> None:
    """Compare and swap: nobody's commit is lost without a word."""

    async def history(git_store: GitStore) -> list[str]:
        base = await git_store.resolve("HEAD")
        commits = [await _commit(git_store, base, f"number {number}") for number in range(6)]
        asked = [git_store.branch("agent/x", commit, expect=None) for commit in commits]
        done = await asyncio.gather(*asked, return_exceptions=True)
        assert all(result is None or isinstance(result, GitFailed) for result in done), done
        return [commit for commit, result in zip(commits, done, strict=True) if result is None]

    assert scene.run(history) == [scene.git("rev-parse", "agent/x")]


def test_a_push_makes_the_branch_and_a_second_one_changes_nothing(scene: RepositorySetup, server: GitServer) -> None:
    """A crash after the push and before its record: the same push again succeeds."""

    async def history(git_store: GitStore) -> tuple[str, str | None]:
        commit = await _commit(git_store, await git_store.resolve("HEAD"), "one")
        for _ in range(2):
            await git_store.push(PushRemote(server.url_of("o/r"), TOKEN), commit, "agent/x", expect=None)
        return commit, await git_store.remote_branch(PushRemote(server.url_of("o/r"), READER), "agent/x")

    pushed, found = scene.run(history)
    assert pushed == found
    assert scene.git("for-each-ref", "--format=%(refname)", cwd=server.path_of("o/r")) == "refs/heads/agent/x"


def test_a_push_never_goes_over_commits_of_others(scene: RepositorySetup, server: GitServer) -> None:
    """Commits people pushed to our branch are built upon, never rewritten."""
    url = server.url_of("o/r")

    async def history(git_store: GitStore) -> list[str]:
        base = await git_store.resolve("HEAD")
        ours = await _commit(git_store, base, "ours")
        await git_store.push(PushRemote(url, TOKEN), ours, "agent/x", expect=None)
        theirs = await _commit(git_store, ours, "theirs")
        await git_store.git.out(
            "push",
            "-q",
            str(server.path_of("o/r")),
            f"{theirs}:refs/heads/agent/x",
            call=git_store.call(transports=("file",)),
        )
        again = await _commit(git_store, base, "again")
        kinds: list[str] = []
        for expect in (None, ours, theirs):
            with pytest.raises(GitFailed) as caught:
                await git_store.push(PushRemote(url, TOKEN), again, "agent/x", expect=expect)
            kinds.append(caught.value.kind)
        upon = await _commit(git_store, theirs, "upon")
        await git_store.push(PushRemote(url, TOKEN), upon, "agent/x", expect=theirs)
        return kinds

    assert scene.run(history) == ["rejected", "rejected", "rejected"]
    log = scene.git("log", "--format=%s", "agent/x", cwd=server.path_of("o/r"))
    assert log == "upon\ntheirs\nours\none"


def test_what_we_pushed_ourselves_can_be_replaced(scene: RepositorySetup, server: GitServer) -> None:
    """A new round may start from a newer base."""

    async def history(git_store: GitStore) -> None:
        base = await git_store.resolve("HEAD")
        first, second = await _commit(git_store, base, "first"), await _commit(git_store, base, "second")
        await git_store.push(PushRemote(server.url_of("o/r"), TOKEN), first, "agent/x", expect=None)
        await git_store.push(PushRemote(server.url_of("o/r"), TOKEN), second, "agent/x", expect=first)

    scene.run(history)
    assert scene.git("log", "-1", "--format=%s", "agent/x", cwd=server.path_of("o/r")) == "second"


@pytest.mark.parametrize("branch", ["main", "refs/heads/main", "agent/x:refs/heads/main", "agent/../main"])
def test_no_other_branch_can_be_pushed(scene: RepositorySetup, server: GitServer, branch: str) -> None:
    """There is no merge in this program, and no way around that."""

    async def history(git_store: GitStore) -> None:
        commit = await git_store.resolve("HEAD")
        await git_store.push(PushRemote(server.url_of("o/r"), TOKEN), commit, branch, expect=None)

    with pytest.raises(GitFailed):
        scene.run(history)
    assert server.seen == []


@pytest.mark.parametrize(
    ("token", "status", "kind"),
    [
        ("wrong-token", 0, "auth"),
        (None, 0, "auth"),
        (READER, 0, "auth"),
        ("known-nobody", 0, "auth"),
        (TOKEN, 401, "auth"),
        (TOKEN, 403, "auth"),
        (TOKEN, 404, "missing"),
        (TOKEN, 500, "network"),
        (TOKEN, 503, "network"),
        (TOKEN, 302, "moved"),
    ],
)
def test_refusals_of_a_server_have_their_kind(
    scene: RepositorySetup, server: GitServer, token: str | None, status: int, kind: str
) -> None:
    """A login needs a person, a 503 only time; and no message holds the token."""
    server.knobs.status = status

    async def history(git_store: GitStore) -> None:
        commit = await git_store.resolve("HEAD")
        await git_store.push(PushRemote(server.url_of("o/r"), token), commit, "agent/x", expect=None)

    with pytest.raises(GitFailed) as caught:
        scene.run(history)
    assert caught.value.kind == kind
    assert caught.value.hint
    assert token is None or token not in caught.value.what


def test_a_redirect_does_not_carry_the_token_elsewhere(
    scene: RepositorySetup, server: GitServer, tmp_path: Path
) -> None:
    """A server that answers with another address would be given the login of the first."""
    with GitServer(tmp_path / "other", {TOKEN: "write"}) as other:
        other.make("o/r")
        server.knobs.status = 302
        server.knobs.location = f"{other.url_of('o/r')}/info/refs?service=git-receive-pack"

        async def history(git_store: GitStore) -> None:
            commit = await git_store.resolve("HEAD")
            await git_store.push(PushRemote(server.url_of("o/r"), TOKEN), commit, "agent/x", expect=None)

        with pytest.raises(GitFailed):
            scene.run(history)
        assert other.seen == []


def test_a_hook_of_the_other_side_may_decline(scene: RepositorySetup, server: GitServer) -> None:
    """Its words are for the person; trying again can't help."""
    hook = server.path_of("o/r") / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'sign your commits' >&2\nexit 1\n")
    hook.chmod(0o755)

    async def history(git_store: GitStore) -> None:
        commit = await git_store.resolve("HEAD")
        await git_store.push(PushRemote(server.url_of("o/r"), TOKEN), commit, "agent/x", expect=None)

    with pytest.raises(GitFailed, match="sign your commits") as caught:
        scene.run(history)
    assert caught.value.kind == "declined"


def test_a_server_that_is_not_there_is_the_line(scene: RepositorySetup, server: GitServer) -> None:
    """Nobody listens on that port."""

    async def history(git_store: GitStore) -> None:
        commit = await git_store.resolve("HEAD")
        await git_store.push(PushRemote("http://127.0.0.1:1/o/r.git", TOKEN), commit, "agent/x", expect=None)

    with pytest.raises(GitFailed) as caught:
        scene.run(history)
    assert caught.value.kind == "network"


def test_a_server_that_never_answers_is_given_up(
    scene: RepositorySetup, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run must not hang on a push."""
    monkeypatch.setattr("bailiwick.git.publish.PUSH_TIMEOUT", 0.3)
    server.knobs.hang = True

    async def history(git_store: GitStore) -> None:
        commit = await git_store.resolve("HEAD")
        await git_store.push(PushRemote(server.url_of("o/r"), TOKEN), commit, "agent/x", expect=None)

    with pytest.raises(GitFailed) as caught:
        scene.run(history)
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize(
    "url", ["file:///tmp/x", "ssh://git@host/x", "git@host:x.git", "ext::sh -c true", "/tmp/x", "https://u:p@host/x"]
)
def test_other_ways_to_a_remote_repository_are_refused(scene: RepositorySetup, url: str) -> None:
    """Some of them run a program, some have a password in an argument."""

    async def history(git_store: GitStore) -> None:
        await git_store.push(PushRemote(url, TOKEN), await git_store.resolve("HEAD"), "agent/x", expect=None)

    with pytest.raises(GitFailed) as caught:
        scene.run(history)
    assert caught.value.kind == "refused"


def test_a_branch_of_a_remote_repository_can_be_fetched(scene: RepositorySetup, server: GitServer) -> None:
    """The base of a run is the default branch as it is now; a person's commits on our branch are built upon."""
    scene.git("push", "-q", str(server.path_of("o/r")), "main")
    head = scene.git("rev-parse", "main")

    async def history(git_store: GitStore) -> list[str]:
        url = server.url_of("o/r")
        remote = PushRemote(url, READER)
        return [await git_store.fetch_remote(remote, ref) for ref in ("HEAD", "main", "refs/heads/main")]

    assert scene.run(history) == [head, head, head]


@pytest.mark.parametrize("ref", ["nope", "-x", "a:b", "a b", "a..b"])
def test_what_is_no_branch_there_is_an_error(scene: RepositorySetup, server: GitServer, ref: str) -> None:
    """A name is never an option or a rule of two refs."""
    with pytest.raises(GitFailed) as caught:
        scene.run(lambda git_store: git_store.fetch_remote(PushRemote(server.url_of("o/r"), READER), ref))
    assert caught.value.kind in ("missing", "refused")


def test_a_large_push_arrives(scene: RepositorySetup, server: GitServer) -> None:
    """Beyond a megabyte git sends its request in pieces."""
    import random

    noise = random.Random(1).randbytes(3 << 20)

    async def history(git_store: GitStore) -> None:
        base = await git_store.resolve("HEAD")
        tree = await git_store.write(base, {"noise.bin": noise})
        commit = await git_store.commit(tree, (base,), "big", AUTHOR, when=WHEN)
        await git_store.push(PushRemote(server.url_of("o/r"), TOKEN), commit, "agent/x", expect=None)

    scene.run(history)
    assert scene.git("cat-file", "-s", "agent/x:noise.bin", cwd=server.path_of("o/r")) == str(3 << 20)
