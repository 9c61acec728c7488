"""The rows that cross the journal's port. Frozen; times are seconds since the epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bailiwick.ids import Json

Status = Literal["ready", "stopped", "failed", "done"]
"""`ready` is every run that is not over: walking, sleeping until `wake_at`, or parked with no `wake_at`."""

RunKind = Literal["run", "call"]
"""`run` is what people start and list; `call` is one call of a model, which nobody but its caller carries out."""

CallStatus = Literal["open", "pass", "fail", "error"]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a lease: one process of one boot of one host. `start` is the process's start time in clock ticks."""

    host: str
    boot: str
    pidns: str
    pid: int
    start: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class RunClaim:
    """Whose a run becomes, and until when at first."""

    owner: Owner
    lease_until: float


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to create. `generation` counts `--fresh` starts; `parent` is the run that called it."""

    id: str
    workflow: str
    run_key: str
    definition: str
    root_id: str
    created_at: float
    source: str = ""
    runs_dir: str = ""
    parent: str | None = None
    generation: int = 0
    priority: int = 0
    min_reader: int = 1
    first: tuple[EncodedEvent, ...] = ()
    blobs: dict[str, bytes] = field(default_factory=dict)
    summary: Json = None
    kind: RunKind = "run"


@dataclass(frozen=True, slots=True)
class RunRow:
    """The hot row, with the few cold facts that lists need."""

    id: str
    workflow: str
    run_key: str
    status: Status
    seq: int
    epoch: int
    owner: Owner | None
    lease_until: float
    wake_at: float | None
    priority: int
    root_id: str
    host: str | None
    definition: str
    min_reader: int
    source: str
    runs_dir: str
    parent: str | None
    generation: int
    created_at: float
    archived: bool
    summary: Json
    kind: RunKind = "run"


@dataclass(frozen=True, slots=True)
class EncodedEvent:
    """An event as it is stored: body is JSON text; values over 4 KiB are `{"$blob": digest}`."""

    type: str
    version: int
    body: str
    at: float


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its place in the journal; the first one of a run is 1."""

    seq: int
    type: str
    version: int
    body: str
    at: float


@dataclass(frozen=True, slots=True)
class WaitRow:
    """An open wait: an index over the journal."""

    run_id: str
    id: str
    scope: str
    node: str
    kind: str
    due_at: float | None
    body: Json


@dataclass(frozen=True, slots=True)
class Message:
    """A message for a run's inbox; a second one with the same `dedupe` is dropped."""

    run_id: str
    kind: str
    dedupe: str
    body: Json
    at: float


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A message that waits for the holder."""

    id: int
    run_id: str
    kind: str
    body: Json
    at: float


@dataclass(frozen=True, slots=True)
class Reservation:
    """Part of a budget set aside with `started`. Fits iff settled + reserved + amount <= limit in its scope."""

    scope: str
    key: str
    unit: str
    amount: float
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a reservation came to, with `finished`; `known` False keeps it as unknown at `amount`."""

    scope: str
    key: str
    unit: str
    amount: float
    known: bool = True


@dataclass(frozen=True, slots=True)
class SpendRow:
    """One line of the ledger; `run_id` is the run, or the call, that wrote it."""

    scope: str
    key: str
    unit: str
    reserved: float
    settled: float | None
    known: bool
    run_id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Spender:
    """A run or a call that is in a ledger: by the workflow that was started, or by its skill."""

    id: str
    workflow: str = ""
    skill: str = ""


@dataclass(frozen=True, slots=True)
class CallRow:
    """A call that goes over a chain of models. `model` is what the caller asked for, "" where the chain decides.

    `finished_at` and `duration_ms` are None while it is `open`; `size` is the task's length in characters. `until` is
    its deadline and `owner` the process that carries it out: with them an open call is known to be cut off. `chain` are
    the models it may use, in order.
    """

    id: str
    session_id: str
    skill: str
    phase: str
    project: str
    model: str
    by: str
    origin: str
    run: str
    node: str
    started_at: float
    finished_at: float | None = None
    status: CallStatus = "open"
    model_used: str = ""
    file_path: str = ""
    message: str = ""
    why: str = ""
    duration_ms: int | None = None
    size: int = 0
    reserved_usd: float = 0.0
    until: float | None = None
    chain: tuple[str, ...] = ()
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """A model was asked once: in a call that ended, or, where `call` is "", by a node of `run`.

    `attempt` is its number in the call, or the seq of its event in the run's journal. `skill` is "" for a node without
    one; `workflow`, what was started, is found when it is read. `duration_ms` is generation alone in a call. What is
    not known is None, never 0.
    """

    call: str
    attempt: int
    at: float
    skill: str
    model: str
    tier: str
    verdict: str
    verified: bool | None
    warm_start: bool
    duration_ms: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    feedback: str = ""
    output_summary: str = ""
    runner_output: str = ""
    size: int = 0
    run: str = ""
    workflow: str = ""


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file of a workflow as it was when a run began. `name` is its path below the workflow's directory."""

    name: str
    data: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """Something small that several processes change as a whole; `version` counts its changes from 1."""

    kind: str
    id: str
    version: int
    body: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One transaction of the holder. `after` is the seq it builds on; `status` None leaves it; `release` lets go."""

    after: int
    events: tuple[EncodedEvent, ...] = ()
    blobs: dict[str, bytes] = field(default_factory=dict)
    consumed: tuple[int, ...] = ()
    waits_opened: tuple[WaitRow, ...] = ()
    waits_closed: tuple[str, ...] = ()
    children: tuple[NewRun, ...] = ()
    messages: tuple[Message, ...] = ()
    reserve: tuple[Reservation, ...] = ()
    settle: tuple[Settlement, ...] = ()
    attempts: tuple[AttemptRow, ...] = ()
    summary: Json = None
    status: Status | None = None
    wake_at: float | None = None
    definition: str | None = None
    min_reader: int | None = None
    host: str | None = None
    release: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs a list holds: of one kind, runs unless it says otherwise; what else is left out fits every run.

    `id` may be the beginning of one; `since` is about when a run was created, `ended_since` about when it ended.
    `called` False leaves out those that other runs called, `archived` True takes in those that were set aside.
    """

    kind: RunKind = "run"
    status: tuple[Status, ...] = ()
    id: str | None = None
    workflow: str | None = None
    run_key: str | None = None
    root_id: str | None = None
    since: float | None = None
    ended_since: float | None = None
    called: bool = True
    archived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitFilter:
    """Which open waits a list holds; what is left out fits every wait."""

    run_id: str | None = None
    root_id: str | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFilter:
    """Which runs a claim may take: one, one tree, or any.

    `dead` are (run id, epoch) pairs with owners proved dead, `without` run ids that are left out: those that the
    claiming process holds already.
    """

    run_id: str | None = None
    root_id: str | None = None
    dead: tuple[tuple[str, int], ...] = ()
    without: tuple[str, ...] = ()
