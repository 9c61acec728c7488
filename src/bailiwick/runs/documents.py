"""What `--json` says of runs: plain objects with stable names, times in RFC 3339. Pure."""

from __future__ import annotations

from bailiwick.clock import iso
from bailiwick.engine.state import Deferred
from bailiwick.engine.visits import Visit
from bailiwick.ids import Json
from bailiwick.journal.rows import RunRow, WaitRow
from bailiwick.runs.find import name_of
from bailiwick.runs.log_lines import LogLine
from bailiwick.runs.query import LISTED, OpenQuestion, Overview, RunStatus
from bailiwick.runs.why import Explanation


def moment(at: float | None) -> str | None:
    """A time, or null where there is none."""
    return None if at is None else iso(at)


def standing_document(found: RunStatus) -> dict[str, Json]:
    """A run in a list."""
    row = found.row
    return {
        **row_document(row, found.state),
        "node": found.node,
        "steps": found.steps,
        "reason": found.note,
        "degraded": list(found.degraded),
        "holder": found.holder or None,
        "orphaned": found.orphaned,
        "due_at": moment(found.due_at),
        "ended_at": moment(found.ended_at),
    }


def row_document(row: RunRow, state: str) -> dict[str, Json]:
    """What every document says of the run it is about; `state` is its standing's."""
    return {
        "run": name_of(row),
        "uid": row.id,
        "workflow": row.workflow,
        "run_id": row.run_key,
        "state": state,
        "parent": row.parent,
        "archived": row.archived,
        "started_at": iso(row.created_at),
    }


def question_document(asked: OpenQuestion) -> dict[str, Json]:
    """A question, with the commands that answer it."""
    return {
        "run": asked.run,
        "wait": asked.wait,
        "node": asked.place or None,
        "kind": asked.kind,
        "question": asked.text,
        "choices": list(asked.choices),
        "due_at": moment(asked.due_at),
        "commands": list(asked.commands),
    }


def overview_document(found: Overview) -> dict[str, Json]:
    """Everything `status` shows."""
    names = {state: "finished" if state == "done" else state for state in LISTED}
    return {
        "waiting": [question_document(asked) for asked in found.questions],
        **{name: [standing_document(one) for one in found.of(state)] for state, name in names.items()},
        "next": found.next_commands(),
    }


def visit_document(visit: Visit, result: str) -> dict[str, Json]:
    """A visit of a node, with its result as the run's standing makes it."""
    return {
        "node": visit.node,
        "scope": visit.scope,
        "visit": visit.number,
        "result": result,
        "next": visit.next or None,
        "detail": visit.detail,
        "seconds": visit.seconds,
        "attempts": visit.attempts,
        "reentries": visit.reentries,
        "began_at": iso(visit.began),
        "ended_at": moment(visit.ended),
        "undone": visit.undone,
    }


def wait_document(wait: WaitRow) -> dict[str, Json]:
    """An open wait."""
    body = wait.body if isinstance(wait.body, dict) else {}
    return {
        "id": wait.id,
        "node": wait.node or None,
        "scope": wait.scope,
        "kind": wait.kind,
        "question": body.get("question"),
        "choices": body.get("choices"),
        "due_at": moment(wait.due_at),
    }


def line_document(line: LogLine) -> dict[str, Json]:
    """A line of the log."""
    output = [{"stream": stream, "text": text} for stream, text in line.output]
    return {"seq": line.seq, "at": iso(line.at), "node": line.place or None, "text": line.text, "output": output}


def reason_document(reason: Explanation) -> dict[str, Json]:
    """An answer to why."""
    return {"topic": reason.topic, "text": reason.text, "lines": list(reason.lines), "at": moment(reason.at)}


def plain(value: Json) -> Json:
    """A value for a document: one that is kept as a blob becomes a reference."""
    if isinstance(value, Deferred):
        return {"$ref": value.digest}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value
