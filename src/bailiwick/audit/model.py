"""The chain: each entry is sealed with a key over itself and the seal before it. Pure: bytes in, findings out."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from bailiwick.ids import Json, canonical

GENESIS = "0" * 64
"""What stands before the first entry."""
LONGEST = 1 << 20
"""The most bytes that one line may have."""

FindingKind = Literal["edited", "inserted", "deleted", "moved", "truncated", "rewritten", "wrong_key"]
_FIELDS = ("seq", "time", "kind", "actor", "data", "prev", "mac")
_MAC = re.compile(r"[0-9a-f]{64}")
_HEAD = re.compile(r"bw-audit:1:(0|[1-9][0-9]{0,17}):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The end of a chain: how many entries, and the seal of the last one. Kept elsewhere, it anchors the chain."""

    count: int = 0
    mac: str = GENESIS

    def __str__(self) -> str:
        return f"bw-audit:1:{self.count}:{self.mac}"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that happened; `mac` seals it together with `prev`, the seal of the entry before."""

    seq: int
    time: float
    kind: str
    actor: str
    data: Json
    prev: str
    mac: str

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {name: getattr(self, name) for name in _FIELDS}

    @property
    def head(self) -> ChainHead:
        """The chain's end, if this is its last entry."""
        return ChainHead(self.seq, self.mac)

    def line(self) -> bytes:
        """The one way in which it is written."""
        return canonical(self.to_json()).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class ChainFault:
    """One thing that was done to the chain; `line` is where in the file, 0 where it is about the whole."""

    kind: FindingKind
    what: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class ChainVerdict:
    """What a look at the whole chain came to. `anchored`: it was compared with a head that was kept elsewhere."""

    head: ChainHead
    findings: tuple[ChainFault, ...] = ()
    anchored: bool = False
    unfinished: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {
            "ok": self.ok,
            "anchored": self.anchored,
            "entries": self.head.count,
            "head": str(self.head) if self.ok else None,
            "findings": [asdict(finding) for finding in self.findings],
            "unfinished_bytes": self.unfinished,
        }


def seal(key: bytes, fields: Mapping[str, Json], prev: str) -> str:
    """The seal of an entry's fields behind the seal `prev`."""
    body = {name: fields[name] for name in ("seq", "time", "kind", "actor", "data")}
    text = f"bw-audit:1\n{canonical(body)}\n{prev}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def make_entry(key: bytes, after: ChainHead, fields: Mapping[str, Json]) -> AuditEntry:
    """The entry that follows `after`; `fields` are time, kind, actor and data."""
    numbered = {**fields, "seq": after.count + 1}
    mac = seal(key, numbered, after.mac)
    return AuditEntry(
        numbered["seq"],
        time=fields["time"],
        kind=fields["kind"],
        actor=fields["actor"],
        data=fields["data"],
        prev=after.mac,
        mac=mac,
    )


def read_entry(line: bytes) -> AuditEntry | None:
    """The entry in a line without its end; None where it is not written exactly as we write one."""
    if len(line) > LONGEST:
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or set(found) != set(_FIELDS):
        return None
    plain = isinstance(found["seq"], int) and isinstance(found["time"], float) and not isinstance(found["seq"], bool)
    texts = all(isinstance(found[name], str) for name in ("kind", "actor", "prev", "mac"))
    if not plain or not texts or not _MAC.fullmatch(found["mac"]):
        return None
    entry = AuditEntry(**found)
    try:
        return entry if entry.line() == line + b"\n" else None
    except (ValueError, RecursionError):
        return None


def is_sealed(key: bytes, entry: AuditEntry) -> bool:
    """Whether an entry is as it was when the key sealed it."""
    return hmac.compare_digest(entry.mac, seal(key, entry.to_json(), entry.prev))


def read_head(text: str) -> ChainHead | None:
    """The head in a text, which may be an export: of several the last one. None where there is none."""
    found = _HEAD.findall(text)
    return ChainHead(int(found[-1][0]), found[-1][1]) if found else None


@dataclass(slots=True)
class Inspection:
    """Follows a chain line by line and notes what does not fit. `anchors` are heads that it has to run through."""

    key: bytes
    anchors: tuple[ChainHead, ...] = ()
    head: ChainHead = field(default_factory=ChainHead)
    findings: list[ChainFault] = field(default_factory=list)
    _line: int = 0
    _foreign: list[int] = field(default_factory=list)
    _gone: dict[int, None] = field(default_factory=dict)
    _sealed: bool = False

    def look(self, lines: Iterable[bytes]) -> None:
        """Take in the lines of the file, each without its end."""
        for line in lines:
            self._line += 1
            entry = read_entry(line)
            if entry is None or not is_sealed(self.key, entry):
                self._foreign.append(self._line)
            else:
                self._take(entry)

    def end(self) -> None:
        """Say what only the whole chain can show."""
        if self._foreign and not self._sealed:
            what = "no entry fits the key: the key was replaced, or the whole file is another's"
            self._note("wrong_key", what)
            return
        for line in self._foreign:
            self._note("edited", "this line was changed, or written without the key", line)
        for seq in self._gone:
            self._note("deleted", f"entry {seq} is gone")
        for anchor in self.anchors:
            if anchor.count > self.head.count:
                what = f"entries were cut off: there were {anchor.count}, {self.head.count} are left"
                self._note("truncated", what)

    def _take(self, entry: AuditEntry) -> None:
        self._sealed = True
        if entry.seq <= self.head.count:
            self._gone_or_again(entry)
            return
        self._explain(entry.seq - self.head.count - 1)
        if entry.seq == self.head.count + 1 and entry.prev != self.head.mac:
            what = f"entry {entry.seq} does not follow the one before it: the end was cut off and written again"
            self._note("rewritten", what, self._line)
        self.head = entry.head
        for anchor in self.anchors:
            if anchor.count == entry.seq and anchor.mac != entry.mac:
                what = f"entry {entry.seq} is not the one whose seal was kept: the chain was written again"
                self._note("rewritten", what, self._line)

    def _gone_or_again(self, entry: AuditEntry) -> None:
        """An entry whose place is already taken: it was moved here from a gap, or stands here a second time."""
        for line in self._foreign:
            self._note("inserted", "this line was inserted without the key", line)
        self._foreign.clear()
        moved = entry.seq in self._gone
        self._gone.pop(entry.seq, None)
        words = "stands in the wrong place" if moved else "stands here once more"
        self._note("moved" if moved else "inserted", f"entry {entry.seq} {words}", self._line)

    def _explain(self, missing: int) -> None:
        """Lines that are not ours stand for changed entries as far as entries are missing; the others were put in."""
        for place, line in enumerate(self._foreign):
            if place < missing:
                self._note("edited", f"entry {self.head.count + 1 + place} was changed", line)
            else:
                self._note("inserted", "this line was inserted without the key", line)
        lost = range(self.head.count + 1 + min(missing, len(self._foreign)), self.head.count + 1 + missing)
        self._gone.update(dict.fromkeys(lost))
        self._foreign.clear()

    def _note(self, kind: FindingKind, what: str, line: int = 0) -> None:
        self.findings.append(ChainFault(kind, what, line))


def inspect(key: bytes, lines: Iterable[bytes], anchors: tuple[ChainHead, ...] = ()) -> Inspection:
    """The chain in these lines, followed to its end."""
    inspection = Inspection(key, anchors)
    inspection.look(lines)
    inspection.end()
    return inspection
