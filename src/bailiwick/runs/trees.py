"""A run as a tree: its branches and items, and the runs it called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from bailiwick.engine.state import Phase, Scope, State
from bailiwick.ids import Json
from bailiwick.journal.rows import RunRow
from bailiwick.runs.find import name_of
from bailiwick.runs.query import children_of, facts
from bailiwick.runtime.history import RunReader

MOST = 20
"""So many members of one construct are shown one by one, those that are not over first; the rest is counted."""
_WORDS = {Phase.PENDING: "pending", Phase.WAITING: "waiting", Phase.FAILED: "failed"}


@dataclass(slots=True)
class RunTreeRow:
    """A run or a scope with what is below it."""

    label: str
    state: str
    note: str = ""
    members: list[RunTreeRow] = field(default_factory=list)

    def document(self) -> dict[str, Json]:
        """The same as a JSON object."""
        members = [member.document() for member in self.members]
        return {"name": self.label, "state": self.state, "note": self.note, "members": members}


async def grow(library: RunReader, row: RunRow, rows: list[RunRow], state_now: Callable[[RunRow], str]) -> RunTreeRow:
    """The tree of a run; journals are read only of runs that are not over. `state_now` is the word for a run."""
    known = facts(row)
    tree_row = RunTreeRow(name_of(row), state_now(row), str(known.get("reason") or known.get("node") or ""))
    if row.status in ("ready", "stopped"):
        state = await library.state(row.id)
        tree_row.members += _scopes(state, "", "interrupted" if tree_row.state == "interrupted" else "running")
    for child in children_of(row, rows):
        tree_row.members.append(await grow(library, child, rows, state_now))
    return tree_row


def _scopes(state: State, parent: str, going: str) -> list[RunTreeRow]:
    here = [s for s in state.scopes.values() if s.parent is not None and s.parent.path == parent]
    here.sort(key=lambda s: s.phase is Phase.ENDED)
    shown = [RunTreeRow(s.path, _word(s, going), _note(s), _scopes(state, s.path, going)) for s in here[:MOST]]
    if len(here) > MOST:
        counts = Counter(_word(s, going) for s in here[MOST:])
        words = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        shown.append(RunTreeRow(f"{len(here) - MOST} more", "", words))
    return shown


def _word(scope: Scope, going: str) -> str:
    """The word for a scope; `going` is what one does that is neither over nor waits."""
    return scope.status or _WORDS.get(scope.phase, going)


def _note(scope: Scope) -> str:
    if scope.error:
        return str(scope.error.get("message") or "")
    return "" if scope.status else f"at {scope.cursor}"
