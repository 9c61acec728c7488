"""The table of tools: complete, and told to clients in a way that they can rely on."""

from __future__ import annotations

import re

import jsonschema_rs
import pytest

from bailiwick.lang.schemas import schema_fault
from bailiwick.routing.model import Attempt, FileOut, Result
from bailiwick.skills.folders import bundled_skills
from bailiwick.skills.model import Skill, Tool
from bailiwick.skills.tools import TABLE, input_schema, output_schema
from tests.unit.skills.test_model import skill, tool

ARGUMENTS = {
    "tdd_red": "project_root spec test_cmd",
    "tdd_green": "project_root test_path test_cmd",
    "tdd_refactor": "project_root test_path impl_path test_cmd",
    "review": "project_root files",
    "debug": "project_root error",
    "spec": "project_root requirements",
    "retrospective": "session_id",
    "trainer": "session_id",
    "brain_query": "query",
    "brain_write": "note",
    "brain_answer": "question",
    "tier": "",
    "session_log": "session_id",
    "run_start": "workflow",
    "run_status": "run_id",
    "run_result": "run_id",
    "run_cancel": "run_id",
    "approvals_list": "",
    "proposals_list": "",
    "stats_models": "",
}
"""Every tool with what a call has to give."""


def test_every_tool_is_there_with_what_it_needs() -> None:
    """Clients are written against these names: losing or renaming one is a decision, made here."""
    needed = {one.name: " ".join(arg.name for arg in one.all_arguments if arg.required) for one in TABLE}
    assert needed == ARGUMENTS


def test_what_may_be_left_out_is_taken_too() -> None:
    """The names of optional arguments are as much a promise as those of the others."""
    assert {"context"} < set(input_schema(tool("review"))["properties"])
    assert {"context", "output_path"} < set(input_schema(tool("spec"))["properties"])
    for one in TABLE:
        properties = input_schema(one)["properties"]
        assert "model" in properties
        runs = one.name.startswith("run_") or one.name in ("approvals_list", "proposals_list", "stats_models")
        assert ("session_id" in properties) is not runs


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.name)
def test_a_tool_tells_a_client_all_it_asks_for(one: Tool) -> None:
    """Title, description, both schemas: an empty one is a tool that nobody dares to call."""
    assert one.title
    assert one.doc.endswith(".")
    taken, given = input_schema(one), output_schema(one)
    assert taken["additionalProperties"] is False
    assert (taken["type"], given["type"]) == ("object", "object")
    assert schema_fault(taken) == schema_fault(given) == ""
    assert all(part["description"] for part in taken["properties"].values())
    assert set(taken.get("required", ())) <= set(taken["properties"])


@pytest.mark.parametrize("one", TABLE, ids=lambda one: one.name)
def test_hints_never_contradict_what_a_tool_does(one: Tool) -> None:
    """A client that trusts `read_only` must not be surprised, and who may only read must not change anything."""
    assert not (one.hints.read_only and (one.hints.destructive or one.writes))
    assert one.hints.read_only or one.scope == "run"
    assert one.hints.open_world or not one.skill


def test_every_tool_with_a_model_has_its_discipline() -> None:
    """A tool without its text would ask a model for nothing in particular."""
    assert {one.skill for one in TABLE if one.skill} == set(bundled_skills())
    assert all(re.fullmatch(r"[a-z][a-z_]*", one.name) for one in TABLE)
    assert all(bool(one.phase) == bool(one.skill) for one in TABLE)


def test_a_result_fits_the_schema_that_clients_are_told() -> None:
    """A client may refuse an answer that misses its schema; ours must not."""
    attempt = Attempt(1, "m", "local", 12, "accept", cost=None, verified=True)
    result = Result(
        "pass", "red", "tdd", "Done.", "/p/t.py", files=(FileOut("t.py", "x"),), verified=True, attempts=(attempt,)
    )
    told = {**result.to_json(), "call": "c-1", "why": "because"}
    validator = jsonschema_rs.validator_for(output_schema(tool("tdd_red")))
    assert validator.is_valid(told)
    assert not validator.is_valid({**told, "status": "maybe"})
    assert not validator.is_valid({key: part for key, part in told.items() if key != "attempts"})


def test_a_skills_own_schema_is_the_schema_of_its_details() -> None:
    """The author says what `details` holds, and clients are told."""
    own: Skill = skill(output={"type": "object", "required": ["score"]})
    validator = jsonschema_rs.validator_for(output_schema(tool("review"), own))
    told = Result("pass", "x", "x", "Done.", details={"score": 1}).to_json()
    assert validator.is_valid(told)
    assert not validator.is_valid({**told, "details": {}})
