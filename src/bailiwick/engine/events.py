"""What can happen to a run, in the past tense. Frozen and versioned: never rewritten, only upcast on read."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar

from bailiwick.errors import JournalCorrupt
from bailiwick.ids import Json


@dataclass(frozen=True, slots=True)
class Event:
    """The base of all events; `VERSION` is the shape of the body that this code writes."""

    VERSION: ClassVar[int] = 1


Entry = tuple[int, float, Event]
"""An event as a journal gives it: its seq, when it happened, and itself."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt or a node failed: a stable kind, a sentence, and details for people."""

    kind: str
    message: str
    detail: Json = None


@dataclass(frozen=True, slots=True)
class RunCreated(Event):
    """A run exists: its definition, its first context and who asked for it."""

    run: str
    root: str
    definition: str
    context: dict[str, Json]
    params: dict[str, Json] = field(default_factory=dict)
    key: str = ""
    workflow: str = ""
    workspace: str = ""
    parent: str | None = None
    depth: int = 0
    app: str = ""
    sources: dict[str, Json] = field(default_factory=dict)
    limits: dict[str, Json] = field(default_factory=dict)
    agents: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forked(Event):
    """A run that shares another one's journal up to a seq, with some context values set again.

    `limits` are its own ceilings; without any, those of the shared journal hold.
    """

    run: str
    upto: int
    as_run: str
    values: dict[str, Json] = field(default_factory=dict)
    key: str = ""
    workspace: str = ""
    limits: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwnerChanged(Event):
    """A process took the run over."""

    epoch: int
    owner: str
    app: str = ""


@dataclass(frozen=True, slots=True)
class StepPassed(Event):
    """A pure node was entered and left."""

    scope: str
    node: str
    visit: int
    next: str
    writes: dict[str, Json] = field(default_factory=dict)
    value: Json = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class EffectStarted(Event):
    """An attempt is about to begin; durable before it does. `entry` counts the starts of this key.

    The first one of a visit fixes its `request` and, for a turn of an agent, its `policy`; later ones repeat neither.
    """

    scope: str
    node: str
    visit: int
    ordinal: int
    attempt: int
    key: str
    entry: int = 1
    request: Json = None
    notes: list[str] = field(default_factory=list)
    rung: str = ""
    model: int = 0
    level: int = 0
    policy: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EffectObserved(Event):
    """Something became known in the middle of an effect: a pid, a session id, a number."""

    scope: str
    key: str
    data: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EffectFinished(Event):
    """An attempt ended: with outputs, or with a failure."""

    scope: str
    key: str
    outputs: dict[str, Json] = field(default_factory=dict)
    failure: dict[str, Json] | None = None
    log: dict[str, Json] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class EffectLost(Event):
    """An effect with only `started` whose processes are proved gone: a crash, a stop or a take-over cut it off."""

    scope: str
    key: str
    why: str


@dataclass(frozen=True, slots=True)
class CancelRequested(Event):
    """Running effects of a failing construct are being ended."""

    keys: list[str]


@dataclass(frozen=True, slots=True)
class StepDone(Event):
    """A node is left towards `next`; `writes` come on top of the outputs of its effect."""

    scope: str
    node: str
    visit: int
    next: str
    writes: dict[str, Json] = field(default_factory=dict)
    defaulted: bool = False
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class StepFailed(Event):
    """A node failed for good; `next` is its `on_error`, if it has one."""

    scope: str
    node: str
    visit: int
    failure: dict[str, Json]
    next: str | None = None


@dataclass(frozen=True, slots=True)
class WaitOpened(Event):
    """The scope sleeps until a time, a message, or both."""

    scope: str
    node: str
    visit: int
    id: str
    kind: str
    ordinal: int = 0
    due_at: float | None = None
    body: dict[str, Json] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WaitClosed(Event):
    """A wait is over: `how` is due, answered, child or cancelled.

    `worked` are the spans in which a child worked, `cost` is what its agents cost.
    """

    scope: str
    id: str
    how: str
    value: Json = None
    by: str = ""
    worked: list[Json] = field(default_factory=list)
    cost: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScopesForked(Event):
    """A parallel or map was entered with these members, none of them started yet."""

    scope: str
    node: str
    visit: int
    members: list[str]


@dataclass(frozen=True, slots=True)
class ScopeStarted(Event):
    """A member got a place and walks."""

    scope: str


@dataclass(frozen=True, slots=True)
class ScopeEnded(Event):
    """A member is over: done, failed or cancelled."""

    scope: str
    status: str
    error: dict[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class ChildStarted(Event):
    """A called workflow exists as a child run; the scope waits for its end."""

    scope: str
    node: str
    visit: int
    key: str
    child: str
    params: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopRequested(Event):
    """Somebody asked to stop: at the next node boundary, or now."""

    now: bool = False
    by: str = ""


@dataclass(frozen=True, slots=True)
class RunStopped(Event):
    """Nothing of the run is in flight; it goes on when resumed."""


@dataclass(frozen=True, slots=True)
class RunResumed(Event):
    """A stopped or failed run goes on."""

    by: str = ""


@dataclass(frozen=True, slots=True)
class RunFinished(Event):
    """The run is over: done or failed. `node` is where; `ended` tells a `fail` node from a node that failed.

    `handoff`: it failed so that a person takes over.
    """

    status: str
    node: str = ""
    reason: str = ""
    degraded: list[str] = field(default_factory=list)
    ended: bool = True
    handoff: bool = False


@dataclass(frozen=True, slots=True)
class SignalRejected(Event):
    """A message no longer applied."""

    kind: str
    reason: str
    body: Json = None


@dataclass(frozen=True, slots=True)
class BudgetReached(Event):
    """A ceiling was met: nothing that counts against it starts until a person raises it."""

    unit: str
    limit: float


@dataclass(frozen=True, slots=True)
class BudgetRaised(Event):
    """A person set a new ceiling."""

    unit: str
    limit: float
    by: str = ""


@dataclass(frozen=True, slots=True)
class DefinitionAdopted(Event):
    """The run goes on under another definition."""

    definition: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class Rewound(Event):
    """The run goes back to the state after event `upto`, before a visit of `node`; visit numbers and spending stay."""

    upto: int
    node: str
    visit: int
    by: str = ""


_EVENTS: tuple[type[Event], ...] = (
    RunCreated, Forked, OwnerChanged, StepPassed, EffectStarted, EffectObserved, EffectFinished, EffectLost,
    CancelRequested, StepDone, StepFailed, WaitOpened, WaitClosed, ScopesForked, ScopeStarted, ScopeEnded, ChildStarted,
    StopRequested, RunStopped, RunResumed, RunFinished, SignalRejected, BudgetReached, BudgetRaised, DefinitionAdopted,
    Rewound,
)  # fmt: skip
TYPES: dict[str, type[Event]] = {e.__name__: e for e in _EVENTS}


def _default(f: Any) -> Any:
    if f.default is not MISSING:
        return f.default
    return f.default_factory() if f.default_factory is not MISSING else MISSING


_SHAPES: dict[type[Event], tuple[tuple[str, Any], ...]] = {
    e: tuple((f.name, _default(f)) for f in fields(e)) for e in _EVENTS
}


def body_of(event: Event) -> dict[str, Json]:
    """The stored fields: those that differ from their default."""
    out: dict[str, Json] = {}
    for name, default in _SHAPES[type(event)]:
        value = getattr(event, name)
        if default is MISSING or value != default or type(value) is not type(default):
            out[name] = value
    return out


def from_body(kind: str, version: int, body: dict[str, Json]) -> Event:
    """An event from its stored form. A field that this code does not know is from a newer version: refused."""
    cls = TYPES.get(kind)
    if cls is None or version > cls.VERSION:
        raise JournalCorrupt(
            f"the journal has an event {kind} v{version} that this version cannot read", hint="upgrade bailiwick"
        )
    try:
        return cls(**body)
    except TypeError as error:
        raise JournalCorrupt(f"event {kind} v{version} does not have the fields it should: {error}") from error
