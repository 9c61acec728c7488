"""Writes the golden journals of one version, once: what people have on disk must be readable for ever.

    python -m tests.golden.generate VERSION

A version that is there already is never written again; a later one gets a folder of its own beside it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bailiwick.engine import events as ev
from bailiwick.engine.commands import StartEffect
from bailiwick.engine.evolve import replay, rewound
from bailiwick.engine.graph import from_json
from bailiwick.engine.rules import Rules
from bailiwick.engine.state import State
from bailiwick.ids import Json
from bailiwick.journal.codec import encode
from bailiwick.lang.load import load
from bailiwick.lang.templates import Templates
from bailiwick.runtime.assemble import KINDS
from bailiwick.runtime.effects import KindTable
from bailiwick.runtime.pins import pin_all
from bailiwick.runtime.record import summary
from bailiwick.testing.driver import Answer, Driver

HERE = Path(__file__).parent
START = 1_767_225_600.0
WORKSPACE = "/var/lib/bailiwick/state/workspaces"

MAIN = """\
version: 1
name: main
description: {words}
vars: {{items: [2, 3, 4], note: "héllo ✓"}}
budget: {{wall: 1h}}
start: first
nodes:
  - {{id: first, type: set, values: {{n: 0, text: "{{{{ note }}}}!"}}, next: fetch}}
  - {{id: fetch, type: script, script: s.sh, args: ["{{{{ text }}}}"], outputs: [{{key: got}}], next: shaky}}
  - {{id: shaky, type: script, script: s.sh, outputs: [{{key: big}}], retry: {{max: 2, backoff: 1s}}, next: count}}
  - {{id: count, type: set, values: {{n: "{{{{ n + 1 }}}}"}}, next: more}}
  - {{id: more, type: branch, path: n, conditions: [{{op: "<", value: "2", next: count}}], default: each}}
  - {{id: each, type: map, over: items, as: item, body: one, max: 2, join: race}}
  - {{id: one, type: script, script: s.sh, args: ["{{{{ item }}}}"], outputs: [{{key: v}}], next: race}}
  - {{id: race, type: parallel, branches: {{a: left, b: right}}, fail_fast: true, join: ask, on_error: ask}}
  - {{id: left, type: script, script: s.sh, next: ask}}
  - {{id: right, type: script, script: s.sh, next: ask}}
  - {{id: ask, type: ask, question: "Go on with {{{{ got }}}}?", choices: ["yes", "no"], next: nap}}
  - {{id: nap, type: wait, for: 30s, next: watch}}
  - {{id: watch, type: wait, poll: {{script: s.sh, every: 10s, timeout: 5m}}, next: sub}}
  - {{id: sub, type: call, workflow: inner, params: {{p: "{{{{ n }}}}"}}, next: last}}
  - {{id: last, type: script, script: s.sh, outputs: [{{key: end}}], next: done}}
  - {{id: done, type: terminal}}
"""
INNER = """\
version: 1
name: inner
params: {p: {}}
returns: [q]
start: calc
nodes:
  - {id: calc, type: script, script: s.sh, args: ["{{ p }}"], outputs: [{key: q}], next: odd}
  - {id: odd, type: branch, path: q, cases: {"5": bad}, default: done}
  - {id: bad, type: fail, reason: "{{ q }} is odd"}
  - {id: done, type: terminal}
"""


def oracle(started: ev.EffectStarted) -> Answer:
    """What the world answers: a retry, a big value, a failing item and branch, a poll that is ready later."""
    match started.node:
        case "fetch":
            return {"got": {"id": 7, "tags": ["a", None, True, 1.5]}}
        case "shaky":
            return ev.Failure("exit", "exited with 7", {"code": 7}) if started.attempt == 1 else {"big": "y" * 5000}
        case "one":
            odd = started.scope.endswith("[1]")
            return ev.Failure("exit", "exited with 5", {"code": 5}) if odd else {"v": started.scope}
        case "left":
            return ev.Failure("timeout", "it ran longer than 5 s and was ended")
        case "watch":
            return {} if started.ordinal >= 2 else ev.Failure("not_yet", "the script says: not yet", {"code": 1})
        case "calc":
            return {"q": 5}
        case _:
            return {"end": "ok"} if started.node == "last" else {}


def answer(wait: ev.WaitOpened) -> Json:
    """What people and children answer."""
    return {"status": "done", "outputs": {"q": 4}, "reason": "", "degraded": []} if wait.kind == "child" else "yes"


def _version_one(start: StartEffect) -> ev.EffectStarted:
    """The start of an effect as version one was written: what it asks for was left out."""
    return ev.EffectStarted(start.scope, start.node, start.visit, start.ordinal, start.attempt, start.key, start.entry)


@dataclass(slots=True)
class Pen:
    """Writes one run's journal: the engine decides, the test says what else happens."""

    run: str
    digest: str
    definitions: dict[str, Json]
    driver: Driver = field(init=False)

    def __post_init__(self) -> None:
        graph = self._graph(self.digest)
        self.driver = Driver(graph, Templates(None), oracle, answer=answer, now=START, begun=_version_one)
        self.driver.state = State(graphs=self._graph)
        kinds = KindTable(KINDS)
        self.driver.rules = Rules(Templates(None), kinds.preparer(Templates(None)))

    def _graph(self, digest: str) -> Json:
        return from_json(self.definitions[digest]).graph

    def create(self, context: dict[str, Json], parent: str | None = None) -> None:
        """The first two events."""
        graph = self.driver.graph
        root, sources = parent or self.run, {self.digest: f"/srv/flows/{graph.name}"}
        params = {"p": 4} if parent else {}
        self.add(
            ev.RunCreated(
                self.run,
                root,
                self.digest,
                {**graph.vars, **context},
                params,
                "default",
                graph.name,
                f"{WORKSPACE}/{self.run}",
                parent,
                1 if parent else 0,
                "0.1.0",
                sources,
            )
        )
        self.add(ev.OwnerChanged(1, "pid 4711 on this host (bailiwick run)", "0.1.0"))

    def add(self, event: ev.Event) -> None:
        """Append one event, a little later than the last."""
        self.driver.now += 0.125
        if isinstance(event, ev.Rewound):
            prefix = [entry for entry in self.driver.journal if entry[0] <= event.upto]
            self.driver.state = rewound(self.driver.state, prefix, event, self.driver.now)
            self.driver.journal.append((len(self.driver.journal) + 1, self.driver.now, event))
        else:
            self.driver.record(event)

    def go(self, until: Callable[[State], bool]) -> None:
        """Walk until the state is so."""
        while not until(self.driver.state):
            assert self.driver._step(), "stuck"

    def at(self, node: str) -> None:
        """Walk until an effect or a wait of this node is open in the run's own scope."""
        self.go(lambda s: s.scopes[""].cursor == node and s.scopes[""].phase in ("running", "waiting"))


def _write_main(pen: Pen, other: str) -> None:
    """One run to which everything happens that can happen to a run."""
    pen.create({})
    pen.at("fetch")
    _, flight = pen.driver.state.flights()[0]
    pen.add(ev.EffectObserved("", flight.key, {"pid": 4712, "session": "s-1"}))
    pen.add(ev.OwnerChanged(2, "pid 4800 on this host (bailiwick worker)", "0.1.0"))
    pen.add(ev.EffectLost("", flight.key, "crash"))
    pen.at("shaky")
    pen.add(ev.StopRequested(now=False, by="sam"))
    pen.go(lambda s: s.status == "stopped")
    pen.add(ev.SignalRejected("stop", "the run is stopped", {"now": False, "by": "sam"}))
    pen.add(ev.RunResumed("sam"))
    pen.go(lambda s: bool(s.flights()) and s.flights()[0][0].path == "each[0]")
    pen.add(ev.BudgetReached("wall", 3600.0))
    pen.go(lambda s: s.budget_wait is not None)
    wait = pen.driver.state.budget_wait
    assert wait is not None
    pen.add(ev.WaitClosed("", wait.id, "answered", "raise", "sam"))
    pen.add(ev.BudgetRaised("wall", 7200.0, "sam"))
    pen.at("ask")
    asked = next(seq for seq, _, e in reversed(pen.driver.journal) if isinstance(e, ev.WaitOpened) and e.node == "ask")
    pen.add(ev.DefinitionAdopted(other, "sam"))
    pen.at("nap")
    pen.add(ev.Rewound(asked - 1, "ask", 1, "sam"))
    pen.go(lambda s: s.status == "done")


def _expected(state: State) -> Json:
    return {
        "status": state.status,
        "reason": state.reason,
        "ended": state.ended,
        "context": state.context(),
        "summary": summary(state),
        "wall": state.wall,
        "visits": state.scopes[""].visits,
        "limits": state.limits,
        "flights": [[scope.path, scope.cursor, flight.key] for scope, flight in state.flights()],
        "waits": [[scope.path, wait.id, wait.kind, wait.due_at] for scope, wait in state.waits()],
    }


def _stored(pen: Pen, journal: list[tuple[int, float, ev.Event]], state: State) -> Json:
    rows, blobs = [], dict[str, str]()
    for _, at, event in journal:
        row, more = encode(event, at)
        rows.append([row.type, row.version, row.body, row.at])
        blobs.update({name: data.decode("ascii") for name, data in more.items()})
    return {"run": pen.run, "definition": pen.digest, "rows": rows, "blobs": blobs, "expected": _expected(state)}


def make() -> dict[str, Json]:
    """Every golden journal, by name."""
    with tempfile.TemporaryDirectory() as folder:
        digests, definitions = _define(Path(folder))
    main = Pen("0a1b2c3d4e5f60718293", digests["main"], definitions)
    _write_main(main, digests["other"])
    inner = Pen("1111111111c0ffee0000", digests["inner"], definitions)
    inner.create({"p": 4}, parent=main.run)
    inner.go(lambda s: s.status == "failed")
    cut = Pen("2222222222c0ffee0000", digests["main"], definitions)
    cut.create({"note": "cut off"})
    cut.go(lambda s: len(s.flights()) == 2)
    runs = {
        name: _stored(pen, pen.driver.journal, pen.driver.state)
        for name, pen in (("main", main), ("inner", inner), ("cut", cut))
    }
    runs["fork"] = _fork(main)
    return {"definitions": definitions, **runs}


def _fork(main: Pen) -> Json:
    """A run that shares the first one's journal up to its first question, with another answer waiting."""
    upto = next(seq for seq, _, e in main.driver.journal if isinstance(e, ev.WaitOpened) and e.node == "ask") - 1
    prefix = main.driver.journal[:upto]
    pen = Pen("3333333333c0ffee0000", main.digest, main.definitions)
    pen.driver.journal = list(prefix)
    pen.driver.state = replay(prefix, pen._graph)
    pen.driver.now = main.driver.now
    pen.add(ev.Forked(main.run, upto, pen.run, {"note": "forked"}, "again", f"{WORKSPACE}/{pen.run}"))
    pen.add(ev.OwnerChanged(1, "pid 4900 on this host (bailiwick run)", "0.1.0"))
    pen.at("ask")
    return _stored(pen, pen.driver.journal[upto:], pen.driver.state)


def _define(folder: Path) -> tuple[dict[str, str], dict[str, Json]]:
    """The definitions of the workflows: two of the first one, which differ in a word, and of the one it calls."""
    digests: dict[str, str] = {}
    definitions: dict[str, Json] = {}
    for name, text in (("inner", INNER), ("main", MAIN.format(words="first")), ("other", MAIN.format(words="second"))):
        directory = folder / name
        directory.mkdir()
        (directory / "workflow.yaml").write_text(text)
        (directory / "s.sh").write_text("exit 0\n")
        digests[name], pinned = pin_all(load(directory, lambda called, caller: caller.parent / called))
        definitions.update({item.digest: item.body for item in pinned})
    return digests, definitions


def write(folder: Path) -> None:
    """Write every journal below a new folder: a row of the journal is a line."""
    folder.mkdir()
    made = make()
    (folder / "definitions.json").write_text(json.dumps(made.pop("definitions"), indent=1, sort_keys=True) + "\n")
    for name, body in made.items():
        rows = body.pop("rows")
        lines = [json.dumps(dict(zip(("type", "version", "body", "at"), row, strict=True))) for row in rows]
        (folder / f"{name}.ndjson").write_text("\n".join(lines) + "\n")
        (folder / f"{name}.json").write_text(json.dumps(body, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    write(HERE / f"v{int(sys.argv[1])}")
