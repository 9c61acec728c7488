"""Asking one model: what reaches its endpoint, and that each way in which an endpoint fails is one attempt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bailiwick.agents.asking import TurnRunner
from bailiwick.agents.settings import AgentSettings
from bailiwick.clock import SystemClock
from bailiwick.ids import Json
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.routing.endpoints import Endpoints
from bailiwick.routing.generate import Stop, Stopped
from bailiwick.routing.model import Candidate, Chain, Job, Outcome
from bailiwick.routing.models_file import Models
from bailiwick.routing.service import Router
from bailiwick.testing.model_server.script import Hang, Say
from tests.model_places import FAULTS, ModelPlaces, Stub, faulty, refused
from tests.unit.config.places import ConfigLayers
from tests.unit.routing.stand_ins import job

RESULT = json.dumps({"status": "pass", "message": "It holds."})
ACCEPT = json.dumps({"accept": True, "feedback": ""})
ANSWERS = Stub(says=(Say(RESULT),))


@asynccontextmanager
async def router(
    folder: Path, endpoints: dict[str, Json], models: Models, total: float = 20.0
) -> AsyncIterator[Router]:
    """A router whose desk asks for real, for at most `total` seconds."""
    clock = SystemClock()
    store = await SqliteStore.open(folder / "bailiwick.db", now=clock.now)
    settings = AgentSettings(endpoints=endpoints, total=total)
    secret = {name: part.get("token") for name, part in endpoints.items()}
    try:
        yield Router(
            config=ConfigLayers(folder).load(),
            store=store,
            clock=clock,
            turns=TurnRunner(settings, store, clock),
            models=lambda: models,
            endpoints=Endpoints(endpoints, secret=secret.get),
        )
    finally:
        await store.close()


async def call(router: Router, given: Job, cancel: asyncio.Event | None = None) -> Outcome:
    """Route a call that nobody watches."""
    return await router.call(given, None, show=lambda _text: None, cancel=cancel or asyncio.Event())


@pytest.mark.parametrize("fault", [*FAULTS, "refused"])
def test_each_fault_of_an_endpoint_is_one_attempt_and_the_next_tier_runs(tmp_path: Path, fault: str) -> None:
    """Down, slow, lying or endless: the call goes on, and what was wrong is on record."""

    async def go() -> Outcome:
        stub = Stub() if fault == "refused" else faulty(fault)
        with refused() as nobody:
            async with ModelPlaces({"bad": stub, "good": ANSWERS}) as places:
                url = nobody if fault == "refused" else places.url("bad")
                endpoints = {"bad": {"url": url}, "good": {"url": places.url("good")}}
                models = Models(default_chain=("bad/one", "good/deepseek-r1"))
                total = 0.8 if fault in ("timeout", "slow-loris") else 20.0
                async with router(tmp_path, endpoints, models, total) as made:
                    return await call(made, job())

    outcome = asyncio.run(go())
    first, second = outcome.result.attempts
    assert (first.model, first.verdict, first.verified) == ("bad/one", "error", None)
    assert first.feedback
    assert (first.cost, second.cost) == (0.0, 0.0)
    assert (second.verdict, outcome.result.status, outcome.error) == ("accept_unverified", "pass", "")


@pytest.mark.parametrize(
    ("name", "sent", "token"), [("litellm", "ollama/phi4", "sk-1"), ("ollama", "phi4", None), ("openai", "phi4", None)]
)
def test_names_and_keys_reach_an_endpoint_as_it_wants_them(
    tmp_path: Path, name: str, sent: str, token: str | None
) -> None:
    """LiteLLM gets the whole name, others the bare one; a bearer only where a key is set."""

    async def go() -> ModelPlaces:
        async with ModelPlaces({"here": ANSWERS}) as places:
            endpoints = {name: {"url": places.url("here"), "token": token, "cloud": False}}
            async with router(tmp_path, endpoints, Models(default_chain=("ollama/phi4",))) as made:
                assert (await call(made, job(discipline="LAW", task="TASK"))).error == ""
            return places

    (seen,) = [one for one in asyncio.run(go()).requests if one.method == "POST"]
    assert seen.path == "/v1/chat/completions"
    assert seen.body["model"] == sent
    assert seen.headers.get("authorization") == (f"Bearer {token}" if token else None)
    system, user = seen.body["messages"]
    assert (system["role"], user) == ("system", {"role": "user", "content": "TASK"})
    assert system["content"].startswith("LAW")


def test_a_model_that_is_loaded_is_told_as_warm(tmp_path: Path) -> None:
    """The probe goes beside the work: it is done long before the verifier has spoken."""

    async def go() -> list[bool]:
        async with ModelPlaces(
            {"swap": Stub(loaded=["one"], says=(Say(RESULT), Say(ACCEPT), Say(RESULT), Say(ACCEPT)))}
        ) as places:
            endpoints = {"llama-swap": {"url": places.url("swap")}}
            warm = []
            for model in ("one", "two"):
                models = Models(verifier="one", default_chain=(model,))
                async with router(tmp_path / model, endpoints, models) as made:
                    outcome = await call(made, job())
                    assert outcome.result.verified is True
                    warm.append(outcome.result.attempts[0].warm_start)
            return warm

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert asyncio.run(go()) == [True, False]


def test_a_cancelled_call_hangs_up_at_once(tmp_path: Path) -> None:
    """A server needs no time to end as a program does; whoever cancelled is waiting."""

    async def go() -> Outcome:
        async with ModelPlaces({"here": Stub(says=(Hang(),))}) as places:
            cancel = asyncio.Event()
            models = Models(default_chain=("one",))
            async with router(tmp_path, {"openai": {"url": places.url("here")}}, models) as made:
                doing = asyncio.ensure_future(call(made, job(), cancel))
                await places.asked.wait()
                cancel.set()
                async with asyncio.timeout(5):
                    return await doing

    outcome = asyncio.run(go())
    assert outcome.error == "cancelled after 1 attempt(s)"
    assert outcome.result.attempts[0].cost == 0.0


def test_a_call_that_waits_for_its_turn_can_be_cancelled(tmp_path: Path) -> None:
    """The endpoint takes one at a time: the second call waits, and its end must not wait for the first."""

    async def go() -> list[str]:
        async with ModelPlaces({"here": Stub(says=(Hang(),))}) as places:
            first, second = asyncio.Event(), asyncio.Event()
            models = Models(default_chain=("one",))
            async with router(tmp_path, {"openai": {"url": places.url("here")}}, models) as made:
                one = asyncio.ensure_future(call(made, job(), first))
                await places.asked.wait()
                two = asyncio.ensure_future(call(made, job(), second))
                second.set()
                errors = [(await two).error]
                assert not one.done()
                first.set()
                return [*errors, (await one).error]

    assert [error.partition(" ")[0] for error in asyncio.run(go())] == ["cancelled", "cancelled"]


def test_a_tier_that_is_only_declared_is_an_error_of_one_attempt(tmp_path: Path) -> None:
    """Hosted agents have a place in chains before anybody ships one."""

    async def go() -> Outcome:
        async with router(tmp_path, {}, Models(default_chain=("x", "y"), routing="learned")) as made:

            async def start(given: Job, chain: Chain, name: str) -> Chain:
                return Chain((Candidate("hosted", "managed", "", cloud=True),), None, "declared")

            made.start = start
            return await call(made, job())

    outcome = asyncio.run(go())
    assert outcome.error.endswith("no managed tier is installed for 'hosted'")
    assert [one.cost for one in outcome.result.attempts] == [0.0]


def test_work_is_ended_with_the_call_unless_it_hears_of_it_itself() -> None:
    """A program needs time to end in order; anything else is cut off. What is done by then counts."""

    async def go() -> list[str]:
        stop, said = Stop(), []

        async def listens() -> str:
            await stop.event.wait()
            return "in order"

        async def deaf() -> str:
            await asyncio.Event().wait()
            return "never"

        stop.set("first")
        stop.set("second")
        said.append(await stop.bounded(listens(), may_end=lambda: False))
        try:
            await stop.bounded(deaf())
        except Stopped:
            said.append("cut off")
        return [*said, stop.why]

    assert asyncio.run(go()) == ["in order", "cut off", "first"]
