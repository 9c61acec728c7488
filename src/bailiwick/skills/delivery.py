"""Brings the files of an accepted attempt into the project: all of them or none, and never over somebody's work.

Every folder on the way is opened by its name in the one above, through no symbolic link. A file is written beside its
place and renamed. A path counts as free only while it has the bytes that it had when the call began.
"""

from __future__ import annotations

import os
import secrets
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bailiwick.git.names import is_git_name, is_text, shown
from bailiwick.git.objects import FILE, LINK, PROGRAM, TreeChange

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Categories of characters that make a name look like another one."""
LONGEST = 1024
OWN = ".bailiwick"


@dataclass(frozen=True, slots=True)
class FileDelivery:
    """One file to bring: the bytes that must be there (None: nothing) and those that come (None: it goes)."""

    path: str
    old: bytes | None
    new: bytes | None
    program: bool = False


def path_fault(path: str) -> str:
    """Why a path can't be written by a skill, "" where it can: it has to be relative, plain and inside the project."""
    parts = path.split("/")
    if not path or len(path.encode("utf-8", "replace")) > LONGEST or not is_text(path):
        return f"'{shown(path[:80])}' is not a path"
    if path.startswith("/") or "\\" in path or any(ord(one) < 32 or one == "\x7f" for one in path):
        return f"'{shown(path)}' is not relative to the project"
    if hidden := next((one for one in path if unicodedata.category(one) in _UNSEEN), ""):
        return f"'{shown(path)}' has a character that can't be seen or turns the text around it: U+{ord(hidden):04X}"
    if any(part in ("", ".", "..") for part in parts):
        return f"'{shown(path)}' is not a plain path inside the project"
    if any(is_git_name(part) for part in parts):
        return f"'{shown(path)}': what belongs to git is never written"
    if parts[0].casefold() == OWN:
        return f"'{shown(path)}': what decides over skills and gates is never written by a skill"
    return ""


def change_fault(changes: Iterable[TreeChange]) -> str:
    """Why changes of a copy can't be brought into the project, "" where they can."""
    for change in changes:
        if fault := path_fault(change.path):
            return fault
        if LINK in (change.old_mode, change.new_mode):
            return f"'{shown(change.path)}' is a symbolic link, which a skill neither makes nor changes"
        if change.new_mode not in (FILE, PROGRAM) and change.status != "D":
            return f"'{shown(change.path)}' is not an ordinary file"
    return ""


def write_files(top: Path, files: Sequence[tuple[str, bytes]]) -> str:
    """Write files below a copy, a program stays one; "" or why not all of them could be written."""
    for path, data in files:
        try:
            with _folder(top, path, make=True) as (at, name):
                known = _status(at, name)
                _remove(at, name)
                program = known is not None and stat.S_ISREG(known.st_mode) and known.st_mode & 0o100
                _write(at, name, data, 0o755 if program else 0o644)
        except OSError as error:
            return f"'{shown(path)}' can't be written: {error.strerror}"
    return ""


def deliver(root: Path, parcels: Sequence[FileDelivery]) -> str:
    """Bring all files; "" or why nothing was brought."""
    for parcel in parcels:
        if not _is_free(root, parcel):
            return _changed(parcel.path)
    written: list[tuple[FileDelivery, str]] = []
    try:
        for parcel in parcels:
            if parcel.new is not None:
                written.append((parcel, _prepare(root, parcel, parcel.new)))  # noqa: PERF401 - known if the next fails
    except OSError as error:
        _clear(root, written)
        return f"nothing was written: {error.strerror or error}"
    if changed := next((one.path for one in parcels if not _is_free(root, one)), None):
        _clear(root, written)
        return _changed(changed)
    return _finish(root, written, [one for one in parcels if one.new is None])


def _changed(path: str) -> str:
    return f"nothing was written: {shown(path)} was changed in the project while the call was at work"


def _finish(root: Path, written: list[tuple[FileDelivery, str]], gone: list[FileDelivery]) -> str:
    """Put the files in their places; what an error leaves undone is named."""
    left = [*written]
    try:
        while left:
            parcel, temporary = left[0]
            with _folder(root, parcel.path) as (at, name):
                os.rename(temporary, name, src_dir_fd=at, dst_dir_fd=at)
            left.pop(0)
        for parcel in gone:
            with _folder(root, parcel.path) as (at, name):
                os.unlink(name, dir_fd=at)
    except OSError as error:
        missing = ", ".join(parcel.path for parcel, _ in left) or "what was to be deleted"
        _clear(root, left)
        return f"not everything was written ({missing} is missing): {error.strerror or error}"
    return ""


def _prepare(root: Path, parcel: FileDelivery, data: bytes) -> str:
    """Write a file beside its place, with the mode and the owner it should have; its name there."""
    with _folder(root, parcel.path, make=True) as (at, name):
        temporary = f".bailiwick-{secrets.token_hex(8)}.tmp"
        known = _status(at, name)
        around = os.fstat(at)
        mode = stat.S_IMODE(known.st_mode) if known is not None else 0o644
        mode = mode | 0o111 if parcel.program else mode & ~0o111
        try:
            _write(at, temporary, data, mode)
            owner = known or around
            if os.geteuid() == 0:
                os.chown(temporary, owner.st_uid, owner.st_gid, dir_fd=at, follow_symlinks=False)
        except OSError:
            _remove(at, temporary)
            raise
        return temporary


def _clear(root: Path, written: Iterable[tuple[FileDelivery, str]]) -> None:
    for parcel, temporary in written:
        with suppress(OSError), _folder(root, parcel.path) as (at, _):
            _remove(at, temporary)


def _is_free(root: Path, parcel: FileDelivery) -> bool:
    """Whether a path holds what it held when the call began."""
    try:
        with _folder(root, parcel.path) as (at, name):
            return _read(at, name) == parcel.old if parcel.old is not None else _status(at, name) is None
    except FileNotFoundError:
        return parcel.old is None
    except OSError:
        return False


def _read(at: int, name: str) -> bytes | None:
    """The bytes of an ordinary file; None where it is anything else."""
    with open(os.open(name, _READ, dir_fd=at), "rb") as file:  # noqa: PTH123 - a descriptor
        return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else None


def _write(at: int, name: str, data: bytes, mode: int) -> None:
    with open(os.open(name, _NEW, mode, dir_fd=at), "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def _remove(at: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=at)


def _status(at: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextmanager
def _folder(top: Path, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """The folder that a path lies in, opened through no link below `top`, and the name of the path in it."""
    *folders, name = path.split("/")
    at = os.open(top, _FOLDER)
    try:
        for part in folders:
            if make:
                _make(at, part)
            deeper = os.open(part, _FOLDER, dir_fd=at)
            os.close(at)
            at = deeper
        yield at, name
    finally:
        os.close(at)


def _make(at: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=at)
        around = os.fstat(at)
        if os.geteuid() == 0:
            os.chown(name, around.st_uid, around.st_gid, dir_fd=at, follow_symlinks=False)
