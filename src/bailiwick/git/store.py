"""Our own git dir for one repository of the operator: the only place where we make trees and commits.

Nothing an agent writes is ever read as a git dir. Objects come from the operator's repository by a fetch in which
neither side's configuration can start anything; an agent's files come by `snapshot`; results go out by `branch` and
`push`, and both touch only `agent/…`.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from bailiwick.config.paths import make_private
from bailiwick.config.variables import Environment
from bailiwick.errors import NotFound, NotReady, Place, UsageError
from bailiwick.git import publish
from bailiwick.git.loose import adopt
from bailiwick.git.names import is_text, shown
from bailiwick.git.objects import FILE, PROGRAM, SUBMODULE, Objects
from bailiwick.git.person import known_of
from bailiwick.git.publish import PushRemote
from bailiwick.git.repository import (
    LFS,
    SUBMODULES,
    UNBORN,
    Source,
    find_commit,
    find_source,
    is_object_id,
    unreadable,
)
from bailiwick.git.runner import Git, GitFailed, file_url, said
from bailiwick.git.settings import signing
from bailiwick.git.snapshot import KnownEntries, Snapshot, TreeBounds, take
from bailiwick.ids import digest
from bailiwick.locks import held

FOLDER = "git"
ATTRIBUTES = "* -text -crlf -eol -ident -filter -working-tree-encoding !diff !merge !conflict-marker-size !whitespace\n"
"""What holds above every attributes file of a tree: bytes stay as they are, and no file can hide from a difference."""

_PERSON = re.compile(r" *([^<>\n\r\0]*?) *<([^<>\s\0]+)> *")


class GitStore(Objects):
    """The git dir that is ours, with the repository it belongs to."""

    def __init__(self, git: Git, source: Source, git_dir: Path, environment: Environment) -> None:
        super().__init__(git, git_dir)
        self.environment = environment
        self.source = source
        self.repository = source.root

    @classmethod
    async def open(
        cls,
        state: Path,
        repository: Path,
        *,
        environment: Environment | None = None,
        cancel: asyncio.Event | None = None,
    ) -> GitStore:
        """The vault of the repository around a directory, made if there is none; `NotReady` where it can't be used."""
        env = environment or Environment()
        git = Git(env.text("PATH") or os.defpath, cancel)
        await git.check_version()
        source = await find_source(git, repository, env)
        git_dir = state / FOLDER / f"{digest(os.fsencode(source.common_dir))[:24]}.git"
        if not (git_dir / "HEAD").exists():
            await _make(git, git_dir, source.object_format)
        return cls(git, source, git_dir, env)

    async def resolve(self, ref: str) -> str:
        """The id of the commit that a revision names; its whole history is in the vault then.

        A revision is the operator's, or the id of a commit that was made here.
        """
        if is_object_id(ref) and await self._has(f"refs/bailiwick/seen/{ref}"):
            return ref
        try:
            commit = await find_commit(self.git, self.source, ref)
        except NotFound:
            if is_object_id(ref) and await self._has(ref):
                return ref
            raise
        if not await self._has(f"refs/bailiwick/seen/{commit}"):
            await self._bring(commit)
        return commit

    async def _has(self, commit: str) -> bool:
        return (await self.git.run("cat-file", "-e", f"{commit}^{{commit}}", call=self.call())).code == 0

    async def _bring(self, commit: str) -> None:
        """Fetch a commit with its history from the operator's repository; all of it, or nothing."""
        options = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--update-shallow", "--quiet")
        config = {"fetch.unpackLimit": "1"}
        call = self.call(transports=("file",), timeout=3600.0, config=config)
        from_to = (file_url(self.source.common_dir), f"{commit}:refs/bailiwick/seen/{commit}")
        async with held(self.git_dir / "fetch.lock"):
            done = await self.git.run("fetch", *options, self.git.serving, *from_to, call=call)
        if done.code != 0:
            raise await unreadable(self.git, self.source, said(done))

    async def checkout(self, treeish: str, into: Path) -> None:
        """Write the files of a tree into an empty directory, which is made if need be: exact bytes, no `.git`."""
        into.mkdir(parents=True, exist_ok=True)
        if into.is_symlink() or any(into.iterdir()):
            raise GitFailed("refused", "files are checked out into an empty directory only", place=Place(str(into)))
        with self.scratch_index() as index:
            call = self.call(work_tree=into, index=index)
            await self.git.out("read-tree", "--end-of-options", treeish, call=call)
            await self.git.out("checkout-index", "--all", "--quiet", call=call)
        await self.remember(into, treeish)

    async def snapshot(self, work: Path, *, exclude: tuple[str, ...] = (), base: str | None = None) -> str:
        """The tree of all files below a directory that are not ignored; see `survey`."""
        return (await self.survey(work, exclude=exclude, base=base)).tree

    async def survey(
        self,
        work: Path,
        *,
        exclude: tuple[str, ...] = (),
        base: str | None = None,
        bounds: TreeBounds | None = None,
    ) -> Snapshot:
        """The tree of all files below a directory that are not ignored, and what was left out.

        What `base` has is never ignored. Without one it is the tree that was checked out there, or, for the
        operator's own work tree, their index.
        """
        work = work.resolve()
        known = await self._known(work, base)
        return await take(self, work, exclude=exclude, known=known, bounds=bounds or TreeBounds())

    async def _known(self, work: Path, base: str | None) -> KnownEntries:
        if base is None and work == self.source.root:
            with suppress(NotReady):  # no commit yet: all that is staged comes one by one
                await self.resolve("HEAD")
            known = await known_of(self.git, self.source, self.environment)
            files = (entry.id for entry in known.given.values() if entry.mode != SUBMODULE)
            await adopt(self, self.source.call(), frozenset(files))
            return known
        if base is None:
            with suppress(FileNotFoundError):
                base = os.fsdecode(self._note_of(work).read_bytes()).partition("\n")[0]
        return KnownEntries({entry.path: entry for entry in await self.entries(base)}) if base else KnownEntries()

    def _note_of(self, work: Path) -> Path:
        return self.git_dir / "checkouts" / digest(os.fsencode(work.resolve()))[:24]

    async def remember(self, work: Path, treeish: str) -> None:
        """Note which tree the files of a directory come from."""
        note = self._note_of(work)
        note.parent.mkdir(exist_ok=True)
        temporary = note.with_suffix(f".{os.getpid()}")
        temporary.write_bytes(f"{await self.tree_of(treeish)}\n".encode() + os.fsencode(work.resolve()))
        temporary.replace(note)

    def forget(self, work: Path) -> None:
        """Drop the note of a directory that is gone."""
        self._note_of(work).unlink(missing_ok=True)

    async def tags_of(self, commit: str) -> tuple[str, ...]:
        """The tags of the operator's repository that lead to a commit, the nearest first."""
        options = ("--format=%(refname:lstrip=2)", "--sort=-creatordate", f"--merged={commit}")
        done = await self.git.run("for-each-ref", *options, "refs/tags", call=self.source.call())
        return tuple(os.fsdecode(done.stdout).splitlines()) if done.code == 0 else ()

    async def is_unborn(self) -> bool:
        """Whether the operator's repository has no commit yet."""
        try:
            await find_commit(self.git, self.source, "HEAD")
        except NotReady as error:
            return error.code == UNBORN
        except NotFound:
            return False
        return False

    async def commit(
        self, tree: str, parents: tuple[str, ...], message: str, author: str, *, when: float, sign: bool = False
    ) -> str:
        """Make a commit, with commit signing where asked; the author is `Name <address>`, `when` is in seconds."""
        env = _person("AUTHOR", author, when) | _person("COMMITTER", author, when)
        given = [word for parent in parents for word in ("-p", parent)]
        config: dict[str, str] = {}
        if sign:
            config, variables = await signing(self.git, self.environment, self.source.common_dir)
            given.append("-S")
            env |= variables
        call = self.call(stdin=message.encode("utf-8", "replace") or b"\n", env=env, config=config)
        return await self.git.line("commit-tree", tree, *given, call=call)

    async def check(self, commit: str, *, lfs: bool = False, submodules: bool = False) -> None:
        """Raise `NotReady` for a commit whose files we can't hand out as people know them; the flags allow it."""
        place = Place(str(self.repository))
        entries = await self.entries(commit)
        links = [entry.path for entry in entries if entry.mode == SUBMODULE]
        if links and not submodules:
            raise NotReady(
                f"the repository has submodules ('{shown(links[0])}'), whose files would be missing",
                hint="they are not supported: start from a commit without them, with --base",
                place=place,
                code=SUBMODULES,
            )
        if not lfs and await self.is_lfs(commit):
            raise NotReady(
                "the repository keeps files in Git LFS, of which only the pointers would be there",
                hint="it is not supported: start from a commit without it, with --base",
                place=place,
                code=LFS,
            )
        odd = [entry.path for entry in entries if not is_text(entry.path)]
        if odd:
            raise GitFailed("tree", f"the name of '{shown(odd[0])}' is not UTF-8", "rename the file", place=place)

    async def is_lfs(self, treeish: str) -> bool:
        """Whether attributes of a tree hand files over to Git LFS."""
        found = [entry for entry in await self.entries(treeish) if entry.mode in (FILE, PROGRAM)]
        named = [entry.path for entry in found if entry.path.rpartition("/")[2] == ".gitattributes"]
        texts = [await self.blob(treeish, path) or b"" for path in named]
        return any(b"filter=lfs" in text for text in texts)

    async def keep(self, run: str, commit: str) -> None:
        """Keep a commit of a run from being cleaned away."""
        await self.git.out("update-ref", f"{_run_refs(run)}/{commit}", commit, call=self.call())

    async def kept(self, run: str) -> tuple[str, ...]:
        """The commits that are kept for a run."""
        raw = await self.git.out("for-each-ref", "--format=%(objectname)", _run_refs(run), call=self.call())
        return tuple(os.fsdecode(raw).split())

    async def release(self, run: str) -> None:
        """Let go of all commits of a run."""
        call = self.call()
        raw = await self.git.out("for-each-ref", "--format=delete %(refname)", _run_refs(run), call=call)
        await self.git.out("update-ref", "--stdin", call=self.call(stdin=raw))

    async def branch(self, name: str, commit: str, *, expect: str | None) -> None:
        """Make (`expect` None) or move a branch `agent/…` of the operator's repository, if it is where we expect it."""
        await publish.set_branch(self, self.source, name=name, commit=commit, expect=expect)

    async def branch_value(self, name: str) -> str | None:
        """Where a branch of the operator's repository stands."""
        return await publish.ref_value(self, self.source, f"refs/heads/{name}")

    async def branches_at(self, commit: str) -> tuple[str, ...]:
        """The branches `agent/…` of the operator's repository that stand on a commit."""
        words = ("for-each-ref", "--format=%(refname:lstrip=2)", f"--points-at={commit}", "refs/heads/agent/")
        done = await self.git.run(*words, call=self.source.call())
        return tuple(os.fsdecode(done.stdout).splitlines()) if done.code == 0 else ()

    async def delete_branch(self, name: str, *, expect: str) -> None:
        """Delete a branch `agent/…` of the operator's repository, if it is where we expect it."""
        await publish.drop_branch(self, self.source, name, expect)

    async def push(self, remote: PushRemote, commit: str, branch: str, *, expect: str | None) -> None:
        """Put the branch `agent/…` of a remote repository on a commit, if it is where we expect it."""
        await publish.push(self, remote, commit=commit, branch=branch, expect=expect)

    async def fetch_remote(self, remote: PushRemote, ref: str) -> str:
        """Bring a branch, or `HEAD`, of a remote repository into the vault; the id of its commit."""
        async with held(self.git_dir / "fetch.lock"):
            return await publish.fetch(self, remote, ref)

    async def remote_branch(self, remote: PushRemote, branch: str) -> str | None:
        """Where a branch of a remote repository stands now."""
        return await publish.remote_value(self, remote, branch)


def _run_refs(run: str) -> str:
    return f"refs/bailiwick/runs/{digest(run)[:24]}"


def _person(role: str, text: str, when: float) -> dict[str, str]:
    match = _PERSON.fullmatch(text)
    if match is None or not match[1]:
        raise UsageError(f"'{text}' does not name a person", hint="write it like: Name <name@example.org>")
    return {
        f"GIT_{role}_NAME": match[1],
        f"GIT_{role}_EMAIL": match[2],
        f"GIT_{role}_DATE": f"@{int(when)} +0000",
    }


async def _make(git: Git, git_dir: Path, object_format: str) -> None:
    """Make an empty vault, one at a time and under another name until it is whole; what a crash left is made again."""
    made = make_private(git_dir.parent) / f"new-{git_dir.name}"
    async with held(git_dir.with_suffix(".lock")):
        if (git_dir / "HEAD").exists():
            return
        try:
            shutil.rmtree(made, ignore_errors=True)
            await git.out("init", "--bare", "--quiet", "--template=", f"--object-format={object_format}", str(made))
            (made / "info").mkdir(exist_ok=True)
            (made / "info" / "attributes").write_text(ATTRIBUTES, "utf-8")
            made.rename(git_dir)
        finally:
            shutil.rmtree(made, ignore_errors=True)
