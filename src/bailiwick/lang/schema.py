"""The JSON Schema of `workflow.yaml`, for editors. Made from the same tables that check the file."""

from __future__ import annotations

from bailiwick.lang.compile import WORKFLOW
from bailiwick.lang.fields import Schema
from bailiwick.lang.kinds import KINDS


def workflow_schema() -> Schema:
    """The schema (draft 2020-12); keys and node types it does not know are left to the check, which knows plug-ins."""
    schema = WORKFLOW.schema(closed=False)
    rules = [
        {
            "if": {"properties": {"type": {"const": kind.name}}, "required": ["type"]},
            "then": kind.table.schema(closed=False),
        }
        for kind in KINDS.values()
    ]
    node: Schema = {
        "type": "object",
        "required": ["id", "type"],
        "properties": {"type": {"type": "string", "examples": list(KINDS)}},
        "allOf": rules,
    }
    schema["properties"]["nodes"]["items"] = node
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Bailiwick workflow",
        **schema,
    }
