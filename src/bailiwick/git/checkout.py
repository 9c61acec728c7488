"""The tree that an agent is given: files of a commit, and a throwaway `.git` in which its git works as usual."""

from __future__ import annotations

import re
from pathlib import Path

from bailiwick.git.publish import branch_ref
from bailiwick.git.runner import GitOptions, file_url
from bailiwick.git.store import ATTRIBUTES, GitStore

DEPTH = 200
"""How many commits of history an agent can look at."""

_SPECIAL = re.compile(r"([\\*?\[\]!# ])")


async def make_tree(vault: GitStore, tree: Path, commit: str, branch: str, prepared: tuple[str, ...]) -> None:
    """Fill a new directory: the files, the last commits, the branch checked out and clean; no remote, no login.

    This is the only time that we run git on such a `.git`: the agent has not seen it yet.
    """
    ref = branch_ref(branch)
    git = vault.git
    await vault.checkout(commit, tree)
    own = tree / ".git"
    await git.out("init", "--quiet", "--template=", f"--object-format={vault.source.object_format}", str(tree))
    call = GitOptions(git_dir=own, work_tree=tree, transports=("file",), config={"fetch.unpackLimit": "1"})
    options = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--quiet", f"--depth={DEPTH}")
    await git.out("fetch", *options, git.serving, file_url(vault.git_dir), f"{commit}:{ref}", call=call)
    await git.out("symbolic-ref", "HEAD", ref, call=call)
    info = own / "info"
    info.mkdir(exist_ok=True)
    (info / "exclude").write_text("".join(f"/{_literal(path)}\n" for path in prepared), "utf-8")
    (info / "attributes").write_text(ATTRIBUTES, "utf-8")
    for key, value in {
        "user.name": "agent",
        "user.email": "agent@localhost",
        "commit.gpgSign": "false",
        "core.logAllRefUpdates": "true",
        "gc.auto": "0",
    }.items():
        await git.out("config", "--local", key, value, call=call)
    await git.out("read-tree", commit, call=call)
    await git.run("update-index", "-q", "--refresh", call=call)


def _literal(path: str) -> str:
    """A path as a pattern of an ignore file that matches nothing else."""
    return _SPECIAL.sub(r"\\\1", path.strip("/"))
