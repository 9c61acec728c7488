"""What a store promises. SQLite keeps it here; PostgreSQL will keep the same, by the same conformance suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bailiwick.ids import Json
from bailiwick.journal.rows import (
    AttemptRow,
    Batch,
    CallRow,
    ClaimFilter,
    Document,
    InboxRow,
    Message,
    NewRun,
    Owner,
    PinnedFile,
    Reservation,
    RunClaim,
    RunFilter,
    RunRow,
    Spender,
    SpendRow,
    StoredEvent,
    WaitFilter,
    WaitRow,
)

EVERY_RUN, EVERY_WAIT = RunFilter(), WaitFilter()


class Store(Protocol):
    """Keeps journals. Each method is one transaction; what it acknowledged survives a power cut.

    Raises `StoreUnavailable` when the medium fails (full, read-only, I/O): nothing was changed, try again.
    Raises `StoreTooNew` when a newer version has taken the state over.
    """

    async def create(self, run: NewRun, claim: RunClaim | None = None, batch: Batch | None = None) -> RunRow:
        """Create a run with its first events; status `ready`, wake_at = created_at.

        Gives back the run there is when one has this id, or this name and key and is not archived: two processes that
        start the same run at once get one. A new run is held from the beginning where there is a `claim`, and `batch`
        is appended to it, in the same transaction: what `append` refuses is not created either. One that was there is
        neither claimed nor appended to, which its epoch and owner tell.
        """

    async def run(self, run_id: str) -> RunRow | None:
        """One run by id."""

    async def find(self, workflow: str, run_key: str) -> RunRow | None:
        """The newest run of this name and key that is not archived."""

    async def runs(
        self, which: RunFilter = EVERY_RUN, *, limit: int | None = None, before: str | None = None
    ) -> list[RunRow]:
        """Runs that fit, newest first: at most `limit`, from behind the run `before`; nothing where that was removed.

        With a limit it costs what it gives, however many runs there are.
        """

    async def claim(
        self, owner: Owner, now: float, lease_until: float, reader: int, which: ClaimFilter
    ) -> RunRow | None:
        """Take one run that is ready, due, readable, free and not bound to another host; raises its epoch by one.

        A call is never taken: nobody waits for it but the process that makes it.

        Due is wake_at <= now, readable min_reader <= reader; free is no owner, an expired lease, or being named in
        `which.dead` at that very epoch. What is named in `which.without` is never taken.
        """

    async def held(self, now: float, which: ClaimFilter) -> list[RunRow]:
        """Ready and due runs, not calls, whose owner has a lease that still runs: the caller looks who is dead."""

    async def seize(self, run_id: str, epoch: int, claim: RunClaim) -> RunRow | None:
        """Take a run or a call from the owner that held it at this epoch and is proved dead; raises its epoch by one.

        None where it is over, was let go of, or was taken by somebody else since. A call is seized to be ended.
        """

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

    def blob(self, digest: str) -> bytes:
        """The bytes of a blob; raises `JournalCorrupt` when it is gone or its digest is wrong."""

    async def send(self, message: Message) -> bool:
        """Put a message into an inbox, make the run ready and due at the message's time; False for a duplicate."""

    async def inbox(self, run_id: str) -> list[InboxRow]:
        """Messages in order of arrival."""

    async def define(self, digest: str, body: Json, files: Sequence[PinnedFile] = ()) -> None:
        """Keep a compiled definition under its digest, and the files it was pinned with; keeping it twice is fine."""

    async def definition_files(self, digest: str) -> list[PinnedFile]:
        """The files that a definition was pinned with, by name; none where an older version kept it."""

    async def definition(self, digest: str) -> Json:
        """A compiled definition; raises `JournalCorrupt` when it is not there."""

    async def waits(
        self, which: WaitFilter = EVERY_WAIT, *, limit: int | None = None, after: WaitRow | None = None
    ) -> list[WaitRow]:
        """Open waits that fit, earliest due first: at most `limit`, from behind the wait `after`."""

    async def spend(self, scope: str) -> list[SpendRow]:
        """The ledger of one scope."""

    async def spenders(self, scope: str) -> list[Spender]:
        """Who is in the ledger of one scope, by id; runs that were removed are left out."""

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
        """Calls begun at or after `since`, newest first; a negative `limit` is none. `id` may be cut short."""

    async def attempts(self, *, since: float | None = None, call: str | None = None) -> list[AttemptRow]:
        """Every time that a model was asked, in the order it was done: by calls that ended, and by nodes of runs.

        Of one call with all that is known. Of all without `output_summary` and `runner_output`, which may be long.
        """

    async def cooldown(self, name: str) -> tuple[int, float]:
        """How often in a row an endpoint has failed, and until when it is left alone; (0, 0.0) where it is well."""

    async def cooldown_report(self, name: str, failures: int, until: float) -> None:
        """Replace what is known of an endpoint, for everybody; 0 failures forgets it."""

    async def document(self, kind: str, id: str) -> Document | None:  # noqa: A002 - the column's name
        """One document by kind and id."""

    async def documents(self, kind: str, *, limit: int | None = None, after: str = "") -> list[Document]:
        """The documents of a kind by id: at most `limit`, from behind the id `after`."""

    async def put_document(self, kind: str, id: str, body: Json, version: int = 0) -> Document:  # noqa: A002
        """Write a document in place of this version of it, 0 where it is new.

        Raises `DocumentChanged` where another version is there, and changes nothing then.
        """

    async def drop_document(self, kind: str, id: str, version: int) -> None:  # noqa: A002
        """Remove this version of a document; raises `DocumentChanged` where another is there, or none."""

    def slot(self, endpoint: str, most: int) -> AbstractAsyncContextManager[None]:
        """Hold one of so many slots of an endpoint, over all who share the store; waits for one, a death frees it."""

    async def archive(self, run_id: str) -> None:
        """Set a finished run aside so that its name and key are free again."""

    async def delete(self, run_id: str) -> None:
        """Remove an ended run with its children, events, attempts, waits, inbox and ledger.

        Blobs that no other run uses go too.
        """

    async def next_wake(self) -> float | None:
        """The earliest wake_at of any ready run that nobody holds and that may be claimed."""

    async def wait_for_news(self, seen: int | None = None, timeout: float | None = None) -> int:
        """How often others were seen to have committed; waits until that is not `seen`, `timeout` seconds at most.

        At once without `seen`. What this very handle wrote is no news.
        """

    async def close(self) -> None:
        """Finish what is queued and let go of the medium."""


Events = Sequence[StoredEvent]
