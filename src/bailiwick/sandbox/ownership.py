"""Whose the files of a sandbox are. As root each sandbox has a uid of its own, to which its writable trees are given.

Root can still read and write them. Anyone else keeps their uid inside, so there is nothing to give.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from bailiwick.errors import NotReady, Place
from bailiwick.ids import digest
from bailiwick.sandbox.spec import Bind, SandboxSpec

FIRST_UID = 0x7000_0000
UIDS = 0x1000_0000
"""Uids from 1879048192 to 2147483647: Linux distributions and systemd give them to nobody."""
_NEVER = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr")
_NEVER_AS_A_WHOLE = ("/", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp", "/var")  # noqa: S108
_UNSAFE = "BW403"


def uid_of(sandbox_spec: SandboxSpec) -> int:
    """The uid (and gid) of a sandbox as root: the same for the same owner or tree, so that files stay its own."""
    trees = sandbox_spec.written
    if not sandbox_spec.owner and not trees:
        return FIRST_UID + secrets.randbelow(UIDS)
    return FIRST_UID + int(digest(sandbox_spec.owner or os.path.realpath(trees[0]))[:12], 16) % UIDS


async def prepare_binds(sandbox_spec: SandboxSpec, uid: int | None) -> None:
    """Look that what a sandbox shows is there, give `uid` what it may write, and make the places of mounts.

    Raises `NotReady`.
    """
    for bind in sandbox_spec.binds:
        if not bind.source.exists():
            raise not_entered(f"{bind.source} is to be shown at {bind.target} and is not there", bind.source)
    if uid is not None:
        for tree in sandbox_spec.written:
            await asyncio.to_thread(hand_over, tree, uid)
    make_mount_points(sandbox_spec.shown)


def not_entered(what: str, place: Path | None = None) -> NotReady:
    """Why a sandbox can't be entered."""
    where = None if place is None else Place(str(place))
    return NotReady(what, place=where, hint="`bailiwick sandbox check` says what works here", code=_UNSAFE)


def hand_over(tree: Path, uid: int) -> int:
    """Give a tree that was made for a sandbox to its uid; how many files changed hands.

    Links are never followed. A file with further names gets a copy of its own first: what has the other names, such as
    an object of a repository, stays ours. Raises `NotReady` for a directory that can't have been made for a sandbox.
    """
    real = Path(os.path.realpath(tree))
    if (
        str(real) in _NEVER_AS_A_WHOLE
        or real.parent == Path("/home")
        or any(real.is_relative_to(top) for top in _NEVER)
    ):
        raise NotReady(
            f"{real} would have to be given to the sandbox's own user",
            place=Place(str(tree)),
            hint="as root, work in a directory made for it, not in one of the system or a person's home",
            code=_UNSAFE,
        )
    return _walk(real, uid, lambda owner: owner != uid)


def give_back(tree: Path, uid: int, owner: int = 0) -> int:
    """Take from a sandbox's uid what is its own in a tree, for `owner`; how many files changed hands."""
    return _walk(Path(os.path.realpath(tree)), owner, lambda now: now == uid)


def _walk(top: Path, uid: int, wanted: Callable[[int], bool]) -> int:
    try:
        return _chown(top, uid, wanted)
    except (OSError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "its directories are nested too deeply"
        raise NotReady(
            f"the tree can't be given to another user: {why}", place=Place(str(top)), hint="remove it", code=_UNSAFE
        ) from error


def _chown(top: Path, uid: int, wanted: Callable[[int], bool]) -> int:
    count = 0
    info = top.lstat()
    if wanted(info.st_uid):
        os.chown(top, uid, uid, follow_symlinks=False)
        count += 1
    if not stat.S_ISDIR(info.st_mode):
        return count
    for _, folders, files, at in os.fwalk(top, follow_symlinks=False):
        for name in (*folders, *files):
            with suppress(FileNotFoundError):
                found = os.stat(name, dir_fd=at, follow_symlinks=False)
                if wanted(found.st_uid):
                    _give(name, at, found, uid)
                    count += 1
    return count


def _give(name: str, at: int, found: os.stat_result, uid: int) -> None:
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        _detach(name, at, found)
    os.chown(name, uid, uid, dir_fd=at, follow_symlinks=False)


def _detach(name: str, at: int, found: os.stat_result) -> None:
    """Put a copy of a file in the place of this one of its names."""
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    own = f".{secrets.token_hex(8)}"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = os.open(own, flags, stat.S_IMODE(found.st_mode), dir_fd=at)
        try:
            while chunk := os.read(source, 1 << 20):
                os.write(target, chunk)
            os.fchmod(target, stat.S_IMODE(found.st_mode))
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(target)
        os.rename(own, name, src_dir_fd=at, dst_dir_fd=at)
    finally:
        os.close(source)


def make_mount_points(binds: Iterable[Bind]) -> None:
    """Make the places of binds that lie inside earlier ones, without following a link that somebody put there.

    Whoever mounts would follow it, and make directories wherever it leads. Raises `NotReady` where something is in the
    way.
    """
    outer: list[Bind] = []
    for bind in binds:
        around = [other for other in outer if other.target in bind.target.parents]
        if around:
            inner = max(around, key=lambda other: len(other.target.parts))
            _make_point(inner.source, bind.target.relative_to(inner.target), is_directory=bind.source.is_dir())
        if bind.source.is_dir():
            outer.append(bind)


def _make_point(top: Path, inside: Path, *, is_directory: bool) -> None:
    at = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    owner = os.fstat(at)
    try:
        *folders, last = inside.parts
        for name in (*folders, last) if is_directory else folders:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=at)
                os.chown(name, owner.st_uid, owner.st_gid, dir_fd=at, follow_symlinks=False)
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        if not is_directory:
            flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            os.close(os.open(last, flags, 0o644, dir_fd=at))
    except OSError as error:
        raise NotReady(
            f"something is in the way of what has to be mounted at {inside}: {error.strerror}",
            place=Place(str(top / inside)),
            hint="remove it from the tree; links are not followed there",
            code=_UNSAFE,
        ) from error
    finally:
        os.close(at)
