"""The broker lets a turn talk to one model API with a token of its own, counts what it costs, and ends it in time."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from bailiwick.agents.broker.grants import GrantRules, Upstream
from bailiwick.agents.classify import classify
from bailiwick.agents.http import UNREACHABLE
from bailiwick.agents.port import Answered, LimitSeen, ProcessEnded, Trouble, Used
from bailiwick.engine.failures import FailureKind
from bailiwick.testing.model_server.script import Say, ScriptedUsage
from bailiwick.testing.model_server.server import ModelServer
from tests.unit.agents.broker_stage import BODY, SECRET, BrokerSetup, Vendor, per_million, said, settled, staged, stream

if TYPE_CHECKING:
    from collections.abc import Coroutine

MESSAGE = {"type": "message", "model": "m-1", "usage": {"input_tokens": 1000, "output_tokens": 20}}
START = b'event: message_start\ndata: {"type":"message_start","message":{"model":"m-1","usage":{"input_tokens":1000,"cache_read_input_tokens":500,"cache_creation_input_tokens":100,"output_tokens":1}}}\n\n'  # noqa: E501
END = b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":30}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'  # noqa: E501


def delta(text: str) -> bytes:
    """A piece of an answer."""
    body = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return f"event: content_block_delta\ndata: {json.dumps(body)}\n\n".encode()


def play(history: Coroutine[Any, Any, None]) -> None:
    """Run a test's story to its end."""
    asyncio.run(asyncio.wait_for(history, 600))


def test_the_real_credential_is_put_in_and_the_turns_own_is_not_passed_on() -> None:
    """The agent has nothing to steal, and the vendor sees exactly one credential."""

    async def history() -> None:
        async with staged(said(MESSAGE)) as stage:
            status, _, body = await stage.ask("/v1/messages?beta=true", BODY, "cookie: c\r\nx-other: kept\r\n")
            assert (status, json.loads(body)) == (200, MESSAGE)
            head = stage.vendor.heads[0].lower()
            assert head.startswith("post /v1/messages?beta=true http/1.1\r\n")
            assert f"x-api-key: {SECRET}" in head
            assert "x-other: kept" in head
            assert stage.grant.token.lower() not in head
            assert "cookie" not in head
            assert stage.vendor.bodies == [BODY]

    play(history())


def test_a_bearer_token_opens_too_and_a_path_without_its_version_means_the_same() -> None:
    """claude sends one header, codex the other, and leaves out what its base URL would hold."""

    async def history() -> None:
        async with staged(said({"model": "m-1", "usage": {"input_tokens": 1, "output_tokens": 1}})) as stage:
            raw = (
                f"POST /responses HTTP/1.1\r\nHost: {stage.host}\r\nAuthorization: Bearer {stage.grant.token}\r\n"
                f"Transfer-Encoding: chunked\r\n\r\n{len(BODY):x}\r\n{BODY.decode()}\r\n0\r\n\r\n"
            )
            assert (await stage.send(raw.encode()))[0] == 200
            assert stage.vendor.heads[0].startswith("POST /v1/responses ")
            assert stage.vendor.bodies == [BODY]

    play(history())


def test_neither_token_nor_credential_is_ever_shown() -> None:
    """A grant ends up in a log or a traceback sooner or later."""

    async def history() -> None:
        async with staged(said(MESSAGE)) as stage:
            shown = repr(stage.grant) + repr(stage.grant.upstream) + str(stage.broker)
            assert stage.grant.token not in shown
            assert SECRET not in shown

    play(history())


def test_what_has_to_stand_beside_a_credential_is_added_to_what_the_client_says() -> None:
    """A long-lived token needs a word in a header in which the client has words of its own."""

    async def history() -> None:
        async with staged(said(MESSAGE)) as stage:
            upstream = Upstream(stage.vendor.url + "/base/v1/", {"authorization": "Bearer x"}, {"anthropic-beta": "o"})
            other = BrokerSetup(stage.broker, stage.vendor, stage.broker.grant("k2", upstream, price=per_million))
            await other.ask(extra="anthropic-beta: tools, o\r\n")
            await other.ask()
            assert "anthropic-beta: tools,o\r\n" in stage.vendor.heads[0]
            assert "anthropic-beta: o\r\n" in stage.vendor.heads[1]
            assert stage.vendor.heads[0].startswith("POST /base/v1/messages ")

    play(history())


def test_a_token_is_good_for_its_turn_and_nothing_else() -> None:
    """Whatever an agent leaves behind can't go on spending after the turn."""

    async def history() -> None:
        async with staged(said(MESSAGE)) as stage:
            assert (await stage.ask())[0] == 200
            stage.broker.revoke(stage.grant)
            status, _, body = await stage.ask()
            assert status == 401
            assert json.loads(body)["error"]["type"] == "authentication_error"
            made_up = stage.request().replace(stage.grant.token.encode(), b"made-up")
            assert (await stage.send(made_up))[0] == 401
            assert len(stage.vendor.heads) == 1

    play(history())


def test_revoking_ends_what_is_still_running() -> None:
    """An answer that nobody waits for is still paid for."""

    async def hang(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + START)
        await writer.drain()
        await reader.read()
        await reader.read()

    async def history() -> None:
        async with staged(hang) as stage:
            reader, writer = await asyncio.open_connection(*stage.host.split(":"))
            writer.write(stage.request())
            await reader.readuntil(b"message_start")
            stage.broker.revoke(stage.grant)
            await reader.read()
            await stage.vendor.gone.wait()
            assert stage.grant.facts() == [Used(1600, 1, 500, 0.00161, model="m-1")]
            writer.close()

    play(history())


def test_a_client_that_leaves_ends_the_question_and_pays_for_it() -> None:
    """An agent that was killed must not keep a model busy; who asks and hangs up must not get answers for nothing."""

    async def hang(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await vendor.take_body(reader)
        vendor.bodies.append(await reader.read())

    async def history() -> None:
        async with staged(hang) as stage:
            _, writer = await asyncio.open_connection(*stage.host.split(":"))
            writer.write(stage.request())
            await writer.drain()
            await stage.vendor.asked.wait()
            writer.close()
            await stage.vendor.gone.wait()
            await settled(stage.grant)
            assert stage.grant.facts() == [Used(1046, 100, 0, 0.002046, model="m-1")], "the vendor may answer it all"

    play(history())


def test_a_stream_goes_through_unchanged_and_is_counted() -> None:
    """The client must not notice the broker, and the price must be the vendor's."""
    events = (START, delta("Hel"), delta("lo"), END)

    async def history() -> None:
        async with staged(stream(*events)) as stage:
            status, head, body = await stage.ask()
            assert (status, body) == (200, b"".join(events))
            assert "content-type: text/event-stream" in head
            assert stage.grant.facts() == [Used(1600, 30, 500, 0.0019, model="m-1")]
            assert stage.grant.why is None

    play(history())


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions"])
@pytest.mark.parametrize("streams", [True, False])
def test_every_dialect_is_counted_streamed_or_not(path: str, streams: bool) -> None:
    """Each vendor tells its count elsewhere; a count that is missed is money spent unseen."""

    async def history() -> None:
        tokens = ScriptedUsage(input=1200, output=50, cached=0 if path == "/v1/messages" else 1000)
        async with ModelServer({"told": (Say("Hello.", tokens=tokens),)}) as server, staged(said({})) as stage:
            grant = stage.broker.grant("k", Upstream(server.url("told")), price=per_million)
            other = BrokerSetup(stage.broker, stage.vendor, grant)
            status, _, body = await other.ask(
                path, json.dumps({"model": "m-2", "max_tokens": 99, "stream": streams}).encode()
            )
            assert status == 200
            assert b"Hello." in body
            assert grant.facts() == [Used(1200, 50, tokens.cached, 0.0017, model="m-2")]

    play(history())


def test_an_answer_is_cut_when_it_is_surely_longer_than_was_paid_for() -> None:
    """A vendor that does not heed the limit of an answer is stopped within it, with an error that the client reads."""
    rung: list[str] = []

    async def history() -> None:
        events = (START, *(delta("word " * 80) for _ in range(1000)), END)
        async with staged(stream(*events), 0.0036, on_budget=lambda: rung.append("x")) as stage:
            status, _, body = await stage.ask()
            assert status == 200
            *_, last, nothing = body.split(b"\n\n")
            assert nothing == b""
            assert last.startswith(b"event: error\n")
            assert b"Reached maximum budget ($0.0036)" in last
            assert len(body) < 3000
            assert (stage.grant.why, rung) == ("budget", ["x"])
            assert stage.grant.facts() == [Used(1600, 200, 500, 0.0036, model="m-1")]
            status, _, body = await stage.ask()
            assert (status, json.loads(body)["error"]["type"]) == (400, "budget_exhausted")
            assert (len(stage.vendor.heads), rung) == (1, ["x"])

    play(history())


@pytest.mark.parametrize(
    ("path", "first", "last"),
    [
        ("/v1/responses", {"type": "response.output_text.delta", "delta": "x" * 4000}, b"event: response.failed\n"),
        ("/v1/chat/completions", {"choices": [{"delta": {"content": "x" * 4000}}]}, b'data: {"error": '),
    ],
)
def test_a_cut_speaks_the_clients_dialect(path: str, first: dict[str, Any], last: bytes) -> None:
    """An error that the client can't read would be tried again, or taken for an answer."""

    async def history() -> None:
        created = {"type": "response.created", "response": {"model": "m-1"}} if "resp" in path else {"model": "m-1"}
        events = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in (created, first, first, first)]
        asked = b'{"model":"m-1","max_tokens":100,"max_output_tokens":100}'
        async with staged(stream(*events), 1.0) as stage:
            _, _, body = await stage.ask(path, asked)
            assert body.split(b"\n\n")[-2].startswith(last)
            assert b"budget_exhausted" in body
            (used,) = stage.grant.facts()
            assert isinstance(used, Used)
            assert used.output == 1000, "what was said, though more than was allowed"

    play(history())


def test_an_answer_that_is_complete_is_kept_though_it_was_too_dear() -> None:
    """It is paid for: the next question is refused instead."""
    dear = END.replace(b'"output_tokens":30', b'"output_tokens":3000')

    async def history() -> None:
        async with staged(stream(START, dear), 0.0036) as stage:
            _, _, body = await stage.ask()
            assert body == START + dear
            assert stage.grant.why is None
            assert (await stage.ask())[0] == 400
            assert stage.grant.why == "budget"

    play(history())


def test_an_unknown_price_is_not_zero() -> None:
    """Where the person lets such a model be asked, tokens are told and dollars are not made up."""

    async def history() -> None:
        async with staged(said({**MESSAGE, "model": "other"}), 1.0, rules=GrantRules(unpriced=True)) as stage:
            await stage.ask(body=b'{"model":"other","max_tokens":5}')
            assert stage.grant.facts() == [Used(1000, 20, 0, None, model="other")]

    play(history())


def test_another_name_in_the_answer_makes_it_no_cheaper() -> None:
    """A gateway may call the model as it likes: what has no price under its name has that of the one asked."""

    async def history() -> None:
        async with staged(said({**MESSAGE, "model": "other"}), 1.0) as stage:
            await stage.ask()
            assert stage.grant.facts() == [Used(1000, 20, 0, 0.0012, model="m-1")]

    play(history())


def test_a_refusal_by_the_vendor_is_a_fact_with_status_type_and_wait() -> None:
    """The first source for the class of a failed turn, before anything that the agent's program says."""
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}

    async def history() -> None:
        async with staged(said(error, "429 Too Many Requests", "retry-after: 7\r\n")) as stage:
            status, head, body = await stage.ask()
            assert (status, json.loads(body)) == (429, error)
            assert "retry-after: 7" in head
            facts = stage.grant.facts()
            assert facts == [Trouble("Slow down.", 429, "rate_limit_error", 7.0, final=False)]
            ended = ProcessEnded(1)
            found = classify([*facts, ended], expects_answer=True, now=0.0, zone=None)
            assert found is not None
            assert (found.kind, found.detail.retry_after) == (FailureKind.RATE_LIMIT, 7.0)

    play(history())


def test_a_later_answer_makes_earlier_trouble_history() -> None:
    """A program that tried again by itself did not fail by what it met before."""
    turns = [said({"error": {"message": "m"}}, "529 Overloaded"), said(MESSAGE)]

    async def history() -> None:
        async def answering(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await turns.pop(0)(vendor, reader, writer)

        async with staged(answering) as stage:
            await stage.ask()
            assert [type(fact) for fact in stage.grant.facts()] == [Trouble]
            await stage.ask()
            assert [type(fact) for fact in stage.grant.facts()] == [Used]
            assert classify([*stage.grant.facts(), Answered("x")], expects_answer=True, now=0.0, zone=None) is None

    play(history())


def test_an_error_within_a_stream_is_a_fact() -> None:
    """The status was 200 long before the model gave up."""
    broken = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'

    async def history() -> None:
        async with staged(stream(START, broken)) as stage:
            await stage.ask()
            assert stage.grant.facts()[-1] == Trouble("Overloaded", type="overloaded_error", final=False)

    play(history())


def test_windows_of_a_subscription_are_told_with_use_and_reset() -> None:
    """A cap is waited for until the second it ends."""
    headers = (
        "anthropic-ratelimit-unified-status: rejected\r\nanthropic-ratelimit-unified-5h-status: rejected\r\n"
        "anthropic-ratelimit-unified-5h-utilization: 1.01\r\nanthropic-ratelimit-unified-5h-reset: 1700003600\r\n"
        "anthropic-ratelimit-unified-7d-status: allowed\r\nanthropic-ratelimit-unified-7d-utilization: 0.4\r\n"
        "anthropic-ratelimit-unified-7d-reset: 1700400000\r\n"
    )
    error = {"error": {"type": "rate_limit_error", "message": "This would exceed your account's rate limit."}}

    async def history() -> None:
        async with staged(said(error, "429 Too Many Requests", headers)) as stage:
            await stage.ask()
            five, week, trouble = stage.grant.facts()
            assert five == LimitSeen(True, "five_hour", 1.01, 1_700_003_600.0)
            assert week == LimitSeen(False, "week", 0.4, 1_700_400_000.0)
            found = classify([five, week, trouble], expects_answer=True, now=1_700_000_000.0, zone=None)
            assert found is not None
            assert (found.kind, found.detail.resets_at) == (FailureKind.CAP, 1_700_003_600.0)

    play(history())


def test_an_upstream_that_is_not_there_is_told_as_unreachable() -> None:
    """The agent gets an answer at once, the ladder gets the class; nothing is tried again here."""

    async def history() -> None:
        async with staged(said({})) as stage:
            gone = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
            port = gone.sockets[0].getsockname()[1]
            gone.close()
            await gone.wait_closed()
            grant = stage.broker.grant("k", Upstream(f"http://127.0.0.1:{port}"), price=per_million)
            status, _, body = await BrokerSetup(stage.broker, stage.vendor, grant).ask()
            assert (status, json.loads(body)["error"]["type"]) == (502, UNREACHABLE)
            found = classify([*grant.facts(), ProcessEnded(1)], expects_answer=True, now=0.0, zone=None)
            assert found is not None
            assert found.kind is FailureKind.UNREACHABLE

    play(history())


def test_fifty_turns_at_once_stay_apart() -> None:
    """Each sees its own answer and pays its own price."""

    async def echo(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = vendor.heads[-1].lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        count = json.loads(await reader.readexactly(length))["max_tokens"]
        body = json.dumps({"model": "m-1", "usage": {"input_tokens": count, "output_tokens": 1}}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    async def history() -> None:
        async with staged(echo) as stage:
            grants = [stage.broker.grant(f"k{n}", stage.grant.upstream, price=per_million) for n in range(100, 150)]
            stages = [BrokerSetup(stage.broker, stage.vendor, grant) for grant in grants]
            answers = await asyncio.gather(
                *(each.ask(body=b'{"model":"m-1","max_tokens":%d}' % n) for n, each in enumerate(stages, 100))
            )
            assert [json.loads(body)["usage"]["input_tokens"] for _, _, body in answers] == list(range(100, 150))
            for n, grant in enumerate(grants, 100):
                assert grant.facts() == [Used(n, 1, 0, (n + 10) / 1e6, model="m-1")]

    play(history())
