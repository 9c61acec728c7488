"""The run directory as files: safe names, plain writes without fsync, visits set aside, a swap for a new one."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bailiwick.crashpoints import reach
from bailiwick.errors import JournalCorrupt

LAYOUT = 1
"""The version of the layout; a directory of another one is made again."""
RUN = "run.json"
CONTEXT = "context.json"
BLOBS = "blobs"
VISITS = "visits"
BOOKMARK = ".projected"
LONGEST_NAME = 200
_FLAGS = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_MODE = 0o666


@lru_cache(maxsize=4096)
def segment(name: str) -> str:
    """The directory of a node, branch or item. A name that the layout uses itself gets a tail no node id can have."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= LONGEST_NAME or name.startswith(".") or "/" in name or "\0" in name:
        raise JournalCorrupt(
            f"{name[:80]!r} cannot be the name of a directory",
            hint="rename the node or branch: no '/', no '.' at its start",
        )
    return f"{name}~" if name in (BLOBS, VISITS) or name.endswith("~") else name


@dataclass(frozen=True, slots=True)
class Bookmark:
    """How far a directory is: `seq` once its writer has signed off; a `writer` alone means perhaps half written."""

    uid: str
    seq: int | None = None
    writer: str = ""
    layout: int = LAYOUT

    def text(self) -> str:
        """The stored form."""
        body = {"layout": self.layout, "uid": self.uid, "seq": self.seq, "writer": self.writer}
        return json.dumps({key: value for key, value in body.items() if value not in (None, "")}) + "\n"


def read_bookmark(root: Path) -> Bookmark | None:
    """The bookmark of a directory, or None where there is none that can be read."""
    try:
        body = json.loads((root / BOOKMARK).read_bytes())
        return Bookmark(str(body["uid"]), body.get("seq"), str(body.get("writer", "")), int(body["layout"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


class RunFiles:
    """Writes below one run directory; paths are relative to it. While `muted`, nothing is written."""

    def __init__(self, root: Path, uid: str) -> None:
        self.muted = False
        self._uid = uid
        self._writer = os.urandom(8).hex()
        self._blobs: set[str] = set()
        self._proof = BOOKMARK
        self._base = ""
        self.move_to(root)

    def move_to(self, root: Path) -> None:
        """Write below another directory from now on."""
        self._base = f"{root}{os.sep}"

    def sign_on(self) -> None:
        """Make the directory if need be and mark it as being written."""
        os.makedirs(self._base, exist_ok=True)  # noqa: PTH103
        self.write(BOOKMARK, Bookmark(self._uid, writer=self._writer).text())

    def sign_off(self, seq: int) -> None:
        """Mark the directory as complete up to `seq`, unless another writer was here: then nobody vouches for it."""
        mark = read_bookmark(Path(self._base))
        if mark is not None and mark.writer == self._writer:
            self.replace(BOOKMARK, Bookmark(self._uid, seq).text())
        else:
            self.remove(BOOKMARK)

    def standing(self) -> bool:
        """Whether the directory is still there and was not emptied."""
        return os.path.exists(self._base + self._proof)  # noqa: PTH110  asked for each batch

    def make(self, path: str) -> None:
        """Make a directory with its parents; never the run directory itself, which somebody must have deleted."""
        if not self.muted:
            try:
                os.mkdir(self._base + path)  # noqa: PTH102  once per visit
            except FileExistsError:
                pass
            except FileNotFoundError:
                if not self.standing():
                    raise
                os.makedirs(self._base + path, exist_ok=True)  # noqa: PTH103

    def write(self, path: str, text: str) -> None:
        """Write a file plainly, in place of what it had."""
        if self.muted:
            return
        flags = _FLAGS | os.O_CREAT | os.O_TRUNC
        try:
            handle = os.open(self._base + path, flags, _MODE)
        except FileNotFoundError:
            self.make(os.path.dirname(path))  # noqa: PTH120
            handle = os.open(self._base + path, flags, _MODE)
        _put(handle, text)

    def append(self, path: str, text: str) -> None:
        """Add to a file that was written before; `FileNotFoundError` where it is gone."""
        if not self.muted:
            _put(os.open(self._base + path, _FLAGS | os.O_APPEND), text)

    def replace(self, path: str, text: str) -> None:
        """Write a file so that a reader sees the old text or the new one."""
        if not self.muted:
            self.write(f".{path}.new", text)
            os.replace(f"{self._base}.{path}.new", self._base + path)  # noqa: PTH105
            self._proof = RUN if path == RUN else self._proof

    def remove(self, path: str) -> None:
        """Remove a file if it is there."""
        if not self.muted:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._base + path)  # noqa: PTH108

    def keep(self, digest: str, text: str) -> None:
        """Write a blob once."""
        if self.muted or digest in self._blobs:
            return
        path = f"{BLOBS}/{digest}"
        if not os.path.exists(self._base + path):  # noqa: PTH110
            self.write(path, text)
        self._blobs.add(digest)

    def set_aside(self, path: str, visit: int) -> None:
        """Move what a node has to `visits/<visit>`, whatever it is, in four steps; nothing there is nothing to move."""
        if self.muted:
            return
        here = self._base + path
        head, tail = os.path.split(here)
        moving = os.path.join(head, f".moving-{tail}")  # noqa: PTH118
        try:
            os.rename(here, moving)  # noqa: PTH104
        except FileNotFoundError:
            return
        os.mkdir(here)  # noqa: PTH102
        reach("project.visit")
        try:
            os.rename(f"{moving}/{VISITS}", f"{here}/{VISITS}")  # noqa: PTH104
        except FileNotFoundError:
            os.mkdir(f"{here}/{VISITS}")  # noqa: PTH102
        os.rename(moving, f"{here}/{VISITS}/{visit}")  # noqa: PTH104


def _put(handle: int, text: str) -> None:
    """Write all of it and close. A lone surrogate becomes its escape, which is what JSON would write too."""
    data = memoryview(text.encode("utf-8", "backslashreplace"))
    try:
        while data:
            data = data[os.write(handle, data) :]
    finally:
        os.close(handle)


def beside(root: Path) -> Path:
    """Where the successor of a run directory is made; what an earlier try left there is removed."""
    new = root.with_name(f".{root.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    return new


def refuse_foreign(root: Path) -> None:
    """Raise `FileExistsError` when the directory holds something, but nothing that a projection made."""
    if populated(root) and not any((root / name).exists() for name in (BOOKMARK, RUN)):
        raise FileExistsError(errno.EEXIST, "there is a directory of this name that is not a run's", str(root))


def populated(root: Path) -> bool:
    """Whether the directory is there and not empty."""
    try:
        with os.scandir(root) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False


def swap(new: Path, root: Path, uid: str, ours: Collection[str]) -> None:
    """Put `new` in the place of `root`. Entries that are not `ours` move over; another run's directory stays beside."""
    old = root.with_name(f".{root.name}.old")
    if old.exists() and not root.exists():
        old.rename(root)
    _take_over(old, root, ours)
    refuse_foreign(root)
    mark = read_bookmark(root)
    if mark is not None and mark.uid != uid:
        with contextlib.suppress(OSError):
            root.rename(root.with_name(f"{root.name}~{segment(mark.uid)}"))
    if root.exists():
        root.rename(old)
    new.rename(root)
    _take_over(old, root, ours)


def _take_over(old: Path, root: Path, ours: Collection[str]) -> None:
    """Move what people put into the old directory to the new one, then remove the old one."""
    if not old.exists():
        return
    for entry in sorted(old.iterdir()):
        if entry.name not in ours and not entry.name.startswith(".") and not (root / entry.name).exists():
            entry.rename(root / entry.name)
    shutil.rmtree(old)
