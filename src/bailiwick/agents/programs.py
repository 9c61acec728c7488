"""Finds the program of an agent: the native binary rather than the script that npm puts in front of it.

A signal to such a script ends the script and leaves the native process and its tools alive.
"""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Program:
    """An agent's command line program. `package` is the npm package; its binary is at one of `inside` the platform's.

    `inside` may hold a `*` for a directory named after the platform.
    """

    name: str
    package: str
    inside: tuple[str, ...]
    tested: str

    def path(self, env: Mapping[str, str], chosen: str = "") -> str:
        """What to execute: the native binary where it can be found, else the name, for the system to look up."""
        found = shutil.which(chosen or self.name, path=env.get("PATH", ""))
        return chosen or self.name if found is None else str(self.native(Path(found)))

    def native(self, found: Path) -> Path:
        """The native binary that a script from npm would start; `found` itself where it is no such script."""
        real = found.resolve()
        if not _is_script(real):
            return found
        return next((binary for binary in self._binaries(real) if binary.is_file()), found)

    def _binaries(self, script: Path) -> Iterator[Path]:
        scope, _, base = self.package.partition("/")
        for parent in script.parents:
            for suffix in _platforms():
                folder = parent / "node_modules" / scope / f"{base}-{suffix}"
                for inside in self.inside:
                    yield from folder.glob(inside)


def _platforms() -> Iterator[str]:
    architecture = _ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())
    system = "darwin" if sys.platform == "darwin" else "linux"
    yield f"{system}-{architecture}"
    yield f"{system}-{architecture}-musl"
    yield f"{system}musl-{architecture}"


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False
