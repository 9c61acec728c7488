"""`--json`: nothing but one JSON document at the end."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bailiwick.cli.view.ending import BACKGROUND, WORDS, PendingWait, SeenRuns, ending, results
from bailiwick.cli.view.port import Leaving, RunView, run_dir, told
from bailiwick.clock import Clock, iso
from bailiwick.engine.events import Entry
from bailiwick.engine.state import State
from bailiwick.errors import StoreError
from bailiwick.ids import Json
from bailiwick.journal.rows import RunRow
from bailiwick.runs.find import name_of
from bailiwick.terminal.output import Printer, json_text

CONTEXT_LIMIT = 64 * 1024


class DocumentView(RunView):
    """Keeps quiet until the end; what is for people goes to standard error."""

    def __init__(self, printer: Printer, clock: Clock, people: Printer | None = None) -> None:
        self._printer = printer
        self._clock = clock
        self._people = people or Printer(out=sys.stderr, forgive=True)
        self._known = SeenRuns()

    def begin(self, row: RunRow, notices: Sequence[str] = ()) -> None:
        for notice in notices:
            self._people.text(notice)

    def durable(self, row: RunRow, state: State, entries: list[Entry]) -> None:
        self._known.learn(row, state)

    def trouble(self, run: str, text: str) -> None:
        self._people.line(text)

    def end(self, row: RunRow, code: int, state: State | None = None, leaving: Leaving | None = None) -> None:
        if state is not None:
            self._known.learn(row, state)
        self._printer.emit_json(self._document(row, code, leaving or Leaving()))

    def _document(self, row: RunRow, code: int, leaving: Leaving) -> dict[str, Json]:
        words = ending(row, code, known=self._known, printer=self._printer, now=self._clock.now(), leaving=leaving)
        directory = None if leaving.gone else run_dir(row) or None
        ended = told(row, "ended_at")
        document: dict[str, Json] = {
            "run": name_of(row),
            "workflow": row.workflow,
            "run_id": row.run_key,
            "uid": row.id,
            "state": told(row, "state") or row.status,
            "code": code,
            "meaning": BACKGROUND if leaving.worker is not None else WORDS.get(code, ""),
            "already": leaving.already,
            "worker": leaving.worker,
            "degraded": told(row, "degraded") or [],
            "reason": told(row, "reason") or "",
            "steps": told(row, "steps") or 0,
            "reentered": told(row, "reentered") or 0,
            "started_at": iso(row.created_at),
            "ended_at": iso(float(ended)) if isinstance(ended, int | float) and ended else None,
        }
        context = _context(self._known.states.get(row.id))
        if context is not None:
            document["context"] = context
        document["results"] = _bounded(results(self._known.states.get(row.id)))
        document["waits"] = [_wait(question) for question in self._known.questions(row)]
        return document | {"run_dir": directory, "next": words.commands()}


def _wait(question: PendingWait) -> dict[str, Json]:
    return {
        "run": question.run,
        "id": question.id,
        "node": question.node,
        "kind": question.kind,
        "question": question.text or None,
        "choices": list(question.choices),
        "due_at": iso(question.due_at) if question.due_at is not None else None,
    }


def _context(state: State | None) -> dict[str, Json] | None:
    """What the workflow returns, or its whole context; None where it is unknown, unreadable or over the limit."""
    if state is None or "" not in state.scopes:
        return None
    names = state.names("")
    if state.graph.returns:
        names = [name for name in state.graph.returns if name in names]
    try:
        found = {name: state.lookup("", name) for name in names}
    except (KeyError, StoreError):
        return None
    return _bounded(found)


def _bounded(found: dict[str, Json]) -> dict[str, Json] | None:
    return found if len(json_text(found, indent=None)) <= CONTEXT_LIMIT else None
