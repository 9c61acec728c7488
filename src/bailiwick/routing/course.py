"""One call on its way over the chain: each model is asked as the retry policy says, until an output is accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, assert_never

from bailiwick.agents.asking import is_refused
from bailiwick.agents.record import TurnUsage
from bailiwick.clock import Clock
from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.engine.retry_agent import (
    AttemptPlan,
    FailedAttempt,
    RetriesExhausted,
    RetryPause,
    RetryPolicy,
    next_rung,
    objections,
)
from bailiwick.errors import BailiwickError
from bailiwick.routing.chains import LOCAL_BACKEND
from bailiwick.routing.cooldown import Cooldowns, key_of
from bailiwick.routing.endpoints import EndpointAddress
from bailiwick.routing.generate import GeneratedText, Question, Reply, Stop, Stopped, Tiers, generate, question_for
from bailiwick.routing.model import (
    NOT_ASKED,
    VERIFY_SECONDS,
    Attempt,
    Candidate,
    Chain,
    CheckOutcome,
    Job,
    Result,
    Verdict,
    VerifierUsage,
)
from bailiwick.routing.port import CallFiles
from bailiwick.routing.result import answer_schema, one_line, settled_path, summary
from bailiwick.routing.tasks import read_files, task_for
from bailiwick.routing.verifier import Judged, Unjudged, VerifierInput, judging_of, verify
from bailiwick.runtime.money import LEAST, TURNED_AWAY, UNCALLED

SHOWN = 2_000
"""Characters of a feedback that are kept and told to the next tier."""
IN_SESSION = frozenset({"reask", "resume", "compact"})
"""Rungs that go on with the work of the attempt before."""

_KINDS = frozenset(FailureKind)

Probe = Callable[[EndpointAddress, str], Coroutine[Any, Any, bool]]
Pause = Callable[[float], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class Trying:
    """The attempt that is under way."""

    plan: AttemptPlan
    candidate: Candidate
    at: float
    task: str
    warm: asyncio.Future[bool] | None = None
    generated: GeneratedText | None = None
    result: Result | None = None
    checked: CheckOutcome | None = None
    judging: VerifierUsage | None = None


@dataclass(frozen=True, slots=True)
class RecordedAttempt:
    """An attempt on record, with when it began and how long the task was in characters."""

    attempt: Attempt
    at: float
    size: int


@dataclass(slots=True, kw_only=True)
class Course:
    """Carries one call out. `until` is its deadline on the monotonic clock, `allowance` the dollars it may cost.

    Every model but the last is asked once; `policy`, which knows the deadline too, says what follows.
    """

    call: str
    job: Job
    bench: CallFiles | None
    chain: Chain
    policy: RetryPolicy
    tiers: Tiers
    cooldowns: Cooldowns
    probe: Probe
    until: float
    allowance: float | None = None
    pause: Pause = asyncio.sleep
    made: list[RecordedAttempt] = field(default_factory=list)
    asked: int = 0
    _tries: list[FailedAttempt] = field(default_factory=list)
    _skips: list[str] = field(default_factory=list)
    _best: Result | None = None
    _now: Trying | None = None
    _tree: Path | None = None
    _totals: dict[str, TurnUsage] = field(default_factory=dict)

    @property
    def _count(self) -> int:
        """How many tries were made; a tier that was skipped is none."""
        return sum(one.attempt.asked for one in self.made)

    @property
    def _clock(self) -> Clock:
        return self.tiers.clock

    @property
    def _stop(self) -> Stop:
        return self.tiers.stop

    async def run(self) -> tuple[Result, str]:
        """The result, and, where no output was accepted, why. What is not accepted leaves no trace in the project."""
        try:
            return await self._go()
        except Stopped as stopped:
            self._take_stock(stopped.reply)
            self._mark("error", None, self._stop.why)
            after = f" after {self._count} attempt(s)" if self._count else ""
            return self._without(self._stop.why + after, "error")
        except BailiwickError as error:
            self._mark("error", None, error.sentence)
            return self._without(error.sentence, "error")
        finally:
            if self.bench is not None:
                await self.bench.drop()

    async def _go(self) -> tuple[Result, str]:
        plan = AttemptPlan()
        while True:
            if self._stop.event.is_set():
                raise Stopped
            said = await self._attempt(plan)
            if said is None:
                return await self._accept()
            step = next_rung(self._tries, self.policy, self.call)
            match step:
                case AttemptPlan():
                    plan = step
                case RetryPause():
                    await self._wait(step, said)
                    plan = step.plan
                case RetriesExhausted():
                    if step.late and not self._count:
                        self._note_unasked(self.chain.candidates[plan.model], said)
                    return self._exhausted(f"{said}; {step.why}" if step.late else said)
                case never:
                    assert_never(never)

    async def _attempt(self, plan: AttemptPlan) -> str | None:
        """Ask one model and look at what it gave; None where that is accepted, else what was wrong."""
        candidate = self.chain.candidates[plan.model]
        place = self._place(candidate)
        key = key_of(candidate, place)
        blocked = await self.cooldowns.blocked(key)
        if blocked > 0 and not self._is_last(plan):
            return await self._skip(plan, f"its endpoint kept failing: backing off for {blocked:.0f} s", blocked)
        self._now = now = Trying(plan, candidate, self._clock.now(), self.job.task)
        if self.allowance is not None and self.allowance < LEAST and candidate.cloud:
            return self._failed(now, FailureKind.BUDGET, "the money reserved for this call is used up")
        if place is not None:
            now.warm = asyncio.ensure_future(self.probe(place, candidate.model))
        await self._prepare(now)
        self.tiers.show(f"asking {candidate.model} ({plan.model + 1} of {len(self.chain.candidates)})")
        generated = await generate(self.tiers, candidate, self.job, self._question(now))
        if generated.failure is not None and generated.failure.kind == FailureKind.HELD:
            self._now, _ = None, _is_warm(now.warm)
            detail = Detail.from_json(generated.failure.detail)
            return await self._skip(plan, generated.failure.message, detail.retry_after or 1.0)
        now.generated = self._charged(generated)
        await self.cooldowns.heard(key, generated.failure)
        return await self._look(now, generated)

    def _is_last(self, plan: AttemptPlan) -> bool:
        return plan.model + 1 == len(self.chain.candidates)

    async def _skip(self, plan: AttemptPlan, why: str, seconds: float) -> str:
        """Put on record that a tier is not asked, and what its last try said; the last tier is waited for instead."""
        candidate = self.chain.candidates[plan.model]
        because = await self.cooldowns.because({candidate.model})
        told = one_line(f"{why} ({because})" if because else why, SHOWN)
        if not self._is_last(plan):
            self._skips.append(f"{candidate.model}: {told}")
            self._note_unasked(candidate, told)
        self._note_failure(plan, FailureKind.HELD, Detail(retry_after=seconds))
        return told

    def _note_unasked(self, candidate: Candidate, why: str) -> None:
        attempt = Attempt(
            attempt=len(self.made) + 1,
            model=candidate.model,
            tier=candidate.tier,
            duration_ms=0,
            verdict="error",
            feedback=f"{NOT_ASKED}{why}"[:SHOWN],
            cost=0.0,
        )
        self.made.append(RecordedAttempt(attempt, self._clock.now(), 0))

    async def _prepare(self, now: Trying) -> None:
        """A fresh tree, unless the attempt goes on with what is there; and the task as this tier is told it."""
        if self.bench is not None and not (self._tree is not None and now.plan.rung in IN_SESSION):
            self._tree = await self._stop.bounded(self.bench.begin())
        shown = []
        if now.candidate.tier == "local" and self.job.files:
            shown = await asyncio.to_thread(read_files, self.job.root, self._tree, self.job.files)
        now.task = task_for(self.job, objections(self._tries), shown)

    def _question(self, now: Trying) -> Question:
        """A tier that others follow gets its share of the time that is left; the last gets all of it."""
        prompt, system = question_for(self.job, now.candidate.tier, now.task, now.plan)
        left = max(0.001, self.until - self._clock.monotonic())
        share = left / (len(self.chain.candidates) - now.plan.model)
        loaded = now.warm is not None and now.warm.done() and now.warm.result()
        return Question(
            key=f"{self.call}-{len(self.made) + 1}",
            prompt=prompt,
            system=system,
            schema=answer_schema(self.job),
            seconds=min(self.tiers.turns.settings.total, share),
            node=self.job.phase or self.job.skill,
            plan=now.plan,
            tree=self._tree,
            max_usd=self.allowance,
            attempt=len(self.made) + 1,
            loaded=loaded,
        )

    async def _look(self, now: Trying, generated: GeneratedText) -> str | None:
        """What the deterministic checks say of an output, before anybody else is asked."""
        if generated.result is None:
            failure = generated.failure
            if failure is None:
                return self._failed(now, "unknown", "the model gave no answer")
            place = self._place(now.candidate)
            if place is not None and is_refused(failure):  # it is not waited for, but told how to start it
                return self._failed(now, "not_running", f"{failure.message}; {place.to_start}")
            return self._failed(now, failure.kind, failure.message, Detail.from_json(failure.detail))
        now.result = generated.result
        if self.bench is not None:
            files = generated.result.files
            if files and (refused := await self._stop.bounded(self.bench.put(files))):
                self._best = self._settled(now)
                return self._rejected(now, one_line(refused, SHOWN), verified=None)
            self.tiers.show(f"checking what {now.candidate.model} gave")
            now.checked = await self._stop.bounded(self.bench.check(generated.result))
        self._best = self._settled(now)
        if generated.result.status == "error":
            return self._failed(now, "gave_up", generated.result.message)
        if now.checked is not None and not now.checked.ok:
            feedback = (now.checked.feedback or "a check failed")[:SHOWN]
            return self._rejected(now, feedback, verified=False if now.checked.ran else None)
        return await self._verify(now)

    async def _verify(self, now: Trying) -> str | None:
        """The verifier's word. It is for local models alone, and never for a model that the caller named."""
        verifier = self.chain.verifier
        if now.candidate.tier != "local" or verifier is None or self.chain.pinned or now.result is None:
            ran = now.checked is not None and now.checked.ran
            self._mark("accept" if ran else "accept_unverified", True if ran else None)
            return None
        self.tiers.show(f"asking the verifier {verifier.model}")
        case = VerifierInput(self.job, now.task, now.result, now.checked)
        seconds = min(VERIFY_SECONDS, max(0.001, self.until - self._clock.monotonic()))
        opinion = await verify(
            self.tiers, verifier, case=case, key=f"{self.call}-{len(self.made) + 1}-verifier", seconds=seconds
        )
        now.judging = opinion.judging
        self.asked += 1
        self._spend(opinion.judging.cost)
        match opinion.event:
            case Judged(accept=True, feedback=feedback):
                self._mark("accept", True, feedback)
                return None
            case Judged(feedback=feedback):
                return self._rejected(now, feedback, verified=False)
            case Unjudged(message=message):
                text = f"verifier error: {message}"
                self._note_failure(now.plan, FailureKind.BAD_OUTPUT, Detail(evidence=text, unjudged=True))
                self._mark("escalate", None, text)
                return text
            case never:
                assert_never(never)

    def _rejected(self, now: Trying, feedback: str, verified: bool | None) -> str:
        """An output that was found wrong: the next tier hears why. `verified` is None where nothing was checked."""
        self._note_failure(now.plan, FailureKind.REJECTED, Detail(problem=feedback))
        self._mark("escalate", verified, feedback)
        return feedback

    def _failed(self, now: Trying, kind: str, message: str, detail: Detail | None = None) -> str:
        """A tier gave nothing that can be used. What the policy has no class for would only fail again."""
        told = one_line(message, SHOWN) or kind
        if kind in _KINDS:
            self._note_failure(now.plan, FailureKind(kind), detail or Detail())
        else:
            self._note_failure(now.plan, FailureKind.CRASH, Detail(final=True))
        self._mark("error", None, told)
        return told

    def _note_failure(self, plan: AttemptPlan, kind: FailureKind, detail: Detail) -> None:
        self._tries.append(
            FailedAttempt(
                kind,
                rung=plan.rung,
                model=plan.model,
                level=plan.level,
                attempt=self._count + (kind is not FailureKind.HELD),
                at=self._clock.now(),
                detail=detail,
            )
        )

    async def _wait(self, pause: RetryPause, why: str) -> None:
        until = 0.0 if pause.until is None else pause.until - self._clock.now()
        seconds = max(0.0, until if pause.seconds is None else pause.seconds)
        self.tiers.show(f"waiting {seconds:.0f} s: {why}")
        await self._stop.bounded(self.pause(seconds))

    async def _accept(self) -> tuple[Result, str]:
        """Bring what was accepted into the project, whole or not at all: from here on nothing ends it halfway."""
        last = self.made[-1]
        missed = await self.bench.keep() if self.bench is not None else ""
        if missed:
            spoilt = replace(last.attempt, verdict="error", verified=None, feedback=one_line(missed, SHOWN))
            self.made[-1] = replace(last, attempt=spoilt)
            return self._without(f"accepted, but not written into the project: {missed}", "error")
        result = self._best or self._empty("")
        return replace(result, verified=last.attempt.verified, attempts=self._attempts()), ""

    def _exhausted(self, why: str) -> tuple[Result, str]:
        skipped = (f"skipped {skip}" for skip in self._skips)
        parts = [f"all tiers exhausted after {self._count} attempt(s)", why, *skipped]
        return self._without("; ".join(filter(None, parts)), "fail" if self._best is not None else "error")

    def _without(self, message: str, status: str) -> tuple[Result, str]:
        """The best attempt where none was accepted: nothing of it is in the project."""
        text = one_line(message, SHOWN)
        best = self._best or self._empty(text)
        ended = replace(
            best,
            status="fail" if status == "fail" and best.status != "error" else "error",
            message=text,
            attempts=self._attempts(),
            details={**best.details, **({"applied": False} if best.files else {})},
        )
        return ended, text

    def _empty(self, message: str) -> Result:
        return Result(status="error", phase=self.job.phase, skill=self.job.skill, message=message)

    def _attempts(self) -> tuple[Attempt, ...]:
        return tuple(one.attempt for one in self.made)

    def _settled(self, now: Trying) -> Result:
        """An output in our own words: where its file will lie, what the checks printed, who made it."""
        result = now.result or self._empty("")
        tree = str(self._tree or "")
        checked = now.checked or CheckOutcome(ok=True, ran=False)
        path = settled_path(checked.file_path, tree, self.job.root) or checked.file_path
        proved = checked.ran and checked.ok and self.job.writes
        return replace(
            result,
            status="pass" if proved and result.status == "fail" else result.status,
            model_used=now.candidate.model,
            file_path=path or settled_path(result.file_path, tree, self.job.root),
            runner_output=checked.output if checked.ran else result.runner_output,
            details={**result.details, **checked.details},
        )

    def _mark(self, verdict: Verdict, verified: bool | None, feedback: str = "") -> None:
        """Put the attempt that is under way on record, if there is one."""
        now, self._now = self._now, None
        if now is None:
            return
        generated = now.generated or GeneratedText(None, None, 0, TurnUsage(usd=0.0))
        spent, judging = generated.spent, now.judging
        costs = [spent.usd, *([judging.cost] if judging else [])]
        if self._best is not None and now.result is not None:
            self._best = replace(self._best, verified=verified)
        attempt = Attempt(
            attempt=len(self.made) + 1,
            model=now.candidate.model,
            tier=now.candidate.tier,
            duration_ms=generated.duration_ms,
            verdict=verdict,
            warm_start=_is_warm(now.warm),
            verified=verified,
            feedback=feedback[:SHOWN],
            input_tokens=spent.input,
            output_tokens=spent.output,
            cost=None if None in costs else sum(filter(None, costs)),
            output_summary=summary(now.result) if now.result else "",
            runner_output=now.checked.output if now.checked and now.checked.ran else "",
            verifier=judging,
        )
        self.made.append(RecordedAttempt(attempt, now.at, len(now.task)))

    def _take_stock(self, reply: Reply | None) -> None:
        """What was used by a question that was broken off: it is paid for like others."""
        now, verifier = self._now, self.chain.verifier
        if now is None or reply is None:
            return
        if now.generated is None:
            told = reply.told
            now.generated = self._charged(
                GeneratedText(
                    None, failure=told.failure, duration_ms=reply.duration_ms, spent=told.spent, session=told.session
                )
            )
        elif verifier is not None:
            now.judging = judging_of(verifier, reply)
            self.asked += 1

    def _place(self, candidate: Candidate) -> EndpointAddress | None:
        """Where a local model answers; None for a subagent, and where it can't be had, which asking will tell."""
        if candidate.tier != "local" or candidate.backend != LOCAL_BACKEND:
            return None
        try:
            return self.tiers.place(candidate.model)
        except BailiwickError:
            return None

    def _charged(self, generated: GeneratedText) -> GeneratedText:
        """What this attempt alone used: its part of a session that counts on, nothing where it was turned away."""
        kind = generated.failure.kind if generated.failure else ""
        spent = generated.spent
        if spent.cumulative and generated.session:
            before = self._totals.get(generated.session, TurnUsage(0, 0, 0, 0.0))
            self._totals[generated.session] = spent
            spent = _difference(spent, before)
        if spent.usd is None and kind in UNCALLED | TURNED_AWAY | {"no_tier"}:
            spent = replace(spent, usd=0.0)
        self.asked += kind not in UNCALLED
        self._spend(spent.usd)
        return replace(generated, spent=spent)

    def _spend(self, usd: float | None) -> None:
        if self.allowance is not None and usd is not None:
            self.allowance = max(0.0, self.allowance - usd)


def _is_warm(warm: asyncio.Future[bool] | None) -> bool:
    """What the probe found, if it was quick enough: nothing waits for it."""
    if warm is None:
        return False
    if not warm.done():
        warm.cancel()
        return False
    return not warm.cancelled() and warm.exception() is None and warm.result()


def _difference(now: TurnUsage, before: TurnUsage) -> TurnUsage:
    return replace(
        now,
        input=None if now.input is None else max(0, now.input - (before.input or 0)),
        output=None if now.output is None else max(0, now.output - (before.output or 0)),
        cached=None if now.cached is None else max(0, now.cached - (before.cached or 0)),
        usd=None if now.usd is None else max(0.0, now.usd - (before.usd or 0.0)),
    )
