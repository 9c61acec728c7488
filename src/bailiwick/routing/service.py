"""Routes a call: chooses its chain, puts it on record, pays for it in advance, walks the chain and settles."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bailiwick.clock import day
from bailiwick.config.service import Config
from bailiwick.errors import BudgetExceeded, NotReady
from bailiwick.ids import Json
from bailiwick.journal.port import Store
from bailiwick.journal.rows import AttemptRow, CallRow, Owner, Reservation
from bailiwick.processes.owner import current_owner
from bailiwick.routing.ask import ModelAccess
from bailiwick.routing.call_log import append_call, check_session, entry_of, sessions_folder
from bailiwick.routing.chains import compose
from bailiwick.routing.course import Course, Pause, RecordedAttempt, Stop
from bailiwick.routing.explain import PREFIX
from bailiwick.routing.model import Attempt, Job, Outcome, Result, VerifierUsage
from bailiwick.routing.models_file import Models
from bailiwick.routing.port import CallFiles
from bailiwick.runtime.money import cut
from bailiwick.runtime.record import Pending

CANCELLED = "cancelled"
BROKEN = "interrupted by a fault of our own"
UNITS = ("usd", "tokens", "agent_calls")

Purse = Callable[[str], tuple[str, Mapping[str, float | None]]]
"""The credential of a backend with its ceilings per day by unit; an empty name where nothing is limited."""
MOST_SIZE = 256 << 10
"""A task counts as no longer than this; more of its files is not shown to anybody."""


@dataclass(slots=True, kw_only=True)
class Router:
    """Sends each call to the cheapest model whose output holds. One for a process.

    `clean` takes secrets out of what is put on record.
    """

    config: Config
    store: Store
    access: ModelAccess
    models: Callable[[], Models]
    clean: Callable[[Json], Json] = lambda value: value
    purse: Purse = lambda _backend: ("", {})
    owner: Owner | None = None
    pause: Pause = asyncio.sleep

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
            chosen,
            job.skill,
            job.model,
            local_only=job.local_only,
            settings=self.access.turns.settings,
            given=job.chain,
        )
        if job.session_id:
            check_session(job.session_id)
        course = Course(
            call=PREFIX + secrets.token_hex(8),
            job=job,
            bench=bench,
            chain=chain,
            access=self.access,
            llama_swap_url=chosen.llama_swap_url,
            show=show,
            pause=self.pause,
        )
        return await _to_its_end(self._carry_out(course, cancel), cancel)

    async def _carry_out(self, course: Course, cancel: asyncio.Event) -> Outcome:
        """Put a call on record, walk its chain, and put on record what it came to."""
        began, job, stop = self.access.clock.monotonic(), course.job, course.stop
        row = self._row(course)
        reserve = await self._reservations(course)
        allowance = next((one.amount for one in reserve if one.unit == "usd" and one.amount > 0), job.max_usd)
        try:
            await self.store.begin_call(replace(row, reserved_usd=0.0 if job.run else allowance or 0.0), reserve)
        except BudgetExceeded as spent:
            await self.store.begin_call(row)
            stop.set(spent.sentence)
        course.allowance = allowance
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
            self._forget_home(course.call)
        outcome = self._cleaned(Outcome(course.call, result, course.chain.why, error))
        return await self._end(row, course, outcome, began)

    def _row(self, course: Course) -> CallRow:
        job, now = course.job, self.access.clock.now()
        if self.owner is None:
            self.owner = current_owner("bailiwick")
        return CallRow(
            id=course.call,
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
            why=course.chain.why,
            size=_size(job),
            until=now + job.seconds,
            chain=tuple(one.model for one in course.chain.candidates),
            owner=self.owner,
        )

    async def _reservations(self, course: Course) -> list[Reservation]:
        """What a call may cost, of the day's money and of its credentials'; a node of a run has paid already."""
        if course.job.run:
            return []
        today, chain = day(self.access.clock.now()), course.chain
        scopes = {f"day:{today}": {unit: self.config.get(f"budget.day.{unit}") for unit in UNITS}}
        asked = [*chain.candidates, *([chain.verifier] if chain.verifier else [])]
        for backend in dict.fromkeys(one.backend for one in asked if one.tier == "subagent"):
            name, ceilings = self.purse(backend)
            if name:
                scopes[f"credential:{name}:{today}"] = dict(ceilings)
        wanted = self.access.turns.settings.policy.reserve_usd if any(one.cloud for one in asked) else 0.0
        limits = [(scope, ceilings.get("usd")) for scope, ceilings in scopes.items()]
        usd = await cut(self.store, "usd", wanted=wanted, limits=limits, pending=Pending()) if wanted else 0.0
        amounts = {"usd": usd, "tokens": 0.0, "agent_calls": 1.0}
        return [
            Reservation(scope, key=course.call, unit=unit, amount=amounts[unit], limit=ceilings.get(unit))
            for scope, ceilings in scopes.items()
            for unit in UNITS
        ]

    async def _end(self, row: CallRow, course: Course, outcome: Outcome, began: float) -> Outcome:
        ended = self._ended(row, outcome.result, began)
        shown = {one.attempt: one for one in outcome.result.attempts}
        rows = [_attempt_row(row, replace(one, attempt=shown[one.attempt.attempt])) for one in course.made]
        allowed = self.access.turns.settings.unknown_cost == "allow"
        await self.store.end_call(ended, rows, _spent(course, allowed=allowed))
        if course.job.session_id:
            entry = entry_of(course.job, outcome, self.access.clock.now(), duration_ms=ended.duration_ms or 0)
            try:
                await asyncio.to_thread(append_call, sessions_folder(self.config), entry)
            except NotReady as error:  # what was done is done, and on record in the store
                course.show(error.sentence)
        return outcome

    def _ended(self, row: CallRow, result: Result | None, began: float) -> CallRow:
        took = round((self.access.clock.monotonic() - began) * 1000)
        if result is None:
            return replace(row, status="error", finished_at=self.access.clock.now(), duration_ms=took, message=BROKEN)
        return replace(
            row,
            status=result.status,
            finished_at=self.access.clock.now(),
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


def _size(job: Job) -> int:
    """How much a call is about, in characters: its task and the files that it names, as far as they are shown."""
    total = len(job.task)
    for name in job.files:
        try:
            total += Path(job.root, name).stat().st_size
        except OSError:
            continue
    return min(total, MOST_SIZE)


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
