"""What a note is, whose it is, and what may be written. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, get_args

from bailiwick.clock import iso
from bailiwick.errors import UsageError
from bailiwick.ids import NAME, Json, digest

Status = Literal["pending", "approved", "stale", "superseded"]
"""Waits for a person; may be used in briefs; does not hold any more; another note stands in its place."""
STATUSES: Final[tuple[Status, ...]] = get_args(Status)
LIVE: Final[tuple[Status, ...]] = ("approved", "pending")
GLOBAL: Final = "global"
"""The scope whose notes every project sees."""

MAX_BYTES: Final = 64 * 1024
MAX_TAGS: Final = 32
MAX_WORD: Final = 64
MAX_TITLE: Final = 120
MAX_SOURCE: Final = 200

BAD_NOTE = "BW570"
BAD_SCOPE = "BW571"

SCOPE = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SLUG = re.compile(r"[^a-z0-9]+")
_SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_CONFLICT = re.compile(r"^<{7} [^\n]*\n(.*?)^={7}\s*$.*?^>{7} [^\n]*\n?", re.MULTILINE | re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Note:
    """One note. `scope` is `global`, a project's, or "" where it can't be told: then nobody's query sees it.

    `source` names the run or session that it comes from, `path` its file in the folder; times are seconds.
    """

    id: str
    title: str
    text: str
    type: str = "note"
    tags: tuple[str, ...] = ()
    scope: str = GLOBAL
    source: str = ""
    status: Status = "pending"
    created: float = 0.0
    updated: float = 0.0
    superseded_by: str = ""
    path: str = ""

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {
            "id": self.id,
            "title": self.title,
            "type": self.type,
            "tags": list(self.tags),
            "scope": self.scope,
            "source": self.source,
            "status": self.status,
            "created": iso(self.created),
            "updated": iso(self.updated),
            "superseded_by": self.superseded_by,
            "path": self.path,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class FoundNote:
    """A note with its provenance: the last commit that changed its file, "" where none is known."""

    note: Note
    commit: str = ""

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        return {**self.note.to_json(), "commit": self.commit}


@dataclass(frozen=True, slots=True)
class NoteQuery:
    """What is looked for. `scopes` None means all of them. Without words in `text` the newest notes are meant.

    `broad`: the text is a whole task, of which common words say nothing.
    """

    text: str = ""
    scopes: tuple[str, ...] | None = (GLOBAL,)
    statuses: tuple[Status, ...] = LIVE
    limit: int = 8
    broad: bool = False


@dataclass(frozen=True, slots=True)
class Brief:
    """Approved notes for an agent's brief, as one marked text; "" where there are none."""

    text: str = ""
    notes: tuple[Note, ...] = field(default_factory=tuple)


def seen_from(scope: str) -> tuple[str, ...]:
    """The scopes whose notes may be seen from one: its own, and the global one."""
    return (GLOBAL,) if scope in ("", GLOBAL) else (scope, GLOBAL)


def project_scope(identity: str, name: str) -> str:
    """The scope of a project, from what makes it this one (its remote, or where it lies) and what people call it."""
    return f"{slug(name, 'project')}-{digest(f'scope{chr(0)}{identity}')[:12]}"


def slug(text: str, otherwise: str = "note") -> str:
    """A short name that fits a file."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return _SLUG.sub("-", plain).strip("-")[:40].strip("-") or otherwise


def printable(text: str) -> str:
    """The text with plain line ends, without terminal sequences, control, bidi and invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    text = _HIDDEN.sub("", _BREAKS.sub("\n", _SEQUENCES.sub("", text)))
    return _SURROGATE.sub("\ufffd", text)


def in_conflict(text: str) -> bool:
    """Whether a text holds what git writes where two changes meet: nobody has said yet which of them counts."""
    return "<<<<<<< " in text and _CONFLICT.search(text) is not None


def our_side(text: str) -> str:
    """The text with our side of each conflict, to tell which note it is."""
    return _CONFLICT.sub(r"\1", text)


def one_line(text: str, most: int = MAX_TITLE) -> str:
    """The text as one harmless line of at most `most` characters."""
    line = " ".join(printable(text[: 8 * most]).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def title_of(text: str) -> str:
    """The first heading of a text, else its first line."""
    lines = [line.strip() for line in text[:4096].splitlines() if line.strip()]
    chosen = next((line for line in lines if re.match(r"#{1,6}\s", line)), lines[0] if lines else "")
    return one_line(re.sub(r"^#{1,6}\s+|\s+#+$", "", chosen)) or "untitled"


def checked(note: Note) -> Note:
    """The note as it may be written, harmless to show; raises `UsageError` with what to change."""
    text = printable(note.text).strip()
    if not text:
        raise UsageError("the note is empty", hint="give its text", code=BAD_NOTE)
    size = len(text.encode("utf-8"))
    if size > MAX_BYTES:
        raise UsageError(
            f"the note has {size:,} bytes, {MAX_BYTES:,} are allowed", hint="write several notes", code=BAD_NOTE
        )
    if not NAME.fullmatch(note.type):
        raise UsageError(f"{note.type!r} is not a type of note", hint="a word such as lesson", code=BAD_NOTE)
    if not SCOPE.fullmatch(note.scope):
        raise UsageError(f"{note.scope!r} is not a scope", hint="`global`, or one of `brain list`", code=BAD_SCOPE)
    if note.status == "approved" and in_conflict(text):
        raise conflict(note.id or "the note")
    title = one_line(note.title) or title_of(text)
    source = one_line(note.source, MAX_SOURCE)
    return replace(note, text=text, title=title, tags=_tags(note.tags), source=source)


def conflict(name: str) -> UsageError:
    """Says of a note that it can't be approved as it is."""
    return UsageError(
        f"{name} holds an unresolved merge conflict (lines that begin with <<<<<<< and >>>>>>>)",
        hint="edit its file and keep what holds; indent such lines where they are only quoted",
        code=BAD_NOTE,
    )


def _tags(given: Sequence[str]) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(tag for raw in given if (tag := one_line(raw, MAX_BYTES))))
    if len(tags) > MAX_TAGS:
        raise UsageError(f"{len(tags)} tags are given, {MAX_TAGS} are allowed", hint="leave some out", code=BAD_NOTE)
    for tag in tags:
        if len(tag) > MAX_WORD:
            raise UsageError(f"the tag '{tag[:20]}…' is longer than {MAX_WORD} characters", code=BAD_NOTE)
    return tags
