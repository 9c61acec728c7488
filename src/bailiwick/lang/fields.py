"""Field tables: what an object of an input file may hold, said once; the checker and the JSON Schema both come from it.

A `Table` names its fields; each has a `Shape`. `Table.read` gives the plain values of the fields that are there and
notes every problem in `Findings`, all in one go; a field that is null counts as not given unless its shape takes null.

    ENDPOINT = Table("endpoint", (Field("url", Text(), "where it listens", required=True), Field("wait", Duration())))
    found = Findings(strict=True)
    plain = ENDPOINT.read(read_yaml(path), found)
    if found.failed:
        raise InputInvalid(found.problems)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bailiwick.lang import codes
from bailiwick.lang.findings import Findings, Schema, Shape
from bailiwick.lang.shapes import Anything, Choice, Duration, Flag, ListOf, MapOf, Number, OneOf, Scalar, Text

if TYPE_CHECKING:
    from bailiwick.ids import Json
    from bailiwick.lang.values import Value

__all__ = [
    "Anything",
    "Choice",
    "Duration",
    "Field",
    "Findings",
    "Flag",
    "ListOf",
    "MapOf",
    "Number",
    "OneOf",
    "Scalar",
    "Schema",
    "Shape",
    "Table",
    "Text",
]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a table."""

    name: str
    shape: Shape
    doc: str = ""
    required: bool = False


class Table:
    """An object with named fields; itself a shape. `removed` are names that were fields once, with what to do now."""

    __slots__ = ("_by_name", "_required", "fields", "removed", "title")

    def __init__(self, title: str, fields: tuple[Field, ...], removed: Mapping[str, str] | None = None) -> None:
        self.title = title
        self.removed = removed or {}
        self.fields = fields
        self._by_name = {field.name: field for field in fields}
        self._required = [field for field in fields if field.required]

    @property
    def expects(self) -> str:
        return f"a mapping ({self.title})"

    def accepts(self, data: Json) -> bool:
        return isinstance(data, dict)

    def read(self, value: Value, found: Findings) -> dict[str, Json]:
        """The fields that are there, not null and without an error; what is wrong, missing or unknown is noted."""
        out: dict[str, Json] = {}
        if not isinstance(value.data, dict):
            found.wrong(value, self.expects, self._example(value.data))
            return out
        for name, part in value.entries.items():
            field = self._by_name.get(name)
            if field is None:
                self._unknown(name, value, found)
            elif part.data is not None or field.shape.accepts(None):
                before = len(found.problems)
                data = field.shape.read(part, found)
                if not found.failed_since(before):
                    out[name] = data
        for field in self._required:
            if value.data.get(field.name) is None and not (field.name in value.entries and field.shape.accepts(None)):
                hint = f"add `{field.name}: …`" + (f", {field.doc}" if field.doc else "")
                found.error(
                    codes.MISSING_FIELD, f"{self.title}: the field {field.name!r} is missing", value.place, hint
                )
        return out

    def _example(self, data: Json) -> str:
        """How the mapping is written that was meant by a plain value: with it as the first field that takes it."""
        takes = next((field.name for field in self.fields if data is not None and field.shape.accepts(data)), None)
        names = ", ".join(field.name for field in self.fields)
        if takes is None or isinstance(data, list):
            return f"write a mapping with fields of these: {names}" if names else ""
        shown = f"`{{{takes}: {data if isinstance(data, int | float) else json.dumps(data)}}}`"
        return f"write {shown}; its fields are {names}"

    def _unknown(self, name: str, value: Value, found: Findings) -> None:
        note = found.error if found.strict else found.warn
        known = ", ".join(self._by_name)
        hint = self.removed.get(name) or found.suggest(name, self._by_name, f"known here: {known}")
        note(codes.UNKNOWN_FIELD, f"{self.title}: the field {name!r} is not known", value.key_place(name), hint)

    def schema(self, *, closed: bool = True) -> Schema:
        """The table as JSON Schema; `closed` refuses keys it does not name."""
        properties: Schema = {}
        for field in self.fields:
            part = field.shape.schema() if field.required else _or_null(field.shape.schema())
            properties[field.name] = {"description": field.doc, **part} if field.doc else part
        out: Schema = {"type": "object", "properties": properties}
        if self._required:
            out["required"] = [field.name for field in self._required]
        if closed:
            out["additionalProperties"] = False
        return out


def _or_null(schema: Schema) -> Schema:
    """A field that is not required may be written with nothing behind it."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return {**schema, "type": [kind, "null"]}
    if isinstance(kind, list):
        return {**schema, "type": [*kind, "null"]}
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return schema
