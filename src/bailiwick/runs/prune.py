"""Letting go of ended runs: journal, directory, workspace, the home of their agents, and pins that no run uses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bailiwick.engine.graph import from_json
from bailiwick.errors import UsageError
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.runs.disk import directories, size_of
from bailiwick.runs.query import facts
from bailiwick.runtime.assemble import Runtime

Tree = tuple[RunRow, tuple[RunRow, ...]]
ENDED = ("done", "failed")
YOUNG_PIN = 3600.0
"""A pin this young may belong to a run that is being started right now."""


@dataclass(frozen=True, slots=True)
class PruneItem:
    """A run that goes, with its children and what they have on disk."""

    row: RunRow
    members: tuple[RunRow, ...]
    paths: tuple[Path, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What went, the bytes that came free, and what had to stay with the reason."""

    gone: tuple[RunRow, ...]
    kept: tuple[tuple[RunRow, str], ...]
    pins: int
    size: int


def ended_at(row: RunRow) -> float:
    """When a run ended; a row that does not say counts from its start."""
    return float(facts(row).get("ended_at") or row.created_at)


def select(rows: Iterable[RunRow], now: float, older_than: float, keep: int = 0) -> list[Tree]:
    """Trees that may go: ended as a whole, `older_than` seconds ago or more, not among a workflow's newest `keep`.

    Newest first, so that a fork goes before the run whose journal it reads.
    """
    every = sorted(rows, key=lambda row: (-ended_at(row), row.id))
    trees: dict[str, list[RunRow]] = {}
    for row in every:
        trees.setdefault(row.root_id, []).append(row)
    seen: dict[str, int] = {}
    out = []
    for row in every:
        tree = trees[row.root_id]
        if row.parent is not None or any(member.status not in ENDED for member in tree):
            continue
        seen[row.workflow] = seen.get(row.workflow, 0) + 1
        if seen[row.workflow] > keep and all(now - ended_at(member) >= older_than for member in tree):
            out.append((row, tuple(tree)))
    return out


async def plan(runtime: Runtime, older_than: float, keep: int = 0) -> list[PruneItem]:
    """What `prune` would remove, with sizes. Changes nothing."""
    rows = await runtime.store.runs(RunFilter(archived=True))
    out = []
    for row, members in select(rows, runtime.clock.now(), older_than, keep):
        paths = [path for member in members for path in _paths(runtime, member)]
        out.append(PruneItem(row, members, tuple(paths), sum(map(size_of, paths))))
    return out


def _paths(runtime: Runtime, row: RunRow) -> list[Path]:
    places = (Path(runtime.workspace(row.id)), runtime.state_dir / "homes" / row.id)
    own = [place for place in places if place.is_dir() and not place.is_symlink()]
    return [*directories(runtime, row), *own]


async def prune(runtime: Runtime, doomed: Iterable[PruneItem]) -> Pruned:
    """Remove the runs, then their files: a crash in between leaves files, never a run without its journal."""
    gone: list[RunRow] = []
    kept: list[tuple[RunRow, str]] = []
    size = 0
    for item in sorted(doomed, key=lambda d: -d.row.created_at):
        try:
            await runtime.store.delete(item.row.id)
        except UsageError as error:
            kept.append((item.row, error.what))
            continue
        for path in item.paths:
            shutil.rmtree(path, ignore_errors=True)
        gone.append(item.row)
        size += item.size
    pins, freed = await sweep_pins(runtime)
    return Pruned(tuple(gone), tuple(kept), pins, size + freed)


async def sweep_pins(runtime: Runtime) -> tuple[int, int]:
    """Remove pins that no run can need, set aside first and looked at once more; gives how many and their bytes."""
    root = runtime.pins.root
    if not root.is_dir():
        return 0, 0
    now = runtime.clock.now()
    there = {path.name: path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")}
    old = {name for name, path in there.items() if now - path.stat().st_mtime >= YOUNG_PIN}
    unused = old - await _used(runtime) if old else set()
    aside = {name: there[name].rename(root / f".{name}.unused") for name in sorted(unused)}
    needed = await _used(runtime) if aside else set()
    count = size = 0
    for name, path in aside.items():
        if name in needed:
            path.rename(there[name])
            continue
        size += size_of(path)
        count += 1
        shutil.rmtree(path, ignore_errors=True)
    return count, size


async def _used(runtime: Runtime) -> set[str]:
    """Every definition that a run has or had (a fork may go back to one), with those that it calls."""
    store = runtime.store
    found: set[str] = set()
    waiting: list[str] = []
    for row in await store.runs(RunFilter(archived=True)):
        waiting.append(row.definition)
        named = [e for e in await store.read(row.id) if e.type in ("RunCreated", "DefinitionAdopted")]
        waiting += [str(json.loads(event.body)["definition"]) for event in named]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += from_json(await store.definition(name)).calls.values()
    return found
