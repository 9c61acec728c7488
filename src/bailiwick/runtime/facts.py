"""What run.json says of a run: its state, its place in time, what it counts, and what it waits for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bailiwick.clock import iso
from bailiwick.engine import events as ev
from bailiwick.engine.graph import Work
from bailiwick.engine.state import State
from bailiwick.ids import Json, place
from bailiwick.runtime.record import shown_state
from bailiwick.runtime.rendering import Redact, unredacted

_HOST = re.compile(r"\bon (?:host )?([^\s,()]+)")


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a directory shows of its run beside the journal, and `redact`, which takes secrets out of every text."""

    workflow: str
    key: str
    uid: str
    backend: str | None = None
    redact: Redact = unredacted


@dataclass(slots=True)
class Tally:
    """What the state does not keep: counted from the events, and not taken back by a rewind."""

    agent_calls: int = 0
    children: int = 0
    terminal: str | None = None
    owner: str = ""
    app: str = ""

    def count(self, event: ev.Event, state: State) -> None:
        """Take one event in. A fork's inherited calls are another run's."""
        match event:
            case ev.RunCreated():
                self.app = event.app
            case ev.Forked():
                self.agent_calls = self.children = 0
                self.terminal = None
            case ev.OwnerChanged():
                self.owner, self.app = event.owner, event.app or self.app
            case ev.EffectStarted():
                node = state.graph.nodes[event.node]
                self.agent_calls += isinstance(node, Work) and node.type == "agent"
            case ev.ChildStarted():
                self.children += 1
            case ev.RunFinished():
                self.terminal = event.node or None
            case ev.RunResumed() | ev.Rewound():
                self.terminal = None
            case _:
                pass


def run_document(run: RunFacts, state: State, tally: Tally) -> dict[str, Json]:
    """The body of run.json. A cost that an agent or a child run may have had is unknown, which is not zero."""
    over = state.status in ("done", "failed")
    host = _HOST.search(tally.owner)
    return {
        "workflow": state.workflow or run.workflow,
        "run_id": state.key or run.key,
        "uid": run.uid,
        "state": shown_state(state),
        "reason": state.reason,
        "degraded": list(state.degraded or state.scopes[""].defaulted),
        "started_at": iso(state.created_at),
        "ended_at": iso(state.ended_at) if over else None,
        "terminal": tally.terminal,
        "cost": None if tally.agent_calls or tally.children else {"usd": 0, "agent_calls": 0},
        "versions": {"app": tally.app, "definition": state.definition},
        "backend": run.backend,
        "host": host.group(1) if host else tally.owner or None,
        "owner": tally.owner or None,
        "steps": state.steps,
        "reentered": state.lost,
        "waits": _waits(state),
    }


def _waits(state: State) -> list[Json]:
    return [
        {
            "id": wait.id,
            "kind": wait.kind,
            "node": None if wait.kind == "budget" else place(scope.path, scope.cursor),
            "due_at": None if wait.due_at is None else iso(wait.due_at),
            "question": wait.body.get("question"),
        }
        for scope, wait in state.waits()
    ]
