"""A project as it was when a call began, and throwaway copies of it. Nothing here ever writes into the project.

Files are kept as objects of git: in the vault of a repository, else in a git dir of this call's own. So a copy is made
and compared without trusting anything that a model left in one: see `fence.snapshot`.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.config.variables import Environment
from bailiwick.errors import NotReady
from bailiwick.git.objects import Objects, TreeChange, TreeEntry
from bailiwick.git.repository import NO_REPOSITORY
from bailiwick.git.runner import Git, GitFailed
from bailiwick.git.snapshot import KnownEntries, TreeBounds, take
from bailiwick.git.store import ATTRIBUTES, GitStore
from bailiwick.removal import sweep

BOUNDS = TreeBounds(files=100_000, total=2048 << 20)
"""What a project may hold at most, ignored files left out."""
BLOB = 64 << 20
LARGEST_SOURCE = 256 << 10
IGNORED = b"""__pycache__/
*.pyc
.pytest_cache/
.mypy_cache/
.ruff_cache/
.hypothesis/
.tox/
.nox/
.venv/
venv/
node_modules/
.git/
target/debug/
"""
"""What is never part of a project unless its repository tracks it: caches, and what is installed."""


@dataclass(slots=True)
class Copies:
    """The files of `root` as the tree `base`; scratch copies are made in `folder`, which is removed by `close`."""

    root: Path
    folder: Path
    objects: Objects
    base: str
    ignore: bytes = IGNORED
    _known: dict[str, TreeEntry] = field(default_factory=dict)

    @classmethod
    async def take(cls, root: Path, state: Path, scratch: Path, cancel: asyncio.Event | None = None) -> Copies:
        """Take the project as it is now; `NotReady` says what is in the way, such as its size."""
        folder = scratch / f"skill-{secrets.token_hex(6)}"
        folder.mkdir(mode=0o700)
        try:
            objects, base = await _from_repository(root, state, cancel) or await _from_folder(root, folder, cancel)
            copies = cls(root, folder, objects, base)
            copies._known = {entry.path: entry for entry in await objects.entries(base)}
        except BaseException:
            await asyncio.to_thread(sweep, folder)
            raise
        return copies

    async def checkout(self, tree: str) -> Path:
        """A fresh directory with the files of a tree: exact bytes, no `.git`."""
        into = self.folder / f"tree-{secrets.token_hex(6)}"
        into.mkdir(mode=0o700)
        with self.objects.scratch_index() as index:
            call = self.objects.call(work_tree=into, index=index)
            await self.objects.git.out("read-tree", "--end-of-options", tree, call=call)
            await self.objects.git.out("checkout-index", "--all", "--quiet", call=call)
        return into

    async def survey(self, work: Path) -> str:
        """The tree of what is in a copy now; what the ignore files leave out is not in it."""
        known = KnownEntries(self._known, ignore=self.ignore)
        return (await take(self.objects, work.resolve(), exclude=(), known=known, bounds=BOUNDS)).tree

    async def changes(self, tree: str) -> tuple[TreeChange, ...]:
        """What differs between the project and a tree."""
        return () if tree == self.base else await self.objects.changes(self.base, tree)

    async def read(self, tree: str, path: str) -> bytes | None:
        """The bytes of a file; None where there is none."""
        return await self.objects.blob(tree, path, BLOB)

    async def read_some(self, tree: str, paths: Iterable[str]) -> dict[str, bytes]:
        """The bytes of several files at once; what is missing or large is left out."""
        return await self.objects.blobs(tree, paths, LARGEST_SOURCE)

    async def files(self, tree: str) -> tuple[str, ...]:
        """Every path of a tree."""
        return await self.objects.files(tree)

    def tracks(self, names: Iterable[str]) -> bool:
        """Whether some of these names are of the project itself, as files or as folders of files."""
        wanted = frozenset(names)
        return any(path.partition("/")[0] in wanted for path in self._known)

    async def discard(self, work: Path) -> None:
        """Remove one copy."""
        await asyncio.to_thread(sweep, work)

    async def close(self) -> None:
        """Remove everything; safe to call twice."""
        await asyncio.to_thread(sweep, self.folder)


async def _from_repository(root: Path, state: Path, cancel: asyncio.Event | None) -> tuple[Objects, str] | None:
    """The tree of a directory in a git repository; None where it is in none, or ignored there."""
    try:
        git_store = await GitStore.open(state, root, cancel=cancel)
    except NotReady as error:
        if error.code == NO_REPOSITORY:
            return None
        raise
    tree = (await git_store.survey(git_store.repository, bounds=BOUNDS)).tree
    inner = root.relative_to(git_store.repository).as_posix()
    if inner == ".":
        return git_store, tree
    entries = await git_store.entries(tree, (inner,))
    if not entries or entries[0].path == inner:
        return None
    below = [TreeEntry(entry.path[len(inner) + 1 :], entry.mode, entry.id) for entry in entries]
    return git_store, await git_store.edit("", (), below)


async def _from_folder(root: Path, folder: Path, cancel: asyncio.Event | None) -> tuple[Objects, str]:
    """The tree of a directory that is in no repository; its objects are gone with the call."""
    git = Git(Environment().text("PATH") or os.defpath, cancel)
    await git.check_version()
    own = folder / "objects.git"
    await git.out("init", "--bare", "--quiet", "--template=", str(own))
    (own / "info").mkdir(exist_ok=True)
    (own / "info" / "attributes").write_text(ATTRIBUTES, "utf-8")
    objects = Objects(git, own)
    try:
        return objects, (await take(objects, root, exclude=(), known=KnownEntries(ignore=IGNORED), bounds=BOUNDS)).tree
    except GitFailed as error:
        if error.kind != "tree":
            raise
        raise NotReady(
            error.what,
            hint="name the project's own directory, or list what is not part of it in a .gitignore there",
            place=error.place,
            code=error.code,
        ) from error
