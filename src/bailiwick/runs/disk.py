"""What a run has on disk beside its journal. A directory is a run's only if it says so itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bailiwick.journal.rows import RunRow
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.layout import read_bookmark, segment


def directories(runtime: Runtime, row: RunRow) -> list[Path]:
    """The run's directories: the plain one, or the one it was moved to when a newer run took its name."""
    plain = runtime.run_dir(row)
    moved = (f"{plain.name}.{row.generation}", f"{plain.name}~{segment(row.id)}")
    names = (plain, *(plain.with_name(name) for name in moved))
    return [path for path in names if not path.is_symlink() and path.is_dir() and uid_of(path) == row.id]


def uid_of(directory: Path) -> str | None:
    """Which run a directory belongs to, by its own word; None when it does not say."""
    mark = read_bookmark(directory)
    if mark is not None:
        return mark.uid
    try:
        data = json.loads((directory / "run.json").read_bytes())
    except (OSError, ValueError):
        return None
    return str(data.get("uid")) if isinstance(data, dict) else None


def size_of(directory: Path) -> int:
    """The bytes of all files below a directory; links are not followed, what can't be read counts nothing."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(Path(folder) / name).st_size
            except OSError:
                continue
    return total
