"""What an operation of the writer works with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bailiwick.journal.queries import each, query, query_for

if TYPE_CHECKING:
    import apsw


AT_ONCE = 500
"""Values of a list that one query is given."""


@dataclass(slots=True)
class Transaction:
    """An open write transaction. `points` are reached once it is durable, then `discarded` blob files are removed.

    `advanced` are runs with the seq that their journal comes to, `removed` the numbers of rows that go.
    """

    db: apsw.Connection
    directory: Path
    points: list[str] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    advanced: list[tuple[str, int]] = field(default_factory=list)
    removed: list[int] = field(default_factory=list)

    def lengths(self) -> tuple[int, int, int, int]:
        """How much was noted so far, for `cut`."""
        return len(self.points), len(self.discarded), len(self.advanced), len(self.removed)

    def cut(self, lengths: tuple[int, int, int, int]) -> None:
        """Take back what an operation noted that was rolled back."""
        points, discarded, advanced, removed = lengths
        del self.points[points:], self.discarded[discarded:], self.advanced[advanced:], self.removed[removed:]

    def do(self, name: str, bindings: Any = None) -> None:
        """Carry out a named query that gives nothing back."""
        self.db.execute(query(name), bindings)

    def do_each(self, name: str, bindings: Iterable[tuple[Any, ...]]) -> None:
        """Carry out a named query once for each set of bindings."""
        self.db.executemany(query(name), bindings)

    def one(self, name: str, bindings: Any = None) -> tuple[Any, ...] | None:
        """The first row of a named query, which is finished; None when it has none."""
        rows = self.db.execute(query(name), bindings).fetchall()
        return rows[0] if rows else None

    def all(self, name: str, bindings: Any = None) -> list[tuple[Any, ...]]:
        """Every row of a named query."""
        return self.db.execute(query(name), bindings).fetchall()

    def all_of(self, name: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        """Every row of a named query about a list of values, however long it is."""
        parts = [values[at : at + AT_ONCE] for at in range(0, len(values), AT_ONCE)]
        return [row for part in parts for row in self.db.execute(query_for(name, len(part)), each(part)).fetchall()]
