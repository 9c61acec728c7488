"""Files that `prepare` makes: what belongs to the environment is kept, and comes along into every checkout.

Directories of packages (`.venv`, `node_modules`) and whatever is large are mounted read-only. All other new files,
at any depth (`_version.py`, built extensions, `*.egg-info`), are copied into each checkout, where a build may write
to them again; a file that the checkout has itself is never replaced.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bailiwick.environments.recipes import CARGO_HOME, VENVS

CHECKED_OUT = 1_577_836_800.0
"""When files of the base were changed last, as far as builds can tell: long before anything was built from them."""
_MOUNTED = ("node_modules", "vendor", CARGO_HOME, *VENVS)
_DROPPED = ("__pycache__", ".git", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".eggs")
_LARGE = 64 << 20
_MANY = 5000


@dataclass(frozen=True, slots=True)
class GeneratedFiles:
    """Paths below the tree that are new: those that are mounted, and those that are copied."""

    mounted: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()


def listing(tree: Path) -> dict[str, set[str]]:
    """What is in each directory of a tree, by its path; links are not followed."""
    return {os.path.relpath(at, tree): {*folders, *files} for at, folders, files in os.walk(tree)}


def keep_new(tree: Path, kept: Path, before: Mapping[str, set[str]]) -> GeneratedFiles:
    """Move everything that is new into `kept`, but for caches and links."""
    mounted: list[str] = []
    copied: list[str] = []
    for path in _new(tree, before):
        target = kept / path
        target.parent.mkdir(parents=True, exist_ok=True)
        (tree / path).rename(target)
        take_over(target)
        name = path.rpartition("/")[2]
        if name not in _MOUNTED:
            _drop_caches(target)
        (mounted if name in _MOUNTED or _is_large(target) else copied).append(path)
    return GeneratedFiles(tuple(mounted), tuple(copied))


def _new(tree: Path, before: Mapping[str, set[str]]) -> Iterator[str]:
    for folder, old in sorted(before.items()):
        here = tree / folder
        if here.is_symlink() or not here.is_dir():
            continue
        for name in sorted(set(os.listdir(here)) - old):  # noqa: PTH208  names are compared, not paths
            if name not in _DROPPED and not name.endswith(".pyc") and not (here / name).is_symlink():
                yield name if folder == "." else f"{folder}/{name}"


def _drop_caches(top: Path) -> None:
    if top.is_dir():
        for at, folders, _files in os.walk(top):
            for name in [name for name in folders if name in _DROPPED]:
                folders.remove(name)
                shutil.rmtree(Path(at) / name, ignore_errors=True)


def _is_large(top: Path) -> bool:
    size = 0
    for count, path in enumerate(everything(top)):
        size += path.lstat().st_size
        if size > _LARGE or count > _MANY:
            return True
    return False


def copy_into(made: Path, names: Iterable[str], tree: Path) -> None:
    """Copy generated files into a checkout, with their times; what the checkout has itself stays as it is."""
    for name in names:
        _copy(made / name, tree / name, tree)


def _copy(source: Path, target: Path, tree: Path) -> None:
    if not _is_inside(target.parent, tree):
        return
    if source.is_dir() and not source.is_symlink():
        if not target.is_symlink() and (target.is_dir() or not target.exists()):
            target.mkdir(parents=True, exist_ok=True)
            for entry in sorted(source.iterdir()):
                _copy(entry, target / entry.name, tree)
            shutil.copystat(source, target, follow_symlinks=False)
    elif not os.path.lexists(target) and target.parent.is_dir():
        shutil.copy2(source, target, follow_symlinks=False)


def _is_inside(folder: Path, tree: Path) -> bool:
    """Whether a directory is really below the tree, or will be: no link of a proposed tree leads a copy elsewhere."""
    top = Path(os.path.realpath(tree))
    return Path(os.path.realpath(folder)) == top / folder.relative_to(tree)


def set_times(tree: Path, changed: Iterable[str] = ()) -> None:
    """Make all files of a checkout as old as those that the environment was built from, but for `changed` ones."""
    newer = frozenset(changed)
    for at, _folders, files in os.walk(tree):
        for name in files:
            path = Path(at) / name
            if not newer or path.relative_to(tree).as_posix() not in newer:
                os.utime(path, (CHECKED_OUT, CHECKED_OUT), follow_symlinks=False)


def take_over(top: Path) -> None:
    """Make what a sandbox has written ours: readable for all, without special bits and special files."""
    root = os.geteuid() == 0
    for path in everything(top):
        info = path.lstat()
        if root:
            os.chown(path, 0, 0, follow_symlinks=False)
        if stat.S_ISDIR(info.st_mode):
            path.chmod(0o755)
        elif stat.S_ISREG(info.st_mode):
            path.chmod(0o755 if info.st_mode & 0o111 else 0o644)
        elif not stat.S_ISLNK(info.st_mode):
            path.unlink()


def everything(top: Path) -> Iterator[Path]:
    """A directory and all below it; links are not followed."""
    yield top
    if top.is_dir() and not top.is_symlink():
        for at, folders, files in os.walk(top):
            for name in (*folders, *files):
                yield Path(at) / name
