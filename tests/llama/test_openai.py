"""The backend for chat completions against a server that nobody here wrote."""

from __future__ import annotations

import asyncio

import jsonschema_rs
import pytest

from bailiwick.agents.backends.openai import OpenaiBackend
from bailiwick.agents.classify import classify
from bailiwick.agents.http import Endpoint
from bailiwick.agents.port import AgentEvent, Answered, Trouble, Used
from bailiwick.engine.failures import FailureKind
from bailiwick.ids import Json
from tests.unit.agents.asking import NoProcesses, ask, turn

VERDICT = {
    "type": "object",
    "properties": {
        "verdict": {"enum": ["pass", "fail"]},
        "reason": {"type": "string", "minLength": 3},
        "score": {"type": "number"},
        "sure": {"type": "boolean"},
    },
    "required": ["verdict", "reason", "score", "sure"],
    "additionalProperties": False,
}
NESTED = {
    "type": "object",
    "properties": {
        "files": {
            "type": "array",
            "minItems": 2,
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "line": {"type": "integer", "minimum": 1}},
                "required": ["path", "line"],
            },
        },
        "note": {"type": ["string", "null"]},
    },
    "required": ["files", "note"],
}
TREE = {
    "$defs": {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}},
    "type": "object",
    "properties": {"top": {"$ref": "#/$defs/node"}},
    "required": ["top"],
}


def asked(url: str, **given: Json) -> list[AgentEvent]:
    """What a turn told."""
    return asyncio.run(ask(OpenaiBackend(Endpoint(url), model="tiny"), turn(**{"model": None, **given})))


@pytest.mark.parametrize("schema", [VERDICT, NESTED, TREE], ids=["verdict", "nested", "tree"])
def test_a_schema_gives_an_answer_that_fits_it(llama: str, schema: dict[str, Json]) -> None:
    """The server lets only fitting tokens through, if our way of asking for it is the one it understands."""
    used, answer = asked(llama, schema=schema)
    assert isinstance(used, Used)
    assert isinstance(answer, Answered)
    assert answer.stop == "stop"
    assert isinstance(answer.structured, dict)
    jsonschema_rs.validator_for(schema).validate(answer.structured)


def test_what_it_used_is_counted(llama: str) -> None:
    """The model reads a token for each character, and two more; it writes one for each character, and the end."""
    prompt = "Is it done?"
    used, answer = asked(llama, prompt=prompt)
    assert answer == Answered("ok", stop="stop")
    assert isinstance(used, Used)
    assert used.input is not None
    assert used.input >= len(prompt)
    assert (used.output, used.usd, used.model) == (len("ok") + 1, None, "tiny")


def test_a_prompt_that_was_read_before_is_told_as_cached(llama: str) -> None:
    """Cached tokens have another price; the server keeps the last prompt."""
    prompt = "The same long question. " * 20
    asked(llama, prompt=prompt)
    used = asked(llama, prompt=prompt)[0]
    assert isinstance(used, Used)
    assert used.cached is not None
    assert used.input is not None
    assert len(prompt) <= used.cached <= used.input


def test_a_prompt_beyond_its_context_is_classed_as_one(llama: str) -> None:
    """The ladder compacts or goes to a larger model; another try with the same prompt is wasted."""
    events = asked(llama, prompt="x" * 20_000)
    assert isinstance(events[-1], Trouble)
    failed = classify(events, expects_answer=True, now=0.0, zone=None)
    assert failed is not None
    assert failed.kind is FailureKind.OVERFLOW


def test_a_check_finds_its_model(llama: str) -> None:
    """Doctor asks what is served, and spends nothing."""
    ok, words = asyncio.run(OpenaiBackend(Endpoint(llama)).check({}, NoProcesses()))
    assert ok, words
    assert words.endswith("1 models")
