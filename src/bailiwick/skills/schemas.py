"""What a tool takes and gives, and what a model's own answer may look like, as JSON Schema."""

from __future__ import annotations

from bailiwick.ids import Json
from bailiwick.routing.result import CONTRACT
from bailiwick.skills.model import SEVERITIES, Argument, Kind, Skill, Tool

MAX_TEXT = 1_000_000
"""Characters of one text."""
MAX_PATH = 4096
MAX_LIST = 500
MAX_COUNT = 1000
ID = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}"
"""A text that can be a file's name and never leaves its directory."""

Schema = dict[str, Json]


def _item(most: int) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": most}


_KINDS: dict[Kind, Schema] = {
    "text": {"type": "string", "maxLength": MAX_TEXT},
    "id": {"type": "string", "pattern": f"^{ID}$"},
    "path": {"type": "string", "maxLength": MAX_PATH},
    "paths": {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_PATH},
        "maxItems": MAX_LIST,
    },
    "texts": {
        "type": "array",
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
        "maxItems": MAX_LIST,
    },
    "integer": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT},
    "object": {"type": "object"},
}

_WORD: Schema = {"type": "string"}
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
_NULLABLE_NUMBER: Schema = {"type": ["number", "null"]}
_NULLABLE_FLAG: Schema = {"type": ["boolean", "null"]}

FINDING: Schema = {
    "type": "object",
    "properties": {
        "file": _WORD,
        "line": {"type": "integer", "minimum": 1},
        "severity": {"enum": list(SEVERITIES)},
        "title": _WORD,
        "detail": _WORD,
        "suggestion": _WORD,
    },
    "required": ["file", "line", "severity", "title"],
}
"""One finding of a review, as the discipline asks for it."""

ATTEMPT: Schema = {
    "type": "object",
    "properties": {
        "attempt": {"type": "integer", "minimum": 1},
        "model": _WORD,
        "tier": {"enum": ["local", "subagent", "managed"]},
        "duration_ms": {"type": "integer"},
        "warm_start": {"type": "boolean"},
        "verified": _NULLABLE_FLAG,
        "verdict": {"enum": ["accept", "accept_unverified", "escalate", "error"]},
        "feedback": _WORD,
        "tokens": {"type": "object"},
        "cost": _NULLABLE_NUMBER,
        "output_summary": _WORD,
        "runner_output": _WORD,
    },
    "required": ["attempt", "model", "tier", "verdict"],
}

_RESULT: Schema = {
    "status": {"enum": ["pass", "fail", "error"], "description": "what the call came to"},
    "phase": {"type": "string", "description": "red, green, refactor, or the skill's name"},
    "skill": _WORD,
    "file_path": {"type": "string", "description": "the file that was written, absolute; empty for none"},
    "runner_output": {"type": "string", "description": "what the tests printed"},
    "verified": {**_NULLABLE_FLAG, "description": "an exit code's or a verifier's word, never the model's own"},
    "model_used": _WORD,
    "message": {"type": "string", "description": "one sentence"},
    "files": {"type": "array", "items": _WORD, "description": "the files that were written"},
    "findings": _OBJECTS,
    "candidates": _OBJECTS,
    "details": {"type": "object", "description": "what the skill adds of its own"},
    "attempts": {"type": "array", "items": ATTEMPT, "description": "every try, in order"},
    "call": {"type": "string", "description": "the call's id"},
    "why": {"type": "string", "description": "why these models, in one line"},
    "error": {"type": "string", "description": "set where no tier gave an accepted result"},
}
_ALWAYS = [
    "status", "phase", "skill", "file_path", "runner_output", "verified", "model_used", "message", "files", "findings",
    "attempts",
]  # fmt: skip

_OTHERS: dict[str, Schema] = {
    "brain_query": {"notes": _OBJECTS},
    "brain_write": {"note": {"type": "object"}},
    "tier": {"tiers": _OBJECTS},
    "session_log": {"session_id": _WORD, "entries": _OBJECTS},
    "stats_models": {"models": _OBJECTS},
    "run_start": {"run_id": _WORD, "status": _WORD},
    "run_status": {"run_id": _WORD, "status": _WORD},
    "run_result": {"run_id": _WORD, "status": _WORD},
    "run_cancel": {"run_id": _WORD, "status": _WORD},
    "approvals_list": {"approvals": _OBJECTS},
    "proposals_list": {"proposals": _OBJECTS},
}


def argument_schema(argument: Argument) -> Schema:
    """What one argument may be; a required list or text is not empty."""
    kind = _KINDS[argument.kind]
    if argument.required:
        least = {"string": "minLength", "array": "minItems"}.get(kind["type"])
        kind = {**kind, least: 1} if least and "pattern" not in kind else kind
    return {**kind, "description": argument.doc}


def input_schema(tool: Tool) -> Schema:
    """What a call of a tool may give, and nothing else."""
    arguments = tool.all_arguments
    out: Schema = {
        "type": "object",
        "properties": {one.name: argument_schema(one) for one in arguments},
        "additionalProperties": False,
    }
    required = [one.name for one in arguments if one.required]
    return {**out, "required": required} if required else out


def output_schema(tool: Tool, skill: Skill | None = None) -> Schema:
    """What a tool gives: the result contract where a model is asked, else a document of its own."""
    if tool.name in _OTHERS:
        properties = _OTHERS[tool.name]
        return {"type": "object", "properties": dict(properties), "required": list(properties)}
    properties = dict(_RESULT)
    if skill is not None and isinstance(skill.output, dict):
        properties["details"] = {**skill.output, "description": "what the skill adds of its own"}
    return {"type": "object", "properties": properties, "required": list(_ALWAYS)}


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
