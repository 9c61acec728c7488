"""Small journals made by hand: a graph, events one second apart, and the state they come to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from bailiwick.engine import events as ev
from bailiwick.engine.evolve import replay
from bailiwick.engine.graph import Ask, Branch, Condition, End, Graph, Node, Parallel, Retry, Work
from bailiwick.engine.state import State
from bailiwick.journal.rows import Owner, RunRow
from bailiwick.runs.why import RunHistory

NOW = 1_700_000_000.0


def script(name: str, to: str = "done", **more: Any) -> Work:
    """A script node."""
    return Work(id=name, type="script", next=to, spec={"script": f"{name}.sh"}, **more)


CHECK = Branch(
    id="check", path="result.count", cases={"few": "done"}, conditions=(Condition(">=", "10", "ask"),), default="done"
)
NODES: tuple[Node, ...] = (
    script("build", "check", retry=Retry(2, 1.0)),
    CHECK,
    Ask(id="ask", question="Deploy?", choices=("yes", "no"), next="done", default="no", declared=True),
    Parallel(id="fan", branches={"a": "left", "b": "right"}, join="done"),
    script("left"),
    script("right"),
    End(id="done"),
    End(id="bad", failed=True),
)


def graph(start: str = "build", nodes: tuple[Node, ...] = NODES) -> Graph:
    """The workflow of the tales."""
    return Graph(name="flow", start=start, nodes={node.id: node for node in nodes})


@dataclass(slots=True)
class Tale:
    """A journal that grows by one second per event."""

    start: str = "build"
    entries: list[ev.Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tell(ev.RunCreated("r1", "r1", "d1", {}, key="default", workflow="flow"))

    def tell(self, *events: ev.Event) -> Tale:
        """Go on with these events."""
        for event in events:
            seq = len(self.entries) + 1
            self.entries.append((seq, NOW + seq, event))
        return self

    def effect(self, node: str, visit: int = 1, attempt: int = 1, failure: str = "", scope: str = "") -> Tale:
        """One attempt from start to end."""
        key = f"key-{scope}{node}-{visit}"
        self.tell(ev.EffectStarted(scope, node, visit, 1, attempt, key))
        wrong = {"kind": "exit", "message": failure} if failure else None
        return self.tell(
            ev.EffectFinished(scope, key, failure=wrong, log={"stderr": f"{failure}\n"} if failure else {}, seconds=0.5)
        )

    def done(self, node: str, to: str, visit: int = 1) -> Tale:
        """A whole successful visit."""
        return self.effect(node, visit).tell(ev.StepDone("", node, visit, to))

    def state(self) -> State:
        """What the events come to."""
        return replay(self.entries, lambda _: graph(self.start))

    def history(self) -> RunHistory:
        """The tale as `why` reads it."""
        return RunHistory("flow-default", self.entries, self.state())


def run_row(run_id: str = "r1", **changes: Any) -> RunRow:
    """A row as the store gives it: a done run of a tree of its own, unless told otherwise."""
    row = RunRow(
        id=run_id,
        workflow="flow",
        run_key=run_id,
        status="done",
        seq=1,
        epoch=1,
        owner=None,
        lease_until=0.0,
        wake_at=None,
        priority=0,
        root_id=run_id,
        host=None,
        definition="d1",
        min_reader=1,
        source="",
        runs_dir="",
        parent=None,
        generation=0,
        created_at=NOW,
        archived=False,
        summary={"state": "done", "ended_at": NOW},
    )
    return replace(row, **changes)


ME = Owner(host="h", boot="b", pidns="n", pid=1, start=1, name="me")
OTHER = Owner(host="elsewhere", boot="b", pidns="n", pid=2, start=2, name="bailiwick worker")
