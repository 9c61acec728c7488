"""An agent owns every byte of its tree, `.git` included. Nothing it writes there runs on our side.

Each trick is first shown to work on a git that trusts the tree: it makes a canary. Then we take the tree, compare it,
commit it, put it on a branch, push it and check it out, and no canary may appear.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.git.publish import PushRemote
from bailiwick.git.runner import GitFailed
from bailiwick.git.store import GitStore
from bailiwick.git.worktrees import Worktrees
from bailiwick.testing.git_server import GitServer
from tests.unit.git.repository_setup import AUTHOR, WHEN, RepositorySetup, make_scene

pytestmark = pytest.mark.slow

TOKEN = "token-of-the-operator"


@dataclass(frozen=True, slots=True)
class Trap:
    """A tree of an agent, and a program that shows that it was run."""

    tree: Path
    program: Path
    canary: Path

    @property
    def git(self) -> Path:
        """The agent's own git dir."""
        return self.tree / ".git"

    def config(self, *lines: str, file: Path | None = None) -> None:
        """Add to a configuration file."""
        with (file or self.git / "config").open("a") as out:
            out.write("\n".join(lines).replace("CANARY", str(self.program)) + "\n")

    def hook(self, name: str, folder: Path | None = None) -> None:
        """Put the program where a hook is looked for."""
        place = folder or self.git / "hooks"
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.program, place / name)

    def write(self, path: str, text: str) -> None:
        """Write a file of the tree."""
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("CANARY", str(self.program)))

    def attributes(self, text: str) -> None:
        """Set attributes of all files, and take away what stands above them."""
        self.write(".gitattributes", text)
        (self.git / "info/attributes").unlink(missing_ok=True)

    def plain(self, *args: str) -> None:
        """What a git that trusts the tree does; it may fail as it likes."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.tree), "GIT_CONFIG_NOSYSTEM": "1"}
        env |= {
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        subprocess.run(
            ["git", *args],
            cwd=self.tree,
            env=env,
            capture_output=True,
            check=False,
            timeout=600,
            stdin=subprocess.DEVNULL,
        )


Trick = Callable[[Trap], list[str]]


def hook_before_commit(trap: Trap) -> list[str]:
    trap.hook("pre-commit")
    return ["commit", "--allow-empty", "-qm", "x"]


def hook_of_references(trap: Trap) -> list[str]:
    trap.hook("reference-transaction")
    return ["update-ref", "refs/heads/x", "HEAD"]


def hook_of_the_index(trap: Trap) -> list[str]:
    trap.hook("post-index-change")
    return ["add", "-A"]


def hook_after_checkout(trap: Trap) -> list[str]:
    trap.hook("post-checkout")
    return ["checkout", "-q", "-b", "x"]


def hooks_path(trap: Trap) -> list[str]:
    trap.hook("pre-commit", trap.tree / "tools")
    trap.config("[core]", "hooksPath = tools")
    return ["commit", "--allow-empty", "-qm", "x"]


def file_system_monitor(trap: Trap) -> list[str]:
    trap.config("[core]", "fsmonitor = CANARY")
    return ["status"]


def filter_on_the_way_in(trap: Trap) -> list[str]:
    trap.config('[filter "evil"]', "clean = CANARY")
    trap.attributes("* filter=evil\n")
    return ["add", "-A"]


def filter_on_the_way_out(trap: Trap) -> list[str]:
    trap.config('[filter "evil"]', "smudge = CANARY")
    trap.attributes("*.md filter=evil\n")
    trap.plain("rm", "-q", "--cached", "README.md")
    return ["checkout", "-f", "HEAD", "--", "README.md"]


def filter_process(trap: Trap) -> list[str]:
    trap.config('[filter "evil"]', "process = CANARY", "required = true")
    trap.attributes("* filter=evil\n")
    return ["add", "-A"]


def text_conversion(trap: Trap) -> list[str]:
    trap.config('[diff "evil"]', "textconv = CANARY")
    trap.attributes("* diff=evil\n")
    return ["diff", "HEAD"]


def external_difference(trap: Trap) -> list[str]:
    trap.config("[diff]", "external = CANARY")
    return ["diff", "HEAD"]


def driver_of_differences(trap: Trap) -> list[str]:
    trap.config('[diff "evil"]', "command = CANARY")
    trap.attributes("* diff=evil\n")
    return ["diff", "HEAD"]


def include(trap: Trap) -> list[str]:
    trap.config("[core]", "fsmonitor = CANARY", file=trap.tree / "more")
    trap.config("[include]", "path = ../more")
    return ["status"]


def conditional_include(trap: Trap) -> list[str]:
    trap.config("[core]", "fsmonitor = CANARY", file=trap.tree / "more")
    trap.config(f'[includeIf "gitdir:{trap.git}"]', "path = ../more")
    return ["status"]


def remote_over_ssh(trap: Trap) -> list[str]:
    trap.config("[core]", "sshCommand = CANARY", '[remote "origin"]', "url = ssh://localhost/x")
    return ["fetch", "origin"]


def remote_that_is_a_program(trap: Trap) -> list[str]:
    trap.config("[protocol]", "allow = always", '[remote "origin"]', "url = ext::CANARY")
    return ["fetch", "origin"]


def rewritten_address(trap: Trap) -> list[str]:
    trap.config("[protocol]", "allow = always", '[url "ext::CANARY "]', "insteadOf = file://", "insteadOf = http://")
    return ["fetch", "http://127.0.0.1:1/x"]


def signing_program(trap: Trap) -> list[str]:
    trap.config("[gpg]", "program = CANARY", "[commit]", "gpgSign = true")
    return ["commit", "--allow-empty", "-qm", "x"]


def editor(trap: Trap) -> list[str]:
    trap.config("[core]", "editor = CANARY")
    return ["commit", "--allow-empty"]


def credential_program(trap: Trap) -> list[str]:
    trap.config("[credential]", "helper = CANARY")
    return ["-c", "alias.x=!echo url=http://h | git credential fill", "x"]


def git_file_to_elsewhere(trap: Trap) -> list[str]:
    trap.git.rename(trap.tree / "real")
    trap.config("[core]", "fsmonitor = CANARY", file=trap.tree / "real/config")
    trap.git.write_text("gitdir: real\n")
    return ["status"]


def common_dir(trap: Trap) -> list[str]:
    shutil.copytree(trap.git, trap.tree / "shared")
    trap.config("[core]", "fsmonitor = CANARY", file=trap.tree / "shared/config")
    (trap.git / "commondir").write_text("../shared\n")
    return ["status"]


def config_of_the_work_tree(trap: Trap) -> list[str]:
    trap.config("[core]", "repositoryFormatVersion = 1", "[extensions]", "worktreeConfig = true")
    trap.config("[core]", "fsmonitor = CANARY", file=trap.git / "config.worktree")
    return ["status"]


def tree_that_is_a_repository(trap: Trap) -> list[str]:
    for path in trap.git.iterdir():
        shutil.move(path, trap.tree / path.name)
    trap.git.rmdir()
    trap.config("[core]", "bare = false", "worktree = .", "fsmonitor = CANARY", file=trap.tree / "config")
    return ["status"]


def repository_within(trap: Trap) -> list[str]:
    trap.plain("init", "-q", "sub")
    trap.config("[core]", "fsmonitor = CANARY", file=trap.tree / "sub/.git/config")
    trap.write("sub/file", "x\n")
    for args in (["add", "file"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        trap.plain("-C", "sub", "-c", "core.fsmonitor=false", *args)
    trap.plain("add", "sub")
    return ["status"]


def program_of_a_submodule(trap: Trap) -> list[str]:
    repository_within(trap)
    trap.canary.unlink(missing_ok=True)
    trap.write(".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = ./x\n')
    trap.config('[submodule "sub"]', "active = true", "url = ./x", "update = !CANARY")
    return ["submodule", "update", "--force"]


TRICKS: list[Trick] = [
    hook_before_commit, hook_of_references, hook_of_the_index, hook_after_checkout, hooks_path, file_system_monitor,
    filter_on_the_way_in, filter_on_the_way_out, filter_process, text_conversion, external_difference,
    driver_of_differences, include, conditional_include, remote_over_ssh, remote_that_is_a_program, rewritten_address,
    signing_program, editor, credential_program, git_file_to_elsewhere, common_dir, config_of_the_work_tree,
    tree_that_is_a_repository, repository_within, program_of_a_submodule,
]  # fmt: skip


@pytest.fixture
def scene(tmp_path: Path) -> RepositorySetup:
    return make_scene(tmp_path / "scene")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    with GitServer(tmp_path / "served", {TOKEN: "write"}) as running:
        running.make("o/r")
        yield running


def _trap(tmp_path: Path, tree: Path) -> Trap:
    canary, program = tmp_path / "canary", tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {canary}\nexit 0\n")
    program.chmod(0o755)
    return Trap(tree, program, canary)


def _worktree(scene: RepositorySetup) -> Path:
    async def history(git_store: GitStore) -> Path:
        base = await git_store.resolve("HEAD")
        return (await Worktrees(scene.state, ManualClock()).make(git_store, "run", base, "agent/x")).tree

    return scene.run(history)


async def _use(git_store: GitStore, scene: RepositorySetup, tree: Path, server: GitServer) -> str:
    """Everything that we ever do with a tree of an agent; the difference to its base."""
    base = await git_store.resolve("HEAD")
    taken = await git_store.survey(tree)
    await git_store.changes(base, taken.tree)
    text = await git_store.diff(base, taken.tree)
    commit = await git_store.commit(taken.tree, (base,), "Agent: x", AUTHOR, when=WHEN)
    await git_store.branch("agent/x", commit, expect=None)
    await git_store.push(PushRemote(server.url_of("o/r"), TOKEN), commit, "agent/x", expect=None)
    with pytest.raises(GitFailed):
        await git_store.push(PushRemote(server.url_of("o/r"), "wrong"), commit, "agent/y", expect=None)
    await git_store.checkout(commit, scene.top / "gate")
    await git_store.snapshot(scene.top / "gate")
    await Worktrees(scene.state, ManualClock()).make(git_store, "next", commit, "agent/z")
    await git_store.delete_branch("agent/x", expect=commit)
    return text


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
def test_nothing_in_an_agents_tree_runs_on_our_side(
    tmp_path: Path, scene: RepositorySetup, server: GitServer, trick: Trick
) -> None:
    """The tree is the agent's, the machine is ours: whatever git could be told there, we do not ask it."""
    trap = _trap(tmp_path, _worktree(scene))
    trap.write("src/a.py", "x = 'changed by the agent'\n")
    proof = trick(trap)
    trap.plain(*proof)
    assert trap.canary.exists(), "the trick does not work on a git that trusts the tree, so it proves nothing"
    trap.canary.unlink()
    text = scene.run(lambda git_store: _use(git_store, scene, trap.tree, server))
    assert not trap.canary.exists()
    assert "+x = 'changed by the agent'" in text


@pytest.mark.parametrize(
    "trick",
    [
        hook_of_references,
        file_system_monitor,
        filter_on_the_way_in,
        filter_process,
        text_conversion,
        external_difference,
        signing_program,
        hook_of_the_index,
    ],
    ids=lambda trick: trick.__name__,
)
def test_hooks_and_filters_of_the_operator_do_not_run_either(
    tmp_path: Path, scene: RepositorySetup, server: GitServer, trick: Trick
) -> None:
    """They are the operator's own, made for their commits: an agent's files must not be their input."""
    trap = _trap(tmp_path, scene.repo)
    trap.write("src/a.py", "x = 'changed by the person'\n")
    proof = trick(trap)
    trap.plain(*proof)
    assert trap.canary.exists()
    trap.canary.unlink()
    trap.write("src/a.py", "x = 'changed by the person'\n# and once more: what their index knows is not asked about\n")
    text = scene.run(lambda git_store: _use(git_store, scene, scene.repo, server))
    assert not trap.canary.exists()
    assert "+x = 'changed by the person'" in text


def test_a_configured_work_tree_does_not_lead_us_elsewhere(tmp_path: Path, scene: RepositorySetup) -> None:
    """`core.worktree` would make git show the files of another directory as the agent's."""
    trap = _trap(tmp_path, _worktree(scene))
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret\n")
    trap.config("[core]", f"worktree = {secret}")

    async def history(git_store: GitStore) -> tuple[str, ...]:
        return await git_store.files(await git_store.snapshot(trap.tree))

    assert scene.run(history) == (".gitignore", "README.md", "src/a.py", "src/b.py")


def test_replaced_objects_do_not_change_what_people_see(tmp_path: Path, scene: RepositorySetup) -> None:
    """A replace ref makes git show another content under the same id, in the agent's git dir and in the operator's."""
    good = scene.git("rev-parse", "HEAD:src/a.py")
    base = scene.git("rev-parse", "HEAD")
    (tmp_path / "evil").write_text("evil()\n")
    for where in (scene.repo, _worktree(scene)):
        evil = scene.git("hash-object", "-w", str(tmp_path / "evil"), cwd=where)
        scene.git("replace", good, evil, cwd=where)
        assert scene.git("show", f"{base}:src/a.py", cwd=where) == "evil()"

    async def history(git_store: GitStore) -> tuple[bytes | None, bytes | None, str]:
        found = await Worktrees(scene.state, ManualClock()).list()
        tree = await git_store.snapshot(found[0].tree)
        return (
            await git_store.blob(base, "src/a.py"),
            await git_store.blob(tree, "src/a.py"),
            await git_store.diff(base, tree),
        )

    assert scene.run(history) == (b"x = 1\n", b"x = 1\n", "")


def test_alternates_of_the_agent_are_not_read(tmp_path: Path, scene: RepositorySetup) -> None:
    """Objects of a repository that the agent may not see must not come into the proposal by their ids."""
    secret = make_scene(tmp_path / "secret")
    blob = secret.git("hash-object", "-w", "README.md")
    hidden = secret.commit({"key": "secret\n"})
    trap = _trap(tmp_path, _worktree(scene))
    (trap.git / "objects/info").mkdir(exist_ok=True)
    (trap.git / "objects/info/alternates").write_text(f"{secret.repo}/.git/objects\n")
    scene.git("cat-file", "-e", hidden, cwd=trap.tree)
    scene.git("update-ref", "refs/heads/agent/x", hidden, cwd=trap.tree)

    async def history(git_store: GitStore) -> bool:
        await git_store.snapshot(trap.tree)
        done = await git_store.git.run("cat-file", "-e", hidden, call=git_store.call())
        return done.code == 0

    assert len(blob) == 40
    assert not scene.run(history)


def test_the_vault_has_no_way_to_run_anything(scene: RepositorySetup) -> None:
    """No hooks, no filters, no includes, no alternates: there is nothing in it to be told by."""

    async def history(git_store: GitStore) -> tuple[Path, str]:
        await git_store.resolve("HEAD")
        return git_store.git_dir, await git_store.git.line(
            "config", "--local", "--list", "--name-only", call=git_store.call()
        )

    git_dir, keys = scene.run(history)
    assert not (git_dir / "hooks").exists()
    assert not (git_dir / "objects/info/alternates").exists()
    assert {key.partition(".")[0] for key in keys.splitlines()} <= {"core", "extensions"}
    assert (git_dir.parent.stat().st_mode & 0o777) == 0o700
