"""The folder of notes: found as people left it, written so that a crash leaves it readable, each change a commit.

A file is replaced whole. What is about to be written is noted first, so that whoever writes next commits what a crash
left uncommitted. Links are never followed: a note lies in this folder or nowhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.brain.frontmatter import MOST, UNREADABLE, parse
from bailiwick.brain.model import Note
from bailiwick.clock import iso
from bailiwick.config.repository import is_work_tree
from bailiwick.config.variables import Environment
from bailiwick.durable import sync_folder
from bailiwick.errors import NotReady, Place
from bailiwick.git.runner import Git, GitFailed, GitOptions
from bailiwick.locks import held

OWN = ".brain"
"""A folder that git doesn't see: the lock, and what is being written."""
AUTHOR = ("bailiwick", "bailiwick@localhost")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOSE = 27
"""Files in one of git's 256 folders from which on it is worth to pack them: some 7,000 in all."""

Stamp = str
"""What changes when a file does: its times of change, its size, its inode; "" where there is no file."""


@dataclass(frozen=True, slots=True)
class FolderListing:
    """Every note file with its stamp, and every folder with its time of change; paths are relative."""

    files: Mapping[str, Stamp] = field(default_factory=dict)
    folders: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class History:
    """Files with the last commit that changed them. `whole`: what was known before does not count any more."""

    head: str = ""
    commits: Mapping[str, str] = field(default_factory=dict)
    whole: bool = True


@dataclass(frozen=True, slots=True)
class NoteFolder:
    """Notes as they lie on the disk. Reading makes and changes nothing."""

    root: Path

    @property
    def exists(self) -> bool:
        """Whether there is anything to read."""
        return self.root.is_dir()

    def survey(self) -> FolderListing:
        """Look at everything once: Markdown files, without hidden ones and links."""
        files: dict[str, Stamp] = {}
        folders: dict[str, int] = {}
        left = [""]
        while left:
            here = left.pop()
            with contextlib.suppress(OSError):
                folders[here] = os.stat(f"{self.root}/{here}").st_mtime_ns  # noqa: PTH116 - no Path is made in vain
                with os.scandir(f"{self.root}/{here}") as entries:
                    _sort_out(here, entries, files, left)
        return FolderListing(files, folders)

    def same_folders(self, folders: Mapping[str, int]) -> bool:
        """Whether in none of these folders a file came, went or was replaced since."""
        root = str(self.root)
        try:
            return all(os.stat(f"{root}/{path}").st_mtime_ns == at for path, at in folders.items())  # noqa: PTH116 - see above
        except OSError:
            return False

    def stamp(self, path: str) -> Stamp:
        """The stamp of a note's file."""
        try:
            found = os.lstat(f"{self.root}/{path}")
        except OSError:
            return ""
        return _stamp(found) if stat.S_ISREG(found.st_mode) else ""

    def read(self, path: str) -> tuple[Note, Stamp] | None:
        """A note and the stamp of the file that it was read from; None where there is none any more."""
        try:
            raw, found = _bytes_of(self.root / path, MOST)
        except OSError:
            return None
        return parse(raw, path, found.st_mtime), _stamp(found)

    def raw(self, path: str) -> bytes:
        """All bytes of a note's file."""
        try:
            return _bytes_of(self.root / path, 1 << 26)[0]
        except OSError as error:
            raise _unusable(self.root / path, "read", error) from error

    def mark(self) -> str:
        """A text that changes when the checked out commit does. Starts no process; "" without a repository."""
        git = self.root / ".git"
        try:
            head = (git / "HEAD").read_text("utf-8").strip()
        except OSError:
            return ""
        if not head.startswith("ref:"):
            return head
        name = head.removeprefix("ref:").strip()
        with contextlib.suppress(OSError):
            return f"{name} {(git / name).read_text('utf-8').strip()}"
        for file in (git / "packed-refs", git / "reftable" / "tables.list"):
            with contextlib.suppress(OSError):
                return f"{name} {file.name} {_stamp(file.stat())}"
        return f"{name} nothing"


@dataclass(frozen=True, slots=True)
class NoteWriter:
    """Writes notes and commits them, one process at a time. `hold` first, then `save`.

    `prepare` makes the folder around ours, where that is our business.
    """

    folder: NoteFolder
    environment: Environment
    prepare: Callable[[], object] | None = None

    @property
    def _own(self) -> Path:
        return self.folder.root / OWN

    @property
    def _intent(self) -> Path:
        return self._own / "writing.json"

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Keep other writers away; the folder is there, and a repository."""
        if self.prepare is not None:
            self.prepare()
        try:
            self.folder.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._own.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise _unusable(self.folder.root, "written", error) from error
        async with held(self._own / "lock"):
            await self._ready()
            yield

    async def _ready(self) -> None:
        """Make the repository, and have git leave our own folder alone; only the holder of the lock writes."""
        try:
            if not (self._own / ".gitignore").exists():
                _put(self._own / ".gitignore", b"*\n")
        except OSError as error:
            raise _unusable(self.folder.root, "written", error) from error
        if not is_work_tree(self.folder.root):
            await self._git().out("init", "-q", "-b", "main", str(self.folder.root), call=GitOptions())

    async def save(self, files: Mapping[str, bytes], message: str, at: float) -> tuple[str, str]:
        """Replace files, durably, and commit them with what a crash left; gives the commit, or "" and why none is made.

        A commit that can't be made now (a person is in the middle of a merge) is made with the next change.
        """
        paths = tuple(dict.fromkeys((*self._left(), *files)))
        try:
            self._announce(paths)
            for path, data in files.items():
                self._place(path, data)
        except OSError as error:
            raise _unusable(self.folder.root, "written", error) from error
        try:
            commit = await self._commit([path for path in paths if self.folder.stamp(path)], message, at)
        except GitFailed as error:
            return "", error.sentence
        self._intent.unlink(missing_ok=True)
        return commit, ""

    async def history(self, since: str) -> History:
        """The last commit that changed each file: of all, or of those changed after `since` where that is behind us."""
        call = self._call()
        git = self._git()
        found = await git.run("rev-parse", "-q", "--verify", "HEAD^{commit}", call=call)
        if found.code != 0:
            return History()
        head = found.stdout.decode().strip()
        onward = bool(since) and (await git.run("merge-base", "--is-ancestor", since, head, call=call)).code == 0
        words = ("log", "-z", "--format=%x01%H", "--name-only", "--no-renames")
        log = await git.out(*words, f"{since}..{head}" if onward else head, "--", call=call)
        return History(head, _last_commits(log), whole=not onward)

    def _left(self) -> Iterable[str]:
        """Paths whose commit an earlier writer still owes; what it had half written goes."""
        try:
            owed = json.loads(self._intent.read_bytes())
        except (OSError, ValueError):
            return ()
        paths = [path for path in owed if isinstance(path, str)] if isinstance(owed, list) else []
        for path in paths:
            _half(self.folder.root / path).unlink(missing_ok=True)
        return paths

    def _announce(self, paths: Iterable[str]) -> None:
        _put(self._intent, json.dumps(list(paths)).encode())

    def _place(self, path: str, data: bytes) -> None:
        here = self.folder.root
        for part in Path(path).parent.parts:
            here /= part
            here.mkdir(mode=0o700, exist_ok=True)
            if here.is_symlink():
                raise NotReady("a link is in the way", place=Place(str(here)), hint="remove it", code=UNREADABLE)
        _put(self.folder.root / path, data)

    async def _commit(self, paths: Iterable[str], message: str, at: float) -> str:
        git, call = self._git(), self._call(at)
        named = tuple(paths)
        await git.out("add", "-f", "--", *named, call=call)
        await git.out("commit", "-q", "--allow-empty", "--only", "-m", message, "--", *named, call=call)
        await self._pack(git)
        return await git.line("rev-parse", "HEAD", call=call)

    async def _pack(self, git: Git) -> None:
        try:
            loose = len(os.listdir(self.folder.root / ".git" / "objects" / "17"))  # noqa: PTH208 - names are enough
        except OSError:
            return
        if loose > _LOOSE:
            settings = {"gc.auto": "6700", "gc.autoDetach": "false"}
            await git.run("gc", "-q", "--auto", call=GitOptions(cwd=self.folder.root, config=settings))

    def _git(self) -> Git:
        return Git(self.environment.text("PATH") or os.defpath)

    def _call(self, at: float = 0.0) -> GitOptions:
        names = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in zip(("NAME", "EMAIL", "DATE"), (*AUTHOR, iso(at)), strict=True)
        }
        return GitOptions(cwd=self.folder.root, env=names | {"GIT_CEILING_DIRECTORIES": str(self.folder.root.parent)})


def _sort_out(here: str, entries: Iterable[os.DirEntry[str]], files: dict[str, Stamp], folders: list[str]) -> None:
    for entry in entries:
        path = f"{here}/{entry.name}" if here else entry.name
        if entry.name.startswith("."):
            continue
        if entry.name.endswith(".md") and entry.is_file(follow_symlinks=False):
            try:
                files[path] = _stamp(entry.stat(follow_symlinks=False))
            except OSError:
                continue
        elif entry.is_dir(follow_symlinks=False):
            folders.append(path)


def _stamp(found: os.stat_result) -> Stamp:
    return f"{found.st_mtime_ns} {found.st_ctime_ns} {found.st_size} {found.st_ino}"


def _bytes_of(path: Path, most: int) -> tuple[bytes, os.stat_result]:
    handle = os.open(path, _READ)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is not a regular file")
        return file.read(most), found


def _last_commits(log: bytes) -> dict[str, str]:
    """For each path the newest commit that names it; the log begins with the newest."""
    last: dict[str, str] = {}
    commit = ""
    for raw in log.split(b"\0"):
        word = os.fsdecode(raw.lstrip(b"\n"))
        if word.startswith("\x01"):
            commit = word[1:]
        elif word:
            last.setdefault(word, commit)
    return last


def _half(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _put(path: Path, data: bytes) -> None:
    """Replace a file, durably; a crash leaves the old one or the new one."""
    with os.fdopen(os.open(_half(path), _NEW, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    _half(path).replace(path)
    sync_folder(path.parent)


def _unusable(path: Path, verb: str, error: OSError) -> NotReady:
    return NotReady(
        f"the brain can't be {verb}: {error.strerror or error}",
        place=Place(str(path)),
        hint="free disk space, or make it usable for this user; brain_dir in the configuration names the folder",
        code=UNREADABLE,
    )
