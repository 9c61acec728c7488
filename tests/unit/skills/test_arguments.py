"""Bad arguments: each is told as what to change, and none gets through."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given as holds
from hypothesis import strategies as st

from bailiwick.skills.tools import TABLE, bad_arguments, given, input_schema
from tests.unit.skills.test_model import tool

GOOD: dict[str, Any] = {"project_root": "/p", "files": ["a.py"]}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3),
    max_leaves=5,
)

BAD: list[tuple[dict[str, Any], str]] = [
    ({"files": ["a.py"]}, "'project_root' is missing: give a path. The project's directory."),
    ({**GOOD, "file": "a.py"}, "review has no argument 'file'; did you mean 'files'?"),
    ({**GOOD, "zzz": 1}, "review has no argument 'zzz'; it takes project_root, files, context, session_id, model"),
    ({**GOOD, "files": "a.py"}, "'files': give a list of paths, such as [\"a.py\", \"b.py\"], found the text 'a.py'"),
    ({**GOOD, "files": []}, "'files' is empty: give a list of paths."),
    ({**GOOD, "files": ["a.py", 3]}, "'files': item 2: give a path, found the number 3"),
    ({**GOOD, "files": [""]}, "'files': item 1: give a path that is not empty"),
    ({**GOOD, "files": ["a\nb"]}, "'files': item 1: a path has no line breaks"),
    ({**GOOD, "files": ["a"] * 501}, "'files': give at most 500 items, found 501"),
    ({**GOOD, "project_root": "  "}, "'project_root' is empty"),
    ({**GOOD, "project_root": "/p\0"}, "'project_root': remove the characters that are not text"),
    ({**GOOD, "context": "x" * 1_000_001}, "'context': give at most 1,000,000 characters, found 1,000,001"),
    ({**GOOD, "context": {"a": 1}}, "'context': give a text, found a mapping"),
    ({**GOOD, "context": "\ud800"}, "'context': remove the characters that are not text"),
    ({**GOOD, "session_id": "../x"}, "'session_id': use letters, digits"),
    ({**GOOD, "model": True}, "'model': give a text, found the boolean true"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD, ids=[said[:40] for _, said in BAD])
def test_a_bad_argument_is_told_as_what_to_change(arguments: dict[str, Any], said: str) -> None:
    """A model that called a tool wrongly mends the call from this sentence alone."""
    found = bad_arguments(tool("review"), arguments)
    assert len(found) == 1
    assert found[0].startswith(said)


def test_all_faults_are_told_at_once() -> None:
    """One round trip for each fault would be a waste of turns."""
    assert len(bad_arguments(tool("review"), {"files": 1, "contxt": "x"})) == 3
    assert bad_arguments(tool("review"), ["a"]) == ["review takes an object of arguments, found a list"]


def test_numbers_and_objects_are_bounded() -> None:
    """A count of a million and an object without an end are refused before anything works on them."""
    query, start = tool("brain_query"), tool("run_start")
    for wrong in (0, 1001, True, "8", 1.5):
        assert bad_arguments(query, {"query": "x", "limit": wrong}), wrong
    assert not bad_arguments(query, {"query": "x", "limit": 8})
    deep: Any = {}
    for _ in range(40):
        deep = {"a": deep, "b": 1}
    for endless in (deep, [1], {"a": float("nan")}, {"a": [float("inf")]}):
        assert bad_arguments(start, {"workflow": "w", "params": endless}), endless
    assert not bad_arguments(start, {"workflow": "w", "params": {"a": [1, {"b": None}]}})


def test_what_is_empty_counts_as_not_given() -> None:
    """Clients fill optional arguments with null and empty texts; nothing should follow from that."""
    arguments = {**GOOD, "context": " ", "session_id": None, "model": ""}
    assert bad_arguments(tool("review"), arguments) == []
    assert given(tool("review"), arguments) == GOOD


@holds(st.sampled_from(TABLE), st.dictionaries(st.sampled_from(["project_root", "files", "limit", "params"]), VALUES))
def test_what_passes_always_fits_the_schema(one: Any, arguments: dict[str, Any]) -> None:
    """The schema is what a client was promised: nothing may be taken that it rules out."""
    if not bad_arguments(one, arguments):
        assert jsonschema_rs.validator_for(input_schema(one)).is_valid(given(one, arguments))
