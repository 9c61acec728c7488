"""From a session's call log to notes: what is told of it, which lessons hold, which notes are filed. Asks no model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Unpack

from bailiwick.brain.model import GLOBAL, Note
from bailiwick.brain.service import Details, scope_of
from bailiwick.errors import UsageError
from bailiwick.ids import Json
from bailiwick.routing.model import CheckOutcome, FileOut, Result

MOST_ENTRIES = 200
"""Entries of a session that are told; of more, the last ones."""
MOST_NOTES = 20
_TEXT = 400
_ATTEMPT = ("model", "tier", "verdict", "feedback", "duration_ms", "warm_start", "tokens", "cost")
_ENTRY = ("timestamp", "skill", "phase", "project_root", "final_status", "model_used", "duration_ms", "file_path")


def told_entries(entries: Sequence[Mapping[str, Json]]) -> str:
    """The entries of a log, one line each, numbered from 1 as they stand in the log; long texts are cut."""
    first = max(0, len(entries) - MOST_ENTRIES)
    lines = [f"{number}. {_told(entry)}" for number, entry in enumerate(entries[first:], first + 1)]
    return "\n".join(["", *lines])


def _told(entry: Mapping[str, Json]) -> str:
    attempts = entry.get("attempts")
    tried = [
        {key: _cut(one[key]) for key in _ATTEMPT if key in one}
        for one in (attempts if isinstance(attempts, list) else [])
        if isinstance(one, dict)
    ]
    kept = {key: _cut(entry[key]) for key in (*_ENTRY, "message") if key in entry}
    return json.dumps({**kept, "attempts": tried}, ensure_ascii=False)


def _cut(value: Json) -> Json:
    return value[: _TEXT - 1] + "…" if isinstance(value, str) and len(value) > _TEXT else value


def told_candidates(candidates: Iterable[Mapping[str, Json]]) -> str:
    """Lessons for the writer, one line of JSON each."""
    return "\n".join(["", *(json.dumps(dict(one), ensure_ascii=False) for one in candidates)])


def told_notes(notes: Iterable[Note]) -> str:
    """Notes as a model reads them: what is known about each, then its text, which stands further in."""
    parts = [""]
    for note in notes:
        known = f"{note.status}, {'general' if note.scope == GLOBAL else 'project'}"
        parts.append(f"{note.id} ({known}) {note.title}")
        parts += [f"    {line}" for line in note.text.splitlines()]
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class LessonCheck:
    """The bench of the reader: every lesson has to name entries that are in the log."""

    entries: int

    async def begin(self) -> None:
        """There is nothing to work on."""

    async def put(self, files: Iterable[FileOut]) -> str:
        """Nothing is written."""
        return "lessons are no files" if tuple(files) else ""

    async def check(self, result: Result) -> CheckOutcome:
        """Look up the entries of each lesson."""
        for number, lesson in enumerate(result.candidates, 1):
            shown = lesson.get("entries")
            known = isinstance(shown, list) and all(_is_number(one) and 1 <= one <= self.entries for one in shown)
            if not shown or not known:
                why = f"candidate {number} has to name entries from 1 to {self.entries} that show it"
                return CheckOutcome(ok=False, feedback=why)
        return CheckOutcome(ok=True, ran=bool(result.candidates))

    async def keep(self) -> str:
        """There is nothing to bring."""
        return ""

    async def drop(self) -> None:
        """There is nothing to remove."""


def _is_number(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Notes(Protocol):
    """Where notes are filed."""

    async def write(self, text: str, **details: Unpack[Details]) -> Note:
        """File a note; raises `UsageError` for one that can't be filed."""


@dataclass(slots=True)
class Filed:
    """What became of a writer's notes: those that were filed, and why others were not."""

    notes: list[Note] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Json]:
        """As a document."""
        known = [{"id": one.id, "title": one.title, "status": one.status, "scope": one.scope} for one in self.notes]
        return {"notes": known, "left_out": list(self.left_out)}


async def file_notes(drafts: Sequence[Mapping[str, Json]], brain: Notes, scope: str, source: str) -> Filed:
    """File a writer's notes as pending ones. `scope` is that of the session's one project, "" where there is none."""
    filed = Filed()
    for draft in drafts[:MOST_NOTES]:
        title, text = _word(draft, "title"), _word(draft, "text")
        tags = draft.get("tags")
        try:
            filed.notes.append(
                await brain.write(
                    text,
                    title=title,
                    type=_word(draft, "type") or "lesson",
                    tags=[str(tag) for tag in tags] if isinstance(tags, list) else [],
                    scope=scope if draft.get("scope") != "general" and scope else GLOBAL,
                    source=source,
                    by_agent=True,
                )
            )
        except UsageError as error:
            filed.left_out.append(f"{title[:80] or 'a note without a title'}: {error.what}")
    if len(drafts) > MOST_NOTES:
        filed.left_out.append(f"{len(drafts) - MOST_NOTES} more than {MOST_NOTES}")
    return filed


def scope_of_session(entries: Iterable[Mapping[str, Json]]) -> str:
    """The scope of the one project that a session was about; "" where there is none or several."""
    roots = {root for entry in entries if isinstance(root := entry.get("project_root"), str) and root}
    return scope_of(Path(roots.pop())) if len(roots) == 1 else ""


def _word(draft: Mapping[str, Json], key: str) -> str:
    value = draft.get(key)
    return value.strip() if isinstance(value, str) else ""
