"""The JSON Schemas say what the reader says."""

from __future__ import annotations

import jsonschema_rs
import pytest

from bailiwick.config.schema import config_schema, policy_schema
from bailiwick.ids import Json


@pytest.mark.parametrize(
    ("document", "valid"),
    [
        ({"version": 1, "budget": {"run": {"usd": 3, "wall": "2h"}}}, True),
        ({"budget": {"run": {"usd": "unlimited"}}, "backend": None}, True),
        ({"power": {"claude": {"high": "opus"}}}, True),
        ({"credentials": {"x": {"token": "${secret:a#b}"}}}, True),
        ({"credentials": {"x": {"token": "plain"}}}, False),
        ({"budget": {"run": {"uds": 3}}}, False),
        ({"power": {"claude": {"highest": "opus"}}}, False),
        ({"retention": {"max_disk": "20 GB"}}, True),
        ({"publish": {"mode": "always"}}, False),
    ],
)
def test_the_schema_accepts_what_the_reader_accepts(document: Json, valid: bool) -> None:
    """An editor that underlines a valid line, or none, is worse than no help."""
    assert jsonschema_rs.validator_for(config_schema()).is_valid(document) is valid


def test_the_policys_schema_knows_limits_only() -> None:
    """A preference is refused there too."""
    validator = jsonschema_rs.validator_for(policy_schema())
    assert validator.is_valid({"version": 1, "publish": {"mode": "never"}})
    assert not validator.is_valid({"backend": "codex"})
