"""The operator's tools as a sandbox sees them: PATH resolved to real trees, which are bound read-only where they are.

Nothing comes from a work tree, from a directory that somebody else can write to, or from what is private.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.sandbox import toolchain_trees as trees
from bailiwick.sandbox import toolchain_versions as versions
from bailiwick.sandbox.spec import Bind

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where every sandbox has programs."""
_MOST_PROGRAMS = 2000
"""How many entries of one directory are looked at."""

_NO_VARIABLES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Toolchains:
    """What to bind, read-only and at its own path, and the PATH inside. `left_out` says which directory, and why."""

    binds: tuple[Bind, ...] = ()
    path: str = SYSTEM_PATH
    left_out: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Search:
    """What has been found so far."""

    grounds: trees.HiddenPaths
    home: Path
    variables: Mapping[str, str]
    shown: list[Path] = field(default_factory=list)
    path: list[Path] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    seen: set[Path] = field(default_factory=set)

    def add(self, entry: str) -> None:
        """Take one directory of PATH, or say why not."""
        spelled = Path(entry)
        if not spelled.is_absolute():
            self.left_out.append((entry or ".", "it is relative: what it means depends on who asks"))
            return
        folder = Path(os.path.realpath(spelled))
        if not folder.is_dir():
            return
        if trees.is_system(folder):
            self.path.append(spelled if trees.is_system(spelled) else folder)
            self.shown += self._targets(folder, only_links=True)
            return
        why = self._refusal(folder)
        if why:
            self.left_out.append((entry, why))
            return
        chosen = versions.from_shims(folder, self.home, self.variables)
        if chosen is None:
            self._add_plain(folder)
        else:
            self.take(chosen)

    def take(self, chosen: versions.Chosen) -> None:
        """Take what a manager of versions has chosen, as far as it may be shown."""
        allowed = [tree for tree in chosen.trees if not self.grounds.refusal(tree)]
        self.shown += [tree for top in allowed for tree in (top, *self._needs(top))]
        self.path += [folder for folder in chosen.path if any(_meet(folder, tree) for tree in allowed)]

    def _refusal(self, folder: Path) -> str:
        if folder.is_relative_to("/snap") or folder.is_relative_to("/var/lib/snapd"):
            return "programs of snap start only through its own service"
        if trees.in_work_tree(folder, self.home) and not trees.is_virtual_environment(folder.parent):
            return "it lies in a work tree"
        if trees.writable_by_others(folder):
            return "others can write to it"
        return self.grounds.refusal(folder)

    def _add_plain(self, folder: Path) -> None:
        """A directory of programs: with the installation it belongs to, or alone with what its programs need."""
        top = trees.prefix(folder / "any")
        if top is None or self.grounds.refusal(top):
            top = folder
        self.shown += [top, *self._needs(top), *self._targets(folder)]
        self.path.append(folder)

    def _needs(self, top: Path) -> Iterator[Path]:
        """What a tree needs beside itself: the Python of a virtual environment."""
        if (top / "pyvenv.cfg").is_file():
            yield from trees.program_trees(Path(os.path.realpath(top / "bin" / "python")), self.grounds)

    def _targets(self, folder: Path, *, only_links: bool = False) -> Iterator[Path]:
        """The trees that links in a directory lead to and, for `only_links` False, the interpreters of its scripts."""
        if folder in self.seen:
            return
        self.seen.add(folder)
        for entry in _entries(folder):
            if not entry.is_symlink():
                if not only_links and entry.is_file() and (found := trees.shebang(Path(entry.path))) is not None:
                    yield from self._interpreter(found)
                continue
            if "/" not in os.readlink(entry.path):  # noqa: PTH115 - a neighbour; asked of a thousand entries
                continue
            real = os.path.realpath(entry.path)
            if trees.is_system(real):
                continue
            parent = Path(real).parent
            if not trees.in_work_tree(parent, self.home) and not trees.writable_by_others(parent):
                yield from trees.program_trees(Path(entry.path), self.grounds)

    def _interpreter(self, program: Path) -> Iterator[Path]:
        """What the interpreter of a script needs; many scripts share one, which is looked at once."""
        if program not in self.seen:
            self.seen.add(program)
            yield from trees.program_trees(program, self.grounds)


def find_toolchains(
    path: str, home: Path, *, hidden: tuple[Path, ...], variables: Mapping[str, str] = _NO_VARIABLES
) -> Toolchains:
    """Resolve the operator's PATH. `hidden` is what no tree may show: the state, configuration and cache directories.

    Of `variables` those count that choose a version: PYENV_VERSION and its kin, RUSTUP_HOME, RUSTUP_TOOLCHAIN.
    """
    real_home = Path(os.path.realpath(home))
    search = _Search(trees.HiddenPaths(real_home, hidden), real_home, variables)
    for entry in dict.fromkeys(path.split(os.pathsep) if path else ()):
        search.add(entry)
    search.take(versions.uv_pythons(real_home))
    folders = [*map(str, search.path), *SYSTEM_PATH.split(":")]
    return Toolchains(
        trees.as_binds(search.shown, home),
        os.pathsep.join(dict.fromkeys(folders)),
        tuple(dict.fromkeys(search.left_out)),
    )


def resolve_program(name: str, toolchains: Toolchains) -> Path | None:
    """The program that a name means inside, by its path, which is the same on the host; None where there is none."""
    if not name or "/" in name:
        return None
    for folder in toolchains.path.split(os.pathsep):
        program = Path(folder) / name
        if program.is_file() and os.access(program, os.X_OK):
            return program
    return None


def binds_for(program: Path, *, home: Path | None = None, hidden: tuple[Path, ...] = ()) -> tuple[Bind, ...]:
    """What one program needs that lies outside the system, itself included, each at its own real path.

    Start it inside by the path that `follow` gives: a link to it is not shown.
    """
    return trees.as_binds(trees.program_trees(program, trees.HiddenPaths(home, hidden)), home)


_HINTS = {
    **{name: f"uv tool install {name}" for name in ("ruff", "mypy", "tox", "nox", "pre-commit", "black", "flake8")},
    **{name: f"uv tool install {name}" for name in ("poetry", "hatch", "pdm")},
    **{name: f"npm install --global {name}" for name in ("yarn", "pnpm", "bun")},
    "pytest": "add pytest to the project's development dependencies: uv add --dev pytest",
    "uv": "pip install --user uv",
    "pip": "apt-get install python3-pip",
    "python": "apt-get install python3 python-is-python3",
    "python3": "apt-get install python3",
    "node": "apt-get install nodejs",
    "npm": "apt-get install npm",
    "npx": "apt-get install npm",
    "go": "apt-get install golang-go",
    "gofmt": "apt-get install golang-go",
    "golangci-lint": "go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@latest",
    "cargo": "apt-get install cargo",
    "rustc": "apt-get install rustc",
    "rustfmt": "rustup component add rustfmt",
    "cargo-clippy": "rustup component add clippy",
    "make": "apt-get install make",
    "cmake": "apt-get install cmake",
    "ninja": "apt-get install ninja-build",
    "gcc": "apt-get install gcc",
    "g++": "apt-get install g++",
    "cc": "apt-get install gcc",
    "clang": "apt-get install clang",
    "git": "apt-get install git",
    "bash": "apt-get install bash",
    "java": "apt-get install default-jdk-headless",
    "javac": "apt-get install default-jdk-headless",
    "mvn": "apt-get install maven",
    "gradle": "apt-get install gradle",
    "ruby": "apt-get install ruby",
    "bundle": "apt-get install ruby-bundler",
    "php": "apt-get install php-cli",
    "composer": "apt-get install composer",
    "docker": "apt-get install docker.io",
    "podman": "apt-get install podman",
    "bwrap": "apt-get install bubblewrap",
    "shellcheck": "apt-get install shellcheck",
    "pg_isready": "apt-get install postgresql-client",
    "psql": "apt-get install postgresql-client",
    "jq": "apt-get install jq",
}


def install_hint(name: str) -> str:
    """The command that brings a missing program, or where to put it for the sandbox to see it."""
    known = _HINTS.get(name)
    if known is None and re.fullmatch(r"python3?\.\d+", name):
        known = f"uv python install {name.removeprefix('python')}"
    return known or f"install {name} so that it is on PATH, outside of any work tree"


def _meet(folder: Path, tree: Path) -> bool:
    return folder.is_relative_to(tree) or tree.is_relative_to(folder)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return [entry for entry, _ in zip(found, range(_MOST_PROGRAMS), strict=False)]
    except OSError:
        return []
