"""What the backend for chat completions asks, and how it tells each way an endpoint can answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bailiwick.agents import http
from bailiwick.agents.backends.openai import OpenaiBackend, address
from bailiwick.agents.http import Endpoint
from bailiwick.agents.port import AgentEvent, Answered, Compacted, ProcessEnded, Trouble, Used
from bailiwick.testing.model_server.script import Fail, Raw, Say
from bailiwick.testing.model_server.server import MODEL, ModelServer
from tests.memory import peak_memory
from tests.unit.agents.asking import QUICK, SCHEMA, NoProcesses, ask, ask_scripted, turn


def last(scenario: str, **given: object) -> AgentEvent:
    """How a turn ended."""
    return ask_scripted(OpenaiBackend(), scenario, turn(**given))[0][-1]


def trouble(scenario: str) -> Trouble:
    """The trouble in which a turn ended."""
    event = last(scenario)
    assert isinstance(event, Trouble), event
    return event


def test_a_streamed_answer_comes_with_what_it_used() -> None:
    """The two things every turn is made for: the text, and its price."""
    events, _ = ask_scripted(OpenaiBackend(), "plain")
    assert events == [Used(1200, 50, 1000, model="m"), Answered("Hello from the script.", stop="stop")]


def test_the_prompt_arrives_as_it_was_written() -> None:
    """Braces, quotes, other scripts and a megabyte are all just text."""
    prompt = '{{ "x" }} \\ ü 漢 🙂\n' * 40_000
    _, seen = ask_scripted(OpenaiBackend(), "plain", turn(prompt=prompt))
    assert seen[0].body["messages"] == [{"role": "user", "content": prompt}]
    assert (seen[0].body["stream"], seen[0].body["stream_options"]) == (True, {"include_usage": True})
    assert "authorization" not in seen[0].headers


def test_the_token_of_the_turn_wins_over_the_configured_one() -> None:
    """The broker gives each turn a token of its own; the real one must not leave with it."""
    backend = OpenaiBackend(Endpoint("http://127.0.0.1:1", token="configured"))
    _, seen = ask_scripted(backend, "plain", turn(token="of-the-turn"))
    assert seen[0].headers["authorization"] == "Bearer of-the-turn"


def test_a_schema_is_asked_for_and_its_answer_given_apart() -> None:
    """A server that enforces the schema saves the search for JSON in prose."""
    events, seen = ask_scripted(OpenaiBackend(), "json", turn(schema=SCHEMA))
    assert seen[0].body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert isinstance(events[-1], Answered)
    assert events[-1].structured == {"answer": "forty-two", "n": 42}


def test_a_server_without_schemas_is_not_asked_for_one() -> None:
    """Some refuse a request with fields they don't know."""
    events, seen = ask_scripted(OpenaiBackend(schema=False), "json", turn(schema=SCHEMA))
    assert "response_format" not in seen[0].body
    assert isinstance(events[-1], Answered)
    assert events[-1].structured is None


def test_parameters_are_passed_on_but_cannot_change_the_question() -> None:
    """A temperature is the operator's; the model and the prompt are the workflow's."""
    options = {**QUICK, "parameters": {"temperature": 0.1, "model": "other", "stream": False}}
    _, seen = ask_scripted(OpenaiBackend(), "plain", turn(options=options))
    assert (seen[0].body["temperature"], seen[0].body["model"], seen[0].body["stream"]) == (0.1, "m", True)


def test_thoughts_are_kept_out_of_the_answer() -> None:
    """A draft in the thoughts looks like an answer to whoever searches for JSON."""
    assert last("think-tags") == Answered('{"answer": "forty-two", "n": 42}', stop="stop")


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("429", (429, "rate_limit_exceeded", 2.0)),
        ("429-long", (429, "rate_limit_exceeded", 3600.0)),
        ("429-bare", (429, "rate_limit_exceeded", None)),
        ("401", (401, "invalid_api_key", None)),
        ("404", (404, "model_not_found", None)),
        ("500", (500, "server_error", None)),
        ("overflow", (400, "context_length_exceeded", None)),
        ("quota", (429, "insufficient_quota", None)),
        ("usage-limit", (429, "usage_limit_reached", None)),
        ("502-html", (502, "", None)),
        ("redirect", (307, "spawn", None)),
    ],
)
def test_an_error_is_told_with_its_status_type_and_wait(scenario: str, expected: tuple[object, ...]) -> None:
    """The classifier goes by these fields; words come second."""
    event = trouble(scenario)
    assert (event.status, event.type, event.retry_after) == expected
    assert event.final
    assert event.message


def test_an_error_within_the_stream_is_the_error() -> None:
    """Half an answer and then an error is no answer."""
    assert trouble("overloaded-midway").type == "server_is_overloaded"
    assert trouble("overflow-midway").type == "context_length_exceeded"


@pytest.mark.parametrize("scenario", ["500", "429", "drop", "overloaded-midway"])
def test_nothing_is_asked_twice(scenario: str) -> None:
    """The ladder decides about another try; a client that retries behind it spends money unseen."""
    _, seen = ask_scripted(OpenaiBackend(), scenario, turn(options={"silence": 600, "total": 600}))
    assert len(seen) == 1


def test_nor_is_it_after_a_silence() -> None:
    """On a slow machine the silence may begin before the server has seen anything."""
    _, seen = ask_scripted(OpenaiBackend(), "hang-midway", turn(options={"silence": 0.2, "total": 600}))
    assert len(seen) < 2


@pytest.mark.parametrize("scenario", ["drop", "drop-midway", "garbage", "empty-body"])
def test_what_is_no_answer_of_a_model_is_told_as_an_unusable_endpoint(scenario: str) -> None:
    """A broken line or a hotel's login page says nothing about the task; it is waited for."""
    event = trouble(scenario)
    assert (event.type, event.final) == ("unreachable", True)


def test_a_refused_connection_names_the_host() -> None:
    """The first thing to look at is whether the server runs at all."""
    event = asyncio.run(ask(OpenaiBackend(), turn(base_url="http://127.0.0.1:9/v1")))[-1]
    assert isinstance(event, Trouble)
    assert event.type == "unreachable"
    assert "127.0.0.1:9" in event.message
    assert event.message.endswith("connection refused")


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http://[::1", "nonsense", "http://127.0.0.1:99999999"])
def test_an_address_that_is_none_is_told_not_raised(url: str) -> None:
    """The address is a person's typing."""
    assert isinstance(asyncio.run(ask(OpenaiBackend(), turn(base_url=url)))[-1], Trouble)


@pytest.mark.parametrize(
    ("lacks", "given"), [("a base URL", {}), ("a model", {"base_url": "http://127.0.0.1:9", "model": None})]
)
def test_what_is_not_configured_is_said_before_anything_is_sent(lacks: str, given: dict[str, object]) -> None:
    """A request to nowhere would be told as an outage and waited for."""
    event = asyncio.run(ask(OpenaiBackend(), turn(**given)))[-1]
    assert isinstance(event, Trouble)
    assert f"needs {lacks}" in event.message


@pytest.mark.parametrize("scenario", ["hang", "hang-midway", "drip"])
def test_silence_ends_the_turn(scenario: str) -> None:
    """Bytes that are no event count as silence: a server that drips would otherwise hold the slot for ever."""
    event = last(scenario, options={"silence": 0.2, "total": 60})
    assert isinstance(event, ProcessEnded)
    assert event.why == "silence"


def test_the_total_clock_ends_a_turn_that_always_says_something() -> None:
    """A model that talks for ever is not silent."""
    event = last("babble", options={"silence": 60, "total": 0.2})
    assert isinstance(event, ProcessEnded)
    assert event.why == "total"


def test_a_flood_is_cut_off_and_leaves_memory_alone() -> None:
    """A hundred megabytes in one line are no answer; the process that reads them runs other turns too."""
    with peak_memory() as peak:
        event = last("flood")
    assert isinstance(event, Trouble)
    assert event.type == "bad_output"
    assert peak.bytes < 4 * http.MAX_LINE + (16 << 20)


def test_a_refusal_is_told_as_one() -> None:
    """A filter's stop is not an answer that happens to be empty."""
    assert last("refusal-said") == Answered("I can't help with that.", stop="refusal")


def test_an_empty_answer_stays_an_answer() -> None:
    """Empty is a class of its own: asked again in the same words."""
    assert last("empty") == Answered("", stop="stop")


def answered(body: bytes, media: str) -> AgentEvent:
    """How a turn ends whose whole reply is these bytes."""

    async def go() -> AgentEvent:
        async with ModelServer({"raw": [Raw(body, media)]}) as server:
            return (await ask(OpenaiBackend(), turn(base_url=server.url("raw"))))[-1]

    return asyncio.run(go())


def test_a_server_that_does_not_stream_is_understood() -> None:
    """Small servers answer in one go whatever is asked."""
    body = b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}'
    assert answered(body, "application/json") == Answered("hi", stop="stop")


@pytest.mark.parametrize(
    ("body", "media", "words"),
    [
        (b'{"choices": []}', "application/json", "its stream is empty"),
        (b'data: {"choices": []}\n\ndata: [DONE]\n\n', "text/event-stream", "no choices"),
        (b"data: {broken\n\n", "text/event-stream", "not a JSON object"),
        (b'data: {"choices": [{"delta": {"content": "hal"}}]}\n\n', "text/event-stream", "broke off"),
        (b"[]", "application/json", "not a JSON object"),
        (
            b'data: {"choices": [3, {"delta": 4}, {"delta": {"content": 5}}], "usage": 6}\n\n',
            "text/event-stream",
            "broke",
        ),
    ],
)
def test_a_reply_with_wrong_parts_is_told_in_words(body: bytes, media: str, words: str) -> None:
    """Servers that imitate the API do it more or less well."""
    event = answered(body, media)
    assert isinstance(event, Trouble)
    assert words in event.message


def test_a_cost_that_the_server_counts_is_kept() -> None:
    """Routers tell what they charge; that beats any price table."""
    body = b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"cost": 0.25}}'

    async def go() -> list[AgentEvent]:
        async with ModelServer({"raw": [Raw(body, "application/json")]}) as server:
            return await ask(OpenaiBackend(), turn(base_url=server.url("raw")))

    assert asyncio.run(go())[0] == Used(usd=0.25)


@pytest.mark.parametrize(
    ("base", "full"),
    [
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h", "http://h/v1/chat/completions"),
        ("http://h/openai/chat/completions", "http://h/openai/chat/completions"),
    ],
)
def test_a_base_url_may_end_where_people_end_it(base: str, full: str) -> None:
    """Half of all guides write `/v1`, the other half do not."""
    assert address(base) == full


def test_a_token_that_can_not_be_sent_is_not_shown() -> None:
    """A line end that was copied along is a common slip; the message must not carry the secret."""
    event = asyncio.run(ask(OpenaiBackend(), turn(base_url="http://127.0.0.1:9", token="s3cret\n")))[-1]
    assert isinstance(event, Trouble)
    assert event.type == "auth"
    assert "s3cret" not in event.message


def test_a_cancelled_turn_stops_at_once() -> None:
    """`stop --now` must not wait for a server that does not answer."""

    async def go() -> list[AgentEvent]:
        events: list[AgentEvent] = []
        async with ModelServer() as server:
            asked = turn(base_url=server.url("hang"))
            task = asyncio.create_task(OpenaiBackend().turn(asked, NoProcesses(), events.append))
            await server.asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return events

    assert asyncio.run(go()) == []


def test_a_check_spends_nothing() -> None:
    """Doctor may be asked as often as one likes."""

    async def go() -> tuple[tuple[bool, str], list[str]]:
        async with ModelServer({"down": [Fail(500)], "up": [Say("")]}) as server:
            found = await OpenaiBackend(Endpoint(server.url("up"))).check({}, NoProcesses())
            return found, [seen.path for seen in server.requests]

    (ok, words), paths = asyncio.run(go())
    assert ok
    assert words.endswith("1 models")
    assert paths == ["/v1/models"]


def test_a_check_of_nothing_says_what_is_missing() -> None:
    """A backend without an address can't be used, and that is the whole message."""
    assert asyncio.run(OpenaiBackend().check({}, NoProcesses())) == (False, "no base URL is configured")
    ok, words = asyncio.run(OpenaiBackend(Endpoint("http://127.0.0.1:9")).check({}, NoProcesses()))
    assert not ok
    assert "127.0.0.1:9" in words


def test_there_is_no_session_to_compact() -> None:
    """Each turn is told whole; the capability says so."""
    events: list[AgentEvent] = []
    asyncio.run(OpenaiBackend().compact(turn(), NoProcesses(), events.append))
    assert [type(event) for event in events] == [Compacted]
    assert OpenaiBackend().capabilities.compact is False


def test_the_configured_model_answers_where_a_turn_names_none() -> None:
    """Most workflows leave the choice to the configuration."""
    _, seen = ask_scripted(OpenaiBackend(model=MODEL), "plain", replace(turn(), model=None))
    assert seen[0].body["model"] == MODEL
