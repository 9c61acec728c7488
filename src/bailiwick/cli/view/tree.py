"""The picture of the live view: a header and the visits as a tree, within the height and width of a terminal. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from bailiwick.cli.view.display import is_left_out
from bailiwick.cli.view.visits import ViewedVisit, viewed_visits
from bailiwick.cli.view.words import STYLE, phrase, question_of, short
from bailiwick.engine.graph import Graph
from bailiwick.engine.state import State
from bailiwick.engine.visits import Lane, Visits, VisitStatus
from bailiwick.terminal.output import NARROW, Line, Printer, Styled, cells, counted, dollars, duration, wrapped

CONSTRUCT_LINES = 12
"""Lines below a construct or a call, at most."""
DEEPEST = 6
_LABEL = 12
_TIME = 7
_BELOW = 4
BROKEN = 4
"""Lines that the words of a failed step may take."""
_LABEL_LIMIT = 28


@dataclass(slots=True)
class Run:
    """A run of the tree: its visits, and what the state said when they became durable."""

    track: Visits[ViewedVisit] = field(default_factory=viewed_visits)
    graph: Graph = field(default_factory=lambda: Graph(name="", start="", nodes={}))
    state: str = "running"
    steps: int = 0
    wall: float = 0.0
    at: float = 0.0
    over: bool = False

    def learn(self, state: State, shown: str) -> None:
        """Copy what the picture needs: the state itself goes on changing."""
        self.graph, self.state, self.steps = state.graph, shown, state.steps
        self.wall, self.at, self.over = state.wall, state.last_at, state.status not in ("running", "new")

    def elapsed(self, now: float) -> float:
        """Time spent so far; it stands still while only a person is waited for."""
        counts = not self.over and self.state != "waiting"
        return self.wall + (max(0.0, now - self.at) if counts and self.at else 0.0)


class RunTreeView:
    """Draws a run and its children. `name` is the run's name; children are found by run id in `runs`."""

    def __init__(self, printer: Printer, name: str, runs: dict[str, Run], root: str) -> None:
        self._printer = printer
        self._name = name
        self._runs = runs
        self._root = root
        self._width = NARROW

    def lines(self, width: int, height: int, now: float, trouble: str = "") -> list[Line]:
        """The header and as much of the tree as fits, the newest visits first; `height` lines at most."""
        run = self._runs.get(self._root) or Run()
        self._width = width
        tail = [(Styled(f"{self._printer.symbol('warn')} {short(trouble)}", "wait"),)] if trouble else []
        body = self._body(run, max(1, height - 1 - len(tail)), now)
        return [self._fit(line, width) for line in [self._header(run, now), *body, *tail]][: max(1, height)]

    def body(self, width: int, height: int, now: float) -> list[Line]:
        """The tree without the header."""
        self._width = width
        run = self._runs.get(self._root) or Run()
        return [self._fit(line, width) for line in self._body(run, height, now)]

    def _header(self, run: Run, now: float) -> Line:
        waits = sum(1 for r in self._runs.values() for v in r.track.under_way() if v.status is VisitStatus.WAITS)
        waits += sum(1 for r in self._runs.values() if r.track.budget is not None)
        parts = [duration(int(run.elapsed(now))), counted(run.steps, "step")]
        spent = sum(one.track.usd for one in self._runs.values())
        if spent:
            parts.append(dollars(spent))
        if waits:
            parts.append(f"{waits} waiting for you")
        return (Styled(self._name, "strong"), Styled(f"  {run.state}  "), Styled(", ".join(parts), "dim"))

    def _body(self, run: Run, room: int, now: float) -> list[Line]:
        blocks = [self._block(run, visit, now, 0) for visit in run.track.root.visits if not is_left_out(visit)]
        if run.track.budget is not None:
            blocks.append([self._budget(run)])
        earlier = run.track.root.earlier
        kept: list[list[Line]] = []
        for block in reversed(blocks):
            left = room - sum(map(len, kept))
            more = earlier > 0 or len(kept) + 1 < len(blocks)
            if kept and len(block) > left - (1 if more else 0):
                break
            kept.append(block[: max(1, left - (1 if more else 0))])
        earlier += len(blocks) - len(kept)
        lines = [line for block in reversed(kept) for line in block]
        if not earlier:
            return lines
        return [self._dim(f"{self._printer.symbol('more')} {counted(earlier, 'earlier step')}"), *lines][:room]

    def _budget(self, run: Run) -> Line:
        mark = Styled(f"{self._printer.symbol('waits')} ", "wait")
        return (mark, Styled(f"{'budget':<{_LABEL}}  waiting for you: {question_of(run.track.budget)}"))

    def _block(self, run: Run, visit: ViewedVisit, now: float, depth: int) -> list[Line]:
        """A visit's own line and, below it, what is under way or failed inside it."""
        below = self._below(run, visit, now, depth + 1) if depth < DEEPEST else []
        own = self._row(run, visit, now, depth)
        return [*(self._broken(own) if visit.symbol is VisitStatus.FAILED else [own]), *below]

    def _broken(self, line: Line) -> list[Line]:
        """A line that says what went wrong: broken between words instead of cut, the rest indented below it."""
        mark, label, text, *rest = line
        head, words = text.text[: _TIME + 3], text.text[_TIME + 3 :]
        room = self._width - cells(mark.text) - cells(label.text) - len(head)
        first, *more = wrapped(words, max(room, _LABEL))
        below = wrapped(" ".join(more), self._width - _BELOW)[: BROKEN - 1] if more else []
        own: Line = (mark, label, Styled(f"{head}{first}", text.style), *rest)
        return [own, *((Styled(f"{' ' * _BELOW}{part}", text.style),) for part in below)]

    def _below(self, run: Run, visit: ViewedVisit, now: float, depth: int) -> list[Line]:
        blocks = [self._member(run, lane, now, depth) for lane in _failed_first(visit)]
        child = self._runs.get(visit.child) if visit.child and visit.live else None
        if child is not None:
            blocks += [
                self._block(child, last, now, depth)
                for last in [v for v in child.track.root.visits if not is_left_out(v)][-1:]
            ]
        lines: list[Line] = []
        hidden = 0
        for block in filter(None, blocks):
            room = CONSTRUCT_LINES - 1 - len(lines)
            if len(block) <= room or not lines:
                lines += block[:room]
            else:
                hidden += 1
        rest = _rest(visit, hidden)
        return [*lines, self._dim(f"{'  ' * depth}{self._printer.symbol('more')} {rest}")] if rest else lines

    def _member(self, run: Run, lane: Lane[ViewedVisit], now: float, depth: int) -> list[Line]:
        """A member's step under way, or why it failed."""
        indent = "  " * depth
        name = lane.path.rpartition("/")[2]
        if lane.status == "failed":
            where = f"{name}/{lane.last.label}" if lane.last is not None else name
            mark = Styled(f"{indent}{self._printer.symbol('failed')} ", "bad")
            return [(mark, Styled(f"{where:<{self._column(run)}}  {short(lane.error or 'failed')}"))]
        visit = lane.last
        if visit is None or not visit.live:
            return []
        first, *rest = self._block(run, visit, now, depth)
        mark, label, *others = first
        where = f"{name}/{label.text.rstrip()}"
        return [(mark, Styled(f"{where:<{self._column(run)}}", label.style), *others), *rest]

    def _column(self, run: Run) -> int:
        return max(_LABEL, min(max(map(len, run.graph.nodes), default=0), _LABEL_LIMIT))

    def _row(self, run: Run, visit: ViewedVisit, now: float, depth: int) -> Line:
        """One visit: symbol, name, time, words, the last line its process wrote."""
        passed = visit.status is VisitStatus.PASSED
        seconds = None if passed else visit.elapsed(now)
        if seconds is not None and visit.live:
            seconds = float(int(seconds))
        time = duration(seconds) if seconds is not None else ""
        words = phrase(visit, self._printer, run.graph, now)
        said = short(visit.said, 200) if visit.status is VisitStatus.RUNS and visit.said else ""
        mark = Styled(f"{'  ' * depth}{self._printer.symbol(visit.symbol)} ", STYLE[visit.symbol])
        style = "dim" if passed else ""
        text = "  ".join(part for part in (f"{time:>{_TIME}}", words) if part)
        return (
            mark,
            Styled(f"{visit.label:<{self._column(run)}}", style),
            Styled(f" {text}", style),
            Styled(f"  {said}" if said else "", "dim"),
        )

    def _dim(self, text: str) -> Line:
        return (Styled(text, "dim"),)

    def _fit(self, line: Line, width: int) -> Line:
        """The line as this output can show it, cut to the width."""
        out: list[Styled] = []
        left = width
        for text, style in line:
            safe = self._printer.safe(text)
            cut = self._printer.clip(safe, left)
            if cut:
                out.append(Styled(cut, style))
            left -= cells(safe)
            if left <= 0:
                break
        return tuple(out)


def _failed_first(visit: ViewedVisit) -> list[Lane[ViewedVisit]]:
    return sorted(visit.lanes.values(), key=lambda lane: lane.status != "failed")


def _rest(visit: ViewedVisit, hidden: int) -> str:
    """What the lines below a visit don't show: members that ended, wait for a place, or found no room."""
    parts = [f"{hidden} more"] if hidden else []
    if visit.size and visit.live:
        ended = sum(visit.over.values())
        failed = sum(1 for lane in visit.lanes.values() if lane.status)
        pending = visit.size - ended - (len(visit.lanes) - failed)
        parts += [f"{ended - failed} ended"] if ended > failed else []
        parts += [f"{pending} not begun"] if pending > 0 else []
    return ", ".join(parts)
