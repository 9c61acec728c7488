"""A run that is told by hand: a graph, events applied by the engine itself, and views that hear of them."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Protocol

from bailiwick.clock import ManualClock
from bailiwick.engine import events as ev
from bailiwick.engine.evolve import evolve
from bailiwick.engine.graph import Ask, Branch, Call, End, Graph, Map, Node, Parallel, Set, Wait, Work
from bailiwick.engine.state import State
from bailiwick.ids import Json, effect_key
from bailiwick.journal.rows import RunRow
from bailiwick.runtime.record import row_status, summary
from bailiwick.terminal.output import Printer

NOON = 1_700_049_600.0  # 2023-11-15 12:00:00 UTC


def work(name: str, then: str) -> Work:
    """A script node."""
    return Work(id=name, type="script", next=then)


def graph(*nodes: Node, returns: tuple[str, ...] = ()) -> Graph:
    """A workflow that begins at its first node and ends at `end`."""
    every = [*nodes, End(id="end")]
    return Graph(name="hello", start=every[0].id, nodes={n.id: n for n in every}, returns=returns)


class Hears(Protocol):
    """What a view has for durable events."""

    def durable(self, row: RunRow, state: State, entries: list[tuple[int, float, ev.Event]]) -> None: ...


def row_of(uid: str = "u1", key: str = "default", **changes: Json) -> RunRow:
    """The row of a run as it is when it was claimed."""
    row = RunRow(
        id=uid,
        workflow="hello",
        run_key=key,
        status="ready",
        seq=1,
        epoch=1,
        owner=None,
        lease_until=0.0,
        wake_at=None,
        priority=0,
        root_id="u1",
        host=None,
        definition="d",
        min_reader=1,
        source="flows/hello",
        runs_dir="runs",
        parent=None,
        generation=0,
        created_at=NOON,
        archived=False,
        summary=None,
    )
    return replace(row, **changes)


@dataclass
class ViewSetup:
    """One run and its clock; `happen` moves on, applies the events and tells the view of them."""

    graph: Graph
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOON))
    row: RunRow = field(default_factory=row_of)
    context: dict[str, Json] = field(default_factory=dict)
    seq: int = 1

    def __post_init__(self) -> None:
        self.state = State(graphs=lambda _digest: self.graph)
        created = ev.RunCreated(
            self.row.id, "u1", "d", self.context, key=self.row.run_key, workflow="hello", parent=self.row.parent
        )
        evolve(self.state, created, self.clock.now())

    def happen(self, view: Hears | None, *events: ev.Event, after: float = 0.0) -> None:
        """Let events happen `after` seconds, and become durable together."""
        self.clock.advance(after)
        entries = []
        for event in events:
            evolve(self.state, event, self.clock.now())
            self.seq += 1
            entries.append((self.seq, self.clock.now(), event))
        if view is not None:
            view.durable(self.row, self.state, entries)

    def own(self, view: Hears | None) -> None:
        """A process takes the run."""
        self.happen(view, ev.OwnerChanged(1, "us"))

    def key(self, node: str, scope: str = "", visit: int = 1) -> str:
        """The key of a visit's first effect."""
        return effect_key(self.row.id, scope, node, visit, 1)

    def started(self, node: str, scope: str = "", visit: int = 1, **more: Json) -> ev.EffectStarted:
        """The start of an attempt."""
        fields = {"attempt": 1, **more}
        return ev.EffectStarted(scope, node, visit, 1, key=self.key(node, scope, visit), **fields)

    def finished(self, node: str, seconds: float, scope: str = "", failure: str = "", visit: int = 1) -> ev.Event:
        """The end of an attempt."""
        body = {"kind": "exit", "message": failure, "detail": None} if failure else None
        return ev.EffectFinished(scope, self.key(node, scope, visit), {}, body, {}, seconds)

    def step(self, view: Hears | None, node: str, then: str, seconds: float = 1.0) -> None:
        """A script that succeeds."""
        self.happen(view, self.started(node))
        self.happen(view, self.finished(node, seconds), ev.StepDone("", node, 1, then), after=seconds)

    def now_row(self) -> RunRow:
        """The row as the store has it after what happened."""
        return replace(self.row, status=row_status(self.state), summary=summary(self.state))


def printer(out: io.StringIO, **changes: Json) -> Printer:
    """A printer that writes to memory, in UTC."""
    return Printer(out=out, zone=UTC, **changes)


def lines(out: io.StringIO) -> list[str]:
    """What was written, line by line, trailing spaces gone."""
    return [line.rstrip() for line in out.getvalue().splitlines()]


__all__ = [
    "NOON", "Ask", "Branch", "Call", "End", "Map", "Parallel", "Set", "ViewSetup", "Wait", "graph", "lines", "printer",
    "row_of", "work",
]  # fmt: skip
