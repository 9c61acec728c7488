"""What the engine asks the runtime to do, in the imperative. The runtime adds the time and journals what it did."""

from __future__ import annotations

from dataclasses import dataclass, field

from bailiwick.engine.retry_agent import AttemptPlan
from bailiwick.ids import Json


@dataclass(frozen=True, slots=True)
class StartEffect:
    """Begin one attempt, after `EffectStarted` is durable. `units` is what it sets aside.

    `fixes`: it is the first of its visit, so its request and its policy are kept for those that follow.
    """

    scope: str
    node: str
    visit: int
    ordinal: int
    attempt: int
    key: str
    entry: int = 1
    request: Json = None
    notes: tuple[str, ...] = ()
    units: tuple[tuple[str, float], ...] = ()
    plan: AttemptPlan | None = None
    policy: dict[str, Json] = field(default_factory=dict)
    fixes: bool = True


@dataclass(frozen=True, slots=True)
class OpenWait:
    """Sleep: for `seconds`, until the text `until`, or (both empty) until a message. `latest` caps the due time."""

    scope: str
    node: str
    visit: int
    id: str
    kind: str
    ordinal: int = 0
    seconds: float | None = None
    until: str = ""
    latest: float | None = None
    at: float | None = None
    body: dict[str, Json] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StartChild:
    """Create the child run of a `call`, in the transaction of `ChildStarted`."""

    scope: str
    node: str
    visit: int
    key: str
    workflow: str
    params: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CancelEffects:
    """End the processes of these effects: TERM, 5 s, KILL."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StopChild:
    """Tell a child run to stop now: its parent no longer waits for it."""

    child: str


Command = StartEffect | OpenWait | StartChild | CancelEffects | StopChild
