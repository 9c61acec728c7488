"""Names of files inside a workflow directory. A name that leads out of it, by whatever link, is refused."""

from __future__ import annotations

import stat
from pathlib import Path, PurePosixPath

from bailiwick.bundled_files import BUNDLED_FILES

SHARED = "bailiwick/"
"""How names of parts begin that come with Bailiwick; a file of that name in the workflow directory comes before it."""
PARTS = BUNDLED_FILES / "shared"


class PathRefused(Exception):
    """A name that can't be used: `what` is wrong and how to fix it. `outside` says it left the directory."""

    def __init__(self, what: str, hint: str, *, outside: bool = False, missing: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.outside = outside
        self.missing = missing


def confine(root: Path, name: str) -> Path:
    """The path of `name` under `root`, which need not exist; `PathRefused` if it is absolute, climbs or links out."""
    parts = PurePosixPath(name)
    if not name or "\0" in name or "\\" in name:
        raise PathRefused(f"{name!r} is not a file name", "give a relative path with forward slashes")
    if parts.is_absolute() or ".." in parts.parts or name.startswith("~"):
        hint = "copy the file into the workflow directory and give its relative path"
        raise PathRefused(f"{name!r} leads out of the workflow directory", hint, outside=True)
    path = root / parts
    try:
        real = path.resolve()
    except (OSError, RuntimeError):
        raise PathRefused(f"{name!r} is a link that leads nowhere", "replace the link by the file itself") from None
    if not real.is_relative_to(root.resolve()):
        hint = "replace the link by the file itself"
        raise PathRefused(f"{name!r} is a link out of the workflow directory", hint, outside=True)
    return path


def regular(root: Path, name: str) -> Path:
    """The path of a regular file under `root`; raises `PathRefused` where there is none."""
    path = confine(root, name)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise PathRefused(f"the file {name!r} does not exist", f"create {name}", missing=True) from None
    except OSError as error:
        raise PathRefused(
            f"the file {name!r} can't be read: {error.strerror}", "check the path and its rights"
        ) from None
    if not stat.S_ISREG(mode):
        raise PathRefused(f"{name!r} is not a regular file", "give a regular file")
    return path


def regular_or_shared(root: Path, name: str) -> Path:
    """The path of a regular file under `root`, else of the part of that name that comes with Bailiwick."""
    try:
        return regular(root, name)
    except PathRefused as refused:
        if not refused.missing or not name.startswith(SHARED):
            raise
        try:
            return regular(PARTS, name.removeprefix(SHARED))
        except PathRefused:
            raise refused from None
