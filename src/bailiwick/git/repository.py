"""The operator's repository: which states of it can be worked with, and in which words the others are refused.

Only questions that read are asked here, with every setting switched off that could make git start something.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from bailiwick.config.variables import Environment
from bailiwick.errors import NotFound, NotReady, Place
from bailiwick.git.runner import Git, GitOptions, said
from bailiwick.git.settings import read_settings

NO_REPOSITORY = "BW411"
BARE = "BW412"
UNBORN = "BW413"
FOREIGN = "BW414"
CORRUPT = "BW415"
SUBMODULES = "BW416"
LFS = "BW417"
UNKNOWN_REF = "BW418"

_OBJECT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Source:
    """A repository of the operator: the top of its work tree, the git dir of that tree and the one all trees share."""

    root: Path
    git_dir: Path
    common_dir: Path
    object_format: str
    shallow: bool

    def call(self, **options: object) -> GitOptions:
        """A call that works on its git dir and touches no work tree."""
        return GitOptions(git_dir=self.git_dir, cwd=self.common_dir, **options)  # type: ignore[arg-type]


def is_object_id(text: str) -> bool:
    """Whether a text is a whole object id."""
    return _OBJECT_ID.fullmatch(text) is not None


async def find_source(git: Git, repository: Path, environment: Environment) -> Source:
    """Look at the repository around a directory; `NotReady` says what is in the way and what to do about it."""
    place = Place(str(repository))
    if not repository.is_dir():
        raise NotReady("there is no such directory", place=place, code=NO_REPOSITORY)
    questions = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-object-format")
    call = GitOptions(cwd=repository, config={"safe.directory": "*"})
    done = await git.run("rev-parse", *questions, "--is-shallow-repository", call=call)
    if done.code != 0:
        raise _unusable(place, said(done))
    top, own, common, object_format, shallow = os.fsdecode(done.stdout).rsplit("\n", 5)[:5]
    source = Source(
        root=Path(top).resolve(),
        git_dir=Path(own).resolve(),
        common_dir=(repository / common).resolve(),
        object_format=object_format,
        shallow=shallow == "true",
    )
    await _check_owner(git, source, environment)
    return source


def _unusable(place: Place, words: str) -> NotReady:
    if "must be run in a work tree" in words or "cannot use bare repository" in words:
        return NotReady(
            "this is a bare repository: there is no work tree to start from",
            hint="clone it and start there",
            place=place,
            code=BARE,
        )
    if "not a git repository" in words:
        return NotReady(
            "this is not in a git repository",
            hint="start in a work tree, or `git init`",
            place=place,
            code=NO_REPOSITORY,
        )
    return NotReady(f"git can't read this repository: {words}", hint="run `git fsck`", place=place, code=CORRUPT)


async def _check_owner(git: Git, source: Source, environment: Environment) -> None:
    """A repository of another user is used only where the operator's own configuration of git calls it safe."""
    owners = {path.lstat().st_uid for path in (source.git_dir, source.common_dir)}
    if owners <= {os.geteuid()}:
        return
    safe = (await read_settings(git, environment, r"^safe\.directory$")).get("safe.directory", [])
    if "*" in safe or any(entry and Path(entry).resolve() == source.root for entry in safe):
        return
    raise NotReady(
        f"this repository belongs to another user (uid {', '.join(map(str, sorted(owners)))})",
        hint=f"if you trust it: git config --global --add safe.directory {source.root}",
        place=Place(str(source.root)),
        code=FOREIGN,
    )


async def find_commit(git: Git, source: Source, ref: str) -> str:
    """The id of the commit that a revision of the operator's repository names."""
    place = Place(str(source.root))
    if not ref or ref.startswith("-") or "\0" in ref or "\n" in ref:
        raise NotFound(f"{ref!r} is not the name of a commit", place=place, code=UNKNOWN_REF)
    call = source.call()
    done = await git.run("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}", call=call)
    found = os.fsdecode(done.stdout).strip()
    if done.code == 0 and is_object_id(found):
        return found
    if ref in ("HEAD", "@") and await _is_unborn(git, source):
        raise NotReady("the repository has no commit yet", hint="make the first commit", place=place, code=UNBORN)
    words = said(done)
    if re.search(r"corrupt|unable to read|bad object|missing object|broken", words):
        raise NotReady(f"git can't read '{ref}': {words}", hint="run `git fsck`", place=place, code=CORRUPT)
    raise NotFound(f"the repository has no commit '{ref}'", hint="see `git branch -a`", place=place, code=UNKNOWN_REF)


async def unreadable(git: Git, source: Source, words: str) -> NotReady:
    """The error for a history that could not be read in full."""
    done = await git.run("config", "--get", "extensions.partialClone", call=source.call())
    hint = "fetch what is missing: git fetch --refetch --no-filter" if done.code == 0 else "run `git fsck`"
    what = f"git can't read the history of this repository: {words}"
    return NotReady(what, hint=hint, place=Place(str(source.root)), code=CORRUPT)


async def _is_unborn(git: Git, source: Source) -> bool:
    """Whether HEAD names a branch that was never made; one that is there and can't be read is damaged instead."""
    done = await git.run("symbolic-ref", "-q", "HEAD", call=source.call())
    ref = os.fsdecode(done.stdout).strip()
    if done.code != 0 or not ref.startswith("refs/") or (source.common_dir / ref).exists():
        return False
    packed = source.common_dir / "packed-refs"
    return not packed.exists() or f" {ref}\n".encode() not in packed.read_bytes()


async def checked_out(git: Git, source: Source) -> frozenset[str]:
    """The full names of all branches that some work tree of the repository has checked out."""
    text = os.fsdecode(await git.out("worktree", "list", "--porcelain", call=source.call()))
    return frozenset(line.removeprefix("branch ") for line in text.splitlines() if line.startswith("branch "))
