"""Reads what a model answered as a result. Strict: an answer that only resembles the contract is none. Never raises.

What only we can know (`verified`, `model_used`, `attempts`, the skill and its phase) is passed over in an answer.
"""

from __future__ import annotations

import json
import posixpath
import re
from dataclasses import dataclass, replace
from typing import TypeVar

from bailiwick.agents.port import Answered
from bailiwick.ids import Json
from bailiwick.routing.model import FileOut, Job, Result, Status, TierName
from bailiwick.strict_json import finite_number, is_deep, refuse_constant, unique_keys

DEEPEST = 60
"""Levels of nesting that an answer may have."""
MOST_FILES = 100
MOST_CHARACTERS = 4 << 20
"""Characters of all files of an answer together."""
MESSAGE = 500
SUMMARY = 300

_TEXT: Json = {"type": "string"}
_OBJECTS: Json = {"type": "array", "items": {"type": "object"}}
CONTRACT: dict[str, Json] = {
    "type": "object",
    "properties": {
        "status": {"enum": ["pass", "fail", "error"]},
        "message": {"type": "string", "minLength": 1},
        "file_path": _TEXT,
        "files": {
            "type": "array",
            "maxItems": MOST_FILES,
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string", "minLength": 1}, "content": _TEXT},
                "required": ["path", "content"],
            },
        },
        "findings": _OBJECTS,
        "candidates": _OBJECTS,
    },
    "required": ["status", "message"],
}
"""What a model has to answer where a skill says nothing more."""

_STATUSES: dict[Json, Status] = {"pass": "pass", "fail": "fail", "error": "error"}
_OURS = frozenset({"verified", "model_used", "attempts", "skill", "phase"})
_KNOWN = frozenset({"status", "message", "file_path", "runner_output", "files", "findings", "candidates", "details"})
_FENCED = re.compile(r"\A(`{3,}|~{3,})[A-Za-z0-9_-]*[ \t]*\n(.*)\n[ \t]*\1[ \t]*\Z", re.DOTALL)
_FENCE_LINE = re.compile(r"^[ \t]{0,3}(?:`{3,}|~{3,})[A-Za-z0-9_-]*[ \t]*$", re.MULTILINE)

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Misread:
    """An answer that is no result; `problem` says what is wrong with it, for the model to mend."""

    problem: str


class _Wrong(Exception):
    """A value that does not fit; its text is the problem."""


def answer_schema(job: Job) -> Json:
    """The JSON Schema of a model's own answer to a job."""
    return CONTRACT if job.schema is None else job.schema


def answer_keys(job: Job) -> list[Json]:
    """The keys of an answer with their schemas, as the prompts of the ladder's rungs want them."""
    schema = answer_schema(job)
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return [{"key": key, "schema": part} for key, part in (properties or {}).items()]


def read_object(text: str) -> dict[str, Json] | Misread:
    """The one JSON object that a text is, at most within one code fence: twice the same key is refused."""
    bare = text.strip()
    fenced = _FENCED.match(bare)
    try:
        value = json.loads(
            fenced[2] if fenced else bare,
            object_pairs_hook=unique_keys,
            parse_constant=refuse_constant,
            parse_float=finite_number,
        )
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError:
        return Misread("the answer is empty" if not bare else "the answer is not one JSON object and nothing else")
    except (ValueError, RecursionError) as error:
        return Misread(f"the answer can't be used: {one_line(str(error), MESSAGE)}")
    if not isinstance(value, dict) or is_deep(value, DEEPEST - 1):
        return Misread("the answer is not a JSON object" if not isinstance(value, dict) else "it nests too deep")
    return value


def read_result(answer: Answered, job: Job, tier: TierName) -> Result | Misread:
    """The result that an answer is. A model without tools has to answer with nothing but the object."""
    value = _agents_object(answer) if tier == "subagent" else read_object(answer.text)
    if isinstance(value, Misread):
        return value
    try:
        return _result(value, job, tier)
    except _Wrong as wrong:
        return Misread(str(wrong))


def settled_path(path: str, tree: str, root: str) -> str:
    """A path that a model named as an absolute one in the project; empty where it leads out of it.

    `tree` is where the model worked: what lies in it will lie in `root`.
    """
    if not path or not root or "\0" in path:
        return ""
    full = posixpath.normpath(posixpath.join(root, path))
    for base in filter(None, (tree, root)):
        inside = posixpath.normpath(base)
        if full.startswith(inside.rstrip("/") + "/"):
            return posixpath.join(posixpath.normpath(root), posixpath.relpath(full, inside))
    return ""


def summary(result: Result) -> str:
    """An output in one line."""
    counts = (("file", result.files), ("finding", result.findings), ("candidate", result.candidates))
    tail = "".join(f"; {len(many)} {name}{'s' if len(many) > 1 else ''}" for name, many in counts if many)
    return one_line(f"{result.status}: {result.message}", SUMMARY - len(tail)) + tail


def one_line(text: str, most: int) -> str:
    """A text on one line of at most so many characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _agents_object(answer: Answered) -> dict[str, Json] | Misread:
    """An agent may talk before it answers: what its backend checked comes first, then the whole text, then its end."""
    if isinstance(answer.structured, dict):
        return read_object(json.dumps(answer.structured))
    whole = read_object(answer.text)
    if not isinstance(whole, Misread):
        return whole
    fences = list(_FENCE_LINE.finditer(answer.text))
    if len(fences) < 2:
        return whole
    last = read_object(answer.text[fences[-2].end() : fences[-1].start()])
    return whole if isinstance(last, Misread) else last


def _result(value: dict[str, Json], job: Job, tier: TierName) -> Result:
    status = value.get("status")
    if not isinstance(status, str) or status not in _STATUSES:
        raise _Wrong("'status' has to be pass, fail or error")
    message = _text(value, "message")
    if not message.strip():
        raise _Wrong("'message' has to be one sentence")
    if problem := _misfit(value, job.schema):
        raise _Wrong(problem)
    kept = {key: part for key, part in value.items() if key not in _OURS | _KNOWN}
    details = value.get("details")
    result = Result(
        status=_STATUSES[status],
        phase=job.phase,
        skill=job.skill,
        message=one_line(message, MESSAGE),
        file_path=_text(value, "file_path"),
        files=_files(value),
        findings=_objects(value, "findings"),
        candidates=_objects(value, "candidates"),
        details={**(details if isinstance(details, dict) else {}), **kept},
    )
    if tier == "subagent":  # a model without tools ran nothing
        result = replace(result, runner_output=_text(value, "runner_output"))
    return result if job.writes else replace(result, files=())


def _misfit(value: dict[str, Json], schema: Json) -> str:
    """How an answer misses a skill's own schema; empty where it fits or there is none."""
    if schema is None:
        return ""
    import jsonschema_rs

    from bailiwick.lang.schemas import validator_of

    own = {key: part for key, part in value.items() if key not in _OURS}
    try:
        error = next(iter(validator_of(schema).iter_errors(own)), None)
    except (ValueError, jsonschema_rs.ReferencingError) as fault:
        return f"the skill's schema is not valid: {one_line(str(fault), 200)}"
    if error is None:
        return ""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
    return f"'{where.removeprefix('.') or 'the answer'}' does not fit: {one_line(error.message, 200)}"


def _text(value: dict[str, Json], key: str) -> str:
    return _typed(value, key, kind=str, absent="", name="text")


def _objects(value: dict[str, Json], key: str) -> tuple[dict[str, Json], ...]:
    found: list[Json] = _typed(value, key, kind=list, absent=[], name="a list")
    if not all(isinstance(one, dict) for one in found):
        raise _Wrong(f"'{key}' has to be a list of objects")
    return tuple(found)


def _files(value: dict[str, Json]) -> tuple[FileOut, ...]:
    found = _objects(value, "files")
    files = tuple(
        FileOut(_text(one, "path"), _text(one, "content")) for one in found if {"path", "content"} <= set(one)
    )
    if len(files) != len(found) or not all(file.path for file in files):
        raise _Wrong("each of 'files' needs 'path' and 'content'")
    if len(files) > MOST_FILES or sum(len(file.content) for file in files) > MOST_CHARACTERS:
        raise _Wrong(f"'files' is too much: at most {MOST_FILES} files and {MOST_CHARACTERS:,} characters")
    if len({posixpath.normpath(file.path) for file in files}) != len(files):
        raise _Wrong("'files' names the same path twice")
    return files


def _typed(value: dict[str, Json], key: str, kind: type[Value], absent: Value, name: str) -> Value:
    found = value.get(key)
    if found is None:
        return absent
    if not isinstance(found, kind):
        raise _Wrong(f"'{key}' has to be {name}")
    return found
