"""Messages for a run become events, or are refused with a reason. Only the holder of the run does this."""

from __future__ import annotations

from bailiwick.engine import events as ev
from bailiwick.engine.graph import Graph, kind_of
from bailiwick.engine.state import Scope, State, WaitState
from bailiwick.ids import Json
from bailiwick.journal.rows import InboxRow


def apply_message(state: State, row: InboxRow, graphs: dict[str, Graph]) -> list[ev.Event]:
    """The events a message comes to. `graphs` holds definitions that a message may name."""
    body: dict[str, Json] = row.body if isinstance(row.body, dict) else {}
    by = str(body.get("by", ""))
    match row.kind:
        case "stop":
            return _stop(state, row, bool(body.get("now")), by)
        case "resume":
            return _resume(state, row, by)
        case "answer":
            return _answer(state, row, body, by)
        case "child_ended":
            return _child(state, row, body)
        case "reload":
            return _reload(state, row, graph=graphs.get(str(body.get("definition"))), body=body, by=by)
        case "rewind":
            return _rewind(state, row, body, by)
        case "budget":
            return _budget(state, row, unit=str(body.get("unit")), limit=body.get("limit"), by=by)
        case "wake":
            return []
        case _:
            return [_reject(row, f"no message of kind {row.kind} is known")]


def _reject(row: InboxRow, reason: str) -> ev.SignalRejected:
    return ev.SignalRejected(row.kind, reason, row.body)


def _stop(state: State, row: InboxRow, now: bool, by: str) -> list[ev.Event]:
    if state.status != "running":
        return [_reject(row, f"the run is {state.status}")]
    if state.stopping == "now" or (state.stopping and not now):
        return []
    return [ev.StopRequested(now, by)]


def _resume(state: State, row: InboxRow, by: str) -> list[ev.Event]:
    if state.status == "stopped" or (state.status == "failed" and not state.ended):
        return [ev.RunResumed(by)]
    if state.status == "running":
        return [ev.RunResumed(by)] if state.stopping else []
    return [_reject(row, f"the run is {state.status}")]


def find_wait(state: State, name: str) -> tuple[Scope, WaitState] | None:
    """An open wait for a person by its id, its node or its scope/node; the only one when no name is given."""
    asked = [(s, w) for s, w in state.waits() if "choices" in w.body]
    if not name:
        return asked[0] if len(asked) == 1 else None
    for scope, wait in asked:
        where = f"{scope.path}/{scope.cursor}" if scope.path else scope.cursor
        if name in (wait.id, scope.cursor, where) or (wait.kind == "budget" and name == "budget"):
            return scope, wait
    return None


def _answer(state: State, row: InboxRow, body: dict[str, Json], by: str) -> list[ev.Event]:
    found = find_wait(state, str(body.get("wait") or ""))
    if state.status != "running" or found is None:
        return [_reject(row, "no question of that name is open")]
    scope, wait = found
    value = body.get("value")
    choices = wait.body.get("choices") or []
    if wait.kind == "budget":
        return _budget_answer(row, wait, str(value), by)
    if choices and value not in choices:
        return [_reject(row, f"{value!r} is not one of {', '.join(map(str, choices))}")]
    return [ev.WaitClosed(scope.path, id=wait.id, how="answered", value=value, by=by)]


def _budget_answer(row: InboxRow, wait: WaitState, value: str, by: str) -> list[ev.Event]:
    unit, limit = str(wait.body["unit"]), float(wait.body["limit"])
    closed = ev.WaitClosed("", id=wait.id, how="answered", value=value, by=by)
    if value == "raise":
        return [closed, ev.BudgetRaised(unit, limit * 2, by)]
    if value == "stop":
        return [closed, ev.StopRequested(now=False, by=by)]
    return [_reject(row, f"{value!r} is not one of raise, stop")]


def _budget(state: State, row: InboxRow, unit: str, limit: Json, by: str) -> list[ev.Event]:
    if (
        unit.removeprefix("day.").removeprefix("credential.") not in ("wall", "agent_calls", "usd", "tokens")
        or not isinstance(limit, int | float)
        or limit <= 0
    ):
        return [_reject(row, f"{unit}={limit!r} is no budget")]
    out: list[ev.Event] = [ev.BudgetRaised(unit, float(limit), by)]
    wait = state.budget_wait
    if wait is not None and wait.body.get("unit") == unit:
        out.insert(0, ev.WaitClosed("", id=wait.id, how="answered", value=float(limit), by=by))
    return out


def _child(state: State, row: InboxRow, body: dict[str, Json]) -> list[ev.Event]:
    for scope, wait in state.waits():
        if wait.kind == "child" and wait.id == body.get("child"):
            worked, cost = body.get("worked") or [], body.get("cost") or {}
            return [ev.WaitClosed(scope.path, wait.id, "child", body.get("result"), worked=worked, cost=cost)]
    return [_reject(row, "nobody waits for this child")]


def _reload(state: State, row: InboxRow, graph: Graph | None, body: dict[str, Json], by: str) -> list[ev.Event]:
    digest = str(body.get("definition"))
    if graph is None or digest == state.definition:
        return [_reject(row, "it is the definition the run has" if graph else "the definition is not there")]
    lost = missing_nodes(state, graph)
    if lost:
        return [_reject(row, "these live nodes are gone or have another type: " + ", ".join(lost))]
    return [ev.DefinitionAdopted(digest, by)]


def missing_nodes(state: State, graph: Graph) -> list[str]:
    """Live nodes that another definition lacks or has with another type; scopes need their construct and join too."""
    lost = []
    for scope in state.scopes.values():
        if scope.status or not scope.cursor:
            continue
        for name in {scope.cursor, scope.fork.node if scope.fork else scope.cursor}:
            old, new = state.graph.nodes[name], graph.nodes.get(name)
            if new is None or kind_of(new) != kind_of(old):
                lost.append(name)
    return sorted(set(lost))


def _rewind(state: State, row: InboxRow, body: dict[str, Json], by: str) -> list[ev.Event]:
    if state.status == "running" and (state.running or (state.todo and not state.budget_wait)):
        return [_reject(row, "the run is not stopped or waiting")]
    return [ev.Rewound(int(body["upto"]), str(body["node"]), int(body["visit"]), by)]
