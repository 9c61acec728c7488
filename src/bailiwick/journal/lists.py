"""Lists of runs, waits and calls: only the conditions that a filter asks for, so that an index can serve them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bailiwick.journal.queries import query
from bailiwick.journal.rows import RunFilter, RunKind, WaitFilter, WaitRow

Value = str | float | None
Asked = tuple[str, dict[str, str | float]]
"""A query and its bindings."""
_AFTER_ALL_IDS = "\x7f"
"""Behind every sign that ids are made of."""

_RUNS: Mapping[str, str] = {
    "id": "r.id >= :id AND r.id < :id_end",
    "workflow": "r.workflow = :workflow",
    "run_key": "r.run_key = :run_key",
    "root_id": "r.root_id = :root_id",
    "since": "f.created_at >= :since",
    "ended_since": "r.id IN (SELECT e.run_id FROM run_fact e WHERE e.ended_at >= :ended_since)",
    "before_at": "(f.created_at, f.number) < (:before_at, :before_number)",
}
_KINDS: Mapping[RunKind, str] = {"run": "f.kind = 'run'", "call": "f.kind = 'call'"}
"""In so many words: each has an index of its own, which is found by them."""
_WAITS: Mapping[str, str] = {
    "run_id": "run_id = :run_id",
    "root_id": "run_id IN (SELECT r.id FROM run r WHERE r.root_id = :root_id)",
    "kind": "kind = :kind",
    "after_due": "(due_at IS NULL OR (due_at, run_id, id) > (:after_due, :after_run, :after_id))",
}
_CALLS: Mapping[str, str] = {
    "since": "started_at >= :since",
    "session": "session_id = :session",
    "id": "id >= :id AND id < :id_end",
}
"""The condition that each value asks for; none where it is not given."""
_AFTER_ENDLESS = "due_at IS NULL AND (run_id, id) > (:after_run, :after_id)"


def runs(which: RunFilter, limit: int | None, before: tuple[float, int] | None) -> Asked:
    """Runs, newest first; `before` is when the last one of a page was created, and its number."""
    at, number = before or (None, None)
    given: dict[str, Value] = {
        "id": which.id,
        "id_end": _end(which.id),
        "workflow": which.workflow,
        "run_key": which.run_key,
        "root_id": which.root_id,
        "since": which.since,
        "ended_since": which.ended_since,
        "before_at": at,
        "before_number": number,
        **{f"status{place}": status for place, status in enumerate(which.status)},
    }
    more = [_KINDS[which.kind]]
    if which.status:
        more.append(f"r.status IN ({', '.join(f':status{place}' for place in range(len(which.status)))})")
    more += [] if which.called else ["f.parent IS NULL"]
    more += [] if which.archived else ["f.archived = 0"]
    parts = [query("run.columns"), *_where(_RUNS, given, more), "ORDER BY f.created_at DESC, f.number DESC"]
    return _limited(parts, limit, given)


def waits(which: WaitFilter, limit: int | None, after: WaitRow | None) -> Asked:
    """Open waits, earliest due first, those without an end last."""
    given: dict[str, Value] = {"run_id": which.run_id, "root_id": which.root_id, "kind": which.kind}
    if after is not None:
        given |= {"after_due": after.due_at, "after_run": after.run_id, "after_id": after.id}
    more = [_AFTER_ENDLESS] if after is not None and after.due_at is None else []
    columns = "SELECT run_id, id, scope, node, kind, due_at, body FROM wait"
    return _limited([columns, *_where(_WAITS, given, more), "ORDER BY due_at NULLS LAST, run_id, id"], limit, given)


def calls(*, since: float | None, session: str | None, id: str | None, limit: int) -> Asked:  # noqa: A002
    """Calls, newest first. Those with a session have an index, so a session that is asked for is said to be one."""
    given: dict[str, Value] = {"since": since, "session": session, "id": id, "id_end": _end(id)}
    more = ["session_id <> ''"] if session else []
    parts = [query("call.columns"), *_where(_CALLS, given, more), "ORDER BY started_at DESC, number DESC"]
    return _limited(parts, limit, given)


def _end(id: str | None) -> str | None:  # noqa: A002 - the column's name
    return None if id is None else id + _AFTER_ALL_IDS


def _where(table: Mapping[str, str], given: Mapping[str, Value], more: Iterable[str] = ()) -> list[str]:
    conditions = [text for name, text in table.items() if given.get(name) is not None]
    return [("AND " if place else "WHERE ") + text for place, text in enumerate([*conditions, *more])]


def _limited(parts: list[str], limit: int | None, given: Mapping[str, Value]) -> Asked:
    bindings = {name: value for name, value in given.items() if value is not None}
    if limit is None:
        return "\n".join(parts), bindings
    return "\n".join([*parts, "LIMIT :most"]), {**bindings, "most": limit}
