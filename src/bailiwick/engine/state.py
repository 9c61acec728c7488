"""The state of a run, as the events tell it. `evolve` owns and changes it; everything else only looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from bailiwick.engine.events import Failure
from bailiwick.engine.graph import Graph
from bailiwick.engine.retry_agent import FailedAttempt
from bailiwick.engine.worktime import Span
from bailiwick.ids import Json

PERSON_WAITS = frozenset({"ask", "approval", "budget", "unknown", "auth", "exhausted"})
"""Kinds of waits that only a person can end."""


PER_DAY = ("day.", "credential.")
"""How the names of budgets begin that are counted per day."""
CHOSEN = "\0agents"
"""The name under which a run's own choice of agents is looked up: no template can say it."""
Graphs = Callable[[str], Graph]
"""The graph of a definition, by its digest."""
Fetch = Callable[[str], Json]
"""The value of a blob, by its digest."""


class Phase(StrEnum):
    """Where a scope stands. READY, LOST, FINISHED and CLOSED ask for a decision; the rest wait for something."""

    PENDING = "pending"
    READY = "ready"
    RUNNING = "running"
    LOST = "lost"
    FINISHED = "finished"
    WAITING = "waiting"
    CLOSED = "closed"
    FORKED = "forked"
    FAILED = "failed"
    ENDED = "ended"


@dataclass(slots=True)
class Deferred:
    """A value kept as a blob, fetched when somebody looks at it."""

    digest: str


@dataclass(slots=True)
class EffectInFlight:
    """One effect of a visit."""

    key: str
    ordinal: int
    attempt: int
    entry: int
    since: float
    rung: str = ""
    model: int = 0
    level: int = 0
    session: str | None = None
    cancelled: bool = False
    outputs: dict[str, Json] = field(default_factory=dict)
    failure: Failure | None = None
    finished_at: float = 0.0


@dataclass(frozen=True, slots=True)
class VisitRequest:
    """What the effects of a visit ask for, fixed with the first of them. An old journal kept no `policy`."""

    request: Json
    policy: dict[str, Json]


@dataclass(slots=True)
class WaitState:
    """A wait and, once it is closed, how."""

    id: str
    kind: str
    due_at: float | None
    body: dict[str, Json]
    opened_at: float
    how: str = ""
    value: Json = None


@dataclass(slots=True)
class Construct:
    """A parallel or map under way: its members in order and how far they are."""

    node: str
    visit: int
    members: list[str]
    waiting: list[str]
    live: int = 0
    ended: int = 0
    failed: str | None = None


@dataclass(slots=True)
class Scope:
    """A context with a cursor: the run itself (path ""), a branch or an item."""

    path: str
    name: str = ""
    parent: Scope | None = None
    number: int = 0
    inputs: dict[str, Json] = field(default_factory=dict)
    writes: dict[str, Json] = field(default_factory=dict)
    visits: dict[str, int] = field(default_factory=dict)
    cursor: str = ""
    visit: int = 0
    phase: Phase = Phase.READY
    first_effect_at: float = 0.0
    asked: VisitRequest | None = None
    flight: EffectInFlight | None = None
    tries: list[FailedAttempt] = field(default_factory=list)
    wait: WaitState | None = None
    fork: Construct | None = None
    status: str = ""
    error: dict[str, Json] | None = None
    defaulted: list[str] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """A run. `todo` holds the scopes that ask for a decision, in the order they began to.

    `active` holds those that are not over, so that a fan-out of thousands is not searched for the few that live.
    `wall` is what the run took, for people; `work` is what counts against its budget: effects in flight, no waits.
    """

    graphs: Graphs
    fetch: Fetch | None = None
    graph: Graph = field(default_factory=lambda: Graph(name="", start="", nodes={}))
    run: str = ""
    root: str = ""
    key: str = ""
    workflow: str = ""
    definition: str = ""
    workspace: str = ""
    parent: str | None = None
    depth: int = 0
    params: dict[str, Json] = field(default_factory=dict)
    sources: dict[str, Json] = field(default_factory=dict)
    agents: dict[str, Json] = field(default_factory=dict)
    scopes: dict[str, Scope] = field(default_factory=dict)
    todo: dict[str, None] = field(default_factory=dict)
    active: dict[str, None] = field(default_factory=dict)
    status: str = "new"
    stopping: str = ""
    reason: str = ""
    handoff: bool = False
    ended: bool = False
    degraded: list[str] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    reached: dict[str, float] = field(default_factory=dict)
    budget_wait: WaitState | None = None
    running: int = 0
    pure_steps: int = 0
    created: int = 1
    steps: int = 0
    lost: int = 0
    wall: float = 0.0
    work: float = 0.0
    worked: list[Span] = field(default_factory=list)
    last_at: float = 0.0
    created_at: float = 0.0
    ended_at: float = 0.0

    def resolve(self, value: Json) -> Json:
        """A value, fetched if it was deferred."""
        if type(value) is Deferred:
            if self.fetch is None:
                raise KeyError(value.digest)
            return self.fetch(value.digest)
        return value

    def lookup(self, path: str, name: str) -> Json:
        """A context value as the scope sees it; raises `KeyError` where there is none."""
        scope: Scope | None = self.scopes[path]
        while scope is not None:
            for source in (scope.writes, scope.inputs):
                if name in source:
                    value = source[name]
                    if type(value) is Deferred:
                        value = source[name] = self.resolve(value)
                    return value
            scope = scope.parent
        if name == CHOSEN:
            return {**self.agents, "version": self.graph.version}
        if name == "run":
            return {"id": self.key, "uid": self.run, "workflow": self.workflow}
        if name == "node":
            here = self.scopes[path]
            return {"id": here.cursor, "visit": here.visit or 1, "scope": path}
        if name == "workspace" and self.workspace:
            return self.workspace
        raise KeyError(name)

    def names(self, path: str) -> list[str]:
        """The context's keys as the scope sees them, sorted."""
        seen: set[str] = set()
        scope: Scope | None = self.scopes[path]
        while scope is not None:
            seen.update(scope.writes)
            seen.update(scope.inputs)
            scope = scope.parent
        return sorted(seen)

    def context(self, path: str = "") -> dict[str, Json]:
        """The whole context as the scope sees it."""
        return {name: self.lookup(path, name) for name in self.names(path)}

    def live(self) -> list[Scope]:
        """Scopes that are not over, in the order they came to be."""
        return sorted((self.scopes[path] for path in self.active), key=lambda scope: scope.number)

    def flights(self) -> list[tuple[Scope, EffectInFlight]]:
        """Effects in flight, with their scopes."""
        return [(s, s.flight) for s in self.live() if s.phase is Phase.RUNNING and s.flight]

    def waits(self) -> list[tuple[Scope, WaitState]]:
        """Open waits, with their scopes; a budget wait belongs to the run."""
        found = [(s, s.wait) for s in self.live() if s.phase is Phase.WAITING and s.wait]
        if self.budget_wait:
            found.append((self.scopes[""], self.budget_wait))
        return found

    def waits_for_person(self) -> bool:
        """Whether nothing can go on before a person acts."""
        if self.status != "running" or self.running:
            return False
        if not self.budget_wait and any(self.scopes[p].phase is not Phase.FORKED for p in self.todo):
            return False
        waits = [w for _, w in self.waits()]
        return bool(waits) and all(w.kind in PERSON_WAITS for w in waits)


def resolve_path(lookup: Callable[[str], Json], path: str) -> Json:
    """The value at a dot path; raises `KeyError` with the part that is missing."""
    head, *rest = path.split(".")
    value = lookup(head)
    for part in rest:
        if not isinstance(value, dict) or part not in value:
            raise KeyError(part)
        value = value[part]
    return value
