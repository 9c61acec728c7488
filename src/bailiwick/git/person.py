"""The operator's own work tree as they see it: what their git tracks, calls unchanged, and ignores.

Their index is read, never written; filters that the repository configures are switched off for it.
"""

from __future__ import annotations

import os
from pathlib import Path

from bailiwick.config.variables import Environment
from bailiwick.git.objects import TreeEntry
from bailiwick.git.repository import Source
from bailiwick.git.runner import Git, GitOptions
from bailiwick.git.settings import as_path, read_settings
from bailiwick.git.snapshot import KnownEntries


async def known_of(git: Git, source: Source, environment: Environment) -> KnownEntries:
    """What their index and ignore files say.

    A file that their index calls unchanged counts as in the index: line ends and pointers of large files may be
    converted in a work tree, and what is unchanged must not look changed. Files that a sparse checkout leaves out
    count as there.
    """
    config = await _filters_off(git, source)
    call = GitOptions(git_dir=source.git_dir, work_tree=source.root, cwd=source.root, config=config)
    listed = [record for record in (await git.out("ls-files", "-z", "-t", "--stage", call=call)).split(b"\0") if record]
    changed = frozenset((await git.out("diff-files", "-z", "--name-only", "--no-ext-diff", call=call)).split(b"\0"))
    base, given = {}, {}
    for record in listed:
        head, _, raw = record.partition(b"\t")
        tag, mode, name, stage = head.decode().split(" ")
        path = os.fsdecode(raw)
        base[path] = TreeEntry(path, mode, name)
        if stage == "0" and (tag == "S" or raw not in changed):
            given[path] = base[path]
    return KnownEntries(base, given, await _ignore(git, source, environment))


async def add_worktree(git: Git, source: Source, branch: str, into: Path) -> None:
    """A further work tree of the operator's repository with a branch of theirs: no hook or filter is started for it.

    Raises `GitFailed` where the directory is taken, or the branch is checked out elsewhere or gone.
    """
    call = source.call(config=await _filters_off(git, source))
    await git.out("worktree", "add", "--quiet", "--", str(into), branch, call=call)


async def _filters_off(git: Git, source: Source) -> dict[str, str]:
    """Settings that empty every filter which the repository's configuration defines."""
    done = await git.run("config", "-z", "--name-only", "--get-regexp", r"^filter\.", call=source.call())
    names = [os.fsdecode(key) for key in done.stdout.split(b"\0") if key]
    return {key: "false" if key.endswith(".required") else "" for key in names}


async def _ignore(git: Git, source: Source, environment: Environment) -> bytes:
    """The patterns of their own that are in no file of the tree: of the person, and of the repository."""
    home = environment.home()
    found = await read_settings(git, environment, r"^core\.excludesfile$", source.common_dir)
    default = (environment.directory("XDG_CONFIG_HOME") or home / ".config") / "git" / "ignore"
    named = [as_path(value, home) for value in found.get("core.excludesfile", [])]
    files = ((named or [default])[-1], source.common_dir / "info" / "exclude")
    return b"\n".join(file.read_bytes() for file in files if file.is_file())
