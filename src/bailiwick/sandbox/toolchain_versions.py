"""Managers of versions put shims on PATH that choose a tool at each start; here the choice is made once, on the host.

A shim needs its manager, the manager its configuration and often a writable directory: none of that is inside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Chosen:
    """What stands for a directory of shims: trees to bind, and directories for PATH."""

    trees: tuple[Path, ...] = ()
    path: tuple[Path, ...] = ()


def from_shims(folder: Path, home: Path, variables: Mapping[str, str]) -> Chosen | None:
    """What a directory of PATH chooses; None where it holds no shims of a known manager."""
    root = folder.parent
    if folder.name == "shims" and (root / "installs").is_dir():
        return _installs(root, home)
    if folder.name == "shims" and (root / "versions").is_dir():
        return _versions(root, variables)
    if root.name in (".pyenv", ".rbenv", ".nodenv", ".goenv", ".asdf") or folder.name == "condabin":
        return Chosen()  # the manager itself, or a plugin's shims
    if folder.name == "shims" and "plugins" in folder.parts:
        return Chosen()
    if folder.name == "bin" and (folder / "rustup").exists():
        return _rustup(folder, home, variables)
    return None


def uv_pythons(home: Path) -> Chosen:
    """The Pythons that uv has installed for this person, the newest first."""
    root = home / ".local" / "share" / "uv" / "python"
    found = [tree for tree in _newest_first(root) if (tree / "bin").is_dir() and not tree.is_symlink()]
    return Chosen(tuple(found), tuple(tree / "bin" for tree in found))


def _versions(root: Path, variables: Mapping[str, str]) -> Chosen:
    """The way of pyenv and its kin: the variable, else the global file, else the newest version there is.

    Of pyenv the other Pythons come after it, so that `python3.12` is found where a project needs exactly that.
    """
    name = root.name.lstrip(".")
    asked = variables.get(f"{name.upper()}_VERSION", "").split(":")
    wanted = [version for version in asked if version] or _read(root / "version").split()
    available = _newest_first(root / "versions")
    if not wanted:
        wanted = [tree.name for tree in available if re.fullmatch(r"[\d.]+", tree.name)][:1]
    trees = [_pick(available, version) for version in wanted if version != "system"]
    real = [Path(os.path.realpath(tree)) for tree in trees if tree is not None]
    bases = [tree.parent.parent for tree in real if tree.parent.name == "envs"]  # a virtual environment and its Python
    others = [tree for tree in map(Path, map(os.path.realpath, available)) if name == "pyenv" and _is_python(tree)]
    folders = dict.fromkeys(tree / "bin" for tree in (*real, *others))
    return Chosen((*real, *bases, *others), tuple(folder for folder in folders if folder.is_dir()))


def _is_python(tree: Path) -> bool:
    """Whether a tree is a plain installation of Python 3, which a project may ask for by its version."""
    return re.fullmatch(r"3\.\d+\.\d+", tree.name) is not None and tree.parent.name == "versions"


def _installs(root: Path, home: Path) -> Chosen:
    """The way of mise and asdf: what the person's global files ask for, else the newest version of each tool."""
    wanted = _global_tools(home)
    trees: list[Path] = []
    for tool in _folders(root / "installs"):
        available = _newest_first(tool)
        asked = [_pick(available, version) for version in wanted.get(tool.name, ())]
        picked = [tree for tree in asked if tree is not None] or [t for t in available if not t.is_symlink()][:1]
        trees += [Path(os.path.realpath(tree)) for tree in picked]
    return Chosen(tuple(trees), tuple(folder for tree in trees if (folder := _program_folder(tree)) is not None))


def _global_tools(home: Path) -> dict[str, list[str]]:
    """Tool to versions, of the person's own `.tool-versions` and mise configuration; the latter wins."""
    wanted: dict[str, list[str]] = {}
    for line in _read(home / ".tool-versions").splitlines():
        name, *versions = line.split("#")[0].split()[:8] or [""]
        if name and versions:
            wanted[name] = versions
    import tomllib

    try:
        tools = tomllib.loads(_read(home / ".config" / "mise" / "config.toml")).get("tools", {})
    except tomllib.TOMLDecodeError:
        tools = {}
    for name, value in tools.items() if isinstance(tools, dict) else ():
        values = value if isinstance(value, list) else [value]
        texts = [entry.get("version") if isinstance(entry, dict) else entry for entry in values]
        wanted[str(name)] = [text for text in texts if isinstance(text, str)]
    return wanted


def _program_folder(tree: Path) -> Path | None:
    """Where an installed tool keeps its programs: `bin`, the tree itself, or its only folder."""
    candidates = [tree / "bin", tree, *(folder for folder in _folders(tree)[:8])]
    candidates += [folder / "bin" for folder in candidates[2:]]
    return next((folder for folder in candidates if folder.is_dir() and any(_programs(folder))), None)


def _rustup(folder: Path, home: Path, variables: Mapping[str, str]) -> Chosen:
    """Proxies of rustup stand for the default toolchain; what `cargo install` put beside them is taken file by file."""
    root = Path(variables.get("RUSTUP_HOME") or home / ".rustup")
    settings = re.search(r'^default_toolchain\s*=\s*"([^"]+)"', _read(root / "settings.toml"), re.MULTILINE)
    wanted = variables.get("RUSTUP_TOOLCHAIN") or (settings[1] if settings else "stable")
    tree = _pick(_newest_first(root / "toolchains"), wanted)
    trees = [] if tree is None else [Path(os.path.realpath(tree))]
    others = [path for path in _programs(folder) if not _is_proxy(path, folder / "rustup")]
    return Chosen((*trees, *others), (*(tree / "bin" for tree in trees), *([folder] if others else [])))


def _is_proxy(path: Path, rustup: Path) -> bool:
    try:
        return path.samefile(rustup) or path.name in ("cargo", "rustc", "rustdoc", "rustfmt")
    except OSError:
        return True


def _pick(available: list[Path], version: str) -> Path | None:
    """The tree of exactly this version, else the newest of that line: `3.11` is `3.11.9`."""
    version = version.removeprefix("prefix:").removeprefix("python-")
    for tree in available:
        if tree.name in (version, f"v{version}"):
            return tree
    for tree in available:
        if re.match(rf"v?{re.escape(version)}[.\-]", tree.name):
            return tree
    return available[0] if version in ("latest", "lts") and available else None


def _newest_first(root: Path) -> list[Path]:
    return sorted(_folders(root), key=lambda path: _version_key(path.name), reverse=True)


def _version_key(name: str) -> list[tuple[int, int, str]]:
    """Numbers compare as numbers, and what is no number comes before each number."""
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in re.findall(r"\d+|[^\d.]+", name)]


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(path for path in root.iterdir() if path.is_dir())
    except OSError:
        return []


def _programs(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(folder.iterdir())
    except OSError:
        return
    yield from (path for path in names if path.is_file() and os.access(path, os.X_OK))


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")[:65536]
    except OSError:
        return ""
