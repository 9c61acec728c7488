"""Reading an answer as a result: the object itself or nothing, and never the model's word on what only we can know."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents.port import Answered
from bailiwick.ids import Json
from bailiwick.routing.model import FileOut, Result
from bailiwick.routing.result import (
    DEEPEST,
    MOST_FILES,
    SUMMARY,
    Misread,
    answer_keys,
    answer_schema,
    read_object,
    read_result,
    settled_path,
    summary,
)
from tests.unit.routing.stand_ins import job

GOOD = '{"status": "pass", "message": "It holds."}'


def read(text: str, **given: Json) -> Result | Misread:
    """What a local model's answer is."""
    return read_result(Answered(text), job(**given), "local")


def problem(text: str, **given: Json) -> str:
    """What is wrong with an answer."""
    found = read(text, **given)
    assert isinstance(found, Misread), found
    return found.problem


@pytest.mark.parametrize(
    "text",
    [GOOD, f"  {GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```\n", f"~~~json\n{GOOD}\n~~~"],
    ids=["bare", "spaces", "fence", "plain fence", "tildes"],
)
def test_the_object_itself_is_read_also_in_one_fence(text: str) -> None:
    """Many local models can't leave the sandbox out; everything else around the object is refused."""
    assert read(text) == Result("pass", "review", "review", "It holds.")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "done",
        f"Here it is: {GOOD}",
        f"{GOOD}\nI hope this helps.",
        f"{GOOD}{GOOD}",
        f"[{GOOD}]",
        '"pass"',
        "null",
        f"```json\n{GOOD}\n```\nand\n```json\n{GOOD}\n```",
        '{"status": "pass", "message": "x"',
        "{'status': 'pass', 'message': 'x'}",
        '{"status": "pass", "message": "x",}',
        '{"status": "fail", "status": "pass", "message": "x"}',
        '{"status": "pass", "message": "x", "score": NaN}',
        '{"status": "pass", "message": "x", "score": 1e999}',
        '{"status": "pass", "message": "\\ud800"}',
        '{"status": "pass", "message": "x", "deep": ' + "[" * 200 + "]" * 200 + "}",
        '{"status": "pass", "message": "x", "deep": ' + "[" * 100_000,
    ],
)
def test_anything_but_one_json_object_is_no_result(text: str) -> None:
    """What has to be guessed may be guessed wrong: the next tier is asked instead."""
    assert problem(text)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"message": "x"}, "'status'"),
        ({"status": "ok", "message": "x"}, "'status'"),
        ({"status": True, "message": "x"}, "'status'"),
        ({"status": ["pass"], "message": "x"}, "'status'"),
        ({"status": "pass"}, "'message'"),
        ({"status": "pass", "message": "  "}, "'message'"),
        ({"status": "pass", "message": 7}, "'message'"),
        ({"status": "pass", "message": "x", "file_path": 7}, "'file_path'"),
        ({"status": "pass", "message": "x", "findings": {}}, "'findings'"),
        ({"status": "pass", "message": "x", "findings": ["a"]}, "'findings'"),
        ({"status": "pass", "message": "x", "candidates": "many"}, "'candidates'"),
        ({"status": "pass", "message": "x", "files": ["a.py"]}, "'files'"),
        ({"status": "pass", "message": "x", "files": [{"path": "a.py"}]}, "'files'"),
        ({"status": "pass", "message": "x", "files": [{"path": "", "content": ""}]}, "'files'"),
        ({"status": "pass", "message": "x", "files": [{"path": "a.py", "content": 1}]}, "'content'"),
        ({"status": "pass", "message": "x", "files": [{"path": p, "content": ""} for p in ("a", "./a")]}, "twice"),
        ({"status": "pass", "message": "x", "files": [{"path": f"{n}", "content": ""} for n in range(101)]}, "at most"),
    ],
)
def test_a_part_of_the_wrong_kind_is_named(value: Json, names: str) -> None:
    """The ladder tells the model what to mend."""
    assert names in problem(json.dumps(value), writes=True)
    assert MOST_FILES == 100


def test_what_only_we_can_know_is_passed_over() -> None:
    """A model that verifies itself, names another model or invents attempts changes nothing."""
    value = {
        "status": "pass",
        "message": "x",
        "verified": True,
        "model_used": "gpt-9",
        "attempts": [{"verdict": "accept"}],
        "skill": "tdd",
        "phase": "green",
        "runner_output": "12 passed",
    }
    assert read(json.dumps(value)) == Result("pass", "review", "review", "x")


def test_what_a_skill_adds_is_kept_as_details() -> None:
    """Hypotheses and root causes are a skill's own; they are data like findings."""
    value = {"status": "fail", "message": "x", "root_cause": "a race", "details": {"n": 1}, "findings": [{"line": 3}]}
    found = read(json.dumps(value))
    assert isinstance(found, Result)
    assert dict(found.details) == {"n": 1, "root_cause": "a race"}
    assert found.findings == ({"line": 3},)


def test_files_count_only_where_the_skill_writes() -> None:
    """A review that wants to change code does not get to."""
    text = json.dumps({"status": "pass", "message": "x", "files": [{"path": "a.py", "content": "1\n"}]})
    kept, dropped = read(text, writes=True), read(text)
    assert isinstance(kept, Result)
    assert isinstance(dropped, Result)
    assert (kept.files, dropped.files) == ((FileOut("a.py", "1\n"),), ())


def test_a_skills_own_schema_has_to_fit_without_what_is_ours() -> None:
    """A schema that forbids other keys does not refuse an answer for a key that nobody reads."""
    schema = {
        "type": "object",
        "properties": {"status": {}, "message": {}, "answer": {"type": "string"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    good = {"status": "pass", "message": "x", "answer": "42", "verified": True}
    assert isinstance(read(json.dumps(good), schema=schema), Result)
    assert "'answer'" in problem(json.dumps({**good, "answer": 42}), schema=schema)
    assert "does not fit" in problem(json.dumps({**good, "more": 1}), schema=schema)
    assert answer_schema(job(schema=schema)) == schema
    assert [one["key"] for one in answer_keys(job(schema=schema))] == ["status", "message", "answer"]


def test_an_agent_may_talk_before_its_last_block() -> None:
    """CLIs tell what they did; of the text only the last fenced block counts, and what the CLI checked goes first."""
    other = '{"status": "fail", "message": "An example."}'
    text = f"I looked.\n```json\n{other}\n```\nSo:\n```json\n{GOOD}\n```\n"
    assert read_result(Answered(text), job(), "subagent") == Result("pass", "review", "review", "It holds.")
    checked = Answered(text, structured=json.loads(other))
    found = read_result(checked, job(), "subagent")
    assert isinstance(found, Result)
    assert found.status == "fail"
    assert isinstance(read_result(Answered("I looked."), job(), "subagent"), Misread)
    assert isinstance(read_result(Answered(text), job(), "local"), Misread)


def test_a_runners_output_is_taken_from_who_can_run_one() -> None:
    """A local model ran nothing: a test report of its own is fiction."""
    text = '{"status": "pass", "message": "x", "runner_output": "3 passed"}'
    found = read_result(Answered(text), job(), "subagent")
    assert isinstance(found, Result)
    assert found.runner_output == "3 passed"


def test_a_long_message_is_one_short_line() -> None:
    """It goes into tables and logs."""
    found = read(json.dumps({"status": "pass", "message": "a\nb\t" + "c" * 5000}))
    assert isinstance(found, Result)
    assert found.message.startswith("a b ccc")
    assert len(found.message) == 500


@pytest.mark.parametrize(
    ("path", "settled"),
    [
        ("src/a.py", "/p/src/a.py"),
        ("/p/src/a.py", "/p/src/a.py"),
        ("/scratch/1/src/a.py", "/p/src/a.py"),
        ("./src/../a.py", "/p/a.py"),
        ("../etc/passwd", ""),
        ("/etc/passwd", ""),
        ("/p", ""),
        ("/pp/a.py", ""),
        ("", ""),
        ("a\0b", ""),
    ],
)
def test_a_path_is_absolute_and_in_the_project_or_nothing(path: str, settled: str) -> None:
    """A subagent names the copy it worked in; the caller looks into the project."""
    assert settled_path(path, "/scratch/1", "/p") == settled


def test_an_output_fits_one_line() -> None:
    """Attempts are shown in tables."""
    result = Result("pass", "red", "tdd", "m" * 900, files=(FileOut("a", ""),), findings=({}, {}))
    assert len(summary(result)) == SUMMARY
    assert summary(result).endswith("; 1 file; 2 findings")


@given(st.text() | st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=5).map(json.dumps))
def test_reading_never_raises(text: str) -> None:
    """What a model says is data, whatever it is."""
    assert isinstance(read_object(text), dict | Misread)


def test_nesting_up_to_the_bound_is_read() -> None:
    """The bound is for hostile answers, not for honest ones."""
    deep = '{"a": ' * (DEEPEST - 1) + "1" + "}" * (DEEPEST - 1)
    assert isinstance(read_object(deep), dict)
    assert isinstance(read_object('{"a": ' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1)), Misread)
