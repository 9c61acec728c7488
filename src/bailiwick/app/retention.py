"""What takes space, by kind, and what of it is kept no longer. Never what waits for a person or is the only copy."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bailiwick.app.service import App
from bailiwick.config.service import Config
from bailiwick.environments.prepared import FOLDER as ENVIRONMENTS
from bailiwick.environments.prepared import last_used, sweep_environments
from bailiwick.errors import BailiwickError
from bailiwick.git.packing import PackingDue, pack_git_dir, packing_due
from bailiwick.git.worktrees import Worktree, Worktrees
from bailiwick.journal.opening import database_of
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.proposals.model import Proposal
from bailiwick.proposals.store import ProposalStore
from bailiwick.runs.disk import directories, size_of
from bailiwick.runs.find import name_of
from bailiwick.runs.prune import PruneItem, ended_at, plan, prune
from bailiwick.terminal.output import counted

TRANSCRIPT = "transcript.jsonl"
ENDED = ("done", "failed")


@dataclass(frozen=True, slots=True)
class Kept:
    """What one kind of thing takes: bytes, how many there are."""

    kind: str
    size: int
    count: int


@dataclass(frozen=True, slots=True)
class Going:
    """One thing that is kept no longer, why, and how it goes."""

    kind: str
    name: str
    size: int
    why: str
    remove: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class StorageUsage:
    """All of it: what is there, what would go, and the limits that hold."""

    kinds: tuple[Kept, ...]
    going: tuple[Going, ...]
    free: int
    max_disk: int | None
    min_free: int

    @property
    def size(self) -> int:
        """The bytes of everything."""
        return sum(kind.size for kind in self.kinds)


async def look(app: App) -> StorageUsage:
    """Measure everything and say what would go. Changes nothing."""
    config, now = app.config, app.runtime.clock.now()
    rows = await app.runtime.store.runs(RunFilter(archived=True))
    proposals = await ProposalStore(app.store, config.paths.state).all()
    doomed = await plan(app.runtime, float(config.get("retention.runs")))
    safe = [one for one in doomed if not _waits(one, proposals)]
    going = [
        *(_run(app, one, "its time is over (retention.runs)") for one in safe),
        *_transcripts(app, rows, now),
        *await _worktrees(app, rows, proposals, now),
        *_environments(config, now),
        *(_packed(due, now) for due in packing_due(config.paths.state)),
    ]
    kinds = await _kinds(app, rows)
    over = sum(kind.size for kind in kinds) - sum(one.size for one in going)
    going += await _oldest(app, proposals, {one.row.id for one in safe}, over)
    free = shutil.disk_usage(config.paths.state).free
    most, least = config.get("retention.max_disk"), int(config.get("retention.min_free") or 0)
    return StorageUsage(kinds, going=tuple(going), free=free, max_disk=most, min_free=least)


async def apply(going: Iterable[Going]) -> int:
    """Remove what goes; gives the bytes that came free."""
    size = 0
    for one in going:
        await one.remove()
        size += one.size
    return size


async def _kinds(app: App, rows: list[RunRow]) -> tuple[Kept, ...]:
    config = app.config
    state, cache = config.paths.state, config.paths.cache
    folders = {path for row in rows for path in directories(app.runtime, row)}
    transcripts = [file for folder in folders for file in folder.rglob(TRANSCRIPT)]
    spoken = sum(_bytes(file) for file in transcripts)
    database = [file for file in state.glob(f"{database_of(state).name}*") if file.is_file()]
    return (
        Kept("journal", sum(map(_bytes, database)) + size_of(state / "blobs"), len(rows)),
        Kept("runs", sum(map(size_of, folders)) - spoken, len(folders)),
        Kept("transcripts", spoken, len(transcripts)),
        *(_folder(kind, state / name) for kind, name in FOLDERS.items()),
        _folder("environments", cache / ENVIRONMENTS),
    )


FOLDERS = {
    "workspaces": "workspaces",
    "homes": "homes",
    "worktrees": "worktrees",
    "git": "git",
    "pins": "pins",
    "proposals": "proposals",
    "reports": "gates",
    "audit": "audit",
    "notes": "brain",
    "calls": "sessions",
}
"""Kinds of things that have a folder of their own in the state directory."""


def _folder(kind: str, path: Path) -> Kept:
    there = [one for one in path.iterdir() if not one.name.startswith(".")] if path.is_dir() else []
    return Kept(kind, size_of(path), len(there))


def _bytes(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0


def _waits(one: PruneItem, proposals: Iterable[Proposal]) -> bool:
    """Whether a person may still act on what a tree made."""
    members = {member.id for member in one.members}
    return any(proposal.live and members & {proposal.run, *proposal.runs} for proposal in proposals)


def _run(app: App, one: PruneItem, why: str) -> Going:
    async def remove() -> None:
        await prune(app.runtime, [one])

    return Going("runs", name=name_of(one.row), size=one.size, why=why, remove=remove)


def _transcripts(app: App, rows: Iterable[RunRow], now: float) -> list[Going]:
    """What agents said in runs that ended: the files that people read, and the homes in which sessions are kept."""
    limit = float(app.config.get("retention.transcripts"))
    trees: dict[str, list[RunRow]] = {}
    for row in rows:
        trees.setdefault(row.root_id, []).append(row)
    out = []
    for tree in trees.values():
        if any(row.status not in ENDED or now - ended_at(row) < limit for row in tree):
            continue
        for row in tree:
            files = [file for folder in directories(app.runtime, row) for file in folder.rglob(TRANSCRIPT)]
            home = app.runtime.state_dir / "homes" / row.id
            size = sum(map(_bytes, files)) + (size_of(home) if home.is_dir() else 0)
            if size:
                why = "its run ended long ago (retention.transcripts)"
                out.append(Going("transcripts", name=name_of(row), size=size, why=why, remove=_removal([*files, home])))
    return out


def _removal(paths: list[Path]) -> Callable[[], Awaitable[None]]:
    async def remove() -> None:
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    return remove


async def _worktrees(app: App, rows: Iterable[RunRow], proposals: list[Proposal], now: float) -> list[Going]:
    """Worktrees whose proposal ended: its commits are in our git directory. Without a proposal it is the only copy."""
    limit = float(app.config.get("retention.worktrees"))
    trees = Worktrees(app.config.paths.state, app.runtime.clock)
    going_on = {row.id for row in rows if row.status not in ENDED}
    out = []
    for worktree in await trees.list():
        own = [one for one in proposals if worktree.run in (one.run, *one.runs)]
        if not own or any(one.live or now - one.updated < limit for one in own) or worktree.run in going_on:
            continue
        why = "its proposal ended (retention.worktrees)"
        out.append(
            Going("worktrees", name=worktree.id, size=size_of(worktree.path), why=why, remove=_discard(trees, worktree))
        )
    return out


def _discard(trees: Worktrees, worktree: Worktree) -> Callable[[], Awaitable[None]]:
    async def remove() -> None:
        await trees.remove(worktree)

    return remove


def _packed(due: PackingDue, now: float) -> Going:
    """Files of a git dir become one pack; every object stays."""

    async def remove() -> None:
        await pack_git_dir(due.git_dir, now)

    why = f"{counted(due.loose, 'loose object')} and {counted(due.packs, 'pack')} become one pack; every object stays"
    return Going("git", name=due.git_dir.name, size=due.size, why=why, remove=remove)


def _environments(config: Config, now: float) -> list[Going]:
    """Prepared environments that nobody used; each can be made again."""
    limit, cache = float(config.get("retention.environments")), config.paths.cache

    async def remove() -> None:
        sweep_environments(cache, limit, now)

    there = [path for path in sorted((cache / ENVIRONMENTS).glob("*")) if path.is_dir()]
    unused = [path for path in there if now - last_used(path) > limit]
    why = "unused for too long (retention.environments)"
    return [Going("environments", name=path.name, size=size_of(path), why=why, remove=remove) for path in unused]


async def _oldest(app: App, proposals: list[Proposal], gone: set[str], size: int) -> list[Going]:
    """Ended runs, the oldest first, while all of it takes more than it may."""
    most = app.config.get("retention.max_disk")
    out: list[Going] = []
    if most is None or size <= int(most):
        return out
    for one in reversed(await plan(app.runtime, 0.0)):
        if size <= int(most):
            break
        if one.row.id not in gone and not _waits(one, proposals):
            out.append(_run(app, one, "all of it takes more than it may (retention.max_disk)"))
            size -= one.size
    return out


async def keep_to_retention(app: App) -> None:
    """Remove what is kept no longer; a standing worker is who is there to do it."""
    try:
        usage = await look(app)
        freed = await apply(usage.going)
    except (BailiwickError, OSError) as error:
        app.runtime.on_trouble("", f"what retention no longer keeps could not be removed: {error}")
        return
    if usage.going:
        app.runtime.on_trouble("", f"retention removed {counted(len(usage.going), 'item')}, {freed // 10**6:,} MB")
