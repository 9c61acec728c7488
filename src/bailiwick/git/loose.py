"""Writes the contents of files into the vault: read through no symbolic link, hashed, and stored where they are new."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import stat
import tempfile
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bailiwick.git.objects import Objects, batch
from bailiwick.git.runner import GitOptions

_CHUNK = 1 << 20
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(work: Path, folder: str) -> int | None:
    """Open a folder below a directory, no part of its path through a symbolic link; None where that can't be."""
    try:
        handle = os.open(work, _FOLDER)
    except OSError:
        return None
    for part in folder.split("/") if folder else ():
        try:
            deeper = os.open(part, _FOLDER, dir_fd=handle)
        except OSError:
            return None
        finally:
            os.close(handle)
        handle = deeper
    return handle


def object_file(git_dir: Path, name: str) -> Path:
    """Where git keeps an object that is in no pack."""
    return git_dir / "objects" / name[:2] / name[2:]


async def missing(objects: Objects, ids: frozenset[str]) -> frozenset[str]:
    """Those ids whose objects are not in the vault."""
    if not ids:
        return frozenset()
    call = objects.call(stdin="".join(f"{name}\n" for name in sorted(ids)).encode())
    raw = await objects.git.out("cat-file", "--batch-check=%(objectname)", "--buffer", call=call)
    return frozenset(line.split(" ")[0] for line in raw.decode().splitlines() if line.endswith(" missing"))


async def adopt(objects: Objects, source: GitOptions, ids: frozenset[str]) -> None:
    """Copy the blobs that the vault lacks from another git dir, which `source` calls."""
    wanted = sorted(await missing(objects, ids))
    for name, (kind, data) in zip(wanted, await batch(objects.git, wanted, source), strict=True):
        if kind == "blob":
            await asyncio.to_thread(_write, object_file(objects.git_dir, name), data)


class LooseObjects:
    """The files of one directory on their way into the vault; none may be larger than `largest` bytes."""

    def __init__(self, objects: Objects, work: Path, largest: int) -> None:
        self.objects = objects
        self.work = work
        self.largest = largest
        self.algorithm = "sha1"

    async def keep(self, paths: Iterable[str]) -> dict[str, str]:
        """The id of each file or link by path; without those that can't be read."""
        wanted = sorted(paths, key=_folder)
        self.algorithm = await self.objects.git.line("rev-parse", "--show-object-format", call=self.objects.call())
        ids = await asyncio.to_thread(self._each, wanted, write=False)
        new = await missing(self.objects, frozenset(ids.values()))
        fresh = [path for path in wanted if ids.get(path) in new]
        written = await asyncio.to_thread(self._each, fresh, write=True)
        return {path: name for path, name in ids.items() if name not in new} | written

    def _each(self, paths: list[str], *, write: bool) -> dict[str, str]:
        ids: dict[str, str] = {}
        for folder, group in itertools.groupby(paths, key=_folder):
            handle = open_folder(self.work, folder)
            if handle is None:
                continue
            try:
                for path in group:
                    data = self._read(handle, path.rpartition("/")[2])
                    if data is not None:
                        ids[path] = self._write(data) if write else self._name(data)
            finally:
                os.close(handle)
        return ids

    def _read(self, folder: int, name: str) -> bytes | None:
        """The bytes of a file, of a link its target; None where it is neither, can't be read, or is too large."""
        try:
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                return os.fsencode(os.readlink(name, dir_fd=folder))
            with open(os.open(name, _FILE, dir_fd=folder), "rb") as file:  # noqa: PTH123 - a descriptor
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                data = file.read(self.largest + 1)
        except OSError:
            return None
        return data if len(data) <= self.largest else None

    def _name(self, data: bytes) -> str:
        found = hashlib.new(self.algorithm, usedforsecurity=False)
        found.update(b"blob %d\0" % len(data))
        found.update(data)
        return found.hexdigest()

    def _write(self, data: bytes) -> str:
        name = self._name(data)
        _write(object_file(self.objects.git_dir, name), data)
        return name


def _write(target: Path, data: bytes) -> None:
    """Store a blob as git does: compressed, whole or not at all."""
    if target.exists():
        return
    target.parent.mkdir(exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix="tmp_obj_", dir=target.parent)
    try:
        with open(handle, "wb") as file:  # noqa: PTH123 - a descriptor
            packed = zlib.compressobj(1)
            file.write(packed.compress(b"blob %d\0" % len(data)))
            file.writelines(packed.compress(data[at : at + _CHUNK]) for at in range(0, len(data), _CHUNK))
            file.write(packed.flush())
            file.flush()
            os.fchmod(handle, 0o444)
            os.fdatasync(handle)
        Path(temporary).rename(target)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
