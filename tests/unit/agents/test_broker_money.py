"""Whatever a turn sends and however it is answered: it never costs more than its limit, and nothing is free."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from bailiwick.agents.broker import admission
from bailiwick.agents.broker.forward import Patience
from bailiwick.agents.broker.grants import Grant, GrantRules, Upstream
from bailiwick.agents.port import Trouble, Used
from bailiwick.testing.model_server.script import Say, ScriptedUsage
from bailiwick.testing.model_server.server import ModelServer
from tests.unit.agents.broker_stage import (
    Answering,
    BrokerSetup,
    Vendor,
    answer,
    per_million,
    said,
    settled,
    staged,
    stream,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from bailiwick.ids import Json

MODEL = {"model": "m-1"}


def play(history: Coroutine[Any, Any, None]) -> None:
    """Run a test's story to its end."""
    asyncio.run(asyncio.wait_for(history, 600))


def request(**fields: Json) -> bytes:
    """A request of a model with a known price."""
    return json.dumps({"model": "m-1", "max_tokens": 1000, **fields}).encode()


def used(grant: Grant) -> Used:
    """What a grant's one model used."""
    (fact,) = [fact for fact in grant.facts() if isinstance(fact, Used)]
    return fact


def usage(count: int, output: int) -> dict[str, Json]:
    """An answer in one piece that tells what it used."""
    return {"model": "m-1", "usage": {"input_tokens": count, "output_tokens": output}}


def test_a_hundred_requests_at_once_never_spend_more_than_the_limit() -> None:
    """Each alone would fit: together they are admitted only as far as all of them can be paid."""
    body = request(max_tokens=400)
    dear = ScriptedUsage(
        input=len(body), output=400, cached=0
    )  # exactly what each may cost at most, but for what is around

    async def history() -> None:
        async with ModelServer({"dear": [Say("x", tokens=dear)]}) as server, staged(said({})) as stage:
            rung: list[str] = []
            grant = stage.broker.grant(
                "k",
                Upstream(server.url("dear")),
                limit_usd=0.0205,
                price=per_million,
                on_budget=lambda: rung.append("x"),
            )
            many = BrokerSetup(stage.broker, stage.vendor, grant)
            answers = await asyncio.gather(*(many.ask(body=body) for _ in range(100)))
            statuses = [status for status, _, _ in answers]
            cost = (len(body) + 4000) / 1e6
            assert statuses.count(200) == server.count("dear")
            assert statuses.count(200) + statuses.count(400) == 100
            assert grant.purse.spent == pytest.approx(statuses.count(200) * cost)
            assert 3 <= statuses.count(200) <= 5, "what is left is used, as far as a whole answer fits"
            assert grant.purse.spent <= 0.0205
            assert (grant.purse.reserved, grant.why, rung) == (0.0, "budget", ["x"])

    play(history())


def test_requests_beside_each_other_wait_for_what_others_may_still_cost() -> None:
    """A helper's call beside the agent's own must not end a turn that has money left."""
    release = asyncio.Event()

    async def slow(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(vendor.heads) == 1:
            vendor.asked.set()
            await release.wait()
        await said(usage(50, 1))(vendor, reader, writer)

    async def history() -> None:
        async with staged(slow, 0.015) as stage:
            first = asyncio.ensure_future(stage.ask(body=request()))
            await stage.vendor.asked.wait()
            second = asyncio.ensure_future(stage.ask(body=request()))
            assert (await stage.ask("/v1/files"))[0] == 403
            assert (len(stage.vendor.heads), second.done()) == (1, False)
            release.set()
            assert [(await first)[0], (await second)[0]] == [200, 200]
            assert stage.grant.why is None

    play(history())


def test_who_waits_too_long_is_told_to_ask_again_and_the_turn_goes_on() -> None:
    """Others hold what is left: that is no reason to end the turn."""

    async def hang(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        vendor.asked.set()
        await reader.read()

    async def history() -> None:
        async with staged(hang, 0.012, Patience(turn=0.01)) as stage:
            first = asyncio.ensure_future(stage.ask(body=request()))
            await stage.vendor.asked.wait()
            status, _, body = await stage.ask(body=request())
            assert (status, json.loads(body)["error"]["type"]) == (429, "rate_limit_error")
            assert stage.grant.why is None
            stage.broker.revoke(stage.grant)
            await first
            assert stage.grant.purse.reserved == 0

    play(history())


def test_an_answer_is_allowed_as_many_tokens_as_can_be_paid() -> None:
    """Rather a shorter answer than none; below what is worth asking for the request is refused."""

    async def history() -> None:
        async with staged(said(usage(50, 1)), 0.0220) as stage:
            body = request(max_tokens=32_000, system="s" * 100)
            status, _, _ = await stage.ask(body=body)
            sent = json.loads(stage.vendor.bodies[0])
            assert status == 200
            assert sent == {**json.loads(body), "max_tokens": (22_000 - len(body) - 1000) // 10}

        async with staged(said(usage(50, 1)), 0.0110) as stage:
            status, _, got = await stage.ask(body=request(max_tokens=32_000))
            assert (status, stage.vendor.heads, stage.grant.why) == (400, [], "budget")
            words = json.loads(got)["error"]["message"]
            assert words.startswith("Reached maximum budget ($0.011) of this turn: this request can cost $0.01")
            grant = stage.broker.grant("k2", stage.grant.upstream, limit_usd=0.002, price=per_million)
            small = BrokerSetup(stage.broker, stage.vendor, grant)
            assert (await small.ask(body=request(max_tokens=5)))[0] == 200, "a short answer needs no more"

    play(history())


def test_thinking_is_not_clamped_below_its_own_budget() -> None:
    """The vendor refuses a limit that is not above the tokens for thinking: then the request is refused instead."""
    thinking = {"type": "enabled", "budget_tokens": 2000}

    async def history() -> None:
        async with staged(said(usage(50, 1)), 0.025) as stage:
            assert (await stage.ask(body=request(max_tokens=32_000, thinking=thinking)))[0] == 400
        async with staged(said(usage(50, 1)), 0.035) as stage:
            assert (await stage.ask(body=request(max_tokens=32_000, thinking=thinking)))[0] == 200
            assert 3024 <= json.loads(stage.vendor.bodies[0])["max_tokens"] < 3400

    play(history())


@pytest.mark.parametrize(
    ("path", "name"), [("/v1/responses", "max_output_tokens"), ("/v1/chat/completions", "max_tokens")]
)
def test_an_answer_without_a_limit_is_given_one(path: str, name: str) -> None:
    """Else nobody could say what it costs at most; every choice counts."""

    async def history() -> None:
        async with staged(said(usage(50, 1)), 1.0) as stage:
            assert (await stage.ask(path, b'{"model":"m-1"}'))[0] == 200
            assert json.loads(stage.vendor.bodies[0])[name] == 16_000
        async with staged(said(usage(50, 1)), 0.2, rules=GrantRules(answer_tokens=2000)) as stage:
            assert (await stage.ask(path, b'{"model":"m-1","n":9}'))[0] == 200
            assert (await stage.ask(path, b'{"model":"m-1","n":99}'))[0] == 400
            assert len(stage.vendor.heads) == 1

    play(history())


def test_what_the_vendor_counted_makes_the_next_prompt_smaller() -> None:
    """A long session is not refused for bytes whose tokens are known."""
    long = "word " * 20_000

    async def history() -> None:
        async with staged(said(usage(20_000, 10)), 0.25) as stage:
            first = request(messages=[{"role": "user", "content": long}], system="be brief")
            more = [{"role": "user", "content": long}, {"role": "assistant", "content": "y" * 500}]
            second = request(messages=more, system="be brief")
            assert (await stage.ask(body=first))[0] == 200
            assert (await stage.ask(body=second))[0] == 200
            asked = await admission.read("/v1/messages", second, stage.grant)
            ticket = await admission.admit(asked, stage.grant, "", 1.0)
            assert 20_000 < ticket.meter.most.input < 20_200

    play(history())


def no_usage(*events: bytes) -> Answering:
    """A stream in which nobody counts."""
    return stream(b'data: {"model":"m-1","choices":[]}\n\n', *events, b"data: [DONE]\n\n")


SPOKEN = b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n'


@pytest.mark.parametrize(
    ("answering", "output"),
    [
        (no_usage(SPOKEN % (b"x" * 600)), 300),
        (no_usage(SPOKEN % (b"x" * 600), b'data: {"usage":{"prompt_tokens":0,"completion_tokens":0}}\n\n'), 300),
        (stream(b"data: no json " + b"x" * 592 + b"\n\n"), 300),
        (said({"model": "m-1", "choices": [{"message": {"content": "x" * 540}}]}), 300),
        (answer("200 OK", "content-type: application/json\r\n", b'{"a":"' + b"x" * (10 << 20)), 1000),
        (answer("200 OK", "content-type: text/html\r\n", b"<html>" + b"x" * 10), 8),
    ],
    ids=["no usage", "usage of nothing", "no JSON", "whole without usage", "10 MB", "no model at all"],
)
def test_an_answer_that_tells_no_count_is_counted_by_what_was_said(answering: Answering, output: int) -> None:
    """Nothing is free because nobody counted it; the prompt counts at its most."""

    async def history() -> None:
        async with staged(answering, 1.0) as stage:
            asked = request()
            assert (await stage.ask("/v1/chat/completions", asked))[0] == 200
            await settled(stage.grant)
            spent = used(stage.grant)
            assert (spent.input, spent.output) == (len(asked) + 1000, output)
            assert spent.usd == pytest.approx(stage.grant.purse.spent)
            assert stage.grant.purse.reserved == 0

    play(history())


def test_an_answer_that_breaks_off_is_paid_for_as_far_as_it_came() -> None:
    """Vendors bill it too."""

    async def drop(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await vendor.take_body(reader)
        event = SPOKEN % (b"x" * 200)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n" + event)

    async def history() -> None:
        async with staged(drop, 1.0) as stage:
            reader, writer = await asyncio.open_connection(*stage.host.split(":"))
            writer.write(stage.request("/v1/chat/completions", request()))
            await reader.read()
            writer.close()
            await settled(stage.grant)
            assert used(stage.grant).output == 100
            assert stage.grant.purse.reserved == 0

    play(history())


@pytest.mark.parametrize("begins", [False, True], ids=["before the answer", "within the answer"])
def test_a_client_that_hangs_up_pays_in_full(begins: bool) -> None:
    """Else whoever asks and leaves would have the vendor work for nothing, again and again."""

    async def hang(vendor: Vendor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await vendor.take_body(reader)
        if begins:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + SPOKEN % b"x")
        await reader.read()

    async def history() -> None:
        async with staged(hang, 1.0) as stage:
            reader, writer = await asyncio.open_connection(*stage.host.split(":"))
            writer.write(stage.request(body=request()))
            await stage.vendor.asked.wait()
            if begins:
                await reader.readuntil(b"delta")
            writer.close()
            await stage.vendor.gone.wait()
            await settled(stage.grant)
            assert used(stage.grant).output == 1000
            assert stage.grant.purse.reserved == 0

    play(history())


@pytest.mark.parametrize("status", ["400 Bad Request", "429 Too Many Requests", "500 Oops", "529 Overloaded"])
def test_what_never_began_costs_nothing(status: str) -> None:
    """A vendor that refuses does not bill."""

    async def history() -> None:
        async with staged(said({"error": {"message": "no"}}, status), 1.0) as stage:
            await stage.ask()
            await settled(stage.grant)
            assert (stage.grant.purse.spent, stage.grant.purse.reserved) == (0.0, 0.0)
            assert [type(fact) for fact in stage.grant.facts()] == [Trouble]

    play(history())
