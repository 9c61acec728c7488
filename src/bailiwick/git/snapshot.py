"""Takes the files below a directory into the vault. The directory is an agent's: nothing in it is trusted.

We walk it ourselves, never through a symbolic link, and hash every file; git only says which paths the ignore files
of the tree leave out. A `.git` of any kind, at any depth, is never opened: the other files of a repository within the
tree are files like any other. Ignore files of the tree count, also where the agent changed them: what they leave out
is neither tested nor proposed, and a change to them is a change that people see.
"""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.errors import Place
from bailiwick.git.loose import LooseObjects, open_folder
from bailiwick.git.names import is_forbidden_link, is_git_name, is_text, shown
from bailiwick.git.objects import FILE, LINK, PROGRAM, SUBMODULE, Objects, TreeEntry
from bailiwick.git.runner import GitFailed, said

MB = 1024**2
NOTES = 200
LONGEST_PATH = 4000
IGNORE_FILE = ".gitignore"
IGNORE_SIZE = 1 * MB
IGNORE_TIME = 60.0
"""Seconds in which git has to have matched a level of the tree: patterns can be made to take ages."""


@dataclass(frozen=True, slots=True)
class TreeBounds:
    """How much a tree may hold, so that none fills our disk: files, bytes in all and in one file, depth, entries."""

    files: int = 200_000
    total: int = 4096 * MB
    one: int = 100 * MB
    depth: int = 256
    looked_at: int = 1_000_000


@dataclass(frozen=True, slots=True)
class KnownEntries:
    """What is known of a tree beforehand.

    Paths in `base` are taken whatever the ignore files say; those in `given` are taken as they are there, unread.
    `ignore` are more patterns, in the language of ignore files.
    """

    base: Mapping[str, TreeEntry] = field(default_factory=dict)
    given: Mapping[str, TreeEntry] = field(default_factory=dict)
    ignore: bytes = b""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A tree of the vault; `notes` say what of the directory is not in it, and what else people should know."""

    tree: str
    files: int
    size: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    path: str
    kind: int
    size: int
    executable: bool


@dataclass(slots=True)
class _Walk:
    """One walk over a directory."""

    work: Path
    exclude: frozenset[str]
    bounds: TreeBounds
    known: KnownEntries
    notes: list[str] = field(default_factory=list)
    seen: int = 0

    def note(self, path: str, why: str) -> None:
        """Say what was left out; of very many only the first."""
        if len(self.notes) < NOTES:
            self.notes.append(f"{shown(path)}: {why}")
        elif len(self.notes) == NOTES:
            self.notes.append("more was left out")

    def excludes(self, path: str) -> bool:
        """Whether a path, or a directory that it is in, is left out."""
        return path in self.exclude or any(parent in self.exclude for parent in _parents(path))

    def list_all(self, folders: list[str]) -> list[_Found]:
        """What is directly in some folders."""
        return [found for folder in folders for found in self._list(folder)]

    def _list(self, folder: str) -> Iterator[_Found]:
        handle = open_folder(self.work, folder)
        if handle is None:
            self.note(folder or ".", "it can't be entered")
            return
        try:
            with os.scandir(handle) as entries:
                for entry in entries:
                    self.seen += 1
                    if self.seen > self.bounds.looked_at:
                        raise _too_much(self.work, f"it has more than {self.bounds.looked_at} entries")
                    found = self._judge(f"{folder}/{entry.name}" if folder else entry.name, entry)
                    if found is not None:
                        yield found
        finally:
            os.close(handle)

    def _check_ignore_file(self, path: str, kind: int, size: int) -> None:
        """Refuse what git would hang on when it reads the ignore files."""
        if kind not in (stat.S_IFREG, stat.S_IFLNK) or size > IGNORE_SIZE:
            why = f"'{shown(path)}' is not an ordinary file of at most {IGNORE_SIZE // MB} MB"
            raise GitFailed("tree", f"the tree can't be taken: {why}", "remove it", place=Place(str(self.work)))

    def _judge(self, path: str, entry: os.DirEntry[str]) -> _Found | None:
        """What an entry is, None where it can't or must not be taken."""
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as error:
            self.note(path, f"it can't be read: {error.strerror}")
            return None
        kind = stat.S_IFMT(status.st_mode)
        if entry.name == IGNORE_FILE and kind != stat.S_IFDIR:
            self._check_ignore_file(path, kind, status.st_size)
        if path in self.exclude or path == ".git":
            return None
        why = _refusal(path, entry.name, kind)
        if why:
            self.note(path, why)
            return None
        return _Found(path, kind, status.st_size, bool(status.st_mode & 0o100))


def _refusal(path: str, name: str, kind: int) -> str:
    """Why an entry can't be taken, empty where it can."""
    if is_git_name(name):
        return "it has git's own name and is never read"
    if not is_text(name):
        return "the name is not UTF-8"
    if kind not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
        return "it is neither a file, nor a link, nor a directory"
    if kind == stat.S_IFLNK and is_forbidden_link(name):
        return "git takes no link of this name"
    return "the path is too long" if len(path.encode()) > LONGEST_PATH else ""


async def take(
    objects: Objects, work: Path, exclude: tuple[str, ...], known: KnownEntries, bounds: TreeBounds
) -> Snapshot:
    """Bring all files below a directory that are not ignored into the vault.

    `exclude` are paths below the directory that are left out with all that is in them. Raises `GitFailed` of kind
    `tree` where it holds more than the bounds.
    """
    if (handle := open_folder(work, "")) is None:
        raise GitFailed("tree", "the directory can't be entered", place=Place(str(work)))
    os.close(handle)
    walk = _Walk(work, frozenset(path.strip("/") for path in exclude), bounds, known)
    files = await _collect(objects, walk)
    _check(walk, files)
    entries = {entry.path: entry for entry in await _store(objects, walk, files)}
    entries |= {path: entry for path, entry in known.given.items() if not walk.excludes(path)}
    for path in sorted(known.base.keys() | entries.keys()):
        if path.rpartition("/")[2] == IGNORE_FILE and known.base and known.base.get(path) != entries.get(path):
            walk.note(path, "it is not as in the base, so other files may be ignored")
    tree = await objects.edit("", (), entries.values())
    return Snapshot(tree, len(entries), sum(found.size for found in files), tuple(walk.notes))


def _check(walk: _Walk, files: list[_Found]) -> None:
    """Refuse a tree that is larger than the bounds, before any of it is read."""
    bounds = walk.bounds
    size = sum(found.size for found in files)
    if len(files) > bounds.files:
        raise _too_much(walk.work, f"it has {len(files)} files, more than {bounds.files}")
    if large := [found.path for found in files if found.size > bounds.one]:
        raise _too_much(walk.work, f"'{shown(large[0])}' has more than {bounds.one // MB} MB")
    if size > bounds.total:
        raise _too_much(walk.work, f"its files have {size // MB} MB, more than {bounds.total // MB} MB")


async def _collect(objects: Objects, walk: _Walk) -> list[_Found]:
    """All files to read, level by level: an ignored directory is entered only where the base has files in it."""
    base, given = walk.known.base, walk.known.given
    parents = {parent for path in base for parent in _parents(path)}
    links = {path for path, entry in base.items() if entry.mode == SUBMODULE}
    level, files, depth = [""], [], 0
    while level:
        found = [one for one in await asyncio.to_thread(walk.list_all, level) if one.path not in given]
        ignored = await _ignored(objects, walk, [one.path for one in found])
        level = []
        for one in found:
            if one.kind == stat.S_IFDIR and one.path not in links:
                level += [one.path] if one.path not in ignored or one.path in parents else []
            elif one.path not in ignored or one.path in base:
                files.append(one)
        depth += 1
        if depth > walk.bounds.depth and level:
            raise _too_much(walk.work, f"it is more than {walk.bounds.depth} directories deep")
    return files


async def _ignored(objects: Objects, walk: _Walk, paths: list[str]) -> frozenset[str]:
    """Those paths that the ignore files of the tree, or the extra patterns, leave out."""
    if not paths:
        return frozenset()
    stdin = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    with tempfile.TemporaryDirectory(prefix="ignore-", dir=objects.git_dir) as folder:
        extra = Path(folder) / "exclude"
        extra.write_bytes(walk.known.ignore)
        call = objects.call(
            work_tree=walk.work,
            cwd=walk.work,
            index=Path(folder) / "index",
            stdin=stdin,
            env={"GIT_LITERAL_PATHSPECS": "0"},
            config={"core.excludesFile": str(extra)},
            timeout=IGNORE_TIME,
        )
        done = await objects.git.run("check-ignore", "-z", "--stdin", "--no-index", call=call)
    if done.code not in (0, 1) or done.truncated:
        raise GitFailed("tree", f"git can't tell which files are ignored: {said(done)}", place=Place(str(walk.work)))
    return frozenset(os.fsdecode(path).removeprefix("./") for path in done.stdout.split(b"\0") if path)


async def _store(objects: Objects, walk: _Walk, files: list[_Found]) -> list[TreeEntry]:
    """Keep the contents of some files and say what they are in a tree."""
    links = {path: entry for path, entry in walk.known.base.items() if entry.mode == SUBMODULE}
    plain = [found for found in files if found.kind != stat.S_IFDIR]
    ids = await LooseObjects(objects, walk.work, walk.bounds.one).keep(found.path for found in plain)
    entries = [links[found.path] for found in files if found.kind == stat.S_IFDIR]
    for found in plain:
        name = ids.get(found.path)
        if name is None:
            walk.note(found.path, "it can't be read")
            continue
        mode = LINK if found.kind == stat.S_IFLNK else PROGRAM if found.executable else FILE
        entries.append(TreeEntry(found.path, mode, name))
    return entries


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _too_much(work: Path, why: str) -> GitFailed:
    return GitFailed(
        "tree",
        f"the tree is too large to be taken: {why}",
        "remove what was made by mistake, or list it in .gitignore",
        place=Place(str(work)),
    )
