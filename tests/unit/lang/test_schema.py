"""The JSON Schema for editors agrees with the check."""

from __future__ import annotations

import jsonschema_rs
import pytest

from bailiwick.lang import codes
from bailiwick.lang.kinds import KINDS
from bailiwick.lang.schema import workflow_schema
from bailiwick.lang.source import parse_yaml
from tests.unit.lang.test_workhorse import REVIEW

GOOD = """
version: 1
name: x
budget: {usd: 1, wall: 2h}
params: {p: {type: string}}
start: a
nodes:
  - {id: a, type: agent, prompt_text: x, args: {k: [1]}, timeout: 90, outputs: [{key: k, default: null}], next: b}
  - {id: b, type: script, script: s.sh, args: {a: 1}, retry: {max: 2}, model: left to the check, next: c}
  - {id: c, type: branch, path: x, cases: {yes: d}, conditions: [{op: "<", value: 3, next: d}]}
  - {id: d, type: parallel, branches: {x: e}, join: e}
  - {id: e, type: map, over: x.y, body: f, next: f}
  - {id: f, type: call, workflow: w, next: g}
  - {id: g, type: ask, question: q, choices: [1, b], next: h}
  - {id: h, type: wait, poll: {script: s, every: 5s}, next: i}
  - {id: i, type: set, values: {}, next: j}
  - {id: j, type: somebodys_own, what: ever}
  - {id: k, type: fail, reason: r}
"""


def test_the_schema_is_one() -> None:
    """Editors load it as draft 2020-12."""
    schema = workflow_schema()
    jsonschema_rs.Draft202012Validator(schema)
    jsonschema_rs.meta.validate(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("text", [GOOD, REVIEW])
def test_good_workflows_are_valid_by_the_schema(text: str) -> None:
    """No red underlines in a file that runs."""
    jsonschema_rs.validate(workflow_schema(), parse_yaml(text.encode(), "f").data)


@pytest.mark.parametrize(
    "node",
    [
        "{type: terminal}",
        "{id: a}",
        "{id: 1x, type: terminal}",
        "{id: a, type: script}",
        "{id: a, type: agent, power: big}",
        "{id: a, type: set}",
        "{id: a, type: branch, path: x, cases: {k: 3}}",
        "{id: a, type: wait, poll: {every: 1s}}",
        "{id: a, type: agent, timeout: soon}",
        "{id: a, type: parallel, branches: {}}",
        "text",
    ],
)
def test_bad_nodes_are_invalid_by_the_schema(node: str) -> None:
    """The editor shows what the check would say."""
    data = parse_yaml(f"start: a\nnodes: [{node}]\n".encode(), "f").data
    assert not jsonschema_rs.is_valid(workflow_schema(), data)


def test_every_field_of_every_kind_is_described() -> None:
    """The reference is made from these words."""
    lacking = [(kind.name, field.name) for kind in KINDS.values() for field in kind.table.fields if not field.doc]
    assert lacking == []


def test_every_code_has_its_meaning() -> None:
    """The reference of errors is made from this table; codes are never shared."""
    named = {name: code for name, code in vars(codes).items() if name.isupper() and name != "MEANING"}
    assert sorted(codes.MEANING) == sorted(named.values())
    assert len(set(named.values())) == len(named)
