"""`--events`: every durable event of the tree as one line of JSON, then one line that says how it ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from bailiwick.cli.view.port import Leaving, RunView, told
from bailiwick.clock import iso
from bailiwick.engine.events import Entry, Event, body_of
from bailiwick.engine.state import Deferred, State
from bailiwick.ids import Json, digest
from bailiwick.journal.codec import INLINE
from bailiwick.journal.rows import RunRow
from bailiwick.runs.find import name_of
from bailiwick.terminal.output import Printer, json_text

_WHOLE = frozenset({"value", "request"})


class EventsView(RunView):
    """Writes NDJSON, each line at once; what is for people goes to standard error."""

    def __init__(self, printer: Printer, people: Printer | None = None) -> None:
        self._printer = printer
        self._people = people or Printer(out=sys.stderr, forgive=True)

    def begin(self, row: RunRow, notices: Sequence[str] = ()) -> None:
        for notice in notices:
            self._people.text(notice)

    def durable(self, row: RunRow, state: State, entries: list[Entry]) -> None:
        self._printer.write("".join(_line(row, *entry) for entry in entries))

    def trouble(self, run: str, text: str) -> None:
        self._people.line(text)

    def end(self, row: RunRow, code: int, state: State | None = None, leaving: Leaving | None = None) -> None:
        shown = told(row, "state") or row.status
        self._printer.write(json_text(_head(row, "End") | {"state": shown, "code": code}, indent=None) + "\n")


def _head(row: RunRow, kind: str) -> dict[str, Json]:
    return {"run": name_of(row), "uid": row.id, "type": kind}


def _line(row: RunRow, seq: int, at: float, event: Event) -> str:
    head = {"run": name_of(row), "uid": row.id, "seq": seq, "at": iso(at), "type": type(event).__name__}
    body = {name: value for name, value in shown_body(event).items() if name not in head}
    return json_text(head | body, indent=None) + "\n"


def shown_body(event: Event) -> dict[str, Json]:
    """The fields of an event; a value that the journal keeps apart is `{"$ref": digest}`."""
    return {name: _entries(name, value) for name, value in body_of(event).items()}


def _entries(name: str, value: Json) -> Json:
    if name in _WHOLE or not isinstance(value, dict):
        return _short(value) if name in _WHOLE else value
    return {key: _short(item) for key, item in value.items()}


def _short(value: Json) -> Json:
    if isinstance(value, str | dict | list):
        text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=_reference)
        return {"$ref": digest(text)} if len(text) > INLINE else json.loads(text)
    return _reference(value) if isinstance(value, Deferred) else value


def _reference(value: object) -> dict[str, str]:
    if not isinstance(value, Deferred):
        raise TypeError(f"{type(value).__name__} is not a JSON value")
    return {"$ref": value.digest}
