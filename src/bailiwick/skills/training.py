"""The trainer: a reader finds lessons in a session, a writer makes notes of them, and the notes wait for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bailiwick.errors import InputInvalid, Place, Problem, UsageError
from bailiwick.ids import Json
from bailiwick.routing.model import Job, Outcome
from bailiwick.skills.lessons import (
    LessonCheck,
    file_notes,
    scope_of_session,
    told_candidates,
    told_entries,
    told_notes,
)
from bailiwick.skills.tasks import task_text

if TYPE_CHECKING:
    from bailiwick.brain.model import Note
    from bailiwick.brain.service import Brain
    from bailiwick.skills.calling import SkillCall

NO_WRITER = "BW299"
READER, WRITER = "reader", "writer"
ALIKE = 5
"""Notes on the subject that the writer is shown, so that none is written twice."""


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
        return _told(call, read, {"notes": [], "left_out": []})
    scope = scope_of_session(entries)
    alike = await _alike(brain, " ".join(_titles(lessons)), scope or "global")
    written = await call.route(_writers_job(call, read, alike), None)
    if written.error or written.result.status != "pass":
        return _told(call, written, {"notes": [], "left_out": [], "reader": read.call})
    filed = await file_notes(written.result.candidates, brain, scope, f"session {call.text('session_id')}")
    return _told(call, written, {**filed.to_json(), "reader": read.call})


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


def _told(call: SkillCall, outcome: Outcome, more: dict[str, Json]) -> Outcome:
    """The outcome of the last of the two calls as that of the tool."""
    result = replace(outcome.result, phase=call.tool.phase, details={**outcome.result.details, **more})
    return replace(outcome, result=result)
