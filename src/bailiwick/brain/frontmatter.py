"""A note as a file: front matter between two lines `---`, then the text. Files of people are taken as they come.

What we write needs no YAML parser to read; a block that does gets one. A file without front matter, or with one that
can't be read, or with an unresolved conflict, is a pending note: nobody has said anything else about it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from bailiwick.brain.model import (
    GLOBAL,
    ID,
    MAX_BYTES,
    SCOPE,
    STATUSES,
    Note,
    Status,
    in_conflict,
    one_line,
    our_side,
    title_of,
)
from bailiwick.clock import iso
from bailiwick.errors import BailiwickError, NotReady, Place
from bailiwick.ids import NAME, Json, digest

NOTES = "notes"
"""The folder whose folders are scopes."""
UNREADABLE = "BW572"
MOST = MAX_BYTES + 16 * 1024
"""Bytes of a file that are read: the longest text and its front matter."""

_BLOCK = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(?:[ \t]+(.*?))?[ \t]*")
_PLAIN = re.compile(r"[A-Za-z0-9_./@+-](?:[A-Za-z0-9_ ./@+-]|:(?! |\Z))*")


def parse(raw: bytes, path: str, mtime: float) -> Note:
    """The note in a file; never fails. What the file doesn't say comes from where it lies and when it was changed."""
    whole = raw[:MOST].decode("utf-8", "replace")
    block, text = split(whole)
    unresolved = in_conflict(whole)
    known = _fields(split(our_side(whole))[0] if unresolved else block)
    said = known or {}
    kind = _text(said.get("type"))
    return Note(
        id=_matching(ID, said.get("id")) or derived_id(path),
        title=one_line(_text(said.get("title"))) or title_of(text),
        text=text.strip("\r\n")[:MAX_BYTES],
        type=kind if NAME.fullmatch(kind) else "note",
        tags=_words(said.get("tags")),
        scope=_scope(said.get("scope"), path, otherwise=GLOBAL if known is not None else ""),
        source=one_line(_text(said.get("source"))),
        status="pending" if unresolved else _status(said.get("status")),
        created=_time(said.get("created"), mtime),
        updated=_time(said.get("updated"), mtime),
        superseded_by=_matching(ID, said.get("superseded_by")),
        path=path,
    )


def write(note: Note) -> bytes:
    """A note of ours as a file."""
    lines = [f"{name}: {value}\n" for name, value in _written(note).items()]
    return f"---\n{''.join(lines)}---\n\n{note.text}\n".encode()


def rewrite(raw: bytes, note: Note) -> bytes:
    """The file with the status of `note`; everything else that a person may have put there stays as it is."""
    try:
        whole = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotReady(
            "the note is not UTF-8, and would be damaged",
            place=Place(note.path),
            hint="save it as UTF-8",
            code=UNREADABLE,
        ) from error
    block, text = split(whole)
    if not block:
        return write(note)[: -len(note.text.encode()) - 1] + text.encode()
    wanted = {"status": note.status, "updated": iso(note.updated), "superseded_by": note.superseded_by}
    if not _matching(ID, (_fields(block) or {}).get("id")):
        wanted["id"] = note.id
    made = f"---\n{_replaced(block, wanted)}---\n{text}".encode()
    if parse(made, note.path, 0.0).status != note.status:
        raise NotReady("its front matter can't be read", place=Place(note.path), hint="repair it", code=UNREADABLE)
    return made


def split(whole: str) -> tuple[str, str]:
    """The front matter's lines and the rest; "" and everything where there is none."""
    match = _BLOCK.match(whole)
    return (match[1], whole[match.end() :]) if match else ("", whole.removeprefix("\ufeff"))


def derived_id(path: str) -> str:
    """The id of a file that names none: the same as long as it stays where it is."""
    return f"n-{digest(f'note{chr(0)}{path}')[:8]}"


def _written(note: Note) -> dict[str, str]:
    made = {
        "id": note.id,
        "type": note.type,
        "title": json.dumps(note.title, ensure_ascii=False),
        "tags": json.dumps(list(note.tags), ensure_ascii=False),
        "scope": note.scope,
        "source": json.dumps(note.source, ensure_ascii=False),
        "status": note.status,
        "created": iso(note.created),
        "updated": iso(note.updated),
    }
    return {**made, "superseded_by": note.superseded_by} if note.superseded_by else made


def _replaced(block: str, wanted: Mapping[str, str]) -> str:
    """Lines with some keys set again, or taken out where the value is ""; what belonged to their old values goes."""
    left = dict(wanted)
    kept: list[str] = []
    dropping = False
    for line in block.splitlines(keepends=True):
        key = re.match(r"([^\s:#-][^:]*):(?:\s|\Z)", line)
        if key:
            name = key[1].strip("\"'")
            dropping = name in wanted
            kept += _field(name, left.pop(name, ""))
        elif dropping and not line.startswith((" ", "\t", "-")):
            dropping = False
        if not dropping:
            kept.append(line)
    return "".join(kept) + "".join(line for name, value in left.items() for line in _field(name, value))


def _field(name: str, value: str) -> list[str]:
    return [f"{name}: {value}\n"] if value else []


def _fields(block: str) -> Mapping[str, Json] | None:
    """What a front matter says; None where it can't be read."""
    quick = _quick(block)
    if quick is not None:
        return quick
    from bailiwick.lang.source import parse_yaml

    try:
        said = parse_yaml(block.encode("utf-8", "replace"), "front matter").data
    except BailiwickError:
        return None
    return said if isinstance(said, dict) else None


def _quick(block: str) -> dict[str, Json] | None:
    """The fields of lines that any reader of YAML takes for the same; None where that is not certain."""
    said: dict[str, Json] = {}
    for line in block.splitlines():
        match = _LINE.fullmatch(line)
        value = match[2] if match else None
        if match is None or value is None or match[1] in said:
            return None
        if value.startswith(('"', "[")):
            try:
                said[match[1]] = json.loads(value)
            except ValueError:
                return None
        elif _PLAIN.fullmatch(value):
            said[match[1]] = value
        else:
            return None
    return said


def _text(value: Json) -> str:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _matching(pattern: re.Pattern[str], value: Json) -> str:
    text = _text(value)
    return text if pattern.fullmatch(text) else ""


def _words(value: Json) -> tuple[str, ...]:
    given: Iterable[Json] = value if isinstance(value, list) else re.split(r"[,\s]+", value) if _text(value) else ()
    return tuple(word for one in given if (word := one_line(_text(one), 64)))[:32]


def _scope(value: Json, path: str, otherwise: str) -> str:
    """What the file says; else the scope whose folder it lies in; else `otherwise`."""
    if value is not None:
        return _matching(SCOPE, value)
    parts = path.split("/")
    return _matching(SCOPE, parts[1]) if parts[0] == NOTES and len(parts) > 2 else otherwise


def _status(value: Json) -> Status:
    return next((status for status in STATUSES if status == value), "pending")


def _time(value: Json, otherwise: float) -> float:
    try:
        at = datetime.fromisoformat(_text(value))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return otherwise
