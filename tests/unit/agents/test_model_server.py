"""The scripted model API speaks the dialects that agent CLIs listen to."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from bailiwick.testing.model_server.script import SCENARIOS, Say, UseTool
from bailiwick.testing.model_server.server import ModelRequestSeen, ModelServer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bailiwick.ids import Json

PATHS = {
    "anthropic": "/v1/messages",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "ollama": "/api/chat",
}
SHELL = {"type": "object", "properties": {"command": {"type": "string"}, "description": {"type": "string"}}}
TOOLS: Mapping[str, Json] = {
    "anthropic": [{"name": "Bash", "input_schema": SHELL}],
    "responses": [{"type": "function", "name": "shell", "parameters": SHELL}],
    "chat": [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}],
    "ollama": [{"type": "function", "function": {"name": "bash", "parameters": SHELL}}],
}


@dataclass(frozen=True, slots=True)
class Got:
    """A reply, read to its end."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def events(self) -> list[Json]:
        """The objects of a stream, server-sent or one a line."""
        lines = [
            line.removeprefix(b"data:").strip() for line in self.raw.splitlines() if not line.startswith(b"event:")
        ]
        return [json.loads(line) for line in lines if line and line != b"[DONE]"]


async def request(url: str, body: Json = None, method: str = "") -> Got:
    """Ask by hand, without the client that is tested elsewhere."""
    host, _, path = url.removeprefix("http://").partition("/")
    name, _, port = host.partition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    try:
        data = b"" if body is None else json.dumps(body).encode()
        verb = method or ("GET" if body is None else "POST")
        head = f"{verb} /{path} HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        return await read(reader, bodiless=method == "HEAD")
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def read(reader: asyncio.StreamReader, *, bodiless: bool) -> Got:
    """A reply, chunked or of a known length."""
    top = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {key.lower(): value for key, _, value in (line.partition(": ") for line in top[1:] if line)}
    raw = b""
    if "transfer-encoding" in headers:
        while size := int((await reader.readline()).strip(), 16):
            raw += (await reader.readexactly(size + 2))[:-2]
    elif not bodiless:
        raw = await reader.readexactly(int(headers["content-length"]))
    return Got(int(top[0].split()[1]), headers, raw)


def ask(scenario: str, dialect: str, **body: Json) -> Got:
    """One question in a scenario."""
    return ask_often(scenario, dialect, 1, **body)[0][0]


def ask_often(scenario: str, dialect: str, times: int, **body: Json) -> tuple[list[Got], list[ModelRequestSeen]]:
    """The same question several times."""

    async def go() -> tuple[list[Got], list[ModelRequestSeen]]:
        async with ModelServer({"text": [Say("x" * 30)]}) as server:
            asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}], **body}
            got = [await request(server.url(scenario) + PATHS[dialect], asked) for _ in range(times)]
            return got, server.requests

    return asyncio.run(go())


def test_a_message_streams_from_its_start_to_its_stop() -> None:
    """`claude` waits for exactly this sequence."""
    kinds = [event["type"] for event in ask("text", "anthropic").events]
    assert kinds == [
        "message_start",
        "ping",
        "content_block_start",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_a_response_streams_from_created_to_completed() -> None:
    """`codex` takes the text from the items and the end from `response.completed`; numbers run without a gap."""
    events = ask("text", "responses").events
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        *["output_text.delta"] * 3,
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "x" * 30


def test_a_completion_streams_deltas_then_usage_then_done() -> None:
    """The usage comes in a chunk without choices, as `include_usage` asks."""
    got = ask("text", "chat")
    *deltas, stop, usage = got.events
    assert "".join(part["choices"][0]["delta"].get("content", "") for part in deltas) == "x" * 30
    assert stop["choices"][0]["finish_reason"] == "stop"
    assert (usage["choices"], usage["usage"]["prompt_tokens"]) == ([], 1200)
    assert got.raw.endswith(b"data: [DONE]\n\n")


def test_an_ollama_answer_ends_with_its_counts() -> None:
    """The counts are how a cut prompt is told."""
    last = ask("text", "ollama").events[-1]
    assert (last["done"], last["done_reason"], last["prompt_eval_count"]) == (True, "stop", 1200)


@pytest.mark.parametrize("dialect", PATHS)
def test_an_answer_in_one_piece_holds_the_same_text(dialect: str) -> None:
    """Some clients don't stream their side questions."""
    got = ask("text", dialect, stream=False)
    assert got.headers["content-type"] == "application/json"
    assert "x" * 30 in json.dumps(json.loads(got.raw))


@pytest.mark.parametrize(
    ("dialect", "name"), [("anthropic", "Bash"), ("responses", "shell"), ("chat", "bash"), ("ollama", "bash")]
)
def test_a_tool_is_called_by_the_name_and_arguments_that_were_offered(dialect: str, name: str) -> None:
    """Each CLI names its shell otherwise; one script serves them all."""
    said = json.dumps(json.loads(ask("tool", dialect, stream=False, tools=TOOLS[dialect]).raw))
    assert f'"name": "{name}"' in said
    assert "scripted.txt" in said
    assert "a scripted command" in said


def test_the_arguments_of_a_streamed_tool_call_are_whole_json() -> None:
    """They come in pieces of any length."""
    events = ask("tool", "anthropic", tools=TOOLS["anthropic"]).events
    pieces = [event["delta"]["partial_json"] for event in events if event.get("delta", {}).get("partial_json")]
    assert json.loads("".join(pieces))["command"].startswith("echo")
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_a_file_is_written_by_whatever_tool_can() -> None:
    """A file tool where there is one, a patch for codex, else the shell."""
    file = {"name": "Write", "input_schema": {"properties": {"file_path": {}, "content": {}}}}
    assert "file_path" in "".join(
        event["delta"].get("partial_json", "")
        for event in ask("tool-write", "anthropic", tools=[file], system="Working directory: /tmp/w").events
        if event["type"] == "content_block_delta"
    )
    patch = ask("tool-write", "responses", tools=[{"type": "custom", "name": "apply_patch"}]).events
    call = patch[-1]["response"]["output"][0]
    assert (call["type"], call["input"].splitlines()[1]) == ("custom_tool_call", "*** Add File: written.txt")
    shell = ask("tool-write", "responses", tools=TOOLS["responses"]).events
    assert "written.txt" in shell[-1]["response"]["output"][0]["arguments"]


def test_a_tool_that_is_not_offered_is_said_in_words() -> None:
    """A script for another CLI should be noticed, not wait for ever."""
    assert b"not offered" in ask("tool", "chat", stream=False).raw


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize(("scenario", "status"), [("429", 429), ("401", 401), ("529", 529), ("overflow", 400)])
def test_an_error_has_its_status_and_a_body_of_the_dialect(dialect: str, scenario: str, status: int) -> None:
    """CLIs read the type from the body and the wait from the header."""
    got = ask(scenario, dialect)
    assert got.status == status
    assert "error" in json.loads(got.raw)
    assert got.headers.get("retry-after") == ("2" if scenario == "429" else None)


def test_a_cap_tells_when_it_resets_in_the_way_of_each_vendor() -> None:
    """A wait of hours is only as good as the time it is taken from."""
    claude = ask("usage-limit", "anthropic").headers
    assert claude["anthropic-ratelimit-unified-status"] == "rejected"
    assert claude["anthropic-ratelimit-unified-5h-reset"] == claude["anthropic-ratelimit-unified-reset"]
    week = ask("usage-limit-week", "anthropic").headers
    assert week["anthropic-ratelimit-unified-representative-claim"] == "seven_day"
    codex = json.loads(ask("usage-limit", "responses").raw)["error"]
    assert codex["resets_in_seconds"] == 3 * 3600


@pytest.mark.parametrize(("dialect", "mark"), [("anthropic", "error"), ("responses", "response.failed")])
def test_an_error_midway_follows_some_text(dialect: str, mark: str) -> None:
    """The status was 200 by then; only the stream can tell."""
    events = ask("overloaded-midway", dialect).events
    assert events[-1]["type"] == mark
    assert len(events) > 3


def test_steps_are_played_in_order_and_the_last_repeats() -> None:
    """That is all a scenario is."""
    got, _ = ask_often("529-thrice", "chat", 5)
    assert [each.status for each in got] == [529, 529, 529, 200, 200]


def test_runs_of_one_scenario_are_counted_apart() -> None:
    """Tests in parallel share a server without sharing a script."""

    async def go() -> list[int]:
        async with ModelServer() as server:
            urls = [server.url("429-once", run) + PATHS["chat"] for run in ("a", "a", "b")]
            return [(await request(url, {"messages": []})).status for url in urls] + [server.count("429-once", "a")]

    assert asyncio.run(go()) == [429, 200, 429, 2]


def test_a_question_for_a_title_uses_up_no_step() -> None:
    """CLIs ask them whenever they like; a script that counts them would be out of step."""
    title = "Generate a short title for this conversation."
    _, seen = ask_often("429-once", "anthropic", 2, system=title)
    assert [type(each.step) for each in seen] == [Say, Say]
    _, seen = ask_often("tool", "anthropic", 1, system=title, tools=TOOLS["anthropic"])
    assert isinstance(seen[0].step, UseTool)


def test_a_script_may_depend_on_the_model() -> None:
    """For fallbacks and chains."""
    assert ask("fallback", "chat", model="opus-9").status == 529
    assert ask("fallback", "chat", model="sonnet-9").status == 200


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/", "HEAD", 200),
        ("/api/hello", "GET", 200),
        ("/v1/models", "GET", 200),
        ("/api/tags", "GET", 200),
        ("/v1/messages/count_tokens", "POST", 200),
        ("/nowhere", "GET", 404),
    ],
)
def test_what_clients_ask_beside_the_model_is_answered(path: str, method: str, status: int) -> None:
    """Probes at start-up must not look like an outage."""

    async def go() -> int:
        async with ModelServer() as server:
            return (await request(server.url("plain") + path, {} if method == "POST" else None, method)).status

    assert asyncio.run(go()) == status


def test_what_was_asked_can_be_looked_at() -> None:
    """A test of a client is a test of what it sent."""
    _, (seen,) = ask_often("plain", "chat", 1, temperature=1)
    assert (seen.scenario, seen.path, seen.body["temperature"]) == ("plain", "/v1/chat/completions", 1)


def test_leaving_the_server_ends_what_hangs() -> None:
    """A test that forgot a client must not wait for it."""

    async def go() -> None:
        async with ModelServer() as server:
            asking = asyncio.create_task(request(server.url("hang") + PATHS["chat"], {"messages": []}))
            await server.asked.wait()
        with pytest.raises(asyncio.IncompleteReadError):
            await asking

    asyncio.run(go())


def test_every_scenario_has_steps_and_a_name_that_fits_a_url() -> None:
    """The name is part of the base URL."""
    assert all(steps and name.replace("-", "").isalnum() for name, steps in SCENARIOS.items())
    with pytest.raises(KeyError):
        ModelServer().url("nowhere")
