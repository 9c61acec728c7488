"""Routes a call: chooses its chain, puts it on record, pays for it in advance, walks the chain and settles."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from bailiwick.clock import Clock, day
from bailiwick.config.service import Config
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.errors import BudgetExceeded, NotReady
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.rows import AttemptRow, CallRow, Owner, Reservation
from bailiwick.processes.owner import current_owner
from bailiwick.routing.call_log import append_call, check_session, entry_of, sessions_folder
from bailiwick.routing.chains import compose
from bailiwick.routing.cooldown import Cooldowns
from bailiwick.routing.course import Course, Pause, RecordedAttempt
from bailiwick.routing.endpoints import EndpointAddress, Endpoints
from bailiwick.routing.explain import PREFIX
from bailiwick.routing.generate import Asker, Queue, Stop, Tiers
from bailiwick.routing.model import Attempt, Chain, Job, Outcome, Result, VerifierUsage
from bailiwick.routing.models_file import Models
from bailiwick.routing.port import CallFiles
from bailiwick.routing.slots import Slots
from bailiwick.routing.starts import job_size
from bailiwick.routing.warm import is_warm
from bailiwick.runtime.money import cut
from bailiwick.runtime.record import Pending

CANCELLED = "cancelled"
BROKEN = "interrupted by a fault of our own"
UNITS = ("usd", "tokens", "agent_calls")

Purse = Callable[[str], tuple[str, Mapping[str, float | None]]]
"""The credential of a backend with its ceilings per day by unit; an empty name where nothing is limited."""
Starter = Callable[[Job, Chain, str], Awaitable[Chain]]
"""Where learned routing enters a chain, for the call with this id."""


@dataclass(slots=True, kw_only=True)
class Router:
    """Sends each call to the cheapest model whose output holds. One for a process.

    `environment` is what subagents' programs are given; `clean` takes secrets out of what is put on record.
    """

    config: Config
    store: Store
    clock: Clock
    turns: Asker
    models: Callable[[], Models]
    endpoints: Endpoints | None = None
    slots: Queue | None = None
    cooldowns: Cooldowns | None = None
    environment: Callable[[], Mapping[str, str]] = dict
    clean: Callable[[Json], Json] = lambda value: value
    purse: Purse = lambda _backend: ("", {})
    start: Starter | None = None
    owner: Owner | None = None
    pause: Pause = asyncio.sleep
    _places: Endpoints = field(init=False)
    _queue: Queue = field(init=False)
    _cooling: Cooldowns = field(init=False)

    def __post_init__(self) -> None:
        self._places = self.endpoints or Endpoints.of(self.config)
        self._queue = self.slots or Slots.of(self.config)
        self._cooling = self.cooldowns or Cooldowns(self.store, self.clock)

    async def call(
        self,
        job: Job,
        bench: CallFiles | None,
        *,
        show: Callable[[str], None],
        cancel: asyncio.Event,
        models: Models | None = None,
    ) -> Outcome:
        """Carry a call out within its deadline. What models and servers do wrong is in the outcome, never raised.

        Raises `UsageError` before anything is asked or recorded, where there is no chain or a name is not allowed.
        `models` goes before the files there are.
        """
        chosen = models if models is not None else self.models()
        chain = compose(
            chosen, job.skill, job.model, local_only=job.local_only, settings=self.turns.settings, given=job.chain
        )
        if job.session_id:
            check_session(job.session_id)
        name = PREFIX + secrets.token_hex(8)
        if self.start is not None and chosen.routing == "learned" and not chain.pinned:
            chain = await self.start(job, chain, name)
        call = _Call(name, job=job, bench=bench, chain=chain, llama_swap_url=chosen.llama_swap_url, show=show)
        return await _to_its_end(self._carry_out(call, cancel), cancel)

    async def _carry_out(self, call: _Call, cancel: asyncio.Event) -> Outcome:
        """Put a call on record, walk its chain, and put on record what it came to."""
        began, job, stop = self.clock.monotonic(), call.job, Stop()
        row = self._row(call)
        reserve = await self._reservations(call)
        allowance = next((one.amount for one in reserve if one.unit == "usd" and one.amount > 0), job.max_usd)
        try:
            await self.store.begin_call(replace(row, reserved_usd=0.0 if job.run else allowance or 0.0), reserve)
        except BudgetExceeded as spent:
            await self.store.begin_call(row)
            stop.set(spent.sentence)
        course = self._course(call, stop, allowance)
        timer = asyncio.get_running_loop().call_later(
            job.seconds, stop.set, f"the deadline of {job.seconds:g} s passed"
        )
        watching = asyncio.ensure_future(_watch(cancel, stop))
        try:
            result, error = await course.run()
        except BaseException:
            await self.store.end_call(self._ended(row, None, began), [_attempt_row(row, one) for one in course.made])
            raise
        finally:
            timer.cancel()
            watching.cancel()
            self._forget_home(call.id)
        return await self._end(
            row,
            call,
            course=course,
            outcome=self._cleaned(Outcome(call.id, result, call.chain.why, error)),
            began=began,
        )

    def _row(self, call: _Call) -> CallRow:
        job, now = call.job, self.clock.now()
        if self.owner is None:
            self.owner = current_owner("bailiwick")
        return CallRow(
            id=call.id,
            session_id=job.session_id or "",
            skill=job.skill,
            phase=job.phase,
            project=job.root,
            model=job.model or "",
            by=job.by,
            origin=job.origin,
            run=job.run,
            node=job.node,
            started_at=now,
            why=call.chain.why,
            size=job_size(job),
            until=now + job.seconds,
            chain=tuple(one.model for one in call.chain.candidates),
            owner=self.owner,
        )

    async def _reservations(self, call: _Call) -> list[Reservation]:
        """What a call may cost, of the day's money and of its credentials'; a node of a run has paid already."""
        if call.job.run:
            return []
        today = day(self.clock.now())
        scopes = {f"day:{today}": {unit: self.config.get(f"budget.day.{unit}") for unit in UNITS}}
        asked = [*call.chain.candidates, *([call.chain.verifier] if call.chain.verifier else [])]
        for backend in dict.fromkeys(one.backend for one in asked if one.tier == "subagent"):
            name, ceilings = self.purse(backend)
            if name:
                scopes[f"credential:{name}:{today}"] = dict(ceilings)
        wanted = self.turns.settings.policy.reserve_usd if any(one.cloud for one in asked) else 0.0
        limits = [(scope, ceilings.get("usd")) for scope, ceilings in scopes.items()]
        usd = await cut(self.store, "usd", wanted=wanted, limits=limits, pending=Pending()) if wanted else 0.0
        amounts = {"usd": usd, "tokens": 0.0, "agent_calls": 1.0}
        return [
            Reservation(scope, key=call.id, unit=unit, amount=amounts[unit], limit=ceilings.get(unit))
            for scope, ceilings in scopes.items()
            for unit in UNITS
        ]

    def _course(self, call: _Call, stop: Stop, allowance: float | None) -> Course:
        async def probe(place: EndpointAddress, model: str) -> bool:
            return await is_warm(place, model, call.llama_swap_url)

        tiers = Tiers(
            turns=self.turns,
            place=cache(self._places.place),
            queue=self._queue,
            clock=self.clock,
            environment=self.environment,
            root=call.id,
            stop=stop,
            show=call.show,
        )
        return Course(
            call=call.id,
            job=call.job,
            bench=call.bench,
            chain=call.chain,
            policy=self._policy(call),
            tiers=tiers,
            cooldowns=self._cooling,
            probe=probe,
            until=self.clock.monotonic() + call.job.seconds,
            allowance=allowance,
            pause=self.pause,
        )

    def _policy(self, call: _Call) -> RetryPolicy:
        """Somebody waits: nothing that was rejected is asked for again, and no pause outlasts the deadline."""
        return replace(
            self.turns.settings.policy,
            models=len(call.chain.candidates),
            on_cap="",
            deadline=self.clock.now() + call.job.seconds,
            retry_rejected=False,
        )

    async def _end(self, row: CallRow, call: _Call, course: Course, outcome: Outcome, began: float) -> Outcome:
        ended = self._ended(row, outcome.result, began)
        shown = {one.attempt: one for one in outcome.result.attempts}
        rows = [_attempt_row(row, replace(one, attempt=shown[one.attempt.attempt])) for one in course.made]
        await self.store.end_call(ended, rows, _spent(course, allowed=self.turns.settings.unknown_cost == "allow"))
        if call.job.session_id:
            entry = entry_of(call.job, outcome, self.clock.now(), duration_ms=ended.duration_ms or 0)
            try:
                await asyncio.to_thread(append_call, sessions_folder(self.config), entry)
            except NotReady as error:  # what was done is done, and on record in the store
                call.show(error.sentence)
        return outcome

    def _ended(self, row: CallRow, result: Result | None, began: float) -> CallRow:
        took = round((self.clock.monotonic() - began) * 1000)
        if result is None:
            return replace(row, status="error", finished_at=self.clock.now(), duration_ms=took, message=BROKEN)
        return replace(
            row,
            status=result.status,
            finished_at=self.clock.now(),
            duration_ms=took,
            message=result.message,
            model_used=result.model_used,
            file_path=result.file_path,
        )

    def _cleaned(self, outcome: Outcome) -> Outcome:
        """The outcome without any secret that is known."""
        result = outcome.result
        attempts = tuple(
            replace(
                one,
                feedback=self.clean(one.feedback),
                output_summary=self.clean(one.output_summary),
                runner_output=self.clean(one.runner_output),
            )
            for one in result.attempts
        )
        told = replace(
            result,
            message=self.clean(result.message),
            runner_output=self.clean(result.runner_output),
            findings=tuple(self.clean(dict(one)) for one in result.findings),
            candidates=tuple(self.clean(dict(one)) for one in result.candidates),
            details=self.clean(dict(result.details)),
            attempts=attempts,
        )
        return replace(outcome, result=told, error=self.clean(outcome.error))

    def _forget_home(self, call: str) -> None:
        """What an agent left in the home of its call must not meet the next one."""
        home = self.config.paths.state / "homes" / call
        if home.is_dir():
            shutil.rmtree(home, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with its name and its chain."""

    id: str
    job: Job
    bench: CallFiles | None
    chain: Chain
    llama_swap_url: str
    show: Callable[[str], None]


async def _watch(cancel: asyncio.Event, stop: Stop) -> None:
    await cancel.wait()
    stop.set(CANCELLED)


async def _to_its_end(work: Coroutine[Any, Any, Outcome], cancel: asyncio.Event) -> Outcome:
    """Do a call in a task of its own: when the caller is cancelled it ends in order and is recorded before that."""
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        cancel.set()
        while not doing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({doing})
        if not doing.cancelled():
            doing.exception()
        raise


def _attempt_row(row: CallRow, made: RecordedAttempt) -> AttemptRow:
    one = made.attempt
    return AttemptRow(
        call=row.id,
        attempt=one.attempt,
        at=made.at,
        skill=row.skill,
        model=one.model,
        tier=one.tier,
        verdict=one.verdict,
        verified=one.verified,
        warm_start=one.warm_start,
        duration_ms=one.duration_ms,
        input_tokens=one.input_tokens,
        output_tokens=one.output_tokens,
        cost=one.cost,
        feedback=one.feedback,
        output_summary=one.output_summary,
        runner_output=one.runner_output,
        size=made.size,
    )


def _spent(course: Course, *, allowed: bool) -> dict[str, float | None]:
    """What a call used, by unit; None where a part of it is unknown, or nothing where that is `allowed`."""
    attempts = [one.attempt for one in course.made]
    costs = [one.cost for one in attempts]
    parts: list[Attempt | VerifierUsage] = [*attempts, *(one.verifier for one in attempts if one.verifier)]
    tokens = [count or 0 for one in parts for count in (one.input_tokens, one.output_tokens)]
    known = allowed or None not in costs
    return {
        "usd": sum(cost or 0.0 for cost in costs) if known else None,
        "tokens": float(sum(tokens)),
        "agent_calls": float(course.asked),
    }
