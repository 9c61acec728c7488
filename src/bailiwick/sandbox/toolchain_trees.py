"""Which tree of the host a program needs beside itself, and which trees may be shown inside a sandbox at all."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bailiwick.sandbox.spec import Bind

SYSTEM = tuple(Path(top) for top in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"))
"""What every sandbox shows anyway: it needs no bind."""
_SYSTEM_TEXTS = tuple(f"{top}/" for top in SYSTEM)
_NEVER = frozenset(
    Path("/", name)
    for name in (
        *("", "home", "root", "Users", "opt", "etc", "var", "run", "proc", "sys", "dev", "tmp", "srv", "mnt", "media"),
        *("boot", "snap", "nix"),
    )
)
"""Not of one tool but of the machine, or of everybody."""
_PRIVATE = (".ssh", ".gnupg", ".aws", ".kube", ".docker", ".azure", ".netrc", ".password-store", ".mozilla")
"""In a home: neither these nor anything in them is shown."""
_BROAD = (".config", ".local", ".local/share", ".local/lib", ".local/state", ".cache", ".var", "go", "snap")
"""In a home: these are never shown as a whole."""
_MANAGERS = frozenset(
    {".nvm", ".pyenv", ".asdf", ".rbenv", ".nodenv", ".goenv", ".linuxbrew", "Homebrew", ".sdkman", ".volta", ".fnm"}
)
"""Managers of versions that are installed by cloning them: their `.git` makes no work tree of a person."""
_INSTALLED = ("conda-meta", "pyvenv.cfg", "lib", "libexec", "lib64", "Cellar", "include")
"""What beside `bin` makes a directory the prefix of something installed."""
_HOPS = 4
"""How many interpreters of interpreters are followed."""
_SHEBANG = re.compile(rb"#![ \t]*([^\s]+)")
_LONG_SHEBANG = re.compile(rb"^'''exec' \"?(/[^\n\"]+?)\"? \"\$0\"", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HiddenPaths:
    """Whose home it is and which directories no process inside may see: state, configuration, caches."""

    home: Path | None = None
    hidden: tuple[Path, ...] = ()

    def refusal(self, tree: Path) -> str:
        """Why a tree must not be shown, empty where it may; `tree` is a real path."""
        if tree in _NEVER or tree.parent in (Path("/home"), Path("/Users")):
            return "it is not a tree of one tool"
        if self.home is not None and (why := self._refused_by_home(tree, _real(self.home))):
            return why
        for hidden in map(_real, self.hidden):
            if hidden.is_relative_to(tree) or tree.is_relative_to(hidden):
                return f"it would show {hidden}, which is private"
        return ""

    def _refused_by_home(self, tree: Path, home: Path) -> str:
        if home.is_relative_to(tree):
            return "it holds the whole home directory"
        if any(tree.is_relative_to(home / name) for name in _PRIVATE):
            return "it is private"
        if any((home / name).is_relative_to(tree) for name in _BROAD):
            return "it holds more than tools"
        return ""


def is_system(path: Path | str) -> bool:
    """Whether a real path is part of what every sandbox shows."""
    text = str(path)
    return text.startswith(_SYSTEM_TEXTS) or Path(text) in SYSTEM


def in_work_tree(path: Path, home: Path | None) -> bool:
    """Whether a directory lies in somebody's git work tree: tools are never taken from there."""
    if _MANAGERS.intersection(path.parts):
        return False
    stop = {Path("/")} | ({home, *home.parents} if home is not None else set())
    return any((folder / ".git").exists() for folder in (path, *path.parents) if folder not in stop)


def is_virtual_environment(folder: Path) -> bool:
    """Whether Python packages are installed there.

    One that the operator has activated is their tool, also where it lies in their own checkout: no agent writes there.
    """
    return (folder / "pyvenv.cfg").is_file()


def writable_by_others(path: Path) -> bool:
    """Whether somebody besides us and root could replace what is in a directory, or the directory itself."""
    return any(_open_to_others(folder, sticky_helps=folder != path) for folder in (path, *path.parents))


def _open_to_others(path: Path, *, sticky_helps: bool) -> bool:
    try:
        found = path.stat()
    except OSError:
        return True
    if found.st_uid not in (0, os.geteuid()):
        return True
    if sticky_helps and found.st_mode & stat.S_ISVTX:
        return False
    if found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and _has_others(found.st_gid)


def _has_others(group: int) -> bool:
    """Whether a group has a member besides us and root."""
    import grp
    import pwd

    ours = {"root"}
    try:
        ours.add(pwd.getpwuid(os.geteuid()).pw_name)
        return bool(set(grp.getgrgid(group).gr_mem) - ours)
    except KeyError:
        return group not in (0, os.getegid())


def program_trees(program: Path, grounds: HiddenPaths, hops: int = _HOPS) -> Iterator[Path]:
    """The real trees or files that a program needs inside, itself included; those that must not be shown are left out.

    A script brings its interpreter, a virtual environment its Python, a package of Node its neighbours.
    """
    if hops == 0 or not program.exists():
        return
    landing = follow(program)
    tree = _tree_of(landing, grounds)
    if tree is not None:
        yield tree
        if (tree / "pyvenv.cfg").is_file():
            yield from program_trees(_real(tree / "bin" / "python"), grounds, hops - 1)
    interpreter = shebang(landing)
    if interpreter is not None and interpreter != program:
        yield from program_trees(interpreter, grounds, hops - 1)


def follow(program: Path) -> Path:
    """Where the links to a program end, but for the Python of a virtual environment, which has to be started there."""
    seen = 0
    path = Path(os.path.abspath(program))  # noqa: PTH100 - resolve() would follow the very links in question
    while path.is_symlink() and seen < 40:
        if (path.parent.parent / "pyvenv.cfg").is_file():
            break
        path = Path(os.path.abspath(path.parent / os.readlink(path)))  # noqa: PTH100, PTH115 - one link at a time
        seen += 1
    return _real(path.parent) / path.name


def _tree_of(program: Path, grounds: HiddenPaths) -> Path | None:
    """The tree that a program at a real path belongs to, at the least the file itself; None where none may be shown."""
    if is_system(program):
        return None
    wanted = [tree for tree in (_store(program), package(program), prefix(program)) if tree is not None]
    for tree in (*wanted, program):
        if not grounds.refusal(tree):
            return tree
    return None


def _store(program: Path) -> Path | None:
    store = Path("/nix/store")
    return store if program.is_relative_to(store) else None


def package(program: Path) -> Path | None:
    """The tree of an installed Node package: of a binary its own package, of a script all that it may require."""
    if "node_modules" not in program.parts:
        return None
    if shebang(program) is not None:
        top = program.parts.index("node_modules")
        return Path(*program.parts[: top + 1])
    last = len(program.parts) - 1 - program.parts[::-1].index("node_modules")
    depth = 2 if program.parts[last + 1].startswith("@") else 1
    tree = Path(*program.parts[: last + 1 + depth])
    return tree if tree.is_dir() else None


def prefix(program: Path) -> Path | None:
    """The prefix of an installation that a program in a `bin` directory belongs to."""
    folder = program.parent
    if folder.name not in ("bin", "sbin"):
        return None
    return folder.parent if any((folder.parent / name).exists() for name in _INSTALLED) else None


def shebang(program: Path) -> Path | None:
    """The interpreter that a script names by its path; None for `env`, which looks on PATH, and for a binary."""
    try:
        with program.open("rb") as file:
            head = file.read(1024)
    except OSError:
        return None
    found = _SHEBANG.match(head)
    if found is None:
        return None
    if long := _LONG_SHEBANG.search(head):
        return Path(os.fsdecode(long[1]))
    return Path(os.fsdecode(found[1]))


def as_binds(trees: Iterator[Path] | list[Path], home: Path | None = None) -> tuple[Bind, ...]:
    """Read-only binds of trees at their own paths, each once, none below another.

    Where `home` is reached through a link, what is in it is also shown as people and their scripts spell it.
    """
    kept: list[Path] = []
    for tree in sorted(set(trees), key=lambda path: (len(path.parts), str(path))):
        if not is_system(tree) and not any(tree.is_relative_to(above) for above in kept):
            kept.append(tree)
    binds = [Bind(tree, tree) for tree in kept]
    if home is not None and (real := _real(home)) != home:
        binds += [Bind(tree, home / tree.relative_to(real)) for tree in kept if tree.is_relative_to(real)]
    return tuple(binds)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
