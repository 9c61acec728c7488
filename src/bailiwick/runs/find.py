"""Finding a run by what a person types: its name, its workflow, its id or a part of it, or its directory."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from bailiwick.errors import NotFound, UsageError
from bailiwick.journal.port import Store
from bailiwick.journal.rows import RunRow
from bailiwick.runs.disk import uid_of


def name_of(row: RunRow) -> str:
    """How a run is called: `<workflow>-<run id>`."""
    return f"{row.workflow}-{row.run_key}"


async def find_run(store: Store, text: str) -> RunRow:
    """The run meant by `text`. Raises `NotFound` with the nearest names, `UsageError` when several fit."""
    rows = await store.runs(archived=True)
    directory = uid_of(Path(text))
    tests: tuple[Callable[[RunRow], bool], ...] = (
        lambda r: r.id == directory,
        lambda r: name_of(r) == text,
        lambda r: r.workflow == text and r.run_key == "default",
        lambda r: r.workflow == text and r.parent is None,
        lambda r: r.run_key == text,
        lambda r: len(text) >= 3 and r.id.startswith(text),
    )
    for fits in tests:
        found = [row for row in rows if fits(row) and not row.archived] or [row for row in rows if fits(row)]
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(name_of(r) for r in found[:6])
            raise UsageError(f"'{text}' matches several runs: {names}", hint="name one of them", code="BW208")
    near = difflib.get_close_matches(text, [name_of(r) for r in rows], 3)
    hint = f"did you mean {', '.join(near)}?" if near else "bailiwick runs list shows the runs there are"
    raise NotFound(f"no run '{text}'", hint=hint)
