"""Noticing that the installed package was replaced while we run: a newer version must not be walked by old code."""

from __future__ import annotations

import os
from pathlib import Path

import bailiwick


class Installed:
    """The package as it was when the process started."""

    def __init__(self, root: Path | None = None) -> None:
        self._files = [(root or Path(bailiwick.__file__).parent) / "__init__.py"]
        self._was = self._look()

    def _look(self) -> list[tuple[int, int, int]]:
        found = []
        for path in self._files:
            try:
                stat = path.stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
        return found

    def replaced(self) -> bool:
        """Whether the files are others now; False while they are missing in the middle of an installation."""
        now = self._look()
        return now != self._was and (0, 0, 0) not in now


def execute_again(argv: list[str]) -> None:
    """Become the new version: the same command in the same process, which goes on from the journal. Does not return."""
    os.execv(argv[0], argv)  # noqa: S606  our own command line, no shell
