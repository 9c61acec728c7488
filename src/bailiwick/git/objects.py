"""Trees and blobs of the vault: what is in them, how two differ, and new ones made of old ones."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from bailiwick.git.names import is_git_name
from bailiwick.git.runner import Git, GitFailed, GitOptions, failure, said

FILE = "100644"
PROGRAM = "100755"
LINK = "120000"
SUBMODULE = "160000"
NOTHING = "000000"
BLOB_LIMIT = 64 << 20

_ARGUMENTS = 200
_KEPT = 16
"""So many listings of trees are kept at most: a gate asks for the same few trees again and again."""
_SMALL = 256 << 10
_HELD = 16 << 20
"""Bytes of files that are held at most, each not larger than `_SMALL`: a gate reads the same few again and again."""
_FULL_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")

Status = Literal["A", "M", "D", "T"]


@dataclass(frozen=True, slots=True)
class TreeChange:
    """One path that differs between two trees; a mode is git's six digits, `000000` on the side without the path.

    The counts are lines, None for a binary file.
    """

    path: str
    status: Status
    old_mode: str
    new_mode: str
    added: int | None
    deleted: int | None


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file, link or submodule in a tree."""

    path: str
    mode: str
    id: str


class Objects:
    """The objects in one git dir that is ours."""

    def __init__(self, git: Git, git_dir: Path) -> None:
        self.git = git
        self.git_dir = git_dir
        self._listed: dict[str, tuple[TreeEntry, ...]] = {}
        self._trees: dict[str, str] = {}
        self._blobs: dict[str, bytes] = {}
        self._bytes = 0

    def call(self, **options: object) -> GitOptions:
        """A call that works on this git dir."""
        return GitOptions(git_dir=self.git_dir, **options)  # type: ignore[arg-type]

    async def entries(self, treeish: str, paths: Iterable[str] = ()) -> tuple[TreeEntry, ...]:
        """Everything in a tree, or what is at and below some paths of it."""
        wanted = tuple(paths)
        if _FULL_ID.fullmatch(treeish):
            found = await self._whole(treeish)
        else:
            chosen = wanted if len(wanted) <= _ARGUMENTS else ()
            found = await self._list(treeish, chosen)
        return found if not wanted else tuple(_within(found, frozenset(wanted)))

    async def files(self, treeish: str) -> tuple[str, ...]:
        """The paths of all files of a tree."""
        return tuple(entry.path for entry in await self.entries(treeish))

    async def _whole(self, treeish: str) -> tuple[TreeEntry, ...]:
        """All of a tree that is named by its id, and so is always the same."""
        found = self._listed.pop(treeish, None)
        if found is None:
            found = await self._list(treeish)
        self._listed[treeish] = found
        while len(self._listed) > _KEPT:
            del self._listed[next(iter(self._listed))]
        return found

    async def tree_of(self, treeish: str) -> str:
        """The id of the tree that a commit has, or of that tree itself."""
        found = self._trees.get(treeish)
        if found is None:
            words = ("rev-parse", "--verify", "--end-of-options", f"{treeish}^{{tree}}")
            found = await self.git.line(*words, call=self.call())
            if _FULL_ID.fullmatch(treeish):
                self._trees[treeish] = found
        return found

    async def _list(self, treeish: str, paths: tuple[str, ...] = ()) -> tuple[TreeEntry, ...]:
        chosen = ("--", *paths) if paths else ()
        raw = await self.git.out("ls-tree", "-r", "-z", "--full-tree", _revision(treeish), *chosen, call=self.call())
        return tuple(_entry(record) for record in raw.split(b"\0") if record)

    async def blob(self, treeish: str, path: str, limit: int = BLOB_LIMIT) -> bytes | None:
        """The bytes of a file in a tree, of a link its target; None where the tree has no file of that path."""
        found = [entry for entry in await self.entries(treeish, (path,)) if entry.path == path]
        if not found or found[0].mode == SUBMODULE:
            return None
        held = self._blobs.get(found[0].id)
        if held is None or len(held) > limit:
            held = await self.git.out("cat-file", "blob", found[0].id, call=self.call(keep=limit))
            self._hold(found[0].id, held)
        return held

    def _hold(self, name: str, data: bytes) -> None:
        """Hold the bytes of a file, and no longer those that were held for the longest."""
        if len(data) > _SMALL or name in self._blobs:
            return
        self._blobs[name] = data
        self._bytes += len(data)
        while self._bytes > _HELD:
            self._bytes -= len(self._blobs.pop(next(iter(self._blobs))))

    async def blobs(self, treeish: str, paths: Iterable[str], limit: int = 1 << 20) -> dict[str, bytes]:
        """The bytes of some files of a tree, all of them by one process; what is larger than `limit` is left out."""
        wanted = set(paths)
        listed = [entry for entry in await self.entries(treeish) if entry.path in wanted]
        files = [entry for entry in listed if entry.mode in (FILE, PROGRAM)]
        held = {entry.path: self._blobs[entry.id] for entry in files if entry.id in self._blobs}
        out = {path: data for path, data in held.items() if len(data) <= limit}
        found = [entry for entry in files if entry.path not in held]
        if not found:
            return out
        read = await batch(self.git, [entry.id for entry in found], self.call(keep=1 << 28))
        for entry, (_, data) in zip(found, read, strict=True):
            if len(data) <= limit:
                out[entry.path] = data
                self._hold(entry.id, data)
        return out

    async def changes(self, old: str, new: str) -> tuple[TreeChange, ...]:
        """What differs between two trees, by path; a moved file is one that went and one that came."""
        options = ("-r", "-z", "--raw", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-abbrev")
        raw = await self.git.out("diff-tree", *options, _revision(old), _revision(new), call=self.call())
        return tuple(_changes(iter(raw.split(b"\0"))))

    async def diff(self, old: str, new: str, paths: tuple[str, ...] = (), limit: int = 1 << 20) -> str:
        """The difference of two trees as unified text, cut where it is longer than `limit` bytes."""
        options = ("-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--no-commit-id")
        prefixes = ("--src-prefix=a/", "--dst-prefix=b/")
        args = ("diff-tree", *options, *prefixes, _revision(old), _revision(new), "--", *paths)
        done = await self.git.run(*args, call=self.call(keep=limit))
        if done.code != 0 and not done.truncated:
            await self.git.out(*args, call=self.call())
        text = done.stdout.decode("utf-8", "replace")
        return text + "\n… the rest of the difference is left out\n" if done.truncated else text

    async def store(self, data: bytes) -> str:
        """Keep some bytes; their id."""
        return await self.git.line("hash-object", "-w", "-t", "blob", "--stdin", call=self.call(stdin=data))

    async def edit(self, tree: str, remove: tuple[str, ...], add: Iterable[TreeEntry]) -> str:
        """A new tree: without some paths (and all below them), with some entries."""
        with self.scratch_index() as index:
            call = self.call(index=index)
            if tree:
                await self.git.out("read-tree", _revision(tree), call=call)
            gone = await self.entries(tree, remove) if tree and remove else ()
            lines = [f"0 {entry.id}\t".encode() + os.fsencode(entry.path) for entry in gone]
            lines += [f"{entry.mode} {entry.id}\t".encode() + os.fsencode(entry.path) for entry in add]
            if lines:
                await self._put(index, b"\0".join(lines) + b"\0")
            return await self.git.line("write-tree", call=call)

    async def _put(self, index: Path, records: bytes) -> None:
        """Write records into an index; git leaves out a path that it finds unsafe, which is an error here."""
        call = self.call(index=index, stdin=records)
        done = await self.git.run("update-index", "-z", "--index-info", call=call)
        if done.code != 0:
            raise failure("update-index", done, call)
        if b"Ignoring path" in done.stderr:
            raise GitFailed("tree", f"git does not take every path: {said(done)}")

    async def replace(self, tree: str, paths: Mapping[str, str | None]) -> str:
        """A new tree in which each path is as in the given tree, and gone where that has no such path."""
        sources: dict[str, list[str]] = {}
        for path, source in paths.items():
            if source is not None:
                sources.setdefault(source, []).append(_path(path))
        add = [entry for source, wanted in sources.items() for entry in await self.entries(source, tuple(wanted))]
        return await self.edit(tree, tuple(map(_path, paths)), add)

    async def write(self, tree: str, files: Mapping[str, bytes | None]) -> str:
        """A new tree in which each path has these bytes, and is gone where they are None; modes of files stay."""
        paths = tuple(map(_path, files))
        known = {entry.path: entry.mode for entry in await self.entries(tree, paths)} if paths else {}
        add = []
        for path, data in files.items():
            if data is not None:
                mode = PROGRAM if known.get(path) == PROGRAM else FILE
                add.append(TreeEntry(path, mode, await self.store(data)))
        return await self.edit(tree, tuple(files), add)

    @contextmanager
    def scratch_index(self) -> Iterator[Path]:
        """The path of an index that nobody else uses and that is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="index-", dir=self.git_dir) as folder:
            yield Path(folder) / "index"


async def batch(git: Git, ids: list[str], call: GitOptions) -> list[tuple[str, bytes]]:
    """The kind and the bytes of some objects, in their order, all of them by one process."""
    asked = "".join(f"{name}\n" for name in ids).encode()
    raw = await git.out("cat-file", "--batch", call=replace(call, stdin=asked)) if ids else b""
    read, at = [], 0
    while at < len(raw):
        end = raw.index(b"\n", at)
        _name, kind, size = raw[at:end].decode().split(" ")
        read.append((kind, raw[end + 1 : end + 1 + int(size)]))
        at = end + 1 + int(size) + 1
    return read


def _revision(text: str) -> str:
    if not text or text.startswith("-") or "\0" in text or "\n" in text:
        raise GitFailed("refused", f"{text!r} does not name a tree")
    return text


def _path(text: str) -> str:
    """A path within a tree; raises where it could mean anything else."""
    parts = text.split("/")
    if "\0" in text or any(part in ("", ".", "..") or is_git_name(part) for part in parts):
        raise GitFailed("refused", f"{text!r} is not a path within a tree")
    return text


def _within(entries: Iterable[TreeEntry], paths: frozenset[str]) -> Iterator[TreeEntry]:
    """Those at or below one of some paths."""
    for entry in entries:
        parts = entry.path.split("/")
        if any("/".join(parts[:depth]) in paths for depth in range(1, len(parts) + 1)):
            yield entry


def _entry(record: bytes) -> TreeEntry:
    head, _, path = record.partition(b"\t")
    mode, _kind, name = head.decode().split(" ")
    return TreeEntry(os.fsdecode(path), mode, name)


def _changes(fields: Iterator[bytes]) -> Iterator[TreeChange]:
    """Read git's raw records followed by its line counts."""
    found: list[tuple[str, str, str, Status]] = []
    counts: dict[str, tuple[int | None, int | None]] = {}
    for field in fields:
        if field.startswith(b":"):
            old_mode, new_mode, _old, _new, status = field[1:].decode().split(" ")
            found.append((os.fsdecode(next(fields)), old_mode, new_mode, cast("Status", status[0])))
        elif field:
            added, deleted, path = field.split(b"\t", 2)
            counts[os.fsdecode(path)] = (_count(added), _count(deleted))
    for name, old_mode, new_mode, status in found:
        added_lines, deleted_lines = counts.get(name, (None, None))
        yield TreeChange(
            name, status=status, old_mode=old_mode, new_mode=new_mode, added=added_lines, deleted=deleted_lines
        )


def _count(text: bytes) -> int | None:
    return None if text == b"-" else int(text)
