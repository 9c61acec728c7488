"""Directories in which agents work: one per run, with an owner record that is out of the agent's reach.

`<state>/worktrees/<id>/` holds `owner.json` and `tree/`; only `tree/` is shown to an agent. The tree has a `.git` of
its own, made before the agent sees it, so that the agent's git works; from then on it is the agent's and is never read
by us. A worktree is made under another name and renamed when it is whole.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from bailiwick import crashpoints
from bailiwick.clock import Clock
from bailiwick.config.paths import make_private
from bailiwick.errors import NotReady, Place
from bailiwick.git.publish import branch_ref
from bailiwick.git.runner import GitOptions, file_url
from bailiwick.git.store import ATTRIBUTES, GitStore
from bailiwick.ids import digest
from bailiwick.journal.rows import Owner
from bailiwick.locks import held
from bailiwick.processes.children import ChildProcess, is_alive
from bailiwick.processes.owner import current_owner
from bailiwick.removal import sweep

DEPTH = 200
"""How many commits of history an agent can look at."""

_SPECIAL = re.compile(r"([\\*?\[\]!# ])")


async def make_tree(git_store: GitStore, tree: Path, commit: str, branch: str, prepared: tuple[str, ...]) -> None:
    """Fill a new directory: the files, the last commits, the branch checked out and clean; no remote, no login.

    This is the only time that we run git on such a `.git`: the agent has not seen it yet.
    """
    ref = branch_ref(branch)
    git = git_store.git
    await git_store.checkout(commit, tree)
    own = tree / ".git"
    await git.out("init", "--quiet", "--template=", f"--object-format={git_store.source.object_format}", str(tree))
    call = GitOptions(git_dir=own, work_tree=tree, transports=("file",), config={"fetch.unpackLimit": "1"})
    options = ("--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--quiet", f"--depth={DEPTH}")
    await git.out("fetch", *options, git.serving, file_url(git_store.git_dir), f"{commit}:{ref}", call=call)
    await git.out("symbolic-ref", "HEAD", ref, call=call)
    info = own / "info"
    info.mkdir(exist_ok=True)
    (info / "exclude").write_text("".join(f"/{_literal(path)}\n" for path in prepared), "utf-8")
    (info / "attributes").write_text(ATTRIBUTES, "utf-8")
    for key, value in {
        "user.name": "agent",
        "user.email": "agent@localhost",
        "commit.gpgSign": "false",
        "core.logAllRefUpdates": "true",
        "gc.auto": "0",
    }.items():
        await git.out("config", "--local", key, value, call=call)
    await git.out("read-tree", commit, call=call)
    await git.run("update-index", "-q", "--refresh", call=call)


def _literal(path: str) -> str:
    """A path as a pattern of an ignore file that matches nothing else."""
    return _SPECIAL.sub(r"\\\1", path.strip("/"))


FOLDER = "worktrees"
TREE = "tree"
RECORD = "owner.json"
CANT_MAKE = "BW420"
CANT_REMOVE = "BW421"

_NEW = re.compile(r"\.new-(\d+)-(\d+)-.*")


@dataclass(frozen=True, slots=True)
class Worktree:
    """A directory of a run: `path` is ours, `tree` in it is the agent's; `base` is the commit it started from."""

    id: str
    path: Path
    tree: Path
    run: str
    branch: str
    base: str
    repository: Path
    owner: Owner
    created: float
    prepared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Orphan:
    """A directory that no living run needs; `run` is empty where nobody can tell whose it was."""

    path: Path
    run: str
    why: str


class Worktrees:
    """All worktrees below a state directory."""

    def __init__(self, state: Path, clock: Clock) -> None:
        self.folder = state / FOLDER
        self.clock = clock

    async def make(
        self, git_store: GitStore, run: str, commit: str, branch: str, *, prepared: tuple[str, ...] = ()
    ) -> Worktree:
        """The worktree of a run, with the files of a commit; one that is already there is given back as it is.

        `prepared` are paths in it that something else will be bound over: the agent's git ignores them.
        """
        make_private(self.folder)
        locks = make_private(self.folder / ".locks")
        async with held(locks / f"{git_store.git_dir.stem}.lock"):
            found = await self.find(run)
            if found is not None:
                return found
            await asyncio.to_thread(self._clear, _id(run))
            return await self._make(
                git_store,
                Worktree(
                    id=_id(run),
                    path=self.folder / _id(run),
                    tree=self.folder / _id(run) / TREE,
                    run=run,
                    branch=branch,
                    base=commit,
                    repository=git_store.repository,
                    owner=current_owner("worktree"),
                    created=self.clock.now(),
                    prepared=prepared,
                ),
            )

    async def _make(self, git_store: GitStore, wanted: Worktree) -> Worktree:
        owner = wanted.owner
        new = self.folder / f".new-{owner.pid}-{owner.start}-{wanted.id}"
        try:
            sweep(new)
            new.mkdir(mode=0o700)
            await make_tree(git_store, new / TREE, commit=wanted.base, branch=wanted.branch, prepared=wanted.prepared)
            _write_record(new / RECORD, wanted)
            if wanted.path.exists():  # without a readable record: nobody can vouch for it
                await asyncio.to_thread(self._put_away, wanted.path)
            await git_store.remember(wanted.tree, wanted.base)
            await git_store.keep(wanted.run, wanted.base)
            crashpoints.reach("worktree.filled")
            new.rename(wanted.path)
            crashpoints.reach("worktree.made")
        except OSError as error:
            raise NotReady(
                f"the worktree can't be made: {error.strerror}",
                hint="free some disk space, or make the state directory writable",
                place=Place(str(wanted.path)),
                code=CANT_MAKE,
            ) from error
        finally:
            sweep(new)
            git_store.forget(new / TREE)
        return wanted

    async def find(self, run: str) -> Worktree | None:
        """The worktree of a run, None where it has none."""
        return _read(self.folder / _id(run))

    async def list(self) -> tuple[Worktree, ...]:
        """All that are whole, oldest first."""
        found = [worktree for path in self._paths() if (worktree := _read(path)) is not None]
        return tuple(sorted(found, key=lambda worktree: (worktree.created, worktree.id)))

    async def remove(self, left: Worktree | Orphan) -> None:
        """Delete a worktree; that its work is safe elsewhere is for the caller to know. None is no error."""
        await asyncio.to_thread(self._put_away, left.path)

    async def clear(self, run: str) -> None:
        """Delete the worktree of a run and whatever a crash left of making or removing it. None is no error."""
        await asyncio.to_thread(self._put_away, self.folder / _id(run))
        await asyncio.to_thread(self._clear, _id(run))

    def _clear(self, name: str) -> None:
        for left in (*self.folder.glob(f".new-*-{name}"), *self.folder.glob(f".gone-*-{name}")):
            self._put_away(left)

    async def orphans(self, is_alive: Callable[[str], bool]) -> tuple[Orphan, ...]:
        """What a crash left: worktrees of runs that are not alive, and ones that were being made or removed."""
        found = []
        for path in self._paths(everything=True):
            if path.name.startswith("."):
                if not _is_being_made(path.name):
                    found.append(Orphan(path, "", "it was being made or removed when its process ended"))
                continue
            worktree = _read(path)
            if worktree is None:
                found.append(Orphan(path, "", "it has no owner record"))
            elif not is_alive(worktree.run):
                found.append(Orphan(path, worktree.run, "its run needs it no more"))
        return tuple(found)

    def _paths(self, *, everything: bool = False) -> tuple[Path, ...]:
        if not self.folder.is_dir():
            return ()
        names = sorted(path.name for path in self.folder.iterdir() if path.name != ".locks")
        return tuple(self.folder / name for name in names if everything or not name.startswith("."))

    def _put_away(self, path: Path) -> None:
        """Delete a directory of ours: out of sight at once, then gone."""
        if path.parent != self.folder:
            raise NotReady("this is not a worktree of ours", place=Place(str(path)), code=CANT_REMOVE)
        gone = path
        if not path.name.startswith("."):
            gone = self.folder / f".gone-{os.getpid()}-{path.name}"
            try:
                sweep(gone)
                path.rename(gone)
                crashpoints.reach("worktree.put_away")
            except FileNotFoundError:
                return
        try:
            sweep(gone)
        except OSError as error:
            raise NotReady(
                f"the worktree can't be removed: {error.strerror}",
                hint=f"remove it by hand: sudo rm -rf {gone}",
                place=Place(str(gone)),
                code=CANT_REMOVE,
            ) from error


def _id(run: str) -> str:
    return digest(f"worktree\0{run}")[:16]


def _is_being_made(name: str) -> bool:
    """Whether the process that a temporary name tells of is alive."""
    match = _NEW.fullmatch(name)
    return match is not None and is_alive(ChildProcess(int(match[1]), int(match[2])))


def _write_record(file: Path, worktree: Worktree) -> None:
    record = asdict(worktree) | {"path": None, "tree": None, "repository": str(worktree.repository)}
    with file.open("x", encoding="utf-8") as out:
        json.dump(record, out, indent=1)
        out.flush()
        os.fsync(out.fileno())


def _read(path: Path) -> Worktree | None:
    """The worktree at a path, None where there is no whole one."""
    try:
        record = json.loads((path / RECORD).read_text("utf-8"))
        values = record | {
            "path": path,
            "tree": path / TREE,
            "repository": Path(record["repository"]),
            "owner": Owner(**record["owner"]),
            "prepared": tuple(record["prepared"]),
        }
        return Worktree(**values)
    except (OSError, ValueError, TypeError, KeyError):
        return None
