"""How rows are written as columns and read back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from bailiwick.errors import JournalCorrupt
from bailiwick.ids import Json
from bailiwick.journal.rows import InboxRow, Owner, RunRow, SpendRow, StoredEvent, WaitRow

_encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def encode(value: Json) -> str:
    """The JSON text of a column: ASCII, no spaces, keys in the order given."""
    return _encoder.encode(value)


def decode(text: str | None) -> Json:
    """The value of a JSON column; an absent one is null."""
    return None if text is None else json.loads(text)


def checksum(run_id: str, event: StoredEvent) -> int:
    """A checksum over everything that an event says, for bytes that change on the disk."""
    head = f"{run_id}\0{event.seq}\0{event.type}\0{event.version}\0{float(event.at)!r}\0"
    return zlib.crc32(event.body.encode("utf-8", "surrogatepass"), zlib.crc32(head.encode()))


def checked_event(run_id: str, columns: Sequence[Any]) -> StoredEvent:
    """An event from the columns of `event.read`; `JournalCorrupt` where it is not what was written."""
    event = StoredEvent(*columns[:5])
    if columns[5] is not None and columns[5] != checksum(run_id, event):
        raise JournalCorrupt(
            f"run {run_id}: event {event.seq} is not what was written: bytes of it changed on the disk",
            hint="keep the directory as it is and restore the database from a backup; `bailiwick doctor` looks closer",
        )
    return event


def encode_owner(owner: Owner) -> str:
    """An owner as a column."""
    return encode([owner.host, owner.boot, owner.pidns, owner.pid, owner.start, owner.name])


def run_row(columns: Sequence[Any]) -> RunRow:
    """A run from the columns of `run.columns`."""
    owner = decode(columns[6])
    holder = Owner(*owner) if owner else None
    return RunRow(*(*columns[:6], holder, *columns[7:19], bool(columns[19]), decode(columns[20]), columns[21]))


def wait_row(columns: Sequence[Any]) -> WaitRow:
    """A wait from the columns of `wait.listed`."""
    return WaitRow(*(*columns[:6], decode(columns[6])))


def inbox_row(columns: Sequence[Any]) -> InboxRow:
    """A message from the columns of `inbox.read`."""
    number, run_id, kind, body, at = columns
    return InboxRow(number, run_id=run_id, kind=kind, body=decode(body), at=at)


def spend_row(columns: Sequence[Any]) -> SpendRow:
    """A line of the ledger from the columns of `spend.read`."""
    return SpendRow(*(*columns[:5], bool(columns[5]), *columns[6:]))
