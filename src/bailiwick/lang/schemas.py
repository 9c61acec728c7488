"""Whether a JSON Schema is one. References to other documents are refused: nothing is fetched for a check."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from bailiwick.ids import Json

if TYPE_CHECKING:
    import jsonschema_rs


def validator_of(schema: Json) -> jsonschema_rs.Validator:
    """A validator that fetches nothing. Raises what the library raises for a schema that is none."""
    import jsonschema_rs

    return jsonschema_rs.validator_for(schema, retriever=_refuse)


def schema_fault(schema: Json) -> str:
    """What is wrong with a schema, in one line; empty where nothing is."""
    if schema in ({}, True, False):
        return ""
    import jsonschema_rs

    try:
        validator_of(schema)
    except jsonschema_rs.ValidationError as error:
        return error.message
    except (jsonschema_rs.ReferencingError, ValueError) as error:
        return str(error).splitlines()[0]
    return ""


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is not in this file")
