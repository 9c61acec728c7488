"""What a model's own answer to a skill may look like, as JSON Schema: a server that can enforces it while it writes."""

from __future__ import annotations

from bailiwick.ids import Json
from bailiwick.routing.result import CONTRACT
from bailiwick.skills.model import Skill
from bailiwick.skills.schemas import FINDING

_TEXT: Json = {"type": "string"}
_TEXTS: Json = {"type": "array", "items": _TEXT}
_NUMBERS: Json = {"type": "array", "items": {"type": "integer", "minimum": 1}}


def _objects(**properties: Json) -> Json:
    return {"type": "array", "items": {"type": "object", "properties": properties}}


_DETAILS: dict[str, dict[str, Json]] = {
    "debug": {
        "reproduction": {"type": "object", "properties": {"command": _TEXT, "shows": _TEXT}},
        "bisected": _TEXT,
        "hypotheses": _objects(claim=_TEXT, verdict={"enum": ["confirmed", "refuted", "open"]}, because=_TEXT),
        "evidence": _objects(file=_TEXT, line={"type": "integer"}, quote=_TEXT, shows=_TEXT),
        "root_cause": _TEXT,
        "proposed_fix": _TEXT,
    },
    "brain": {"answer": _TEXT, "cites": _TEXTS, "not_told": _TEXTS},
    "spec": {"open_questions": _TEXTS},
    "retrospective": {
        "went_well": _objects(what=_TEXT, entries=_NUMBERS),
        "went_badly": _objects(what=_TEXT, cause=_TEXT, entries=_NUMBERS),
        "change": _objects(do=_TEXT, shown_by=_TEXT, entries=_NUMBERS),
    },
}
_CANDIDATES: dict[str, Json] = {
    "reader": _objects(
        title=_TEXT, lesson=_TEXT, entries=_NUMBERS, strength={"enum": ["hint", "pattern"]},
        scope={"enum": ["project", "general"]}, tags=_TEXTS,
    ),
    "writer": _objects(title=_TEXT, type=_TEXT, scope={"enum": ["project", "general"]}, tags=_TEXTS, text=_TEXT),
}  # fmt: skip


def answer_schema(skill: Skill, phase: str) -> Json:
    """The schema of an answer; None where the contract that all skills share says enough."""
    more: dict[str, Json] = {}
    if skill.name in _DETAILS:
        more["details"] = {"type": "object", "properties": _DETAILS[skill.name]}
    elif isinstance(skill.output, dict):
        more["details"] = skill.output
    if skill.name == "review":
        more["findings"] = {"type": "array", "items": FINDING}
    if skill.name == "trainer" and phase in _CANDIDATES:
        more["candidates"] = _CANDIDATES[phase]
    return {**CONTRACT, "properties": {**CONTRACT["properties"], **more}} if more else None
