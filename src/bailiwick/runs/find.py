"""Finding a run by what a person types: its name, its workflow, its id or a part of it, or its directory."""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from bailiwick.errors import NotFound, UsageError
from bailiwick.journal.port import Store
from bailiwick.journal.rows import RunFilter, RunRow
from bailiwick.runs.disk import uid_of

LISTED, NEAR = 6, 1000
"""Runs that are named where several fit, and the newest ones among which one with a similar name is looked for."""
SHORTEST_ID = 3
"""Signs of an id that are enough to mean it."""


def name_of(row: RunRow) -> str:
    """How a run is called: `<workflow>-<run id>`."""
    return f"{row.workflow}-{row.run_key}"


async def runs_named(store: Store, name: str, *, archived: bool = False) -> list[RunRow]:
    """The runs of this whole name. Both parts may have dashes, so it is taken apart at each of them."""
    parts = name.split("-")
    pairs = [("-".join(parts[:at]), "-".join(parts[at:])) for at in range(1, len(parts))]
    return [
        row
        for workflow, key in pairs
        for row in await store.runs(RunFilter(workflow=workflow, run_key=key, archived=archived), limit=LISTED + 1)
    ]


async def find_run(store: Store, text: str) -> RunRow:
    """The run meant by `text`. Raises `NotFound` with the nearest names, `UsageError` when several fit."""
    uid = uid_of(Path(text))
    if uid is not None and (row := await store.run(uid)) is not None:
        return row
    async for found in _meant(store, text):
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(name_of(r) for r in found[:LISTED])
            raise UsageError(f"'{text}' matches several runs: {names}", hint="name one of them", code="BW208")
    newest = await store.runs(RunFilter(archived=True), limit=NEAR)
    near = difflib.get_close_matches(text, [name_of(r) for r in newest], 3)
    hint = f"did you mean {', '.join(near)}?" if near else "bailiwick runs list shows the runs there are"
    raise NotFound(f"no run '{text}'", hint=hint)


async def _meant(store: Store, text: str) -> AsyncIterator[list[RunRow]]:
    """The runs that fit each thing that `text` may be, the likeliest first; those set aside where no other does."""
    yield await runs_named(store, text) or await runs_named(store, text, archived=True)
    meanings = [
        RunFilter(workflow=text, run_key="default"),
        RunFilter(workflow=text, called=False),
        RunFilter(run_key=text),
    ]
    for which in [*meanings, RunFilter(id=text)] if len(text) >= SHORTEST_ID else meanings:
        found = await store.runs(which, limit=LISTED + 1)
        yield found or await store.runs(replace(which, archived=True), limit=LISTED + 1)
