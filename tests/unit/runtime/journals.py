"""Journals of runs that never ran: the engine decides, dice answer for the world."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from bailiwick.engine import commands as co
from bailiwick.engine import events as ev
from bailiwick.engine.decide import decide
from bailiwick.engine.evolve import evolve, rewound
from bailiwick.engine.graph import (
    Ask,
    Branch,
    Call,
    Condition,
    End,
    Graph,
    Map,
    Node,
    Parallel,
    Poll,
    Retry,
    Set,
    Wait,
    Work,
)
from bailiwick.engine.render import Lookup, Rendered
from bailiwick.engine.rules import Rules
from bailiwick.engine.state import Deferred, State
from bailiwick.ids import Json, canonical, digest
from bailiwick.runtime.projector import Projection, RunFacts

FACTS = RunFacts("flow", "default", "u1")
START = 1_700_000_000.0


class Verbatim:
    """A renderer that takes every template as its own result."""

    def text(self, template: str, lookup: Lookup) -> Rendered:
        return Rendered(template)

    def file(self, name: str, lookup: Lookup) -> Rendered:
        raise AssertionError(f"no file is rendered here: {name}")

    def value(self, template: Json, lookup: Lookup) -> Rendered:
        return Rendered(template)


def prepare(node: Node, lookup: Lookup) -> Rendered:
    """The request of an attempt: a script with an argument."""
    return Rendered({"script": f"scripts/{node.id}.sh", "args": ["a b"]})


RULES = Rules(Verbatim(), prepare)


def work(name: str, target: str, **more: Json) -> Work:
    """A script node."""
    return Work(id=name, type=more.pop("type", "script"), next=target, **more)


def graph_of(*nodes: Node) -> Graph:
    """A graph that starts at its first node."""
    return Graph(name="flow", start=nodes[0].id, nodes={node.id: node for node in nodes})


def every_kind() -> Graph:
    """A workflow with every kind of node, a loop around most of it, and names that the layout uses itself."""
    return graph_of(
        Set(id="init", values={"items": [1, "two", {"three": 3}], "big": "b" * 5000, "small": 1}, next="visits"),
        work("visits", "blobs", retry=Retry(2)),
        work("blobs", "sort", type="agent", on_error="sort"),
        Branch(id="sort", path="visits", cases={"x": "fan"}, default="fan"),
        Map(id="fan", over="items", body="each", join="par", max=2),
        work("each", "look"),
        Branch(id="look", path="each", conditions=(Condition("==", "y", "par"),), default="inner"),
        Parallel(id="inner", branches={"a": "left", "visits": "right"}, join="leave"),
        work("left", "leave"),
        Set(id="right", values={"deep": ["z" * 4200]}, next="leave"),
        End(id="leave"),
        Parallel(
            id="par",
            branches={"one": "risky", "two": "slow"},
            join="ask",
            export=("risky",),
            fail_fast=True,
            on_error="ask",
        ),
        work("risky", "ask"),
        work("slow", "ask"),
        Ask(id="ask", question="Go on?", next="nap"),
        Wait(id="nap", seconds="60", next="poll"),
        Wait(id="poll", poll=Poll(script="ready.sh", every=5), next="call"),
        Call(id="call", workflow="other", next="again", on_error="again"),
        Branch(id="again", path="loops", cases={"stop": "done"}, default="init"),
        End(id="done"),
    )


class Journal:
    """Walks a graph and keeps the entries; the same seed gives the same journal."""

    def __init__(self, graph: Graph, context: dict[str, Json] | None = None, seed: int = 0) -> None:
        self.graph = graph
        self.dice = Random(seed)
        self.entries: list[ev.Entry] = []
        self.at = START
        self.blobs: dict[str, Json] = {}
        self.state = State(graphs=self.graphs)
        self.add(ev.RunCreated("u1", "u1", "d1", context or {}, key="default", workflow="flow", app="1.0"))
        self.add(ev.OwnerChanged(1, "pid 7 on host atlas (bailiwick run)", "1.0"))

    def graphs(self, definition: str) -> Graph:
        """The one definition there is."""
        return self.graph

    def fetch(self, name: str) -> Json:
        """A value that was deferred."""
        return self.blobs[name]

    def history(self, upto: int) -> list[ev.Entry]:
        """The entries up to a seq."""
        return [entry for entry in self.entries if entry[0] <= upto]

    def add(self, event: ev.Event) -> None:
        """Append one event, a little later than the last."""
        self.at += 0.25
        if isinstance(event, ev.Rewound):
            self.state = rewound(self.state, self.history(event.upto), event, self.at)
        else:
            evolve(self.state, event, self.at)
        self.entries.append((len(self.entries) + 1, self.at, event))

    def walk(self, steps: int = 400) -> Journal:
        """Go on until the run is over, or for so many turns."""
        for _ in range(steps):
            actions = decide(self.state, RULES)
            for action in actions:
                self._do(action)
            if not actions and not self._world():
                break
        return self

    def decide(self) -> None:
        """Go on until only the world can."""
        while actions := decide(self.state, RULES):
            for action in actions:
                self._do(action)

    def turn(self, *, failure: str = "", log: dict[str, Json] | None = None) -> None:
        """Decide, let every attempt end in this way, decide again."""
        self.decide()
        for scope, flight in self.state.flights():
            self.finish(scope.path, flight.key, failure=failure, log=log)
        self.decide()

    def _do(self, action: ev.Event | co.Command) -> None:
        match action:
            case ev.Event():
                self.add(action)
            case co.StartEffect():
                a = action
                self.add(ev.EffectStarted(a.scope, a.node, a.visit, a.ordinal, a.attempt, a.key, a.entry, a.request))
            case co.OpenWait():
                due = self.at + 60 if action.kind != "ask" else None
                w = action
                self.add(ev.WaitOpened(w.scope, w.node, w.visit, w.id, w.kind, w.ordinal, due, w.body))
            case co.StartChild():
                child = f"child-{len(self.entries)}"
                self.add(ev.ChildStarted(action.scope, action.node, action.visit, action.key, child, action.params))
            case co.CancelEffects():
                for scope, flight in self.state.flights():
                    if flight.key in action.keys:
                        self.finish(scope.path, flight.key, failure="cancelled")
            case co.StopChild():
                pass

    def _world(self) -> bool:
        """Let something happen: an attempt ends or is cut off, a wait is over. False when nothing can."""
        flights, waits = self.state.flights(), self.state.waits()
        if flights and self.dice.random() < 0.07:
            self.add(ev.OwnerChanged(2, "pid 8 on host atlas (bailiwick worker)", "1.1"))
            for scope, flight in flights:
                self.add(ev.EffectLost(scope.path, flight.key, "crash"))
            return True
        if flights:
            scope, flight = self.dice.choice(flights)
            polls = scope.cursor == "poll" and self.dice.random() < 0.6
            failure = "not_yet" if polls else "exit" if self.dice.random() < 0.25 else ""
            self.finish(scope.path, flight.key, failure=failure)
        elif waits:
            scope, wait = self.dice.choice(waits)
            result = {"status": self.dice.choice(["done", "failed"]), "outputs": {"c": 1}, "reason": "no"}
            how, value = {"ask": ("answered", "yes"), "child": ("child", result)}.get(wait.kind, ("due", None))
            self.add(ev.WaitClosed(scope.path, wait.id, how, value))
        return bool(flights or waits)

    def finish(self, scope: str, key: str, *, failure: str = "", log: dict[str, Json] | None = None) -> None:
        """End an attempt; without a failure it gives the node's id a value."""
        node = self.state.scopes[scope].cursor
        value = self.dice.choice(["x", "y", 7, {"n": [1, None]}, "long " * 900, "ünïcödé " * 600])
        said = {
            "command": ["bash", f"{node}.sh", "a b"],
            "stdout": self.dice.choice(["", "out\n"]),
            "stderr": "e\x1b[1m",
        }
        why = {"kind": failure, "message": "no luck", "detail": None} if failure else None
        self.add(ev.EffectFinished(scope, key, {} if why else {node: value}, why, said if log is None else log, 0.5))

    def deferred(self) -> list[ev.Entry]:
        """The entries as they are read back from a store: big values of outputs, writes and logs are blobs."""
        return [(seq, at, self._shrunk(event)) for seq, at, event in self.entries]

    def _shrunk(self, event: ev.Event) -> ev.Event:
        body = ev.body_of(event)
        for name in ("outputs", "writes", "log", "context"):
            if name in body:
                body[name] = {key: self._defer(value) for key, value in body[name].items()}
        return ev.from_body(type(event).__name__, 1, body)

    def _defer(self, value: Json) -> Json:
        text = canonical(value)
        if len(text) <= 1000:
            return value
        name = digest(f"stored {text}")
        self.blobs[name] = value
        return Deferred(name)


def projection(journal: Journal, root: Path, monotonic: Callable[[], float] = lambda: 0.0) -> Projection:
    """A projection of a journal, on a clock that stands still."""
    return Projection(root, journal.graphs, journal.fetch, run=FACTS, history=journal.history, monotonic=monotonic)


def files_of(root: Path) -> dict[str, bytes | None]:
    """Every file below a directory with its bytes; a directory has None."""
    found = sorted(root.rglob("*"))
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in found}
