"""Asking one recorded turn of an agent once more, elsewhere. The run and its journal stay as they are."""

from __future__ import annotations

import asyncio
import json
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bailiwick.clock import day
from bailiwick.engine import events as ev
from bailiwick.engine.graph import Work
from bailiwick.engine.state import Deferred, State
from bailiwick.engine.visits import ended_attempts, visits
from bailiwick.errors import NotFound
from bailiwick.ids import Json
from bailiwick.journal.rows import CallRow, Reservation, RunRow
from bailiwick.runs.find import name_of

if TYPE_CHECKING:
    from bailiwick.agents.asking import TurnResult
    from bailiwick.app.service import App

UNITS = ("usd", "tokens", "agent_calls")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A turn as the journal has it: what was asked of whom, and what came back."""

    node: str
    backend: str
    model: str | None
    prompt: str
    answer: str
    ok: bool


@dataclass(frozen=True, slots=True)
class ReaskResult:
    """Both answers, with what the new one cost; None is unknown."""

    recorded: Recorded
    backend: str
    model: str | None
    answer: str
    ok: bool
    usd: float | None


def find_turn(entries: Sequence[ev.Entry], node: str, app: App) -> Recorded:
    """The last turn that a node made; raises `NotFound` where it made none."""
    made = visits(entries)
    found: Recorded | None = None
    for visit, tried in ended_attempts(made):
        if isinstance(tried.end, ev.EffectFinished) and "prompt" in tried.end.log and node in (visit.place, visit.node):
            found = _recorded(visit.place, tried.end, app)
    if found is None:
        turns = ", ".join(sorted({visit.place for visit in made if visit.tries})) or "none"
        raise NotFound(f"'{node}' asked no agent in this run", hint=f"nodes that did something: {turns}")
    return found


def _recorded(node: str, event: ev.EffectFinished, app: App) -> Recorded:
    def resolved(value: Json) -> Json:
        return app.runtime.library.fetch(value.digest) if isinstance(value, Deferred) else value

    log = event.log
    lines = resolved(log.get("transcript"))
    said = [line.get("text") for line in lines if isinstance(line, dict) and line.get("event") == "Answered"]
    outputs = {name: resolved(value) for name, value in event.outputs.items()}
    failed = str((event.failure or {}).get("message") or "")
    answer = str(said[-1] if said and said[-1] else json.dumps(outputs, ensure_ascii=False) if outputs else failed)
    model = log.get("model")
    return Recorded(
        node,
        backend=str(log.get("backend")),
        model=str(model) if model else None,
        prompt=str(resolved(log["prompt"])),
        answer=answer,
        ok=event.failure is None,
    )


async def reask(app: App, row: RunRow, node: str, model: str | None, prompt: str | None) -> ReaskResult:
    """Ask the last turn of a node once more, in an empty directory and a session of its own; it is paid as a call."""
    entries = await app.runtime.library.history(row.id)
    turn = find_turn(entries, node, app)
    wanted = replace(turn, model=model or turn.model, prompt=prompt or turn.prompt)
    state = app.runtime.library.replay(entries)
    call = f"c-{secrets.token_hex(8)}"
    scratch = app.config.paths.state / "workspaces" / call
    scratch.mkdir(parents=True, mode=0o700)
    store, now = app.runtime.store, app.runtime.clock.now
    record = CallRow(
        id=call,
        session_id="",
        skill="reask",
        phase=turn.node,
        project=row.source,
        model=wanted.model or "",
        by=app.by,
        origin=f"runs reask {name_of(row)}",
        run="",
        node="",
        started_at=now(),
        size=len(wanted.prompt),
        chain=(wanted.model or wanted.backend,),
    )
    await store.begin_call(record, _reservations(app, call, wanted.backend))
    told: TurnResult | None = None
    try:
        told = await _turn(app, call, wanted=wanted, scratch=scratch, state=state)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(app.config.paths.state / "homes" / call, ignore_errors=True)
        await store.end_call(_ended(record, told, now()), [], _spent(told))
    answer = told.answer.text if told.answer else told.failure.message if told.failure else ""
    return ReaskResult(
        turn, backend=wanted.backend, model=wanted.model, answer=answer, ok=told.answer is not None, usd=told.spent.usd
    )


def _ended(record: CallRow, told: TurnResult | None, now: float) -> CallRow:
    good = told is not None and told.answer is not None
    return replace(record, status="pass" if good else "error", finished_at=now, model_used=record.model)


def _spent(told: TurnResult | None) -> dict[str, float | None]:
    """What it used; unknown where it was cut off."""
    if told is None:
        return {"usd": None, "agent_calls": 1.0}
    tokens = (told.spent.input or 0) + (told.spent.output or 0)
    return {"usd": told.spent.usd, "tokens": float(tokens), "agent_calls": 1.0}


def _reservations(app: App, call: str, backend: str) -> list[Reservation]:
    """What it may cost, of the day's money and of its credential's."""
    from bailiwick.agents.prices import LOCAL

    config, today = app.config, day(app.runtime.clock.now())
    scopes: dict[str, dict[str, float | None]] = {
        f"day:{today}": {unit: config.get(f"budget.day.{unit}") for unit in UNITS}
    }
    if backend not in LOCAL:
        name, ceilings = app.agents.daily(backend)
        if name:
            scopes[f"credential:{name}:{today}"] = dict(ceilings)
    usd = 0.0 if backend in LOCAL else float(config.get("budget.call.usd"))
    amounts = {"usd": usd, "tokens": 0.0, "agent_calls": 1.0}
    return [
        Reservation(scope, key=call, unit=unit, amount=amounts[unit], limit=limits.get(unit))
        for scope, limits in scopes.items()
        for unit in UNITS
    ]


async def _turn(app: App, call: str, wanted: Recorded, scratch: Path, state: State) -> TurnResult:
    from bailiwick.agents.asking import TurnContext
    from bailiwick.agents.kind import answer_schema
    from bailiwick.agents.port import Turn

    turns = app.agents.turns()
    backend = turns.backend(wanted.backend, state.agents.get("script"))
    name = wanted.node.rsplit("/", 1)[-1]
    node = state.graph.nodes.get(name)
    schema = answer_schema(node) if isinstance(node, Work) else None
    turn = Turn(
        key=call,
        prompt=wanted.prompt,
        model=wanted.model,
        cwd=scratch,
        env=app.runtime.environment(),
        max_usd=float(app.config.get("budget.call.usd")),
        node=name,
        schema=schema,
        options={"silence": turns.settings.silence, "total": turns.settings.total},
    )
    context = TurnContext(
        asyncio.Event(), root=call, workspace=scratch, total=turns.settings.total, silence=turns.settings.silence
    )
    return await turns.ask(backend, turn, context)
