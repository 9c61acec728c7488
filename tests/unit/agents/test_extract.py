"""What is taken for an agent's answer, and what is said of one that can't be taken."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.agents.extract import Bad, Extracted, extract, without_thinking
from bailiwick.engine.graph import Output

if TYPE_CHECKING:
    from bailiwick.ids import Json

RESULT = (Output("result", {"type": "object", "required": ["status"]}),)
NAME = (Output("name"),)
HOSTILE = [
    "{",
    "}",
    '"',
    "\\",
    '\\"',
    '{"',
    '{"name":',
    "[",
    "```\n",
    "\n{",
    "<think>",
    ",",
    "a",
    " ",
    "{'a':",
    "}{",
    "//",
]


def found(text: str, outputs: tuple[Output, ...] = NAME) -> Json:
    """The one value of a good answer."""
    answer = extract(text, outputs)
    assert isinstance(answer, Extracted), answer
    return answer.values[outputs[0].key]


def problem(text: str, outputs: tuple[Output, ...] = NAME, structured: Json = None) -> str:
    """What is said of a bad answer."""
    answer = extract(text, outputs, structured)
    assert isinstance(answer, Bad), answer
    return answer.problem


def test_nothing_declared_is_always_good() -> None:
    """A node without outputs has its work tree as the result; what the agent says is only kept."""
    assert extract("no JSON { here", ()) == Extracted({}, repaired=False)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "x"}',
        'Sure!\n```json\n{"name": "x"}\n```\nAnything else?',
        '```\n{"name": "x"}',
        'I used { and } and "quotes". {"name": "x", "more": {"name": "inner"}} Done.',
        'First {"name": "draft"}, better: {"name": "x"}',
        '{"name": "x"} and a note {"about": "it"}',
        '{"name": "loose"}\n```json\n{"name": "x"}\n```\n{"name": "after"}',
        'A set {a, b} and a format "{}" come first.\n{"name": "x"}',
    ],
)
def test_the_last_fitting_object_is_found_in_prose_and_fences(text: str) -> None:
    """Models wrap their JSON in talk; a fence says best what is meant, and the last word counts."""
    assert extract(text, NAME) == Extracted({"name": "x"}, repaired=False)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "x",}',
        "{'name': 'x'}",
        '{name: "x"}',
        '{"name": "x", "list": [1, 2,],}',
        '{"name": "x", "list": [{"name": "inner"}]',
        '{"name": "x", // the name\n "n": 1}',
        '```json\n{"name": "x",}\n```',
        '{"name": "x", "flag": True}',
    ],
)
def test_a_small_slip_is_mended_and_recorded(text: str) -> None:
    """A comma too many is no reason to pay for another turn, but people can see that it was mended."""
    assert extract(text, NAME) == Extracted({"name": "x"}, repaired=True)


def test_a_raw_newline_within_a_string_is_a_slip() -> None:
    """The commonest slip of small models when they quote code."""
    assert extract('{"name": "a\nb"}', NAME) == Extracted({"name": "a\nb"}, repaired=True)


def test_what_was_mended_is_checked_like_anything_else() -> None:
    """A repair may guess; only the schema makes it an answer."""
    assert "does not fit its schema" in problem("{'result': 'fine'}", RESULT)


def test_a_text_that_is_cut_off_within_a_string_is_not_completed() -> None:
    """The rest of the sentence is missing: closing the quote would pass half an answer off as a whole one."""
    assert "cut off" in problem('{"name": "the first half of')


def test_an_inner_object_is_not_taken_for_the_answer() -> None:
    """An item of a list may have the same keys as the whole."""
    status = (Output("status"),)
    assert found('{"status": "ok", "items": [{"status": "bad"}],}', status) == "ok"
    assert found('{"status": "ok", "items": [{"status": "bad"}]', status) == "ok"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the answer is empty; one JSON object with 'result' is expected"),
        ("I am done.", "the answer holds no JSON object; one JSON object with 'result' is expected"),
        ('{"reslt": 1}', "the key 'result' is missing"),
        ('{"result": {"state": 1}}', "'result' does not fit its schema: \"status\" is a required property"),
        ('{"result": ["ok"]}', '\'result\' does not fit its schema: ["ok"] is not of type "object"'),
        ('[{"result": 1}', "'result' does not fit its schema: 1 is not of type \"object\""),
    ],
)
def test_the_problem_names_exactly_what_is_missing_or_wrong(text: str, said: str) -> None:
    """It is put before the agent in the next turn; a vague complaint gets the same answer again."""
    assert problem(text, RESULT) == said


def test_a_wrong_part_deep_inside_is_named_by_its_path() -> None:
    """The agent has to know which of many values to change."""
    outputs = (Output("rows", {"items": {"properties": {"n": {"type": "integer"}}}}),)
    assert problem('{"rows": [{"n": 1}, {"n": "two"}]}', outputs).startswith("'rows[1].n' does not fit")


def test_a_structured_answer_is_believed_before_the_text() -> None:
    """A backend that enforces the schema has already done the work."""
    assert extract('{"name": "text"}', NAME, {"name": "field", "x": 1}) == Extracted({"name": "field"})


def test_a_structured_answer_that_does_not_fit_leaves_the_text_its_chance() -> None:
    """Some servers give an empty object there and the answer in the text."""
    assert extract('{"name": "text"}', NAME, {}) == Extracted({"name": "text"})
    assert problem("nothing here", NAME, {}) == "the key 'name' is missing"


@pytest.mark.parametrize("text", ['{"name": 1e999}', '{"name": "\\ud800"}', '{"name": %s}' % ("[" * 200 + "]" * 200)])
def test_values_that_cannot_be_kept_are_no_answer(text: str) -> None:
    """The journal carries plain JSON: finite numbers, whole characters, sane depth."""
    problem(text)


@given(
    st.dictionaries(
        st.sampled_from(["name", "x"]),
        st.recursive(
            st.none() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])), st.lists, max_leaves=8
        ),
        min_size=1,
    ),
    st.text(st.characters(exclude_characters='{}`~<"')),
)
def test_an_object_comes_out_as_it_went_in(value: dict[str, Json], prose: str) -> None:
    """Whatever harmless prose surrounds it, no value is changed on the way."""
    outputs = tuple(Output(key) for key in value)
    assert extract(f"{prose}\n{json.dumps(value)}\n{prose}", outputs) == Extracted(value)


@given(st.lists(st.sampled_from([*HOSTILE, '"name"', ":", "1"]), max_size=60).map("".join) | st.text())
def test_no_text_makes_it_raise(text: str) -> None:
    """What a model says is data from outside; it can be anything."""
    assert isinstance(extract(text, RESULT), Extracted | Bad)
    without_thinking(text)


@pytest.mark.parametrize("piece", ["{", '"', "\\", '\\"', '{"', "[", ",", "```\n"])
def test_a_megabyte_of_one_piece_takes_moments(piece: str) -> None:
    """A looping model must not stall the process that watches all the others. Quadratic work would take hours."""
    began = time.process_time()
    extract('{"name":' + piece * (1_000_000 // len(piece)), NAME)
    without_thinking(piece * (1_000_000 // len(piece)))
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('<think>\nis it {"name": 1}?\n</think>\n\n{"name": 2}', '{"name": 2}'),
        ("no opening tag {\n</think>\n\nanswer", "answer"),
        ("<think>never closed", ""),
        ("<think>a</think>b\n<think>c</think>d", "b\nd"),
        ('{"tag": "</think> and <think>"}', '{"tag": "</think> and <think>"}'),
        ("<thinking>x</thinking> y", "y"),
    ],
)
def test_thinking_is_kept_out_of_the_answer(text: str, left: str) -> None:
    """A draft in the thoughts is not the answer; a tag that the answer itself quotes stays."""
    assert without_thinking(text) == left
