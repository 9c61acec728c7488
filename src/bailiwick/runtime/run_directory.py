"""A run as its directory shows it: events folded into visits, their files written when they are due.

What the directory ends up with depends on the events alone, never on how often `write` was called in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bailiwick.clock import iso
from bailiwick.crashpoints import reach
from bailiwick.engine import events as ev
from bailiwick.engine.evolve import evolve, rewound
from bailiwick.engine.graph import Branch, End, Parallel, Set
from bailiwick.engine.state import Fetch, Graphs, Scope, State
from bailiwick.ids import Json
from bailiwick.runtime.facts import RunFacts, Tally, run_document
from bailiwick.runtime.layout import CONTEXT, RUN, RunFiles, segment
from bailiwick.runtime.rendering import (
    CAP,
    CUT_LINE,
    Contexts,
    Rendering,
    byte_count,
    is_small,
    joined,
    prompt_text,
)

History = Callable[[int], list[ev.Entry]]
"""The events with a seq up to a number, inherited ones included. Called on the projector's thread."""


@dataclass(slots=True)
class _Visit:
    """A visit's files that are not written yet; None removes one. `size` counts the bytes of attempts.jsonl."""

    number: int
    texts: dict[str, str | None] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    attempts: str = ""
    size: int = 0
    appended: bool = False
    full: bool = False
    made: bool = False
    started: ev.EffectStarted | None = None
    started_at: float = 0.0
    turn: dict[str, Json] | None = None

    def put(self, name: str, text: str) -> None:
        """Give a file its text; an empty one is not there."""
        if text:
            self.texts[name] = text
            self.names.add(name)
        elif name in self.names:
            self.texts[name] = None

    def add(self, line: str) -> None:
        """One more attempt, while the file has room."""
        if self.full:
            return
        self.full = self.size + byte_count(line) > CAP - len(CUT_LINE)
        line = CUT_LINE if self.full else line
        self.size += byte_count(line)
        self.attempts += line


class RunDirectory:
    """One run's directory in the making. `apply` and `write` raise `OSError` when the disk says no."""

    def __init__(self, files: RunFiles, graphs: Graphs, fetch: Fetch, run: RunFacts, history: History) -> None:
        self.files = files
        self.state = State(graphs=graphs, fetch=fetch)
        self._run = run
        self._history = history
        self._rendering = Rendering(run.redact, fetch, files.keep)
        self._contexts = Contexts(self._rendering)
        self._tally = Tally()
        self._prefixes: dict[str, str] = {"": ""}
        self._open: dict[str, _Visit] = {}
        self._ended: dict[str, _Visit] = {}
        self._passed: dict[str, dict[str, Callable[[], str] | None]] = {}
        self.dirty = False

    def apply(self, seq: int, at: float, event: ev.Event) -> None:
        """Fold one event that happened at `at`."""
        self.dirty = True
        self._follow(event)
        match event:
            case ev.StepPassed():
                evolve(self.state, event, at)
                self._on_passed(event)
            case ev.EffectStarted():
                evolve(self.state, event, at)
                self._on_started(event, at)
            case ev.EffectFinished() | ev.EffectLost():
                evolve(self.state, event, at)
                self._on_attempt_over(event)
            case ev.StepDone():
                keys = list(self._written(event))
                evolve(self.state, event, at)
                self._on_done(event, keys)
            case ev.Rewound():
                self._on_rewound(seq, at, event)
            case _:
                evolve(self.state, event, at)
                self._on_other(event)

    def write(self, *, everything: bool) -> None:
        """Write visits that are over; with `everything` also those under way, pure nodes, run.json and context.json."""
        if everything and self.dirty and "" in self.state.scopes:
            self.files.replace(RUN, self._rendering.document(run_document(self._run, self.state, self._tally)))
        while self._ended:
            path, visit = next(iter(self._ended.items()))
            self._write_visit(path, visit)
            del self._ended[path]
        if not everything:
            return
        for path, visit in self._open.items():
            self._write_visit(path, visit)
        self._write_passed(list(self._passed))
        if self.dirty and "" in self.state.scopes:
            self.files.replace(CONTEXT, self._contexts.text(self.state.scopes[""]))
        self.dirty = False

    def be_written(self) -> None:
        """Take everything up to now as written already."""
        self._ended.clear()
        self._passed.clear()
        for visit in self._open.values():
            visit.texts.clear()
            visit.appended, visit.attempts = visit.appended or bool(visit.attempts), ""
        self.dirty = False

    def _directory(self, scope: Scope, node: str) -> str:
        return self._prefix(scope) + segment(node)

    def _prefix(self, scope: Scope) -> str:
        found = self._prefixes.get(scope.path)
        if found is None:
            above = scope.parent
            if above is None or above.fork is None:
                return ""
            found = f"{self._prefix(above)}{segment(above.fork.node)}/{segment(scope.name)}/"
            self._prefixes[scope.path] = found
        return found

    def _visit(self, scope: Scope, node: str, number: int) -> _Visit:
        """The visit under way; the first word of a new one sets the earlier one aside."""
        path = self._directory(scope, node)
        visit = self._open.get(path)
        if visit is None or visit.number != number:
            self._set_aside(path, number - 1)
            visit = self._open[path] = _Visit(number)
        return visit

    def _set_aside(self, path: str, number: int) -> None:
        below = f"{path}/"
        if not self.files.muted:
            for visits in (self._ended, self._open):
                for known in [p for p in visits if p == path or p.startswith(below)]:
                    self._write_visit(known, visits.pop(known))
            self._write_passed([p for p in self._passed if p.startswith(below)])
        if number > 0:
            self.files.set_aside(path, number)

    def _on_passed(self, e: ev.StepPassed) -> None:
        """A pure node shows its last visit only; the texts are made when they are written, at most once a second."""
        scope, node = self.state.scopes[e.scope], self.state.graph.nodes[e.node]
        if isinstance(node, Branch):
            path = node.path
            files: dict[str, Callable[[], str] | None] = {
                "branch.json": lambda: self._rendering.document({"path": path, "value": e.value, "next": e.next}),
                "output.json": None,
            }
        else:
            entry = self._rendering.entry
            files = {"output.json": lambda: joined(entry(name, e.writes[name]) for name in sorted(e.writes))}
            if not self.files.muted:
                for name, value in e.writes.items():
                    if not is_small(value):
                        self._contexts.note(scope, name, value)
        self._passed[self._directory(scope, e.node)] = files

    def _on_started(self, e: ev.EffectStarted, at: float) -> None:
        self._tally.count(e, self.state)
        visit = self._visit(self.state.scopes[e.scope], e.node, e.visit)
        visit.started, visit.started_at = e, at
        if not self.files.muted and (e.request is not None or e.attempt == 1):
            visit.put("prompt.md", prompt_text(self._rendering, e.request, {}))

    def _on_attempt_over(self, e: ev.EffectFinished | ev.EffectLost) -> None:
        self._tally.count(e, self.state)
        scope = self.state.scopes[e.scope]
        visit = self._visit(scope, scope.cursor, scope.visit)
        seconds: float | None = None
        if isinstance(e, ev.EffectFinished):
            seconds, failure = e.seconds, e.failure or {"kind": "ok"}
            if not self.files.muted:
                self._show_log(visit, e.log)
        else:
            failure = {"kind": "lost", "message": e.why}
        started = visit.started
        line: dict[str, Json] = {
            "number": started.ordinal - 1 + started.attempt if started else 1,
            "entry": started.entry if started else 1,
            "started_at": iso(visit.started_at),
            "seconds": seconds,
            "result": failure.get("kind"),
            "message": failure.get("message", ""),
        }
        if started is not None and started.rung:
            visit.turn = {**line, **_turn_facts(started, e, failure)}
            if failure.get("kind") == "ok":
                self._decided(visit, "done", "")
            return
        visit.add(self._rendering.line(line))

    def _decided(self, visit: _Visit, decision: str, why: str) -> None:
        """The line of a turn is complete when it is known what followed it."""
        if visit.turn is not None:
            visit.add(self._rendering.line({**visit.turn, "decision": decision, "why": why}))
            visit.turn = None

    def _follow(self, event: ev.Event) -> None:
        """What an event says about the turn before it."""
        match event:
            case ev.EffectStarted():
                decision, why = f"attempt: {event.rung}" if event.rung else "", ""
            case ev.WaitOpened():
                decision, why = (
                    f"wait: {event.kind}",
                    str(event.body.get("failure") or event.body.get("question") or ""),
                )
            case ev.StepDone():
                decision, why = ("default" if event.defaulted else "done"), ""
            case ev.StepFailed():
                decision, why = "fail", str(event.failure.get("message", ""))
            case _:
                return
        scope = self.state.scopes.get(event.scope)
        if decision and scope is not None and event.node:
            visit = self._open.get(self._directory(scope, event.node))
            if visit is not None:
                self._decided(visit, decision, why)

    def _show_log(self, visit: _Visit, log: dict[str, Json]) -> None:
        rendering = self._rendering
        if "prompt" in log or "command" in log:
            visit.put("prompt.md", prompt_text(rendering, None, log))
        for stream in ("stdout", "stderr"):
            text = rendering.resolved(log.get(stream)) or ""
            visit.put(f"{stream}.txt", rendering.plain(text) if isinstance(text, str) else rendering.document(text))
        turns = rendering.resolved(log.get("transcript"))
        visit.put("transcript.jsonl", rendering.lines(turns) if isinstance(turns, list) else "")

    def _written(self, e: ev.StepDone) -> Iterator[str]:
        """The keys that leaving this node writes to the context."""
        scope = self.state.scopes[e.scope]
        if scope.flight is not None:
            yield from scope.flight.outputs
        if scope.fork is not None:
            yield scope.fork.node
            node = self.state.graph.nodes[scope.fork.node]
            if isinstance(node, Parallel):
                members = [self.state.scopes[path] for path in scope.fork.members]
                yield from (key for key in node.export if any(key in member.writes for member in members))
        yield from e.writes

    def _on_done(self, e: ev.StepDone, keys: list[str]) -> None:
        scope = self.state.scopes[e.scope]
        visit = self._visit(scope, e.node, e.visit)
        if not self.files.muted:
            layer = self._contexts.layer(scope)
            visit.put("output.json", joined(layer[key][1] for key in sorted(set(keys))))
        self._end(scope, e.node, visit)

    def _on_failed(self, e: ev.StepFailed) -> None:
        scope = self.state.scopes[e.scope]
        if isinstance(self.state.graph.nodes[e.node], Branch | Set | End):
            text = "" if self.files.muted else joined([self._rendering.entry("error", e.failure)])
            self._passed[self._directory(scope, e.node)] = {"output.json": lambda: text, "branch.json": None}
            if not self.files.muted:
                self._contexts.layer(scope)
            return
        visit = self._visit(scope, e.node, e.visit)
        self._fail(scope, e.node, visit, e.failure)

    def _fail(self, scope: Scope, node: str, visit: _Visit, error: dict[str, Json] | None) -> None:
        if not self.files.muted:
            visit.put("output.json", joined([self._rendering.entry("error", error)]))
        self._end(scope, node, visit)

    def _end(self, scope: Scope, node: str, visit: _Visit) -> None:
        path = self._directory(scope, node)
        self._open.pop(path, None)
        if not self.files.muted:
            visit.put("context_after.json", self._contexts.text(scope))
            self._ended[path] = visit
        if len(self._prefixes) > len(self.state.scopes):
            self._prefixes = {p: prefix for p, prefix in self._prefixes.items() if p in self.state.scopes}
            self._contexts.only(self.state.scopes)

    def _on_other(self, event: ev.Event) -> None:
        self._tally.count(event, self.state)
        match event:
            case ev.StepFailed():
                self._on_failed(event)
            case ev.WaitOpened() | ev.ScopesForked() | ev.ChildStarted():
                self._on_entered(event)
            case ev.ScopeEnded():
                self._on_scope_ended(event)
            case ev.RunCreated() | ev.Forked():
                self._encode_context()
            case _:
                pass

    def _encode_context(self) -> None:
        if not self.files.muted:
            self._contexts.layer(self.state.scopes[""])

    def _on_entered(self, e: ev.WaitOpened | ev.ScopesForked | ev.ChildStarted) -> None:
        if e.node:
            self._visit(self.state.scopes[e.scope], e.node, e.visit)

    def _on_scope_ended(self, e: ev.ScopeEnded) -> None:
        """A member that is ended in the middle of a node leaves the reason there."""
        scope = self.state.scopes[e.scope]
        visit = self._open.get(self._directory(scope, scope.cursor)) if scope.cursor else None
        if visit is not None:
            self._fail(scope, scope.cursor, visit, e.error)

    def _on_rewound(self, seq: int, at: float, event: ev.Rewound) -> None:
        """Directories stay as they are: what is visited again sets them aside."""
        for path, visit in self._open.items():
            self._write_visit(path, visit)
        self._open.clear()
        prefix = [entry for entry in self._history(event.upto) if entry[0] <= event.upto and entry[0] < seq]
        self.state = rewound(self.state, prefix, event, at)
        self._contexts.clear()
        self._prefixes = {"": ""}
        self._tally.count(event, self.state)

    def _write_visit(self, path: str, visit: _Visit) -> None:
        if not visit.made:
            self.files.make(path)
            visit.made = True
        for name, text in visit.texts.items():
            if text is None:
                self.files.remove(f"{path}/{name}")
            else:
                self.files.write(f"{path}/{name}", text)
            reach("project.visit")
        visit.texts = {}
        if visit.attempts:
            put = self.files.append if visit.appended else self.files.write
            put(f"{path}/attempts.jsonl", visit.attempts)
            visit.appended, visit.attempts = True, ""

    def _write_passed(self, paths: list[str]) -> None:
        for path in paths:
            for name, made in self._passed[path].items():
                if made is None:
                    self.files.remove(f"{path}/{name}")
                else:
                    self.files.write(f"{path}/{name}", made())
            del self._passed[path]


def _turn_facts(started: ev.EffectStarted, e: ev.EffectFinished | ev.EffectLost, failure: dict[str, Json]) -> Json:
    """What attempts.jsonl says of a turn besides its result; a cost that is not known is null."""
    log = e.log if isinstance(e, ev.EffectFinished) else {}
    usage: dict[str, Json] = log.get("usage") or {}
    detail: dict[str, Json] = failure.get("detail") or {}
    return {
        "backend": log.get("backend"),
        "model": log.get("model"),
        "rung": started.rung,
        "class": failure.get("kind"),
        "evidence": detail.get("evidence", ""),
        "tokens": {k: usage[k] for k in ("input", "output", "cached") if k in usage},
        "cost": usage.get("usd"),
    }
