"""The application's doors: host, origin, token, rate, size; and what stands behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.clock import ManualClock
from bailiwick.errors import NotReady
from bailiwick.service import asgi_app as module
from bailiwick.service.asgi import App
from bailiwick.service.asgi_app import Part, Parts, create_app, require_extra
from bailiwick.service.hosts import Hosts
from bailiwick.service.limits import CLIENTS, Rate, RateCounter, RequestLimits
from tests.unit.service.desk import parts
from tests.unit.service.door import Reply, echo, knock

READER = {"authorization": "Bearer reading"}
RULER = {"authorization": "Bearer ruling"}
THING = Part("/thing", echo, "read")
DANGER = Part("/danger", echo, "admin")


def ask(
    made: Parts, path: str = "/thing", *, headers: dict[str, str] | None = None, client: str = "127.0.0.1"
) -> Reply:
    app: App = create_app(made)
    return asyncio.run(knock(app, path, headers, client=client))


def test_without_a_token_there_is_nothing() -> None:
    """Not even which paths exist is told to a stranger."""
    for path in ("/thing", "/nowhere"):
        reply = ask(parts(THING), path)
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == 'Bearer realm="bailiwick"'
    wrong = ask(parts(THING), headers={"authorization": "Bearer nope"})
    assert wrong.status == 401
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]


@pytest.mark.parametrize("value", ["reading", "Basic reading", "Bearer", "Bearer reading, Bearer ruling", ""])
def test_only_a_bearer_token_counts(value: str) -> None:
    """A header that is half right must not be taken for a right one."""
    assert ask(parts(THING), headers={"authorization": value}).status == 401


def test_a_token_opens_what_its_scope_reaches() -> None:
    """403 names the scope that is needed, so that the right token can be made."""
    assert ask(parts(THING), headers=READER).json == {"size": 0, "who": "reader"}
    refused = ask(parts(DANGER), "/danger", headers=READER)
    assert refused.status == 403
    assert 'error="insufficient_scope", scope="admin"' in refused.headers["www-authenticate"]
    assert "--scope admin" in refused.json["hint"]
    assert ask(parts(DANGER), "/danger", headers=RULER).status == 200


def test_without_a_token_only_this_machine_may_read_and_only_where_allowed() -> None:
    """A proxy on this machine speaks for the whole world: what it passes on is not from here."""
    made = parts(THING, DANGER, anonymous=True)
    assert ask(made).json["who"] == "anonymous"
    assert ask(made, "/danger").status == 403
    assert ask(made, client="192.0.2.7").status == 401
    assert ask(made, headers={"x-forwarded-for": "192.0.2.7"}).status == 401
    assert ask(made, headers={"authorization": "Bearer nope"}).status == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:3200", 200),
        ("localhost:3200", 200),
        ("LOCALHOST", 200),
        ("[::1]:3200", 200),
        ("bw.example.org", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:3200", 421),
        ("localhost@evil.example", 421),
        ("", 421),
        ("[::1", 421),
        ("localhost, evil.example", 421),
    ],
)
def test_only_names_of_ours_are_answered(host: str, status: int) -> None:
    """A foreign name that resolves to this machine is how a web page reaches a local service."""
    made = replace(parts(THING), hosts=Hosts.of("127.0.0.1", "https://bw.example.org/x"))
    assert ask(made, headers={**READER, "host": host}).status == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:3200", 200),
        ("https://bw.example.org", 200),
        ("http://127.0.0.1:5173", 403),
        ("http://evil.example", 403),
        ("null", 403),
        ("http://127.0.0.1:3200.evil.example", 403),
    ],
)
def test_pages_of_other_origins_are_refused(origin: str, status: int) -> None:
    """A page in the person's browser can reach every local port; its origin gives it away."""
    made = replace(parts(THING), hosts=Hosts.of("127.0.0.1", "https://bw.example.org"))
    assert ask(made, headers={**READER, "origin": origin}).status == status


def test_a_request_is_read_whole_within_its_size() -> None:
    """Memory is not the client's to fill, whether it says how much it sends or not."""
    app: App = create_app(parts(THING, limits=RequestLimits(body=10, drain_seconds=0.01)))
    assert asyncio.run(knock(app, headers=READER, chunks=(b"12345", b"67890"))).json["size"] == 10
    assert asyncio.run(knock(app, headers=READER, chunks=(b"12345", b"678901"))).status == 413
    declared = {**READER, "content-length": "11"}
    assert asyncio.run(knock(app, headers=declared, chunks=(None,))).status == 413
    assert asyncio.run(knock(app, headers={**READER, "content-length": "-1"}, chunks=(None,))).status == 413


def test_a_request_that_does_not_arrive_is_given_up() -> None:
    """A client that sends a byte a minute would hold a place for ever."""
    app: App = create_app(parts(THING, limits=RequestLimits(body_seconds=0.01)))
    assert asyncio.run(knock(app, headers=READER, chunks=(b"1", None))).status == 408


def test_a_client_that_asks_too_often_is_told_when_to_come_back() -> None:
    """One client in a loop must not take the service from the others."""
    made = replace(parts(THING, limits=RequestLimits(each=Rate(2, 0.5))), clock=ManualClock())
    app: App = create_app(made)

    async def go() -> list[Reply]:
        out = [await knock(app, headers=READER) for _ in range(3)]
        return [*out, await knock(app, headers=RULER), await knock(app, headers=READER, client="192.0.2.1")]

    found = asyncio.run(go())
    assert [reply.status for reply in found] == [200, 200, 429, 200, 200]
    assert found[2].headers["retry-after"] == "2"


def test_an_address_that_shows_wrong_tokens_has_to_wait() -> None:
    """Guessing has to be slow; after a while the address may guess again."""
    clock = ManualClock()
    app: App = create_app(replace(parts(THING, limits=RequestLimits(refused=Rate(2, 1))), clock=clock))

    async def go() -> list[int]:
        wrong = [(await knock(app, headers={"authorization": f"Bearer {n}"})).status for n in range(3)]
        other = (await knock(app, headers={"authorization": "Bearer x"}, client="192.0.2.1")).status
        clock.advance(1)
        return [*wrong, other, (await knock(app)).status]

    assert asyncio.run(go()) == [401, 401, 429, 401, 401]


@given(st.lists(st.booleans(), max_size=60))
def test_wrong_tokens_never_keep_a_right_one_out(asked: list[bool]) -> None:
    """Behind one address there may be many: what one of them shows is not the others' fault."""
    app: App = create_app(replace(parts(THING, limits=RequestLimits(refused=Rate(3, 0.001))), clock=ManualClock()))

    async def go() -> list[int]:
        return [
            (await knock(app, headers=READER if right else {"authorization": "Bearer x"})).status for right in asked
        ]

    found = list(zip(asked, asyncio.run(go()), strict=True))
    assert all(status == 200 for right, status in found if right)
    assert [status for right, status in found if not right][3:] == [429] * (asked.count(False) - 3)


def test_what_a_refused_request_still_sends_is_taken_before_it_is_refused() -> None:
    """Else the connection is reset under the client, who never reads why; there is a bound to that too."""
    app: App = create_app(parts(THING, limits=RequestLimits(body=10, drain=30, drain_seconds=120)))
    sent = {"content-length": "40"}

    async def go(headers: dict[str, str], chunks: list[bytes | None]) -> tuple[int, int]:
        reply = await knock(app, headers={**sent, **headers}, chunks=chunks)
        return reply.status, len(chunks)

    assert asyncio.run(go(READER, [b"x" * 10] * 4))[0] == 413
    assert asyncio.run(go({"authorization": "Bearer wrong"}, [b"x" * 10] * 4))[0] == 401
    assert asyncio.run(go(READER, [b"x" * 31, None]))[0] == 413
    assert asyncio.run(go({**READER, "expect": "100-continue"}, [None]))[0] == 413


def test_the_meter_forgets_the_quietest_client_first() -> None:
    """A list that grows with every address is a way to fill our memory."""
    meter = RateCounter(Rate(1, 1), ManualClock())
    for number in range(CLIENTS + 1):
        meter.take(str(number))
    assert meter.take("0") == 0.0
    assert meter.take(str(CLIENTS)) > 0


def test_anybody_may_ask_whether_we_are_there_and_ready() -> None:
    """A watcher has no token; it learns nothing but a word."""

    async def why() -> str:
        return "the disk is full"

    made = replace(parts(), ready=why)
    assert ask(made, "/healthz").json == {"status": "ok"}
    unready = ask(made, "/readyz")
    assert (unready.status, unready.json) == (503, {"status": "the disk is full"})
    assert ask(parts(), "/readyz").status == 200


def test_parts_are_opened_before_and_closed_after_serving() -> None:
    """A part that is served while it is closed answers with an internal error."""
    heard: list[str] = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        heard.append("open")
        yield
        heard.append("closed")

    made = create_app(parts(Part("/thing", echo, "read", open=opened)))

    async def go() -> None:
        async with made.router.lifespan_context(made):
            heard.append("serving")

    asyncio.run(go())
    assert heard == ["open", "serving", "closed"]


def test_a_missing_extra_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages of the service are optional: most people never need them."""
    monkeypatch.setattr(module, "NEEDED", ("mcp", "a_package_that_is_not_there"))
    with pytest.raises(NotReady, match="a_package_that_is_not_there") as caught:
        require_extra()
    assert caught.value.hint == "pip install 'bailiwick[service]'"
