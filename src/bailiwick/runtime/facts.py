"""What run.json says of a run: its state, its place in time, what it counts, and what it waits for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bailiwick.clock import iso
from bailiwick.engine import events as ev
from bailiwick.engine.graph import Graph, Work
from bailiwick.engine.state import State
from bailiwick.ids import Json, place
from bailiwick.runtime import money
from bailiwick.runtime.record import shown_state
from bailiwick.runtime.rendering import Redact, unredacted

_HOST = re.compile(r"\bon (?:host )?([^\s,()]+)")


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a directory shows of its run beside the journal, and `redact`, which takes secrets out of every text."""

    workflow: str
    key: str
    uid: str
    redact: Redact = unredacted


@dataclass(slots=True)
class Cost:
    """What the agents of a run cost, those of called runs included. Counted from the events of its journal.

    `unknown` counts the calls whose price nobody told: unknown is not zero.
    """

    usd: float = 0.0
    agent_calls: int = 0
    unknown: int = 0
    _turns: set[str] = field(default_factory=set)
    _sessions: dict[tuple[str, str], float] = field(default_factory=dict)

    def count(self, event: ev.Event, graph: Graph) -> None:
        """Take one event in; `graph` tells which nodes ask agents."""
        match event:
            case ev.EffectStarted():
                node = graph.nodes.get(event.node)
                if isinstance(node, Work) and node.type == "agent":
                    self._turns.add(event.key)
            case ev.EffectFinished() if event.key in self._turns:
                self._turn(event)
            case ev.EffectLost() if event.key in self._turns:
                self.agent_calls += 1
                self.unknown += 1
            case ev.WaitClosed() if event.how == "child" and not event.cost:  # written before runs told their cost
                self.unknown += 1
            case ev.WaitClosed() if event.cost:
                self.usd += float(event.cost.get("usd") or 0.0)
                self.agent_calls += int(event.cost.get("agent_calls") or 0)
                self.unknown += int(event.cost.get("unknown_calls") or 0)
            case _:
                pass

    def _turn(self, event: ev.EffectFinished) -> None:
        kind = str((event.failure or {}).get("kind", ""))
        if kind in money.UNCALLED:
            return
        self.agent_calls += 1
        usage: dict[str, Json] = event.log.get("usage") or {}
        if "usd" not in usage:
            self.unknown += kind not in money.TURNED_AWAY
            return
        total, session = float(usage["usd"]), (event.key, str(event.log.get("session")))
        before = self._sessions.get(session, 0.0) if usage.get("cumulative") else 0.0
        self._sessions[session] = total
        self.usd += max(0.0, total - before)

    def to_json(self) -> dict[str, Json]:
        """As run.json has it."""
        return {"usd": round(self.usd, 6), "agent_calls": self.agent_calls, "unknown_calls": self.unknown}


@dataclass(slots=True)
class Tally:
    """What the state does not keep: counted from the events, and not taken back by a rewind."""

    cost: Cost = field(default_factory=Cost)
    backends: dict[str, None] = field(default_factory=dict)
    terminal: str | None = None
    owner: str = ""
    app: str = ""

    def count(self, event: ev.Event, state: State) -> None:
        """Take one event in. What a fork inherits was another run's."""
        self.cost.count(event, state.graph)
        match event:
            case ev.RunCreated():
                self.app = event.app
            case ev.Forked():
                self.cost, self.backends, self.terminal = Cost(), {}, None
            case ev.OwnerChanged():
                self.owner, self.app = event.owner, event.app or self.app
            case ev.EffectFinished():
                if isinstance(event.log.get("backend"), str):
                    self.backends[str(event.log["backend"])] = None
            case ev.RunFinished():
                self.terminal = ("terminal" if event.status == "done" else "fail") if event.ended else None
            case ev.RunResumed() | ev.Rewound():
                self.terminal = None
            case _:
                pass


def run_document(run: RunFacts, state: State, tally: Tally) -> dict[str, Json]:
    """The body of run.json. `terminal` is the type of the node at which it ended; null where no node ended it."""
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
        "cost": tally.cost.to_json(),
        "versions": {"app": tally.app, "definition": state.definition},
        "backend": ", ".join(tally.backends) or state.agents.get("backend"),
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
