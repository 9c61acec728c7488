"""The trainer: a reader finds lessons in a call log, a writer makes notes of them, and the notes wait for a person."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Unpack

from bailiwick.brain.model import GLOBAL, Note
from bailiwick.brain.service import Brain, Details, scope_of
from bailiwick.errors import InputInvalid, Place, Problem, UsageError
from bailiwick.ids import Json
from bailiwick.routing.model import CheckOutcome, FileOut, Job, Outcome, Result
from bailiwick.skills.tasks import task_text

if TYPE_CHECKING:
    from bailiwick.skills.calling import SkillCall

NO_WRITER = "BW299"
READER, WRITER = "reader", "writer"
ALIKE = 5
"""Notes on the subject that the writer is shown, so that none is written twice."""
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
        return "lessons are not files" if tuple(files) else ""

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


async def train(call: SkillCall, entries: Sequence[dict[str, Json]], brain: Brain) -> Outcome:
    """Read, write, file. Both calls are logged; without a lesson there is nothing to write."""
    skill = call.skill
    if WRITER not in skill.parts:
        problem = Problem(
            NO_WRITER, "there is no writer.md beside it", Place(skill.path), "add one, as the bundled has"
        )
        raise InputInvalid([problem])
    more = {"session_id": call.text("session_id"), "entries": told_entries(entries)}
    task = task_text(replace(call.tool, phase=READER), call.given, more)
    read = await call.route(call.job(task, READER), LessonCheck(len(entries)))
    lessons = read.result.candidates
    if read.error or read.result.status != "pass" or not lessons:
        return _last_told(call, read, {"notes": [], "left_out": []})
    scope = scope_of_session(entries)
    alike = await _alike(brain, " ".join(_titles(lessons)), scope or "global")
    written = await call.route(_writers_job(call, read, alike), None)
    if written.error or written.result.status != "pass":
        return _last_told(call, written, {"notes": [], "left_out": [], "reader": read.call})
    filed = await file_notes(written.result.candidates, brain, scope, f"session {call.text('session_id')}")
    return _last_told(call, written, {**filed.to_json(), "reader": read.call})


async def _alike(brain: Brain, titles: str, scope: str) -> list[Note]:
    """Notes on the subject; none where the titles hold no word to look for."""
    try:
        return [one.note for one in await brain.query(titles, scope, limit=ALIKE)]
    except UsageError:
        return []


def _writers_job(call: SkillCall, read: Outcome, alike: Sequence[Note]) -> Job:
    """What the writer is asked: the reader's summary and candidates, and what is known already."""
    more = {"summary": read.result.message, "candidates": told_candidates(read.result.candidates)}
    if alike:
        more["existing_notes"] = told_notes(alike)
    task = task_text(replace(call.tool, phase=WRITER), call.given, more)
    return replace(call.job(task, WRITER), discipline=call.skill.parts[WRITER])


def _titles(lessons: Sequence[Mapping[str, Json]]) -> list[str]:
    return [str(lesson.get("title", "")) for lesson in lessons]


def _last_told(call: SkillCall, outcome: Outcome, more: dict[str, Json]) -> Outcome:
    """The outcome of the last of the two calls as that of the tool."""
    result = replace(outcome.result, phase=call.tool.phase, details={**outcome.result.details, **more})
    return replace(outcome, result=result)
