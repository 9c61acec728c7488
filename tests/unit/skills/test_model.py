"""What a tool and a skill promise by themselves."""

from __future__ import annotations

import pytest

from bailiwick.skills.model import Argument, Skill, Tool
from bailiwick.skills.tools import TABLE, USUAL, find_tool, tool_of, tools_for


def skill(name: str = "change-log", **more: object) -> Skill:
    """A skill of a person."""
    values: dict[str, object] = {
        "description": "Writes.",
        "body": "Do.",
        "origin": "person",
        "path": "p",
        "digest": "d",
    }
    return Skill(name, **{**values, **more})  # type: ignore[arg-type]


def tool(name: str) -> Tool:
    """A tool of the table."""
    found = find_tool(name)
    assert found is not None
    return found


def test_a_skill_becomes_a_tool_without_code() -> None:
    """A folder is all that a person has to write: name, arguments and phase come from it."""
    made = tool_of(skill())
    assert (made.name, made.skill, made.phase, made.arguments) == ("change_log", "change-log", "change-log", USUAL)
    assert made.files == ("files",)
    assert made.hints.read_only
    assert made.scope == "run"


def test_a_skill_that_writes_says_so() -> None:
    """A client asks its person before a tool that changes files; it can't know but from the hints."""
    made = tool_of(skill(writes=True, phase="draft", arguments=(Argument("log", "path", "L."),), files="log"))
    assert (made.writes, made.hints.read_only, made.hints.destructive) == (True, False, True)
    assert (made.phase, made.files) == ("draft", ("log",))


def test_files_that_no_argument_names_are_none() -> None:
    """Nothing is read for an argument that the tool doesn't have."""
    assert tool_of(skill(arguments=())).files == ()


def test_a_discipline_of_ones_own_adds_no_second_tool() -> None:
    """The person's `review` changes what `review` is told; its tool stays what clients know."""
    named = tools_for([skill("review"), skill("change-log")])
    assert set(named) == {one.name for one in TABLE} | {"change_log"}
    assert named["review"] is tool("review")


@pytest.mark.parametrize("name", ["review", "tdd_green", "trainer"])
def test_shared_arguments_come_last_and_once(name: str) -> None:
    """`session_id` is an argument of its own for some tools, and must not turn up twice."""
    names = [one.name for one in tool(name).all_arguments]
    assert len(names) == len(set(names))
    assert names[-1] == "model"
    assert "session_id" in names


def test_a_tool_that_asks_no_model_does_not_promise_one() -> None:
    """The text of `model` has to be true of each tool."""
    docs = {one.name: one.all_arguments[-1].doc for one in TABLE}
    assert docs["tier"] != docs["review"]
    assert "asks no model" in docs["tier"]
