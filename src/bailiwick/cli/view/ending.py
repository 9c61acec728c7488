"""The last words of a command that walked a run: how it ended, and what to do next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from bailiwick.cli.view.port import Leaving, run_dir, told
from bailiwick.cli.view.words import answer_command, short
from bailiwick.engine.state import PERSON_WAITS, State, WaitState
from bailiwick.errors import StoreError
from bailiwick.ids import Json, place
from bailiwick.journal.rows import RunRow
from bailiwick.runs.find import name_of
from bailiwick.terminal.output import Printer, Styled, counted, dollars, duration, json_text

WORDS = {
    0: "done",
    1: "failed",
    3: "waits for a person",
    4: "done, but degraded",
    5: "budget reached",
    6: "gave up",
    7: "waits for time",
    129: "the terminal was closed",
    130: "interrupted",
    143: "terminated",
}
"""What an exit code says."""
_LOOK = {0: "done", 1: "failed", 4: "warn", 6: "failed"}
BACKGROUND = "goes on in the background"
RESULT_LENGTH = 400
"""Characters of one returned value that are shown."""
COMMAND_LENGTH = 4000
"""Characters of params up to which a command that repeats them is suggested."""
_STYLE = {"runs": "strong", "done": "good", "failed": "bad", "warn": "wait", "waits": "wait", "sleeps": "wait"}


@dataclass(frozen=True, slots=True)
class PendingWait:
    """An open wait of a run of the tree; `due_at` in seconds since the epoch."""

    run: str
    id: str
    node: str
    kind: str
    text: str = ""
    choices: tuple[Json, ...] = ()
    due_at: float | None = None

    def command(self, others: int) -> str:
        """The command that answers it, where `others` more are open in the same run."""
        return answer_command(self.run, self.choices, self.id if others else "")


@dataclass(slots=True)
class SeenRuns:
    """What a view learned of a tree while it was walked: rows and states by run id."""

    states: dict[str, State] = field(default_factory=dict)
    rows: dict[str, RunRow] = field(default_factory=dict)

    def learn(self, row: RunRow, state: State) -> None:
        """Keep what was heard last; a child that is over has nothing more to say."""
        self.rows[row.id], self.states[row.id] = row, state
        if row.parent is not None and state.status in ("done", "failed"):
            del self.rows[row.id], self.states[row.id]

    def questions(self, root: RunRow) -> list[PendingWait]:
        """Every open wait of the tree but those for children; from the summary when nothing was walked."""
        found = [
            _question(name_of(self.rows[run]), scope.path, scope.cursor, wait)
            for run, state in self.states.items()
            if state.status == "running"
            for scope, wait in state.waits()
            if wait.kind != "child"
        ]
        if found or root.status != "ready" or root.id in self.states:
            return found
        return _from_summary(root)


def _question(run: str, scope: str, cursor: str, wait: WaitState) -> PendingWait:
    choices = wait.body.get("choices")
    node = "" if wait.kind == "budget" else place(scope, cursor)
    text = str(wait.body.get("question", ""))
    return PendingWait(
        run, id=wait.id, node=node, kind=wait.kind, text=text, choices=tuple(choices or ()), due_at=wait.due_at
    )


def _from_summary(row: RunRow) -> list[PendingWait]:
    question, due, node = told(row, "question"), told(row, "due_at"), str(told(row, "node") or "")
    due_at = float(due) if isinstance(due, int | float) else None
    if question is not None:
        kind = "budget" if told(row, "budget") else "ask"
        return [
            PendingWait(
                name_of(row),
                id=str(told(row, "wait") or ""),
                node=node,
                kind=kind,
                text=str(question),
                choices=(),
                due_at=due_at,
            )
        ]
    return [PendingWait(name_of(row), "", node, "timer", due_at=due_at)] if due_at is not None else []


@dataclass(frozen=True, slots=True)
class Ending:
    """The last words: a symbol, one sentence, what the workflow returns, and labelled commands."""

    symbol: str
    sentence: str
    next: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, str], ...] = ()

    def show(self, printer: Printer) -> None:
        """Write it."""
        printer.line()
        mark = printer.symbol(self.symbol)
        printer.line(Styled(mark, _STYLE[self.symbol]), " ", Styled(self.sentence, "strong"))
        for label, value in (*(("result", f"{name} = {value}") for name, value in self.results), *self.next):
            printer.line(Styled(f"{label:<8}", "dim"), value, whole=True)

    def commands(self) -> list[str]:
        """The commands among what is next."""
        return [value for _, value in self.next if value.startswith("bailiwick ")]


def ending(
    row: RunRow, code: int, known: SeenRuns, printer: Printer, now: float, leaving: Leaving | None = None
) -> Ending:
    """How a command ends that leaves with `code`."""
    leaving = leaving or Leaving()
    if leaving.worker is not None:
        return _background(row, leaving.worker)
    questions = known.questions(row)
    symbol = _LOOK.get(code, "sleeps" if code == 7 else "waits")
    following = [] if leaving.gone else _next(row, code, known=known, questions=questions, leaving=leaving)
    if (files := run_dir(row)) and not leaving.gone:
        following.append(("files", files))
    sentence = (
        _already(row, printer, now) if leaving.already else _sentence(row, code, known=known, printer=printer, now=now)
    )
    if leaving.gone and code not in _LOOK:
        sentence = f"{_word(code)} after {_steps(row)}; it can't be resumed: all of it is removed now."
    shown = _results(known.states.get(row.id)) if leaving.results else ()
    return Ending(symbol, sentence + _cost(leaving), tuple(following), shown)


def _background(row: RunRow, worker: int) -> Ending:
    name = name_of(row)
    following = (
        ("follow", f"bailiwick logs -f {name}"),
        ("wait", f"bailiwick runs wait {name}"),
        ("stop", f"bailiwick stop {name}"),
    )
    return Ending("runs", f"{name} {BACKGROUND} (pid {worker}).", following)


def _already(row: RunRow, printer: Printer, now: float) -> str:
    """What is said of a run that was over before the command came: nothing was done now."""
    ended = told(row, "ended_at")
    when = ""
    if isinstance(ended, int | float):
        when = f" since {printer.time(ended, now)}, {printer.relative(ended, now)}"
    if row.status == "done":
        degraded = ", but degraded" if told(row, "degraded") else ""
        return f"Already done{degraded}{when} ({_steps(row)}); nothing was run."
    reason = short(told(row, "reason") or "no reason was given")
    return f"Already failed{when}, at '{told(row, 'node') or ''}': {reason}"


def _cost(leaving: Leaving) -> str:
    return f" {dollars(leaving.usd)} spent." if leaving.usd else ""


def results(state: State | None) -> dict[str, Json]:
    """What the workflow returns, as far as it is there; nothing for one that declares no `returns`."""
    if state is None or "" not in state.scopes or state.status not in ("done", "failed"):
        return {}
    out: dict[str, Json] = {}
    for name in state.graph.returns:
        try:
            out[name] = state.lookup("", name)
        except (KeyError, StoreError):
            continue
    return out


def _results(state: State | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, shown_value(value)) for name, value in results(state).items())


def shown_value(value: Json) -> str:
    """A value in one bounded line: text as it is, everything else as JSON."""
    return short(value if isinstance(value, str) else json_text(value, indent=None), RESULT_LENGTH)


def _word(code: int) -> str:
    word = WORDS.get(code, f"left with code {code}")
    return f"{word[0].upper()}{word[1:]}"


def _sentence(row: RunRow, code: int, known: SeenRuns, printer: Printer, now: float) -> str:
    state = known.states.get(row.id)
    match code:
        case 0 | 4:
            return _done(row, state, degraded=code == 4)
        case 1:
            node, reason = str(told(row, "node") or ""), short(told(row, "reason") or "no reason was given")
            return f"Failed at '{node}': {reason}"
        case 6:
            return (
                f"Handed off to you at '{told(row, 'node') or ''}': {short(told(row, 'reason') or 'no reason given')}"
            )
        case 5:
            asked = next((q.text for q in known.questions(row) if q.kind == "budget"), "")
            return f"Budget reached: {short(asked)}" if asked else "Budget reached."
        case 7:
            dues = [q.due_at for q in known.questions(row) if q.due_at is not None]
            return f"Sleeps until {printer.time(min(dues), now)}." if dues else "Waits for time."
        case 3 if row.status == "stopped":
            return f"Stopped after {_steps(row)}; nothing is lost."
        case 3:
            asked = next((q.text for q in known.questions(row) if q.kind in PERSON_WAITS), "")
            return f"Waiting for you: {short(asked)}" if asked else "Waiting for you."
        case _:
            return f"{_word(code)} after {_steps(row)}; nothing is lost."


def _steps(row: RunRow) -> str:
    steps = told(row, "steps")
    return counted(steps if isinstance(steps, int) else 0, "step")


def _done(row: RunRow, state: State | None, *, degraded: bool) -> str:
    end = told(row, "ended_at")
    total = state.wall if state else (float(end) - row.created_at if isinstance(end, int | float) else None)
    again = told(row, "reentered")
    parts = [f"Done in {duration(total)}" if total is not None else "Done"]
    if state is None or not any(node.display for node in state.graph.nodes.values()):
        parts.append(_steps(row))
    if isinstance(again, int) and again:
        parts.append(f"{again} re-entered")
    text = ", ".join(parts)
    if not degraded:
        return text + "."
    names = told(row, "degraded")
    nodes = ", ".join(f"'{short(n, 80)}'" for n in names[:6]) if isinstance(names, list) and names else "a node"
    return f"{text}, but degraded: {nodes} used a default."


def _next(
    row: RunRow, code: int, known: SeenRuns, questions: list[PendingWait], leaving: Leaving
) -> list[tuple[str, str]]:
    name = name_of(row)
    go_on = ("go on", f"bailiwick resume {name}")
    why = ("why", f"bailiwick why {name}")
    state = known.states.get(row.id)
    again = [("again", command)] if (command := leaving.again or _fresh(row, state)) else []
    match code:
        case 0 | 4:
            return [*([why] if code else []), *(again if leaving.already else [])]
        case 1:
            return [why, *(again if state is not None and state.ended else [go_on])]
        case 6:
            return [why, *(again if leaving.already else [])]
        case 3 | 5 if row.status != "stopped":
            return _answers(questions) or [why]
        case 7:
            return [go_on, why]
        case _:
            return [go_on]


def _answers(questions: list[PendingWait]) -> list[tuple[str, str]]:
    asked = [q for q in questions if q.kind in PERSON_WAITS]
    return [("answer", q.command(sum(1 for o in asked if o.run == q.run) - 1)) for q in asked[:6]]


def _fresh(row: RunRow, state: State | None) -> str:
    """The command that starts a run over with the same params; empty where that is too long to be typed."""
    key = "" if row.run_key == "default" else f" --run-id {row.run_key}"
    params = json_text(state.params, indent=None) if state is not None and state.params else ""
    if state is None or len(params) > COMMAND_LENGTH:
        return ""
    given = f" --params {shlex.quote(params)}" if params else ""
    return f"bailiwick run {shlex.quote(row.source or row.workflow)}{key}{given} --fresh"
