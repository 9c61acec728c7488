"""One batch of a holder: events and everything that changes with them, whole or not at all; the first with its run."""

from __future__ import annotations

from bailiwick.errors import JournalCorrupt, LeaseLost
from bailiwick.journal import calls, inbox, ledger, runs
from bailiwick.journal.blobs import keep_blobs
from bailiwick.journal.columns import encode
from bailiwick.journal.rows import Batch, NewRun, RunClaim, RunRow
from bailiwick.journal.transaction import Transaction


def create(tx: Transaction, new: NewRun, claim: RunClaim | None, batch: Batch | None) -> RunRow:
    """Create a run, held and with its first batch where these are given; a run that is there already stays as it is."""
    known = runs.create(tx, new)
    if known is not None:
        return runs.load(tx, known)
    epoch = 0 if claim is None else runs.hold(tx, new.id, claim)
    if batch is not None:
        append(tx, new.id, epoch, batch)
    return runs.load(tx, new.id)


def append(tx: Transaction, run_id: str, epoch: int, batch: Batch) -> int:
    """Append a batch and give the new seq.

    Settlements come before reservations, so what an effect gives back is there for the next one. Waits are opened
    before they are closed, so one that did both is closed. `wake_at` counts only with `release`.
    """
    seq = _advance(tx, run_id, epoch, batch)
    keep_blobs(tx, run_id, batch.blobs)
    runs.write_events(tx, run_id, batch.after, batch.events)
    inbox.consume(tx, run_id, batch.consumed)
    _index_waits(tx, run_id, batch)
    for child in batch.children:
        runs.add(tx, child)
    inbox.pass_on(tx, batch.messages)
    ledger.settle(tx, run_id, batch.settle)
    ledger.reserve(tx, run_id, batch.reserve)
    calls.index(tx, batch.attempts)
    if batch.summary is not None:
        tx.do("run.summarise", (run_id, encode(batch.summary)))
    _alter(tx, run_id, batch)
    if batch.release:
        runs.release(tx, run_id, epoch, batch.wake_at)
    tx.points.append("append.after_commit")
    tx.advanced.append((run_id, seq))
    return seq


def _advance(tx: Transaction, run_id: str, epoch: int, batch: Batch) -> int:
    """Move the hot row on, or say why it is not where the batch expects it."""
    seq = batch.after + len(batch.events)
    if tx.one("run.advance", (seq, run_id, epoch, batch.after)) is not None:
        return seq
    place = tx.one("run.place", (run_id,))
    if place is None:
        raise LeaseLost(f"run {run_id} is gone")
    if place[0] != epoch:
        raise LeaseLost(f"run {run_id} is held at epoch {place[0]}, not {epoch}: another process took it over")
    raise JournalCorrupt(
        f"run {run_id}: the journal ends at {place[1]}, a batch was built on {batch.after}",
        hint="this is a bug; the journal is as it was",
    )


def _index_waits(tx: Transaction, run_id: str, batch: Batch) -> None:
    for wait in batch.waits_opened:
        tx.do("wait.open", (run_id, wait.id, wait.scope, wait.node, wait.kind, wait.due_at, encode(wait.body)))
    for closed in batch.waits_closed:
        tx.do("wait.close", (run_id, closed))


def _alter(tx: Transaction, run_id: str, batch: Batch) -> None:
    values = {
        "status": batch.status,
        "definition": batch.definition,
        "min_reader": batch.min_reader,
        "host": batch.host,
    }
    if any(value is not None for value in values.values()):
        tx.do("run.alter", {"id": run_id, **values})
    if batch.status not in (None, "ready") and batch.events:
        tx.do("run.ended", {"id": run_id, "at": batch.events[-1].at})
