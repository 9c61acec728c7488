"""Points of a run that people name: `NODE`, `NODE@VISIT`, or where it stands. Pure."""

from __future__ import annotations

from bailiwick.engine.events import Entry
from bailiwick.engine.state import Phase, State
from bailiwick.errors import UsageError
from bailiwick.runs.control import Point, find_point


def read_point(text: str) -> tuple[str, int | None]:
    """The node and the visit in `NODE` or `NODE@VISIT`; raises `UsageError`."""
    node, at, number = text.partition("@")
    if not node or (at and not (number.isascii() and number.isdigit() and len(number) < 10 and int(number) > 0)):
        raise UsageError(f"'{text}' names no visit", hint="write NODE or NODE@VISIT, such as build@2", code="BW242")
    return node, int(number) if at else None


def standing_point(entries: list[Entry], state: State, name: str) -> Point:
    """Where a run stands: before the visit it is in or failed at, or before a node that it has not entered yet."""
    root = state.scopes[""]
    if state.status == "done" or state.ended:
        raise UsageError(
            f"run '{name}' has ended at '{root.cursor}': say where to fork it",
            hint=f"--at NODE[@VISIT]; bailiwick runs show {name} lists the visits",
            code="BW243",
        )
    entered = root.visit or state.status == "failed"
    if not entered and root.phase in (Phase.READY, Phase.CLOSED):
        return Point(root.cursor, root.visits.get(root.cursor, 0) + 1, entries[-1][0], ())
    return find_point(entries, root.cursor, root.visit or None, name)
