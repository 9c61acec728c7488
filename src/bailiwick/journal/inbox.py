"""The inbox: how everyone but the holder tells a run something."""

from __future__ import annotations

from collections.abc import Iterable

from bailiwick.errors import JournalCorrupt, NotFound
from bailiwick.journal.blobs import note_uses
from bailiwick.journal.columns import encode
from bailiwick.journal.rows import Message
from bailiwick.journal.transaction import Transaction


def send(tx: Transaction, message: Message) -> bool:
    """Deliver a message of somebody outside; `NotFound` when nobody would ever read it, False for a duplicate."""
    if not _reachable(tx, message.run_id):
        raise NotFound(
            f"run {message.run_id} does not exist or is archived: it can't be told anything",
            hint="bailiwick runs",
        )
    fresh = _deliver(tx, message)
    if fresh:
        tx.points.append("inbox.sent")
    return fresh


def pass_on(tx: Transaction, messages: Iterable[Message]) -> None:
    """Deliver what a holder says to other runs; a run that is gone or archived needs no news and gets none."""
    for message in messages:
        if _reachable(tx, message.run_id):
            _deliver(tx, message)


def consume(tx: Transaction, run_id: str, ids: Iterable[int]) -> None:
    """Take messages out, once: one that is not there would become a second event, so it is `JournalCorrupt`."""
    for number in ids:
        if tx.one("inbox.consume", (number, run_id)) is None:
            raise JournalCorrupt(f"run {run_id}: message {number} is not in its inbox and can't be consumed")


def _reachable(tx: Transaction, run_id: str) -> bool:
    standing = tx.one("run.standing", (run_id,))
    return standing is not None and not standing[1]


def _deliver(tx: Transaction, message: Message) -> bool:
    if tx.one("inbox.remember", (message.run_id, message.dedupe)) is None:
        return False
    body = encode(message.body)
    note_uses(tx, message.run_id, (body,))
    tx.do("inbox.insert", (message.run_id, message.kind, body, message.at))
    tx.do("run.wake", {"id": message.run_id, "at": message.at})
    return True
