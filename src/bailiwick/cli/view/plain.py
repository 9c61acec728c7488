"""Off a terminal: one line per thing that happened, for logs and pipes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bailiwick.cli.view.display import Displays, is_left_out
from bailiwick.cli.view.ending import SeenRuns, ending
from bailiwick.cli.view.port import Leaving, RunView
from bailiwick.cli.view.visits import ViewedVisit, viewed_visits
from bailiwick.cli.view.words import STYLE, RunSentence, answer_command, phrase, question_of, run_words, short
from bailiwick.clock import Clock
from bailiwick.engine import events as ev
from bailiwick.engine.graph import Branch, Graph
from bailiwick.engine.state import State
from bailiwick.engine.visits import Visits, VisitStatus
from bailiwick.ids import place
from bailiwick.journal.rows import RunRow
from bailiwick.runs.find import name_of
from bailiwick.terminal.output import Printer, Styled, counted, duration

PURE_LINES = 20
"""Lines for pure steps of one batch; further ones are only counted."""
FIRST_OWN = 2
"""The first event that a walk appends; before it there is only the run's creation."""
PARKED = 5.0
"""Seconds up to which a wait is slept in place."""
_STEPS = (ev.StepPassed, ev.StepDone, ev.StepFailed)
_TOLD = (ev.StepDone, ev.StepFailed, ev.EffectLost)
_COLUMN = 12
_COLUMN_LIMIT = 28


class PlainView(RunView):
    """Writes lines as events become durable. Runs other than the one that is `shown` are named by who called them."""

    def __init__(self, printer: Printer, clock: Clock, displays: Displays | None = None) -> None:
        self._printer = printer
        self._displays = displays or Displays()
        self._clock = clock
        self.shown = ""
        self._tracks: dict[str, Visits[ViewedVisit]] = {}
        self._callers: dict[str, str] = {}
        self._met: set[str] = set()
        self._known = SeenRuns()
        self._column = _COLUMN

    def begin(self, row: RunRow, notices: Sequence[str] = ()) -> None:
        self.shown = row.id
        self._printer.line(Styled(name_of(row), "strong"), Styled(f"  {row.source}" if row.source else "", "dim"))
        self.notices(notices)

    def notices(self, notices: Sequence[str]) -> None:
        """Write what the person should know before."""
        for notice in notices:
            self._printer.text(notice if notice.startswith(("warning", "error")) else f"note: {notice}")

    def durable(self, row: RunRow, state: State, entries: list[ev.Entry]) -> None:
        if self.shown:
            self._known.learn(row, state)
        track = self._tracks.get(row.id) or viewed_visits()
        if row.id not in self._tracks:
            self.meet(row, state, entries)
            self._tracks[row.id] = viewed_visits(state) if entries and entries[0][0] > FIRST_OWN else track
        prefix = self._prefix(row)
        quiet = sum(1 for _, _, e in entries if isinstance(e, ev.StepPassed) and self._is_told(e, state)) - PURE_LINES
        skipped = max(0, quiet)
        for seq, at, event in entries:
            if quiet > 0 and isinstance(event, ev.StepPassed) and self._is_told(event, state):
                quiet -= 1
                track.skip(event)
                continue
            visit = track.apply(seq, at, event)
            if visit is not None:
                self._displays.dress(visit, state)
            self._tell(row, state, event=event, at=at, visit=visit)
        if skipped:
            self._say(
                entries[-1][1], "passed", where="", text=f"and {counted(skipped, 'pure step')} more", prefix=prefix
            )
        if state.status in ("done", "failed"):
            self._forget(row)
        elif not self.shown and parked(state, entries[-1][1] if entries else 0.0):
            self._tracks.pop(row.id, None)

    def _is_told(self, event: ev.StepPassed, state: State) -> bool:
        """Whether a pure step gets a line by what its node says of its display."""
        node = state.graph.nodes.get(event.node)
        return self._displays.verbose or node is None or node.display is None or node.display.mode == "shown"

    def trouble(self, run: str, text: str) -> None:
        self._say(self._clock.now(), "warn", where="", text=short(text), prefix="")

    def end(self, row: RunRow, code: int, state: State | None = None, leaving: Leaving | None = None) -> None:
        if state is not None:
            self._known.learn(row, state)
        ending(row, code, known=self._known, printer=self._printer, now=self._clock.now(), leaving=leaving).show(
            self._printer
        )

    def _prefix(self, row: RunRow) -> str:
        if row.id == self.shown:
            return ""
        caller = self._callers.get(row.id, name_of(row))
        return f"{caller} {self._printer.symbol('below')} "

    def meet(self, row: RunRow, state: State, entries: list[ev.Entry]) -> None:
        """The first time a run is heard of: say what is kept of it when it goes on."""
        names = max((len(name) for name in state.graph.nodes), default=0)
        self._column = max(self._column, min(names, _COLUMN_LIMIT))
        for scope, wait in state.waits():
            if wait.kind == "child":
                self._callers.setdefault(wait.id, self._prefix(row) + place(scope.path, scope.cursor))
        if row.id in self._met:
            return
        self._met.add(row.id)
        kept = state.steps - sum(1 for _, _, e in entries if isinstance(e, _STEPS))
        lost = sum(1 for _, _, e in entries if isinstance(e, ev.EffectLost))
        if kept or lost:
            again = f", {lost} re-entered" if lost else ""
            at = entries[0][1] if entries else self._clock.now()
            self._say(
                at, "passed", where="", text=f"resumed: {counted(kept, 'step')} kept{again}", prefix=self._prefix(row)
            )

    def _tell(self, row: RunRow, state: State, event: ev.Event, at: float, visit: ViewedVisit | None) -> None:
        prefix = self._prefix(row)
        if isinstance(event, ev.ChildStarted) and visit is not None:
            self._callers[event.child] = prefix + visit.where
        for said in self._run_lines(row, event):
            self._say(at, said.symbol, where="", text=said.text, prefix=prefix)
        for note in _notes(event, state.graph):
            self._say(at, "warn", where=visit.where if visit else "", text=note, prefix=prefix)
        if visit is None or not _worth_a_line(event, visit) or is_left_out(visit):
            return
        text = phrase(visit, self._printer, state.graph, at)
        if visit.status is VisitStatus.WAITS and visit.wait is not None:
            text += f"  ({answer_command(name_of(row), visit.wait.body.get('choices') or ())})"
        seconds = visit.elapsed(at) if not visit.live and visit.status is not VisitStatus.PASSED else None
        parts = [text, duration(seconds) if seconds is not None else ""]
        retried = isinstance(event, ev.WaitOpened) and event.kind == "retry"
        symbol = VisitStatus.FAILED if retried else visit.symbol
        self._say(at, symbol, where=visit.where, text="  ".join(p for p in parts if p), prefix=prefix)

    def _run_lines(self, row: RunRow, event: ev.Event) -> Iterator[RunSentence]:
        if said := run_words(event):
            yield said
        if isinstance(event, ev.WaitOpened) and event.kind == "budget":
            command = answer_command(name_of(row), event.body.get("choices") or ())
            yield RunSentence("waits", f"waiting for you: {question_of(event)}  ({command})")
        if isinstance(event, ev.ScopeEnded) and event.status != "done":
            error = event.error or {}
            if error.get("kind") in ("fail", "cancelled"):
                yield RunSentence(
                    "failed", f"{event.scope} {event.status}: {short(error.get('message') or 'no reason')}"
                )
        if isinstance(event, ev.RunFinished) and row.id != self.shown and row.parent is None:
            yield RunSentence(event.status, f"{event.status}: {short(event.reason)}" if event.reason else event.status)

    def _say(self, at: float, symbol: str, where: str, text: str, prefix: str) -> None:
        printer = self._printer
        style = STYLE[VisitStatus(symbol)] if symbol != "warn" else "wait"
        mark = Styled(printer.symbol(symbol), style)
        dim = "dim" if symbol == "passed" else ""
        label = prefix + where
        gap = f"{label:<{self._column}}  " if where else label
        printer.line(Styled(printer.clock(at), "dim"), "  ", mark, " ", Styled(f"{gap}{text}", dim))

    def _forget(self, row: RunRow) -> None:
        """A run is over: keep nothing of its visits."""
        self._tracks.pop(row.id, None)
        self._callers.pop(row.id, None)
        self._met.discard(row.id)


def parked(state: State, now: float) -> bool:
    """Whether nothing of a run moves for a while, so that a worker need not remember it."""
    dues = [wait.due_at for _, wait in state.waits() if wait.due_at is not None]
    return not state.running and min(dues, default=now + PARKED) >= now + PARKED


def _worth_a_line(event: ev.Event, visit: ViewedVisit) -> bool:
    """Ends of steps, chosen branches, waits: the first look of a poll stands for all of them."""
    if isinstance(event, ev.WaitOpened):
        return event.kind != "poll" or event.ordinal <= 1
    return isinstance(event, (*_TOLD, ev.StepPassed)) and visit.status is not VisitStatus.RUNS


def _notes(event: ev.Event, graph: Graph) -> list[str]:
    """What was missing when a step was prepared."""
    if not isinstance(event, ev.StepPassed | ev.WaitOpened | ev.EffectStarted):
        return []
    again = isinstance(event, ev.EffectStarted) and (event.attempt, event.entry) != (1, 1)
    if again or isinstance(graph.nodes.get(event.node), Branch):
        return []
    return [f"'{short(name, 80)}' is not in the context and rendered empty" for name in event.notes[:6]]
