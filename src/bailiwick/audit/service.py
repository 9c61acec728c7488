"""The verbs of the audit: append before an action, verify, show and export the chain."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bailiwick.audit import file
from bailiwick.audit.file import AuditUnavailable
from bailiwick.audit.model import (
    LONGEST,
    AuditEntry,
    ChainFault,
    ChainHead,
    ChainVerdict,
    inspect,
    make_entry,
    read_entry,
    read_head,
)
from bailiwick.clock import Clock
from bailiwick.durable import sync_folder
from bailiwick.errors import BailiwickError, Place, UsageError
from bailiwick.ids import Json
from bailiwick.redaction.redact import Redactor

NO_HEAD = "BW493"
NOT_EXTENDED = "BW494"
REPAIRED = "audit.repaired"
"""The kind of the entry which says that a crash had left half a line."""


def append(
    state: Path, kind: str, data: Json, *, actor: str, clock: Clock, redactor: Redactor | None = None
) -> AuditEntry:
    """Record something, durably, before it is done. Raises `AuditUnavailable` where it can't be: then don't do it.

    Any number of processes may append at once. `redactor` takes known secrets out of `data` and `actor`.
    """
    cover = redactor or Redactor(())
    fields = {"kind": kind, "actor": _storable(cover.text(actor)), "data": _storable(cover.json(data))}
    with file.locked(state, write=True) as handle:
        if handle is None:
            raise AuditUnavailable("the audit can't be made", place=Place(str(file.chain_file(state))))
        fresh = os.fstat(handle).st_size == 0
        key = file.ensure_key(state, entries=not fresh)
        known = file.kept_head(state)
        half = file.mend(handle, key, known)
        after = file.current_head(handle, key, known)
        if half:
            note = {"kind": REPAIRED, "actor": "bailiwick", "data": {"bytes": half}, "time": _now(clock)}
            after = _add(handle, state, make_entry(key, after, note)).head
        made = _add(handle, state, make_entry(key, after, {**fields, "time": _now(clock)}))
        if fresh:
            sync_folder(file.chain_file(state).parent)
    return made


def _add(handle: int, state: Path, entry: AuditEntry) -> AuditEntry:
    size = len(entry.line())
    if size > LONGEST:
        raise AuditUnavailable(
            f"an entry of {size:,} bytes is too long for the audit", hint="record digests of big values, not the values"
        )
    file.add(handle, entry)
    with suppress(OSError):  # the entry is durable; an older head is still true
        file.replace_file(file.head_file(state), f"{entry.head}\n".encode(), sync=False)
    return entry


def _now(clock: Clock) -> float:
    return float(round(clock.now(), 3))


def _storable(value: Json) -> Json:
    """The value as it reads back from its own JSON; half characters, which no file can hold, are replaced."""
    import json

    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return json.loads(text.encode("utf-8", "replace"))


def verify(state: Path, against: ChainHead | None = None) -> ChainVerdict:
    """Look at every entry, and compare with a head that was kept elsewhere; changes nothing."""
    with file.locked(state, write=False) as handle:
        kept = file.kept_head(state)
        key = file.read_key(state)
        anchors = tuple(dict.fromkeys(anchor for anchor in (kept, against) if anchor is not None))
        if handle is None:
            inspection, unfinished = inspect(key or b"", (), anchors), 0
        else:
            inspection = inspect(key or b"", file.complete_lines(handle), anchors)
            unfinished = os.fstat(handle).st_size - file.last_line(handle)[1]
    findings = tuple(inspection.findings)
    if key is None and findings:
        findings = (ChainFault("wrong_key", "the audit's key is gone, so no entry can be checked"),)
    return ChainVerdict(inspection.head, findings, against is not None, unfinished)


def entries(state: Path, *, kind: str | None = None, limit: int | None = None) -> list[AuditEntry]:
    """The last `limit` entries of a kind (or that begin with it and a dot), oldest first; not verified."""
    with file.locked(state, write=False) as handle:
        kept: deque[AuditEntry] = deque(maxlen=limit)
        for entry in () if handle is None else _readable(handle):
            if kind is None or entry.kind == kind or entry.kind.startswith(f"{kind}."):
                kept.append(entry)
    return list(kept)


def _readable(handle: int) -> Iterator[AuditEntry]:
    for line in file.complete_lines(handle):
        entry = read_entry(line)
        if entry is not None:
            yield entry


def anchor_of(text: str) -> ChainHead:
    """The head that a person gave: itself, or the name of a file that holds one, such as an export."""
    given = read_head(text)
    if given is not None and text.strip() == str(given):
        return given
    try:
        with Path(text).open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - (64 << 10)))
            found = read_head(stream.read().decode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a path"
        raise UsageError(
            f"this is neither a head nor a file that can be read: {reason}",
            place=Place(text),
            hint="give a line that begins with bw-audit:, or a file written by `bailiwick audit export`",
            code=NO_HEAD,
        ) from error
    if found is None:
        raise UsageError(
            "the file holds no head of an audit",
            place=Place(text),
            hint="give a file written by `bailiwick audit export`",
            code=NO_HEAD,
        )
    return found


def export(state: Path, target: Path, *, head_only: bool = False) -> ChainVerdict:
    """Write the entries and the head to a file, which is replaced as a whole; only if nothing was done to the chain.

    A file that already holds a head is replaced only by a chain that goes on from it: an anchor is never overwritten
    by what it would have convicted.
    """
    earlier = anchor_of(str(target)) if target.is_file() and target.stat().st_size else None
    verdict = verify(state, earlier)
    if not verdict.ok:
        return verdict
    try:
        file.replace_file(target.absolute(), exported(state, verdict.head, head_only=head_only), sync=True)
    except OSError as error:
        raise _not_written(target, error) from error
    return verdict


def exported(state: Path, upto: ChainHead, *, head_only: bool = False) -> bytes:
    """An export: the entries up to a head, one per line, and the head on the last line."""
    if head_only:
        return f"{upto}\n".encode()
    lines = b"".join(entry.line() for entry in entries(state) if entry.seq <= upto.count)
    return lines + f'{{"head":"{upto}"}}\n'.encode()


def _not_written(target: Path, error: OSError) -> BailiwickError:
    return UsageError(
        f"the file can't be written: {error.strerror}",
        place=Place(str(target)),
        hint="name a file in a directory of yours",
        code=NOT_EXTENDED,
    )
