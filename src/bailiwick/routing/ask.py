"""Asks one model once: a local one in its turn at its endpoint, a subagent by its program. Nothing is tried again."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bailiwick.agents.asking import TurnContext, TurnResult, TurnRunner
from bailiwick.agents.backends.openai import OpenaiBackend
from bailiwick.agents.port import Backend, Turn, Used
from bailiwick.clock import Clock
from bailiwick.engine.events import Failure
from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.errors import BailiwickError, NotReady
from bailiwick.ids import Json
from bailiwick.processes.proc import EFFECT_MARK
from bailiwick.routing.chains import LOCAL_BACKEND, cli_name
from bailiwick.routing.cooldown import Cooldowns, key_of
from bailiwick.routing.endpoints import EndpointAddress, Endpoints
from bailiwick.routing.model import Candidate
from bailiwick.routing.warm import is_warm

NOWHERE = Path("/")
"""The directory of a turn that works on no files: a program is given an empty one."""

Came = TypeVar("Came")
MakeTurn = Callable[[], Awaitable[tuple[Turn, TurnContext]]]
"""Makes what a model is asked; which model, at which address, is put in here."""
Probe = Callable[[EndpointAddress, str, str], Coroutine[Any, Any, bool]]
"""Whether a model is loaded, by its place, its name and llama-swap's address."""


class Stopped(Exception):
    """What was asked for has to end now: it was cancelled, or its deadline has passed."""


class Queue(Protocol):
    """Lets as many calls at an endpoint as it can bear."""

    def turn(self, place: EndpointAddress, model: str, loaded: bool = False) -> AbstractAsyncContextManager[None]:
        """Wait until it is one's turn; calls for the model that is `loaded` may go first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """The ways to models that the calls and nodes of a process share, so that they wait for each other in one queue.

    `environment` is what subagents' programs are given.
    """

    turns: TurnRunner
    clock: Clock
    endpoints: Endpoints
    queue: Queue
    cooldowns: Cooldowns
    environment: Callable[[], Mapping[str, str]] = dict
    probe: Probe = is_warm

    def marked(self, key: str, root: str) -> dict[str, str]:
        """The environment of a program, by which it is found and ended with the call or run that it belongs to."""
        return {**self.environment(), EFFECT_MARK: key, "BAILIWICK_ROOT": root}

    def silence(self, seconds: float) -> float:
        """How long a turn of so many seconds may be silent."""
        return min(self.turns.settings.silence, seconds)


@dataclass(frozen=True, slots=True)
class _Way:
    """How a candidate is reached; `place` is None for what a program asks."""

    candidate: Candidate
    backend: Backend
    place: EndpointAddress | None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a turn came to, how it was made, and how many milliseconds it took. Nothing was asked without a `backend`.

    A session of it can be gone on with where `backend` can.
    """

    told: TurnResult
    turn: Turn | None = None
    backend: Backend | None = None
    place: EndpointAddress | None = None
    duration_ms: int = 0
    probe: asyncio.Future[bool] | None = None

    def was_warm(self) -> bool:
        """What the probe has found by now: nothing waits for it, so it ends here."""
        if self.probe is None:
            return False
        if not self.probe.done():
            self.probe.cancel()
            return False
        return not self.probe.cancelled() and self.probe.exception() is None and self.probe.result()


async def ask_candidate(
    access: ModelAccess,
    candidate: Candidate,
    make: MakeTurn,
    *,
    llama_swap_url: str = "",
    script: Json = None,
    although_cooling: bool = False,
) -> ModelReply:
    """Ask a model of a chain, unless its endpoint is left alone. What goes wrong is told, and counts for the endpoint.

    Whether the model is loaded is looked up beside the work. Raises `Stopped` as `ask_model` does.
    """
    try:
        way = _way(access, candidate, script)
    except BailiwickError as error:
        return _not_asked(FailureKind.SPAWN, error.sentence)
    key = key_of(candidate, way.place)
    blocked = 0.0 if although_cooling else await access.cooldowns.blocked(key)
    if blocked > 0:
        left = f"its endpoint kept failing: backing off for {blocked:.0f} s"
        return _not_asked(FailureKind.HELD, left, Detail(retry_after=blocked, model=candidate.model))
    probe = None
    if way.place is not None:
        probe = asyncio.ensure_future(access.probe(way.place, candidate.model, llama_swap_url))
    try:
        turn, context = await make()
        loaded = probe is not None and probe.done() and probe.result()
        try:
            reply = await _asked(access, way, turn, context=context, loaded=loaded)
        except BailiwickError as error:
            reply = _not_asked(FailureKind.SPAWN, error.sentence)
    except BaseException:
        if probe is not None:
            probe.cancel()
        raise
    await access.cooldowns.heard(key, reply.told.failure)
    return replace(reply, probe=probe)


async def ask_model(access: ModelAccess, candidate: Candidate, turn: Turn, context: TurnContext) -> ModelReply:
    """Ask a model whatever is known of its endpoint. What goes wrong is told.

    Raises `Stopped` where `context.cancel` is set while others are asked before it; a turn that began ends by itself.
    """
    try:
        return await _asked(access, _way(access, candidate), turn, context=context, loaded=False)
    except BailiwickError as error:
        return _not_asked(FailureKind.SPAWN, error.sentence)


async def bounded(
    work: Coroutine[Any, Any, Came], cancel: asyncio.Event, *, may_end: Callable[[], bool] = lambda: True
) -> Came:
    """Do some work, or raise `Stopped`. Work that may not be ended hears of the stop itself and is waited for."""
    doing = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(cancel.wait())
    try:
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done() and may_end():
            doing.cancel()
        await asyncio.wait({doing})
    finally:
        stopping.cancel()
    if doing.cancelled():
        raise Stopped
    return doing.result()


def _way(access: ModelAccess, candidate: Candidate, script: Json = None) -> _Way:
    if candidate.tier == "managed":
        raise NotReady(f"no managed tier is installed for '{candidate.model}'")
    if candidate.backend != LOCAL_BACKEND:
        return _Way(candidate, access.turns.backend(candidate.backend, script), None)
    place = access.endpoints.place(candidate.model)
    return _Way(candidate, OpenaiBackend(place.reach, clock=access.clock), place)


async def _asked(access: ModelAccess, way: _Way, turn: Turn, *, context: TurnContext, loaded: bool) -> ModelReply:
    """Ask by a program, or at an endpoint that is asked by as many at once as it can bear."""
    place = way.place
    turn = replace(turn, options={**turn.options, "total": context.total, "silence": context.silence})
    if place is None:
        return await _by_program(access, way, turn, context)
    turn = replace(turn, model=place.name_to_send, base_url=place.url, token=place.token, env={})
    inside = False

    async def in_turn() -> ModelReply:
        nonlocal inside
        async with access.queue.turn(place, place.name_to_send, loaded):
            inside = True
            return await _told(access, way, turn, context)

    return await bounded(in_turn(), context.cancel, may_end=lambda: not inside)


async def _by_program(access: ModelAccess, way: _Way, turn: Turn, context: TurnContext) -> ModelReply:
    candidate = way.candidate
    turn = replace(turn, model=None if candidate.model == candidate.backend else cli_name(candidate))
    if turn.cwd != NOWHERE:
        return await _told(access, way, turn, context)
    with tempfile.TemporaryDirectory(prefix="bailiwick-", ignore_cleanup_errors=True) as empty:
        there = Path(empty)
        return await _told(access, way, replace(turn, cwd=there), replace(context, workspace=there))


async def _told(access: ModelAccess, way: _Way, turn: Turn, context: TurnContext) -> ModelReply:
    began = access.clock.monotonic()
    told = await access.turns.ask(way.backend, turn, context)
    took = round((access.clock.monotonic() - began) * 1000)
    return ModelReply(_priced(told, way.candidate), turn, way.backend, way.place, duration_ms=took)


def _priced(told: TurnResult, candidate: Candidate) -> TurnResult:
    """A model in the house costs nothing unless its server says otherwise: a price list knows only vendors."""
    if candidate.cloud or any(isinstance(event, Used) and event.usd is not None for event in told.events):
        return told
    return replace(told, spent=replace(told.spent, usd=0.0))


def _not_asked(kind: FailureKind, message: str, detail: Detail | None = None) -> ModelReply:
    known = detail or Detail(evidence=message)
    return ModelReply(TurnResult(None, Failure(str(kind), message, known.to_json())))
