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
from bailiwick.engine.visits import Closing, Visit, Visits
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
class _Visit(Visit):
    """A visit and its files that are not written yet; None removes one.

    `lines` come to attempts.jsonl, which has `length` bytes with them.
    """

    path: str = ""
    texts: dict[str, str | None] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    lines: str = ""
    length: int = 0
    appended: bool = False
    full: bool = False
    made: bool = False
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
        self.full = self.length + byte_count(line) > CAP - len(CUT_LINE)
        line = CUT_LINE if self.full else line
        self.length += byte_count(line)
        self.lines += line


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
        self._visits = Visits(_Visit, keep=1, closed=self._on_closed)
        self._open: dict[str, _Visit] = {}
        self._ended: dict[str, _Visit] = {}
        self._passed: dict[str, dict[str, Callable[[], str] | None]] = {}
        self._keys: list[str] = []
        self.dirty = False

    def apply(self, seq: int, at: float, event: ev.Event) -> None:
        """Fold one event that happened at `at`."""
        self.dirty = True
        self._keys = list(self._written(event)) if isinstance(event, ev.StepDone) else []
        if isinstance(event, ev.Rewound):
            self._rewind(seq, at, event)
        else:
            evolve(self.state, event, at)
        self._tally.count(event, self.state)
        visit = self._visits.apply(seq, at, event)
        match event:
            case ev.StepPassed():
                self._on_passed(event)
            case ev.RunCreated() | ev.Forked() if not self.files.muted:
                self._contexts.layer(self.state.scopes[""])
            case _ if visit is not None:
                self._on_work(self._under_way(visit), event)
            case _:
                pass

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
            visit.appended, visit.lines = visit.appended or bool(visit.lines), ""
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

    def _under_way(self, visit: _Visit) -> _Visit:
        """The first word of a visit gives it its directory and sets the earlier one aside."""
        if not visit.path and not self._is_pure(visit):
            visit.path = self._directory(self.state.scopes[visit.scope], visit.node)
            self._set_aside(visit.path, visit.number - 1)
            self._open[visit.path] = visit
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

    def _on_work(self, visit: _Visit, event: ev.Event) -> None:
        self._follow(visit, event)
        match event:
            case ev.EffectStarted(request=request, attempt=attempt):
                if not self.files.muted and (request is not None or attempt == 1):
                    visit.put("prompt.md", prompt_text(self._rendering, request, {}))
            case ev.EffectFinished() | ev.EffectLost():
                self._on_attempt_over(visit, event)
            case _:
                pass

    def _on_attempt_over(self, visit: _Visit, e: ev.EffectFinished | ev.EffectLost) -> None:
        seconds: float | None = None
        if isinstance(e, ev.EffectFinished):
            seconds, failure = e.seconds, e.failure or {"kind": "ok"}
            if not self.files.muted:
                self._show_log(visit, e.log)
        else:
            failure = {"kind": "lost", "message": e.why}
        tried = visit.tries[-1]
        line: dict[str, Json] = {
            "number": tried.start.ordinal - 1 + tried.start.attempt,
            "entry": tried.start.entry,
            "started_at": iso(tried.at),
            "seconds": seconds,
            "result": failure.get("kind"),
            "message": failure.get("message", ""),
        }
        if not tried.start.rung:
            visit.add(self._rendering.line(line))
            return
        visit.turn = {**line, **_turn_facts(tried.start, e, failure)}
        if failure.get("kind") == "ok":
            self._decided(visit, "done", "")

    def _decided(self, visit: _Visit, decision: str, why: str) -> None:
        """The line of a turn is complete when it is known what followed it."""
        if visit.turn is not None and decision:
            visit.add(self._rendering.line({**visit.turn, "decision": decision, "why": why}))
            visit.turn = None

    def _follow(self, visit: _Visit, event: ev.Event) -> None:
        """What an event says about the turn before it."""
        match event:
            case ev.EffectStarted():
                self._decided(visit, f"attempt: {event.rung}" if event.rung else "", "")
            case ev.WaitOpened():
                why = str(event.body.get("failure") or event.body.get("question") or "")
                self._decided(visit, f"wait: {event.kind}", why)
            case ev.StepDone():
                self._decided(visit, "default" if event.defaulted else "done", "")
            case ev.StepFailed():
                self._decided(visit, "fail", str(event.failure.get("message", "")))
            case _:
                pass

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

    def _is_pure(self, visit: _Visit) -> bool:
        return isinstance(self.state.graph.nodes[visit.node], Branch | Set | End)

    def _on_closed(self, visit: _Visit, e: Closing) -> None:
        """A visit is over; a member that is ended in the middle of a node leaves the reason there."""
        scope = self.state.scopes[visit.scope]
        if self._is_pure(visit):
            text = "" if self.files.muted else joined([self._rendering.entry("error", visit.failure)])
            self._passed[self._directory(scope, visit.node)] = {"output.json": lambda: text, "branch.json": None}
            if not self.files.muted:
                self._contexts.layer(scope)
            return
        self._open.pop(self._under_way(visit).path, None)
        if not self.files.muted:
            if isinstance(e, ev.StepDone):
                layer = self._contexts.layer(scope)
                shown = [layer[key][1] for key in sorted(set(self._keys))]
            else:
                error = e.failure if isinstance(e, ev.StepFailed) else e.error
                shown = [self._rendering.entry("error", error)]
            visit.put("output.json", joined(shown))
            visit.put("context_after.json", self._contexts.text(scope))
            self._ended[visit.path] = visit
        if len(self._prefixes) > len(self.state.scopes):
            self._prefixes = {p: prefix for p, prefix in self._prefixes.items() if p in self.state.scopes}
            self._contexts.only(self.state.scopes)

    def _rewind(self, seq: int, at: float, event: ev.Rewound) -> None:
        """Directories stay as they are: what is visited again sets them aside."""
        for path, visit in self._open.items():
            self._write_visit(path, visit)
        self._open.clear()
        prefix = [entry for entry in self._history(event.upto) if entry[0] <= event.upto and entry[0] < seq]
        self.state = rewound(self.state, prefix, event, at)
        self._contexts.clear()
        self._prefixes = {"": ""}

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
        if visit.lines:
            put = self.files.append if visit.appended else self.files.write
            put(f"{path}/attempts.jsonl", visit.lines)
            visit.appended, visit.lines = True, ""

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
