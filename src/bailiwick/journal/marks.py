"""How far each run's journal had come, beside the database: what a lost write-ahead log took away is noticed.

SQLite goes back to the last whole commit it finds, without a word. A mark is written after each commit, so it is never
ahead of an unharmed database; it is not synced, so after a power cut it may be behind, which only hides a loss.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bailiwick.errors import NotFound
from bailiwick.journal import inbox
from bailiwick.journal.rows import Message
from bailiwick.journal.transaction import Transaction

_SLOT = struct.Struct("<QI32s84s")
"""The seq, a checksum over the rest, the run's id, and its name for people."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far the journal of a run had come."""

    run_id: str
    name: str
    seq: int


@dataclass(frozen=True, slots=True)
class Loss:
    """A run whose journal is shorter than it was: `had` events then, `has` now; None where the run itself is gone."""

    run_id: str
    name: str
    had: int
    has: int | None
    slot: int

    @property
    def words(self) -> str:
        """What was lost, in a sentence without an end."""
        if self.has is None:
            return f"run {self.name} is gone with its {self.had} events"
        return f"run {self.name} went back by {self.had - self.has} events, to {self.has}"


class Marks:
    """The file with one slot for each run, by the number of its row."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(f"{database.name}-marks")
        self._handle: int | None = None
        self._known: dict[str, tuple[int, str]] = {}

    def place(self, tx: Transaction, run_ids: Iterable[str]) -> None:
        """Look up where the slots of runs are, once for each run; inside the transaction that changes them."""
        for run_id in run_ids:
            if run_id not in self._known:
                row = tx.one("run.slot", (run_id,))
                if row is not None:
                    self._known[run_id] = (int(row[0]), str(row[1]))

    def note(self, advanced: Iterable[tuple[str, int]]) -> None:
        """Write how far runs have come; after their commit. What can't be written is only a weaker mark."""
        with contextlib.suppress(OSError):
            for run_id, seq in dict(advanced).items():
                if run_id in self._known:
                    number, name = self._known[run_id]
                    os.pwrite(self._open(), _packed(Mark(run_id, name, seq)), number * _SLOT.size)

    def forget(self, numbers: Iterable[int]) -> None:
        """Empty the slots of runs that are being removed; before the commit, so that a crash tells no false tale."""
        with contextlib.suppress(OSError):
            for number in numbers:
                os.pwrite(self._open(), bytes(_SLOT.size), number * _SLOT.size)
        self._known.clear()

    def all(self) -> dict[int, Mark]:
        """Every mark that can be read, by slot."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return {}
        whole = len(data) - len(data) % _SLOT.size
        slots = enumerate(_SLOT.iter_unpack(data[:whole]))
        return {number: mark for number, slot in slots if (mark := _unpacked(slot)) is not None}

    def close(self) -> None:
        """Let go of the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open(self) -> int:
        if self._handle is None:
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._handle


def _packed(mark: Mark) -> bytes:
    run, name = mark.run_id.encode()[:32], mark.name.encode()[:84]
    return _SLOT.pack(mark.seq, _check(mark.seq, run, name), run, name)


def _unpacked(slot: tuple[int, int, bytes, bytes]) -> Mark | None:
    """The mark in a slot; None for an empty or torn one."""
    seq, check, run, name = slot[0], slot[1], slot[2].rstrip(b"\0"), slot[3].rstrip(b"\0")
    if not run or check != _check(seq, run, name):
        return None
    return Mark(run.decode(errors="replace"), name.decode(errors="replace"), seq)


def _check(seq: int, run: bytes, name: bytes) -> int:
    return zlib.crc32(b"%d\0%s\0%s" % (seq, run, name))


def find_losses(tx: Transaction, marks: Marks, now: float) -> tuple[Loss, ...]:
    """Every run that went back, told to stop before it does anything twice. The caller forgets the marks afterwards."""
    seen = marks.all()
    if not seen:
        return ()
    rows = {int(number): (str(run_id), int(seq)) for number, run_id, seq in tx.all("run.reached")}
    out = []
    for number, mark in seen.items():
        run_id, seq = rows.get(number, ("", 0))
        if run_id != mark.run_id:
            out.append(Loss(mark.run_id, name=mark.name, had=mark.seq, has=None, slot=number))
        elif seq < mark.seq:
            _stop(tx, mark, seq, now)
            out.append(Loss(mark.run_id, name=mark.name, had=mark.seq, has=seq, slot=number))
    return tuple(out)


def record_losses(database: Path, losses: Iterable[Loss], now: float) -> None:
    """Keep what was lost in a file beside the database, synced: it is told on a terminal once, and asked for later."""
    lines = [json.dumps({"at": now, "run": loss.run_id, "what": loss.words}) + "\n" for loss in losses]
    if lines:
        with _losses_file(database).open("a", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())


def recorded_losses(database: Path, since: float) -> list[str]:
    """What was lost since then, in words."""
    try:
        lines = _losses_file(database).read_text("utf-8").splitlines()
    except OSError:
        return []
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return [str(one["what"]) for one in found if float(one["at"]) >= since]


def _losses_file(database: Path) -> Path:
    return database.with_name(f"{database.name}-losses.jsonl")


def _stop(tx: Transaction, mark: Mark, seq: int, now: float) -> None:
    """Tell a run that is not over to stop; a person lets it go on when they know what was lost."""
    row = tx.one("run.standing", (mark.run_id,))
    if row is not None and row[0] == "ready":
        by = f"the journal, which lost {mark.seq - seq} events"
        with contextlib.suppress(NotFound):
            inbox.send(
                tx,
                Message(
                    mark.run_id,
                    kind="stop",
                    dedupe=f"lost:{mark.seq}:{seq}",
                    body={"now": True, "by": by, "lost": True},
                    at=now,
                ),
            )
