"""Asking one model: what reaches its endpoint, and that each way in which an endpoint fails is one attempt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.agents.asking import TurnContext, TurnRunner
from bailiwick.agents.port import Turn
from bailiwick.agents.settings import AgentSettings
from bailiwick.clock import ManualClock, SystemClock
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.slots import FileSlots
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.routing.ask import NOWHERE, ModelAccess, ModelReply, Stopped, ask_candidate, bounded
from bailiwick.routing.cooldown import Cooldowns
from bailiwick.routing.course import Stop
from bailiwick.routing.endpoints import EndpointAddress, Endpoints
from bailiwick.routing.model import Candidate, Chain, Job, Outcome
from bailiwick.routing.models_file import Models
from bailiwick.routing.service import Router
from bailiwick.routing.slots import Slots
from bailiwick.testing.model_server.script import Hang, Say
from tests.model_places import FAULTS, ModelPlaces, Stub, faulty, refused
from tests.unit.config.places import ConfigLayers
from tests.unit.routing.records import with_store
from tests.unit.routing.stand_ins import PaperBench, ScriptedDesk, fails, job, lone_access, lone_course, passes

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
        config = ConfigLayers(folder).load()
        access = ModelAccess(
            turns=TurnRunner(settings, store, clock),
            clock=clock,
            endpoints=Endpoints(endpoints, secret=secret.get),
            queue=Slots(FileSlots(config.paths.state / "endpoints").hold),
            cooldowns=Cooldowns(store, clock),
        )
        yield Router(config=config, store=store, access=access, models=lambda: models)
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


LOCAL = Candidate("one", "local", "openai", cloud=False)


def _turn() -> tuple[Turn, TurnContext]:
    turn = Turn(key="k", prompt="TASK", model=None, cwd=NOWHERE, env={"A": "b"}, options={"rung": "first"})
    return turn, TurnContext(asyncio.Event(), root="c-1", workspace=NOWHERE, total=5.0, silence=4.0)


async def _made() -> tuple[Turn, TurnContext]:
    return _turn()


def test_an_endpoint_that_keeps_failing_is_left_alone_unless_there_is_nobody_else(tmp_path: Path) -> None:
    """Three failures close it, for calls and nodes alike; who asks all the same, and is answered, opens it."""

    async def go(store: Store) -> list[str]:
        turns, clock = ScriptedDesk({"one": [fails("unreachable")]}), ManualClock()
        access = replace(lone_access(turns, clock), cooldowns=Cooldowns(store, clock))
        kinds = []
        for _ in range(4):
            failure = (await ask_candidate(access, LOCAL, _made)).told.failure
            kinds.append(failure.kind if failure else "")
        assert len(turns.turns) == 3
        turns.script["one"] = [passes()]
        for anyway in (True, False):
            reply = await ask_candidate(access, LOCAL, _made, although_cooling=anyway)
            kinds.append("answered" if reply.told.answer else "")
        return kinds

    assert with_store(tmp_path, go) == [*["unreachable"] * 3, "held", "answered", "answered"]


def test_a_turn_is_made_for_the_model_that_is_asked() -> None:
    """A local one by its address and without our environment, a program by its own name for the model."""

    async def go() -> list[Turn]:
        turns = ScriptedDesk({"one": [passes()], "claude-x": [passes()]})
        await ask_candidate(lone_access(turns), LOCAL, _made)
        await ask_candidate(lone_access(turns), Candidate("claude-x", "subagent", "claude", cloud=True), _made)
        return turns.turns

    local, program = asyncio.run(go())
    assert (local.model, local.base_url, dict(local.env)) == ("one", "http://127.0.0.1:9", {})
    assert (program.model, program.base_url, dict(program.env)) == ("claude-x", None, {"A": "b"})
    assert program.cwd != NOWHERE
    assert not program.cwd.exists()
    for turn in (local, program):
        assert turn.options == {"rung": "first", "total": 5.0, "silence": 4.0}


def test_what_can_not_be_reached_at_all_is_told_and_nothing_is_made() -> None:
    """A tier that nobody installed, an address that is none: the chain goes on with the next."""

    async def never() -> tuple[Turn, TurnContext]:
        raise AssertionError("nothing is asked")

    async def go() -> list[ModelReply]:
        access = replace(lone_access(ScriptedDesk({})), endpoints=Endpoints({"openai": {"url": "http://"}}))
        hosted = Candidate("hosted", "managed", "", cloud=True)
        return [await ask_candidate(access, one, never) for one in (hosted, LOCAL)]

    for reply in asyncio.run(go()):
        assert reply.told.failure is not None
        assert (reply.told.failure.kind, reply.backend, reply.was_warm()) == ("spawn", None, False)


def test_a_tier_that_is_only_declared_is_an_error_of_one_attempt() -> None:
    """Hosted agents have a place in chains before anybody ships one; what was never asked costs nothing."""
    course, _ = lone_course({"one": [passes()]}, PaperBench(), 20.0)
    course.chain = Chain((Candidate("hosted", "managed", "", cloud=True),), None, "declared")
    result, error = asyncio.run(course.run())
    assert error.endswith("no managed tier is installed for 'hosted'")
    assert ([one.cost for one in result.attempts], course.asked) == ([0.0], 0)


def test_nothing_waits_for_the_probe() -> None:
    """A server that is slow to tell what it has loaded is called cold; the look ends with the question."""

    async def go() -> tuple[bool, bool]:
        ended = asyncio.Event()

        async def slow(place: EndpointAddress, model: str, llama_swap_url: str) -> bool:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return True

        async def quick(place: EndpointAddress, model: str, llama_swap_url: str) -> bool:
            return model == "one" and llama_swap_url == "swap"

        async def make() -> tuple[Turn, TurnContext]:
            await asyncio.sleep(0)
            return _turn()

        turns = ScriptedDesk({"one": [passes()]})
        cold = await ask_candidate(replace(lone_access(turns), probe=slow), LOCAL, make)
        assert not cold.was_warm()
        await ended.wait()
        warm = await ask_candidate(replace(lone_access(turns), probe=quick), LOCAL, make, llama_swap_url="swap")
        return cold.was_warm(), warm.was_warm()

    assert asyncio.run(go()) == (False, True)


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
        said.append(await bounded(listens(), stop.event, may_end=lambda: False))
        try:
            await bounded(deaf(), stop.event)
        except Stopped:
            said.append("cut off")
        return [*said, stop.why]

    assert asyncio.run(go()) == ["in order", "cut off", "first"]
