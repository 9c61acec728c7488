"""Reads a SKILL.md: front matter that names it, and the discipline below. Every fault has its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bailiwick.errors import InputInvalid, Place, Problem
from bailiwick.ids import Json, canonical, digest
from bailiwick.lang import codes
from bailiwick.lang.fields import Anything, Choice, Field, Findings, Flag, ListOf, Table, Text
from bailiwick.skills.model import ARGUMENT_NAME, NAME, Argument, Origin, Skill

if TYPE_CHECKING:
    from bailiwick.lang.values import Value

FRONT_MATTER = "BW160"
OTHER_NAME = "BW161"
BODY = "BW162"
ARGUMENTS = "BW163"

MAX_BODY = 64 << 10
"""Bytes of a discipline: it goes into every call."""
MAX_FILE = MAX_BODY + (32 << 10)
MAX_DESCRIPTION = 1024
FENCE = "---"
RESERVED = frozenset({"phase", "model", "session_id", "models", "json", "help"})
"""Names that every call, or every command line, has already."""

_NAME = Text(pattern=NAME.pattern, expects="a name: lower-case letters, digits and '-', at most 64")
_ARGUMENT = Table(
    "argument",
    (
        Field("name", Text(pattern=ARGUMENT_NAME.pattern, expects="a name such as output_path"), required=True),
        Field("kind", Choice(("text", "path", "paths", "texts", "integer")), "what it is; text if not given"),
        Field("doc", Text(empty=False), "what it is for, in a sentence", required=True),
        Field("required", Flag(), "whether a call has to give it; false if not given"),
    ),
)
_OURS = Table(
    "bailiwick",
    (
        Field("chain", ListOf(Text(empty=False), least=1), "models in order, where models.yaml says nothing"),
        Field("local_only", Flag(), "whether only local models may be asked"),
        Field("arguments", ListOf(_ARGUMENT, most=20), "what a call gives; project_root, task and files if not given"),
        Field("phase", _NAME, "the phase in results and logs; the skill's name if not given"),
        Field("files", Text(empty=False), "the argument whose files a model without tools gets to read"),
        Field("writes", Flag(), "whether the skill may change files of the project"),
        Field("output", Anything(), "the JSON Schema of `details` in the result"),
    ),
)
_HEAD = Table(
    "skill",
    (
        Field("name", _NAME, "the name of its folder", required=True),
        Field("description", Text(empty=False), "what it does and when to use it", required=True),
        Field("license", Anything(), "for others"),
        Field("compatibility", Anything(), "for others"),
        Field("metadata", Anything(), "for others"),
        Field("allowed-tools", Anything(), "for agent CLIs"),
        Field("bailiwick", Anything(), "what Bailiwick adds; unknown fields are errors here"),
    ),
)


def skill_schema() -> dict[str, Json]:
    """The JSON Schema of the front matter, for editors."""
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Front matter of a SKILL.md"}
    schema = _HEAD.schema(closed=False)
    return {**title, **schema, "properties": {**schema["properties"], "bailiwick": _OURS.schema()}}


def read_skill(
    data: bytes, file: str, name: str, origin: Origin, parts: Mapping[str, str] | None = None
) -> tuple[Skill, list[Problem]]:
    """The skill in the bytes of a SKILL.md whose folder is called `name`, and warnings; raises `InputInvalid`."""
    text = decoded(data, file)
    head, body, line = _split(text, file)
    found = Findings(strict=False)
    root = _parsed(head, file)
    plain = _HEAD.read(root, found)
    ours = _read_ours(root, found) if plain.get("bailiwick") is not None else {}
    _check_head(plain, root, name, found)
    check_body(body, Place(file, line, 1), found)
    if found.failed:
        raise InputInvalid(found.problems)
    return _made(plain, ours, body=body, source=(origin, file), parts=parts or {}), found.problems


def decoded(data: bytes, file: str) -> str:
    """The text of a file with plain line ends; raises `InputInvalid` where it is no UTF-8 text."""
    from bailiwick.lang.source import decode

    return decode(data.replace(b"\r\n", b"\n"), file)


def check_body(body: str, place: Place, found: Findings) -> None:
    """Note a discipline that is empty or too long."""
    size = len(body.encode())
    if not body.strip():
        found.error(BODY, "there is no discipline below the front matter", place, "write what a model has to do")
    elif size > MAX_BODY:
        hint = "cut it: it goes into every call"
        found.error(BODY, f"the discipline has {size:,} bytes, more than {MAX_BODY:,}", place, hint)


def _split(text: str, file: str) -> tuple[str, str, int]:
    """Front matter with its opening line, the body, and the line on which the body begins."""
    lines = text.split("\n")
    hint = "begin with the lines `---`, `name: …`, `description: …`, `---`"
    if lines[0].rstrip() != FENCE:
        raise InputInvalid([Problem(FRONT_MATTER, "the file has no front matter", Place(file, 1, 1), hint)])
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        what = "the front matter is not closed"
        raise InputInvalid([Problem(FRONT_MATTER, what, Place(file, 1, 1), "end it with a line `---`")])
    return "\n".join(lines[:end]) + "\n", "\n".join(lines[end + 1 :]).strip("\n"), end + 2


def _parsed(head: str, file: str) -> Value:
    from bailiwick.lang.source import parse_yaml

    if not head.removeprefix(FENCE).strip():
        what = "the front matter is empty"
        raise InputInvalid([Problem(FRONT_MATTER, what, Place(file, 1, 1), "give `name` and `description`")])
    return parse_yaml(head.encode(), file)


def _read_ours(root: Value, found: Findings) -> dict[str, Json]:
    """What stands below `bailiwick`: nobody else reads it, so what is not known there is an error."""
    value = root.entries["bailiwick"]
    strict = Findings(strict=True)
    ours = _OURS.read(value, strict)
    if not strict.failed:
        _check_ours(ours, value, strict)
    found.problems += strict.problems
    return ours


def _check_head(plain: Mapping[str, Json], root: Value, name: str, found: Findings) -> None:
    given = plain.get("name")
    if given is not None and given != name:
        found.error(
            OTHER_NAME,
            f"the skill is called {given!r} and its folder {name!r}",
            root.entries["name"].place,
            f"write `name: {name}`, or rename the folder",
        )
    size = len(plain.get("description") or "")
    if size > MAX_DESCRIPTION:
        found.error(
            codes.WRONG_TYPE,
            f"the description has {size:,} characters, more than {MAX_DESCRIPTION:,}",
            root.entries["description"].place,
            "say what it does and when to use it; the rest belongs below",
        )


def _check_ours(ours: Mapping[str, Json], value: Value, found: Findings) -> None:
    listed = ours.get("arguments")
    names = [one["name"] for one in listed or () if one and "name" in one]
    for index, name in enumerate(names):
        place = value.at("arguments", index)
        if name in RESERVED:
            found.error(ARGUMENTS, f"every call has {name!r} already", place, "choose another name")
        elif name in names[:index]:
            found.error(ARGUMENTS, f"the argument {name!r} is named twice", place, "remove one of the two")
    files = ours.get("files")
    if files and files not in (names if listed is not None else ("files",)):
        found.error(ARGUMENTS, f"no argument is named {files!r}", value.at("files"), "name one of the arguments")
    if ours.get("writes") and listed is not None and "project_root" not in names:
        hint = "add {name: project_root, kind: path, doc: …, required: true}"
        found.error(ARGUMENTS, "a skill that writes needs the argument 'project_root'", value.at("arguments"), hint)
    _check_output(ours.get("output"), value, found)


def _check_output(output: Json, value: Value, found: Findings) -> None:
    from bailiwick.lang.schemas import schema_fault

    if output is None:
        return
    if not isinstance(output, dict):
        found.wrong(value.entries["output"], "a JSON Schema, which is a mapping")
    elif fault := schema_fault(output):
        found.error(codes.BAD_SCHEMA, f"this is not a valid JSON Schema: {fault}", value.at("output"), "correct it")


def _made(
    plain: Mapping[str, Json], ours: Mapping[str, Json], body: str, source: tuple[Origin, str], parts: Mapping[str, str]
) -> Skill:
    listed = ours.get("arguments")
    arguments = None if listed is None else tuple(_argument(one) for one in listed)
    chain = ours.get("chain")
    return Skill(
        plain["name"],
        description=plain["description"].strip(),
        body=body,
        origin=source[0],
        path=source[1],
        digest=digest(canonical([plain, body, dict(parts)])),
        local_only=bool(ours.get("local_only")),
        chain=tuple(chain) if chain else None,
        arguments=arguments,
        phase=ours.get("phase") or "",
        files=ours.get("files") or "",
        writes=bool(ours.get("writes")),
        output=ours.get("output"),
        parts=dict(parts),
    )


def _argument(one: Mapping[str, Json]) -> Argument:
    return Argument(one["name"], one.get("kind") or "text", one["doc"], bool(one.get("required")))
