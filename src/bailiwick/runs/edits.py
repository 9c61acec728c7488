"""Whether the files of a workflow were edited since a run was pinned to them, and what a person is told about it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from bailiwick.engine.events import DefinitionAdopted
from bailiwick.errors import BailiwickError
from bailiwick.ids import Json, digest
from bailiwick.journal.port import Store
from bailiwick.journal.rows import RunRow
from bailiwick.lang.load import Loaded
from bailiwick.runs.find import name_of
from bailiwick.runtime.history import RunReader
from bailiwick.runtime.pins import pin_all

NAMED = 3
"""Edited files that are named one by one."""
STARTED_WITH, ADOPTED = "the files it was started with", "the files it adopted last"


async def edited(store: Store, row: RunRow, loaded: Loaded) -> tuple[str, ...]:
    """The files, called workflows' included, that differ from those a run is pinned to; sorted by name."""
    now, pinned = pin_all(loaded)
    if now == row.definition:
        return ()
    there = {item.digest: item.body for item in pinned}
    found = await _differences(store, await store.definition(row.definition), there[now], there)
    return tuple(sorted(found))


async def _differences(store: Store, old: Json, new: Json, there: Mapping[str, Json]) -> set[str]:
    """The names that differ, each called workflow looked at once."""
    found: set[str] = set()
    ahead, seen = [("", old, new)], set[str]()
    while ahead:
        prefix, one, other = ahead.pop()
        before, after = one["files"], other["files"]
        found |= {f"{prefix}{name}" for name in {*before, *after} if before.get(name) != after.get(name)}
        for name in {*one["calls"], *other["calls"]}:
            was, now = one["calls"].get(name), other["calls"].get(name)
            if was is None or now is None:
                found.add(f"{prefix}{name}")
            elif was != now and was not in seen:
                seen.add(was)
                ahead.append((f"{prefix}{name}/", await store.definition(was), there[now]))
    return found


async def pin_notices(library: RunReader, row: RunRow, loaded: Loaded) -> tuple[str, ...]:
    """What is said of the files when a run is found again, given those in its source as they are now."""
    names = await edited(library.store, row, loaded)
    over, pinned = await _standing(library, row)
    if over:
        return (f"its files were edited since: {_listed(names)}" if names else "its files are the same as then",)
    if not names:
        return (f"goes on with {pinned}",) if row.status == "failed" else ()
    ways = f"adopt them: bailiwick runs reload {name_of(row)}; start over: --fresh"
    return (f"goes on with {pinned}; edited since: {_listed(names)} ({ways})",)


async def source_notices(library: RunReader, row: RunRow, person: Path) -> tuple[str, ...]:
    """The same where the source has to be looked at first: it may be gone, or have problems now."""
    over, pinned = await _standing(library, row)
    if not row.source or not Path(row.source).exists():
        return () if over else (f"goes on with {pinned}; {row.source or 'their source'} is not there any more",)
    if not over and await _is_as_pinned(library.store, row):
        return (f"goes on with {pinned}",) if row.status == "failed" else ()
    from bailiwick.workflows.service import load_workflow

    try:
        loaded = load_workflow(row.source, Path(row.source), person)
    except BailiwickError:
        problems = f"see: bailiwick validate {shlex.quote(row.source)}"
        said = f"those in {row.source} were edited since and have problems ({problems})"
        return (said if over else f"goes on with {pinned}; {said}",)
    return await pin_notices(library, row, loaded)


async def _is_as_pinned(store: Store, row: RunRow) -> bool:
    """Whether a workflow that calls no other has the files it is pinned to; told without reading any as YAML."""
    body = await store.definition(row.definition)
    if body["calls"]:
        return False
    root = Path(row.source)
    try:
        return all(digest((root / name).read_bytes()) == known for name, known in body["files"].items())
    except OSError:
        return False


async def _standing(library: RunReader, row: RunRow) -> tuple[bool, str]:
    """Whether a run has ended for good (it is done, or a `fail` node ended it), and what its files are called."""
    entries = await library.history(row.id)
    adopted = any(isinstance(event, DefinitionAdopted) for _, _, event in entries)
    over = row.status == "done" or (row.status == "failed" and library.replay(entries).ended)
    return over, ADOPTED if adopted else STARTED_WITH


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
