"""What routing adds to a call: chain, record, money, checks and verdict around a model that answers at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from bailiwick.agents.asking import TurnContext, TurnResult, TurnRunner
from bailiwick.agents.port import Answered, Backend, Capabilities, Emit, Turn, TurnIo
from bailiwick.agents.record import TurnUsage
from bailiwick.agents.settings import AgentSettings
from bailiwick.clock import SystemClock
from bailiwick.config.service import load_config
from bailiwick.config.variables import Environment
from bailiwick.ids import Json
from bailiwick.journal.slots import FileSlots
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.routing.ask import ModelAccess
from bailiwick.routing.cooldown import Cooldowns
from bailiwick.routing.endpoints import Endpoints
from bailiwick.routing.model import Job
from bailiwick.routing.models_file import Models
from bailiwick.routing.service import Router
from bailiwick.routing.slots import Slots
from benchmarks.measure import Bench, Reading, Spread, Stopwatch, Timed, column
from benchmarks.report import Figure

SMALL, STRONG, JUDGE = "ollama/small", "claude-sonnet-4-6", "claude-judge"
ENDPOINTS: Mapping[str, Json] = {"openai": {"url": "http://127.0.0.1:9"}}
"""A place of which nobody can tell what is loaded, so that nothing is probed."""
RESULT = json.dumps({"status": "pass", "message": "done"})
VERDICT = json.dumps({"accept": True, "feedback": ""})
WARM_UP = 20
BOUND = 4.0


def measure(bench: Bench) -> list[Figure]:
    """The overhead of a call."""
    count, rounds = bench.pick(300, 30), bench.pick(5, 2)
    parts = {
        "bare": lambda: bench.part("router_overhead", "bare", count=count),
        "routed": lambda: bench.part("router_overhead", "routed", count=count),
        "effect": lambda: bench.part("effect_node", "ours", nodes=bench.pick(200, 50)),
    }
    found = bench.in_turn(parts, rounds)
    bare, routed, effect = (Spread.of(column(found[name], "seconds"), 1000) for name in parts)
    cpu = Spread.of(column(found["routed"], "cpu"), 1000).middle
    note = (
        f"{count} calls one after the other, each one generation and one verdict, on record in SQLite and in the call "
        f"log, all synced to disk; processor time per call, all threads: {cpu:.2g} ms"
    )
    others = {"bare questions": bare, "effect node": effect}

    over, target = (routed.middle - bare.middle) / effect.middle, f"≤ {BOUND:g} × a durable effect node"
    what = "a routed call over its two questions"
    return [Figure("router-overhead", what, target, routed, "ms", others, over, "× an effect node", BOUND, note=note)]


class _Instant:
    """A backend that nobody asks: the desk answers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.capabilities = Capabilities()

    async def turn(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        return

    async def compact(self, turn: Turn, io: TurnIo, emit: Emit) -> None:
        return

    async def check(self, env: Mapping[str, str], io: TurnIo) -> tuple[bool, str]:
        return True, self.name


class _InstantDesk(TurnRunner):
    """Answers every question at once: the verifier with a verdict, everybody else with a result."""

    def __init__(self) -> None:
        settings = AgentSettings(endpoints=ENDPOINTS)
        super().__init__(settings, store=None, clock=SystemClock())  # type: ignore[arg-type]  # no store is asked

    def backend(self, name: str, script: Json = None) -> Backend:
        return _Instant(name)

    async def ask(self, backend: Backend, turn: Turn, context: TurnContext) -> TurnResult:
        text = VERDICT if turn.model == JUDGE else RESULT
        return TurnResult(Answered(text), None, TurnUsage(100, 10, 0, 0.001))


@asynccontextmanager
async def _router(folder: Path) -> AsyncIterator[Router]:
    around = Environment({"BAILIWICK_HOME": str(folder), "HOME": str(folder)})
    config = load_config(folder, {}, environment=around)
    clock = SystemClock()
    store = await SqliteStore.open(config.paths.state / "bailiwick.db", now=clock.now)
    said = Models(verifier=JUDGE, default_chain=(SMALL, STRONG))
    try:
        access = ModelAccess(
            turns=_InstantDesk(),
            clock=clock,
            endpoints=Endpoints(ENDPOINTS),
            queue=Slots(FileSlots(config.paths.state / "endpoints").hold),
            cooldowns=Cooldowns(store, clock),
        )
        yield Router(config=config, store=store, access=access, models=lambda: said)
    finally:
        await store.close()


def _routed(folder: Path, count: int) -> Reading:
    job = Job("review", "review", "Cite lines.", "phase: review", session_id="bench")

    async def calls() -> Timed:
        async with _router(folder) as router:
            watch = Stopwatch()
            for number in range(WARM_UP + count):
                if number == WARM_UP:
                    watch = Stopwatch()
                outcome = await router.call(job, None, show=lambda _text: None, cancel=asyncio.Event())
                if outcome.result.status != "pass" or outcome.result.model_used != SMALL:
                    raise RuntimeError(f"a call did not go as it should: {outcome.result.message} {outcome.error}")
            return watch.read()

    timed = asyncio.run(calls())
    return {"seconds": timed.seconds / count, "cpu": timed.cpu / count}


def _bare(folder: Path, count: int) -> Reading:
    async def asked() -> float:
        turns, began = _InstantDesk(), time.perf_counter()
        for _ in range(count):
            for model in (SMALL, JUDGE):
                turn = Turn(key="k", prompt="phase: review", model=model, cwd=folder, env={})
                context = TurnContext(
                    cancel=asyncio.Event(),
                    root="bench",
                    workspace=folder,
                    total=60.0,
                    silence=60.0,
                    show=lambda _text: None,
                )
                json.loads((await turns.ask(turns.backend("openai"), turn, context)).answer.text)  # type: ignore[union-attr]
        return time.perf_counter() - began

    return {"seconds": asyncio.run(asked()) / count}


PARTS = {"bare": _bare, "routed": _routed}
