"""What the Ollama backend asks for, and that nothing it cut in silence passes for an answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from bailiwick.agents.backends.ollama import WINDOW, OllamaBackend
from bailiwick.agents.http import Endpoint
from bailiwick.agents.port import AgentEvent, Answered, Compacted, ProcessEnded, Trouble, Used
from bailiwick.testing.model_server.script import Raw, Say, ScriptedUsage
from bailiwick.testing.model_server.server import MODEL, ModelServer
from tests.unit.agents.asking import QUICK, SCHEMA, NoProcesses, ask, ask_scripted, turn

if TYPE_CHECKING:
    from bailiwick.ids import Json


def last(scenario: str, **given: Json) -> AgentEvent:
    """How a turn ended."""
    return ask_scripted(OllamaBackend(), scenario, turn(**given))[0][-1]


def answered(said: Say | Raw, **given: Json) -> AgentEvent:
    """How a turn ends that gets this answer."""

    async def go() -> AgentEvent:
        async with ModelServer({"own": [said]}) as server:
            return (await ask(OllamaBackend(), turn(base_url=server.url("own"), **given)))[-1]

    return asyncio.run(go())


def test_an_answer_comes_with_what_it_used() -> None:
    """Local tokens cost no money, but they are counted."""
    events, _ = ask_scripted(OllamaBackend(), "plain")
    assert events == [Used(1200, 50, model="m"), Answered("Hello from the script.", stop="stop")]


def test_the_window_is_always_set_and_cutting_forbidden() -> None:
    """Left alone, Ollama takes a small window and drops what does not fit without a word."""
    _, seen = ask_scripted(OllamaBackend(), "plain")
    assert seen[0].path == "/api/chat"
    assert seen[0].body["options"]["num_ctx"] == WINDOW
    assert (seen[0].body["truncate"], seen[0].body["shift"]) == (False, False)


def test_options_of_the_turn_are_passed_on() -> None:
    """The window, the time a model stays loaded and whether it thinks depend on the machine."""
    own = {"num_ctx": 4096, "keep_alive": "1h", "think": False, "parameters": {"temperature": 0, "num_ctx": 1}}
    _, seen = ask_scripted(OllamaBackend(), "plain", turn(options={**QUICK, **own}))
    body = seen[0].body
    assert (body["options"], body["keep_alive"], body["think"]) == ({"temperature": 0, "num_ctx": 4096}, "1h", False)


def test_a_schema_is_enforced_and_stated_in_the_prompt() -> None:
    """A model that is held to a form it has not read fills it with nonsense."""
    events, seen = ask_scripted(OllamaBackend(), "json", turn(schema=SCHEMA))
    assert seen[0].body["format"] == SCHEMA
    said = seen[0].body["messages"][0]["content"]
    assert said.startswith("Say hello.\n")
    assert '"answer"' in said
    assert "{{" not in said
    assert isinstance(events[-1], Answered)
    assert events[-1].structured == {"answer": "forty-two", "n": 42}


def test_without_a_schema_the_prompt_is_left_alone() -> None:
    """Not every answer is JSON."""
    _, seen = ask_scripted(OllamaBackend(), "plain")
    assert seen[0].body["messages"] == [{"role": "user", "content": "Say hello."}]
    assert "format" not in seen[0].body


@pytest.mark.parametrize("scenario", ["overflow", "overflow-midway", "overflow-silent"])
def test_a_prompt_that_does_not_fit_is_an_overflow(scenario: str) -> None:
    """Also where the server answers as if nothing had happened: it has seen the end of the prompt only."""
    event = last(scenario)
    assert isinstance(event, Trouble)
    assert event.type in ("overflow", "exceed_context_size_error")


def test_a_prompt_that_was_cut_to_half_the_window_is_an_overflow() -> None:
    """Servers that shift keep the last half: the count is then half the window to the token."""
    long = "word " * 5000
    cut = Say("ok", tokens=ScriptedUsage(input=2051))
    assert isinstance(answered(cut, prompt=long, options={**QUICK, "num_ctx": 4096}), Trouble)
    assert isinstance(answered(cut, prompt="short", options={**QUICK, "num_ctx": 4096}), Answered)
    fits = Say("ok", tokens=ScriptedUsage(input=2040))
    assert isinstance(answered(fits, prompt=long, options={**QUICK, "num_ctx": 4096}), Answered)


def test_an_answer_that_filled_the_window_is_an_overflow_and_one_that_met_its_own_limit_is_not() -> None:
    """Both stop with `length`; only the first is helped by a shorter prompt."""
    full = Say("cut o", stop="length", tokens=ScriptedUsage(input=4000, output=96))
    assert isinstance(answered(full, options={**QUICK, "num_ctx": 4096}), Trouble)
    own = Say("cut o", stop="length", tokens=ScriptedUsage(input=100, output=96))
    assert answered(own, options={**QUICK, "num_ctx": 4096}) == Answered("cut o", stop="length")


@pytest.mark.parametrize("scenario", ["think-tags", "json"])
def test_thoughts_are_kept_out_of_the_answer(scenario: str) -> None:
    """Some models put them into the text, whatever the server does."""
    assert last(scenario) == Answered('{"answer": "forty-two", "n": 42}', stop="stop")


def test_thoughts_that_the_server_keeps_apart_are_left_there() -> None:
    """An answer of thoughts alone is empty."""
    assert last("thinking-only") == Answered("", stop="stop")


@pytest.mark.parametrize(
    ("scenario", "status", "words"),
    [("404", 404, "model 'm' not found"), ("503", 503, "server busy"), ("500", 500, "llama runner")],
)
def test_an_error_is_told_with_its_status_and_words(scenario: str, status: int, words: str) -> None:
    """Ollama has no types of errors; its words are all there is."""
    event = last(scenario)
    assert isinstance(event, Trouble)
    assert event.status == status
    assert words in event.message


@pytest.mark.parametrize("scenario", ["drop", "drop-midway", "garbage", "empty-body", "overloaded-midway"])
def test_a_broken_answer_is_trouble(scenario: str) -> None:
    """Half a stream is no answer."""
    assert isinstance(last(scenario), Trouble)


@pytest.mark.parametrize(
    "body", [b"{}\n", b"3\n", b'{"message": 4, "done": false}\n', b'{"done": "true"}\n', b"\xff\n"]
)
def test_lines_with_wrong_parts_are_trouble(body: bytes) -> None:
    """What listens on the port may be something else entirely."""
    assert isinstance(answered(Raw(body, "application/x-ndjson")), Trouble)


@pytest.mark.parametrize("scenario", ["hang", "hang-midway", "drip"])
def test_silence_ends_the_turn(scenario: str) -> None:
    """A model that never loads must not hold the slot for ever."""
    event = last(scenario, options={"silence": 0.2, "total": 60})
    assert isinstance(event, ProcessEnded)
    assert event.why == "silence"


def test_without_a_model_nothing_is_sent() -> None:
    """There is no model that every Ollama has."""
    events, seen = ask_scripted(OllamaBackend(), "plain", turn(model=None))
    assert isinstance(events[-1], Trouble)
    assert seen == []


def check(model: str | None) -> tuple[bool, str]:
    """What a check says of a server that has one model."""

    async def go() -> tuple[bool, str]:
        async with ModelServer() as server:
            return await OllamaBackend(Endpoint(server.url("plain")), model=model).check({}, NoProcesses())

    return asyncio.run(go())


def test_a_check_tells_the_version_and_whether_the_model_is_there() -> None:
    """The commonest fault is a model that was never pulled; the command for it is in the message."""
    assert check(None)[0]
    ok, words = check(MODEL)
    assert ok
    assert words.startswith("Ollama 0.33.3 at 127.0.0.1")
    ok, words = check("llama9")
    assert not ok
    assert words.endswith("has no model llama9: `ollama pull llama9`")


def test_a_check_of_a_server_that_is_not_there_says_so() -> None:
    """Doctor shows this line as it is."""
    ok, words = asyncio.run(OllamaBackend(Endpoint("http://127.0.0.1:9")).check({}, NoProcesses()))
    assert not ok
    assert words.startswith("nothing listens at 127.0.0.1:9")


def test_there_is_no_session_to_compact() -> None:
    """Each turn is told whole; the capability says so."""
    events: list[AgentEvent] = []
    asyncio.run(OllamaBackend().compact(turn(), NoProcesses(), events.append))
    assert [type(event) for event in events] == [Compacted]
    assert OllamaBackend().capabilities.compact is False
