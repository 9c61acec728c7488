"""The smallest value of a schema."""

from __future__ import annotations

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.ids import Json
from bailiwick.lang.instances import SchemaValidator, offered, schema_at, smallest

SCHEMAS: list[Json] = [
    True,
    {},
    {"const": {"a": 1}},
    {"enum": ["low", "high"]},
    {"type": "string", "minLength": 12, "maxLength": 14},
    {"type": "string", "maxLength": 2},
    {"type": "string", "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+$"},
    {"type": "string", "format": "date-time"},
    {"type": "integer", "minimum": 3},
    {"type": "integer", "exclusiveMinimum": 3, "multipleOf": 5},
    {"type": "integer", "maximum": -4},
    {"type": "number", "exclusiveMinimum": 0.5, "maximum": 2},
    {"type": ["null", "boolean"]},
    {"type": "null"},
    {"type": "array", "minItems": 3, "uniqueItems": True, "items": {"type": "integer"}},
    {"type": "array", "prefixItems": [{"const": "x"}, {"type": "integer"}]},
    {"type": "array", "maxItems": 0},
    {"required": ["status"], "properties": {"status": {"enum": ["ok"]}, "note": {"type": "string"}}},
    {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
    {"allOf": [{"required": ["a"]}, {"properties": {"a": {"type": "boolean"}}}]},
    {"anyOf": [{"type": "integer", "minimum": 7}, {"type": "string"}]},
    {"oneOf": [{"required": ["kind"], "properties": {"kind": {"const": "a"}}}, {"type": "string"}]},
    {"$ref": "#/$defs/t", "$defs": {"t": {"required": ["leaf"], "properties": {"leaf": {"type": "integer"}}}}},
    {"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_the_smallest_value_satisfies_its_schema(schema: Json) -> None:
    """A stand-in that the real run would refuse shows ways that don't exist."""
    value = smallest(schema)
    assert jsonschema_rs.validator_for(schema).is_valid(value), value


@given(st.integers(-50, 50), st.integers(0, 30), st.integers(1, 7))
def test_bounds_and_steps_of_integers_hold_together(low: int, span: int, step: int) -> None:
    """Where a multiple lies between the bounds, it is found."""
    schema = {"type": "integer", "minimum": low, "maximum": low + span, "multipleOf": step}
    if any(n % step == 0 for n in range(low, low + span + 1)):
        assert jsonschema_rs.validator_for(schema).is_valid(smallest(schema))


def test_a_default_comes_before_anything_made_up() -> None:
    """The author's own example is the best one."""
    assert smallest({"type": "string", "default": "mine"}) == "mine"


def test_parts_of_a_schema_are_found_by_path() -> None:
    """A branch looks at a part; the values to try are those its own schema names."""
    schema: Json = {"properties": {"a": {"properties": {"b": {"enum": [1, 2], "default": 2}}}}}
    assert offered(schema_at(schema, ["a", "b"])) == [1, 2, 2]
    assert schema_at(schema, ["a", "x", "y"]) is None


def test_fit_says_what_a_schema_allows_and_trusts_where_there_is_none() -> None:
    """Without a schema everything is allowed."""
    fit = SchemaValidator()
    assert fit.allows(None, object)
    assert fit.allows({"type": "integer"}, 3)
    assert not fit.allows({"type": "integer"}, "3")
