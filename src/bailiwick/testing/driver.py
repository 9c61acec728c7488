"""A driver for the pure engine: walks a graph on a virtual clock with scripted effects, and can be cut off anywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bailiwick.engine import commands as co
from bailiwick.engine import events as ev
from bailiwick.engine.decide import decide
from bailiwick.engine.evolve import evolve, replay
from bailiwick.engine.graph import Graph
from bailiwick.engine.render import Rendered, Renderer
from bailiwick.engine.rules import Rules
from bailiwick.engine.state import State
from bailiwick.ids import Json
from bailiwick.lang.params import first_context
from bailiwick.runtime import event_builders as happenings

Answer = dict[str, Json] | ev.Failure
Oracle = Callable[[ev.EffectStarted], Answer]
"""What an attempt comes to; must not depend on `entry`, as a re-entered attempt is the same attempt."""


def no_request(_node: object, _lookup: object) -> Rendered:
    """A request for kinds that need nothing of the context."""
    return Rendered(None)


class Stuck(Exception):
    """The walk neither ended nor waits for anything."""


@dataclass(slots=True)
class Driver:
    """One run. `pick` chooses which of several running effects ends next: the order must not matter."""

    graph: Graph
    renderer: Renderer
    oracle: Oracle
    pick: Callable[[int], int] = lambda _count: 0
    answer: Callable[[ev.WaitOpened], Json] = lambda _wait: "yes"
    now: float = 1_000.0
    begun: Callable[[co.StartEffect], ev.EffectStarted] = happenings.started
    journal: list[ev.Entry] = field(default_factory=list)
    state: State = field(init=False)
    rules: Rules = field(init=False)
    started: list[ev.EffectStarted] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = State(graphs=lambda _digest: self.graph)
        self.rules = Rules(self.renderer, no_request)

    def create(self, context: dict[str, Json] | None = None) -> None:
        """The first event."""
        self.record(ev.RunCreated("run", "run", "d", first_context(self.graph, context or {}), key="k", workflow="w"))

    def record(self, event: ev.Event) -> None:
        """Apply and keep an event."""
        evolve(self.state, event, self.now)
        self.journal.append((len(self.journal) + 1, self.now, event))
        if isinstance(event, ev.EffectStarted):
            self.started.append(event)

    def run(self, *, stop_after: int | None = None) -> None:
        """Walk to the end, or until the journal has `stop_after` events."""
        for _ in range(100_000):
            if self.state.status != "running" or (stop_after is not None and len(self.journal) >= stop_after):
                return
            if not self._step():
                raise Stuck(str([(s.path, s.phase, s.cursor) for s in self.state.scopes.values()]))
        raise Stuck("too many steps")

    def _step(self) -> bool:
        actions = decide(self.state, self.rules)
        for action in actions:
            self._carry_out(action)
        return bool(actions) or self._finish_one() or self._close_one()

    def _carry_out(self, action: Any) -> None:
        match action:
            case co.StartEffect():
                self.record(self.begun(action))
            case co.OpenWait():
                a_minute = replace(action, seconds=60.0, until="")  # however long it says: golden journals have that
                for event in happenings.opened(a_minute if action.until else action, self.now, "UTC"):
                    self.record(event)
            case co.CancelEffects() | co.StopChild():
                pass
            case co.StartChild():
                self.record(
                    ev.ChildStarted(
                        action.scope,
                        node=action.node,
                        visit=action.visit,
                        key=action.key,
                        child=action.key,
                        params=action.params,
                    )
                )
            case _:
                self.record(action)

    def _finish_one(self) -> bool:
        flights = self.state.flights()
        if not flights:
            return False
        scope, flight = flights[self.pick(len(flights)) % len(flights)]
        self.now += 1
        if flight.cancelled:
            self.record(ev.EffectFinished(scope.path, flight.key, failure={"kind": "cancelled", "message": "cut off"}))
            return True
        started = next(e for e in reversed(self.started) if e.key == flight.key)
        result = self.oracle(started)
        if isinstance(result, ev.Failure):
            failure: dict[str, Json] = {"kind": result.kind, "message": result.message, "detail": result.detail}
            self.record(ev.EffectFinished(scope.path, flight.key, failure=failure))
        else:
            self.record(ev.EffectFinished(scope.path, flight.key, result))
        return True

    def _close_one(self) -> bool:
        waits = self.state.waits()
        if not waits:
            return False
        scope, wait = min(waits, key=lambda item: (item[1].due_at is None, item[1].due_at or 0.0, item[0].path))
        self.now = max(self.now, wait.due_at or self.now)
        opened = ev.WaitOpened(
            scope.path,
            node=scope.cursor,
            visit=scope.visit,
            id=wait.id,
            kind=wait.kind,
            ordinal=0,
            due_at=wait.due_at,
            body=wait.body,
        )
        match wait.kind:
            case "ask" | "unknown":
                self.record(ev.WaitClosed(scope.path, wait.id, "answered", self.answer(opened)))
            case "child":
                self.record(ev.WaitClosed(scope.path, wait.id, "child", self.answer(opened)))
            case _:
                self.record(ev.WaitClosed(scope.path, wait.id, "due"))
        return True

    def crash(self, keep: int) -> Driver:
        """Another driver that has only the first `keep` events: what it finds in flight was lost. No time passes."""
        last = self.journal[keep - 1][1]
        again = Driver(
            self.graph,
            renderer=self.renderer,
            oracle=self.oracle,
            pick=self.pick,
            answer=self.answer,
            now=last,
            begun=self.begun,
        )
        again.journal = self.journal[:keep]
        again.state = replay(again.journal, lambda _digest: self.graph)
        again.started = [e for _, _, e in again.journal if isinstance(e, ev.EffectStarted)]
        for scope, flight in again.state.flights():
            again.record(ev.EffectLost(scope.path, flight.key, "crash"))
        return again

    def verdict(self) -> tuple[str, str, dict[str, Json]]:
        """What matters at the end: status, reason, context."""
        return self.state.status, self.state.reason, self.state.context()
