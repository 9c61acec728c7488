"""What a store promises. SQLite keeps it here; PostgreSQL will keep the same, by the same conformance suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from bailiwick.ids import Json
from bailiwick.journal.rows import (
    AttemptRow,
    Batch,
    CallRow,
    ClaimFilter,
    InboxRow,
    Message,
    NewRun,
    Owner,
    Reservation,
    RunFilter,
    RunRow,
    SpendRow,
    StoredEvent,
    WaitRow,
)


class Store(Protocol):
    """Keeps journals. Each method is one transaction; what it acknowledged survives a power cut.

    Raises `StoreUnavailable` when the medium fails (full, read-only, I/O): nothing was changed, try again.
    Raises `StoreTooNew` when a newer version has taken the state over.
    """

    async def create(self, run: NewRun) -> RunRow:
        """Create a run with its first events; status `ready`, wake_at = created_at.

        Gives back the run there is when one has this id, or this name and key and is not archived: two processes that
        start the same run at once get one.
        """

    async def run(self, run_id: str) -> RunRow | None:
        """One run by id."""

    async def find(self, workflow: str, run_key: str) -> RunRow | None:
        """The newest run of this name and key that is not archived."""

    async def runs(
        self,
        *,
        status: str | None = None,
        workflow: str | None = None,
        root_id: str | None = None,
        archived: bool = False,
    ) -> list[RunRow]:
        """Runs, newest first."""

    async def page(self, which: RunFilter, limit: int, before: str | None = None) -> list[RunRow]:
        """At most `limit` runs, newest first, from behind the run `before`; nothing where that run was removed.

        Costs what it gives, however many runs there are.
        """

    async def claim(
        self, owner: Owner, now: float, lease_until: float, reader: int, which: ClaimFilter
    ) -> RunRow | None:
        """Take one run that is ready, due, readable, free and not bound to another host; raises its epoch by one.

        Due is wake_at <= now, readable min_reader <= reader; free is no owner, an expired lease, or being named in
        `which.dead` at that very epoch. What is named in `which.without` is never taken.
        """

    async def held(self, now: float, which: ClaimFilter) -> list[RunRow]:
        """Ready and due runs with an owner whose lease still runs: the caller looks which owners are dead."""

    def renew(self, leases: Mapping[str, int], lease_until: float) -> set[str]:
        """Extend leases, given as run id and epoch, expired ones too; gives the runs that are not ours any more.

        Blocks until it is durable: called from a thread of its own, so that no event loop can make it late.
        """

    async def release(self, run_id: str, epoch: int, wake_at: float | None) -> bool:
        """Let go without an event; False when the epoch has moved on."""

    async def append(self, run_id: str, epoch: int, batch: Batch) -> int:
        """Append a batch whole or not at all; gives the new seq.

        Raises `Fenced` when the epoch is not ours, `JournalCorrupt` when `after` is not the journal's end under the
        right epoch, `BudgetExceeded` when a reservation does not fit (nothing is written then).
        """

    async def read(self, run_id: str, after: int = 0, upto: int | None = None) -> list[StoredEvent]:
        """Events in order, from `after` (exclusive) up to `upto` (inclusive)."""

    async def events(self, kind: str, *, since: float | None = None) -> list[tuple[str, StoredEvent]]:
        """Events of one type of all runs, each with its run's id: by run, in order. Looks at every event there is."""

    def blob(self, digest: str) -> bytes:
        """The bytes of a blob; raises `JournalCorrupt` when it is gone or its digest is wrong."""

    async def send(self, message: Message) -> bool:
        """Put a message into an inbox, make the run ready and due at the message's time; False for a duplicate."""

    async def inbox(self, run_id: str) -> list[InboxRow]:
        """Messages in order of arrival."""

    async def define(self, digest: str, body: Json) -> None:
        """Keep a compiled definition under its digest; keeping it twice is fine."""

    async def definition(self, digest: str) -> Json:
        """A compiled definition; raises `JournalCorrupt` when it is not there."""

    async def waits(self, run_id: str | None = None) -> list[WaitRow]:
        """Open waits, of one run or of all, earliest due first."""

    async def spend(self, scope: str) -> list[SpendRow]:
        """The ledger of one scope."""

    async def bucket_take(self, name: str, now: float, patience: float) -> float:
        """Ask to use a credential: 0 to go ahead, else the seconds to wait.

        After a window that `bucket_report` closed, the first that asks goes ahead as its probe; the others wait for
        what it reports, or `patience` seconds.
        """

    async def bucket_until(self, name: str) -> float:
        """Until when a credential is held back; 0 where it is not known to be. Takes no place in the queue."""

    async def bucket_report(self, name: str, blocked_until: float | None) -> None:
        """Close a credential until then after a limit; None opens it for everybody."""

    async def begin_call(self, row: CallRow, reserve: Sequence[Reservation] = ()) -> None:
        """Put a call on record as `open` and set aside what it may cost, under its id as key; twice is once.

        Raises `BudgetExceeded` when a reservation does not fit, and writes nothing then. A call within a run reserves
        nothing: the attempt of its node has.
        """

    async def end_call(
        self, row: CallRow, attempts: Sequence[AttemptRow], spent: Mapping[str, float | None] | None = None
    ) -> None:
        """Write how a call ended with all its attempts, and settle what `begin_call` set aside, where it did.

        `spent` is by unit; None, or a unit left out, is unknown and counts as much as was reserved. The end that was
        written first stands. Raises `NotFound` for a call that was never begun.
        """

    async def calls(
        self,
        *,
        since: float | None = None,
        session: str | None = None,
        id: str | None = None,  # noqa: A002 - the column's name
        limit: int = 1_000,
    ) -> list[CallRow]:
        """Calls begun at or after `since`, newest first; a negative `limit` is none."""

    async def attempts(self, *, since: float | None = None, call: str | None = None) -> list[AttemptRow]:
        """Attempts of calls that ended, of one call or of all, in the order they were made."""

    async def cooldown(self, name: str) -> tuple[int, float]:
        """How often in a row an endpoint has failed, and until when it is left alone; (0, 0.0) where it is well."""

    async def cooldown_report(self, name: str, failures: int, until: float) -> None:
        """Replace what is known of an endpoint, for everybody; 0 failures forgets it."""

    async def archive(self, run_id: str) -> None:
        """Set a finished run aside so that its name and key are free again."""

    async def delete(self, run_id: str) -> None:
        """Remove an ended run with its children, events, waits, inbox and ledger; blobs no other run uses go too."""

    async def next_wake(self) -> float | None:
        """The earliest wake_at of any ready run that nobody holds."""

    def changed(self) -> bool:
        """Whether another process has committed since the last call. Cheap: asked every 50 ms."""

    async def close(self) -> None:
        """Finish what is queued and let go of the medium."""


Events = Sequence[StoredEvent]
