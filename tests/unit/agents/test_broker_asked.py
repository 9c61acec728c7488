"""What a turn may ask: requests that can be counted before they are sent, of models that it was given."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from bailiwick.agents.broker import admission
from bailiwick.agents.broker.grants import Grant, GrantRules, Upstream
from bailiwick.agents.broker.models import ModelList
from bailiwick.agents.broker.purse import Purse
from bailiwick.agents.classify import classify
from bailiwick.agents.port import ProcessEnded, Used
from bailiwick.engine.failures import FailureKind
from tests.unit.agents.broker_stage import (
    BODY,
    per_million,
    said,
    settled,
    staged,
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


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b"nonsense", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"max_tokens":5}', "names no model"),
        (b'{"model":"","max_tokens":5}', "names no model"),
        (b'{"model":["m-1"],"max_tokens":5}', "names no model"),
        (b'{"model":"m-1","max_tokens":5,"max_tokens":50000}', "there twice"),
        (b'{"model":"m-1","max_tokens":5,"a":{"b":1,"b":2}}', "there twice"),
        (b'{"model":"m-1","max_tokens":5,"Model":"m-2"}', "another way"),
        (b'{"model":"m-1","max_tokens":5,"max_to\\u212aens":9}', "another way"),
        (b'{"model":"m-1","max_tokens":-1}', "max_tokens is not a whole number"),
        (b'{"model":"m-1","max_tokens":0}', "max_tokens is not a whole number"),
        (b'{"model":"m-1","max_tokens":1.5}', "max_tokens is not a whole number"),
        (b'{"model":"m-1","max_tokens":1e3}', "max_tokens is not a whole number"),
        (b'{"model":"m-1","max_tokens":"9"}', "max_tokens is not a whole number"),
        (b'{"model":"m-1","max_tokens":true}', "max_tokens is not a whole number"),
        (b'{"model":"m-1","max_tokens":NaN}', "not a JSON number"),
        (b'{"model":"m-1","max_tokens":1e999}', "too large"),
        (b'{"model":"m-1","max_tokens":99999999999}', "max_tokens is not a whole number"),
        (b'{"model":"m-1","max_tokens":%s}' % (b"9" * 5000), "not JSON"),
        (b'{"model":"m-1","max_tokens":5,"n":1000}', "n is not a whole number"),
        (b'{"model":"m-1","max_tokens":5,"n":0}', "n is not a whole number"),
        (b'{"model":"m-1","max_tokens":5,"a":%s1%s}' % (b"[" * 200, b"]" * 200), "nested"),
        (b'{"model":"m-1","max_tokens":5,"a":%s' % (b"[" * 100_000), "nested"),
        (b'{"model":"m-1","max_tokens":5,"a":"\xff"}', "not JSON"),
        (b'{"model":"m-1","max_tokens":5,"previous_response_id":"r"}', "previous_response_id"),
        (b'{"model":"m-1","max_tokens":5,"background":true}', "background"),
        (b'{"model":"m-1","max_tokens":5,"models":["m-2"]}', "models"),
        (b'{"model":"m-1","max_tokens":5,"mcp_servers":[{"url":"https://x"}]}', "mcp_servers"),
        (b'{"model":"m-1","max_tokens":5,"service_tier":"priority"}', "service_tier"),
        (b'{"model":"m-1","max_tokens":5,"speed":"fast"}', "speed"),
        (b'{"model":"m-1","max_tokens":5,"tools":[{"type":"web_search_20250305"}]}', "vendor runs"),
        (b'{"model":"m-1","max_tokens":5,"tools":{}}', "not a list"),
        (b'{"model":"m-1","messages":[{"content":[{"type":"image","source":{"type":"url","url":"x"}}]}]}', "its data"),
        (b'{"model":"m-1","input":[{"type":"input_image","image_url":"https://x/?q=secret"}]}', "its data"),
        (b'{"model":"m-1","input":[{"type":"input_file","file_id":"f"}]}', "its data"),
        (b'{"model":"m-1","input":[{"type":"item_reference","id":"f"}]}', "its data"),
    ],
)
def test_a_request_that_can_not_be_counted_is_refused(body: bytes, words: str) -> None:
    """What two readers could read in two ways, or stands for more than it holds, is never sent."""

    async def history() -> None:
        async with staged(said(usage(1, 1)), 1.0) as stage:
            status, _, got = await stage.ask(body=body)
            assert (status, stage.vendor.heads) == (400, [])
            assert words in json.loads(got)["error"]["message"]
            await settled(stage.grant)
            assert (stage.grant.purse.spent, stage.grant.purse.reserved, stage.grant.bodies) == (0.0, 0.0, 0)

    play(history())


def test_a_compressed_request_is_refused() -> None:
    """What can't be read can't be counted."""

    async def history() -> None:
        async with staged(said(usage(1, 1)), 1.0) as stage:
            status, _, _ = await stage.ask(extra="content-encoding: gzip\r\n")
            assert (status, stage.vendor.heads) == (415, [])

    play(history())


def test_tools_that_the_vendor_runs_are_left_out_where_others_remain() -> None:
    """An agent that offers a search among its tools works on without it; what it costs is in no count of tokens."""
    own = [{"type": "function", "name": "edit"}, {"name": "read", "input_schema": {"source": {"type": "url"}}}]

    async def history() -> None:
        async with staged(said(usage(1, 1)), 1.0) as stage:
            assert (await stage.ask(body=request(tools=[*own, {"type": "web_search"}])))[0] == 200
            assert json.loads(stage.vendor.bodies[0])["tools"] == own

    play(history())


def test_images_count_by_what_they_can_be_and_documents_by_what_the_model_takes() -> None:
    """The bytes of an image tell nothing of its tokens; a document may have more pages than bytes tell."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x" * 400_000}}
    paper = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "x"}}

    async def history() -> None:
        silent = said({"model": "m-1"})
        async with staged(silent, 1.0) as stage:
            asked = request(messages=[{"role": "user", "content": [picture]}])
            assert (await stage.ask(body=asked))[0] == 200
            await settled(stage.grant)
            assert used(stage.grant).input == len(asked) - 400_000 + 5_000 + 1_000
            status, _, got = await stage.ask(body=request(messages=[{"role": "user", "content": [paper]}]))
            assert (status, "document" in json.loads(got)["error"]["message"]) == (400, True)

    play(history())


def test_only_models_of_the_turn_are_asked() -> None:
    """An agent that was talked into it must not use the dearest model of the house."""

    async def history() -> None:
        rules = GrantRules(ModelList(("m-1", "m-mini")))
        async with staged(said(usage(1, 1)), 1.0, rules=rules) as stage:
            assert (await stage.ask(body=request(model="m-1-20260101")))[0] == 200
            assert (await stage.ask(body=request(model="m-mini")))[0] == 200
            for path in ("/v1/messages", "/v1/messages/count_tokens"):
                status, _, got = await stage.ask(path, request(model="m-2"))
                assert (status, json.loads(got)["error"]["type"]) == (403, "permission_error")
                assert "only m-1, m-mini" in json.loads(got)["error"]["message"]
            assert len(stage.vendor.heads) == 2
            found = classify([*stage.grant.facts(), ProcessEnded(1)], expects_answer=True, now=0.0, zone=None)
            assert found is not None
            assert found.kind is FailureKind.BILLING, "the operator has to change something: nothing is tried again"

    play(history())


def test_a_model_without_a_price_is_asked_only_where_that_is_allowed() -> None:
    """Unknown is not free."""

    async def history() -> None:
        async with staged(said(usage(1, 1)), 1.0) as stage:
            status, _, got = await stage.ask(body=request(model="other"))
            assert (status, stage.vendor.heads) == (403, [])
            assert "budget.unknown_cost allow" in json.loads(got)["error"]["message"]
        async with staged(said(usage(1, 1)), 1.0, rules=GrantRules(unpriced=True)) as stage:
            body = request(model="other")
            assert (await stage.ask(body=body))[0] == 200
            assert stage.vendor.bodies == [body]

    play(history())


def test_a_vendors_stream_is_asked_for_its_count_and_a_gateways_is_left_alone() -> None:
    """A chat stream tells its use only where it is asked to."""
    vendor, gateway = Upstream("https://api.openai.com"), Upstream("http://127.0.0.1:9")
    assert (vendor.is_vendor, gateway.is_vendor) == (True, False)

    async def history() -> None:
        for upstream, tells in ((vendor, True), (gateway, False)):
            grant = Grant("k", "", "", upstream, Purse(1.0), per_million)
            asked = await admission.read("/v1/chat/completions", request(stream=True), grant)
            ticket = await admission.admit(asked, grant, "", 1.0)
            sent = json.loads(ticket.asked.sent())
            assert sent.get("stream_options") == ({"include_usage": True} if tells else None)

    play(history())


def test_a_request_that_fits_is_sent_as_it_came() -> None:
    """Not a byte is changed where nothing has to be."""
    body = b'{ "max_tokens" : 9,\n "model": "m-1", "x": "\\u00e9" }'

    async def history() -> None:
        async with staged(said(usage(1, 1)), 1.0) as stage:
            await stage.ask(body=body)
            assert stage.vendor.bodies == [body]
            assert BODY  # the plain one goes the same way in every other test

    play(history())
