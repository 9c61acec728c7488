"""One call on its way over the chain: each model is asked as the retry policy says, until an output is accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, assert_never

from bailiwick.agents.asking import TurnContext, is_refused
from bailiwick.agents.port import Turn
from bailiwick.agents.prompts import compose
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
from bailiwick.routing.ask import NOWHERE, ModelAccess, ModelReply, Stopped, ask_candidate, bounded
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
from bailiwick.routing.result import (
    Misread,
    answer_keys,
    answer_schema,
    one_line,
    read_result,
    settled_path,
    summary,
)
from bailiwick.routing.tasks import discipline_for, read_files, task_for
from bailiwick.routing.verifier import Judged, Unjudged, VerifierInput, verify
from bailiwick.runtime.money import LEAST, TURNED_AWAY, UNCALLED

SHOWN = 2_000
"""Characters of a feedback that are kept and told to the next tier."""
EVIDENCE = 200
"""Characters of an answer that can't be read that are kept."""
IN_SESSION = frozenset({"reask", "resume", "compact"})
"""Rungs that go on with the work of the attempt before."""
_KINDS = frozenset(FailureKind)

Came = TypeVar("Came")
Pause = Callable[[float], Coroutine[Any, Any, None]]


class Stop:
    """What ends a call before its time; the first reason stays."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.why = ""

    def set(self, why: str) -> None:
        """End it."""
        self.why = self.why or why
        self.event.set()


@dataclass(slots=True)
class Trying:
    """The attempt that is under way; `spent` is what it alone used."""

    plan: AttemptPlan
    candidate: Candidate
    at: float
    task: str
    reply: ModelReply | None = None
    spent: TurnUsage = field(default_factory=lambda: TurnUsage(usd=0.0))
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
    """Carries one call out; `allowance` is the dollars it may cost.

    Every model but the last is asked once; the policy says what follows. Somebody waits: nothing that was rejected is
    asked for again, and no pause outlasts the deadline.
    """

    call: str
    job: Job
    bench: CallFiles | None
    chain: Chain
    access: ModelAccess
    llama_swap_url: str = ""
    show: Callable[[str], None] = lambda _text: None
    stop: Stop = field(default_factory=Stop)
    allowance: float | None = None
    pause: Pause = asyncio.sleep
    made: list[RecordedAttempt] = field(default_factory=list)
    asked: int = 0
    _policy: RetryPolicy = field(init=False)
    _until: float = field(init=False)
    _tries: list[FailedAttempt] = field(default_factory=list)
    _skips: list[str] = field(default_factory=list)
    _best: Result | None = None
    _now: Trying | None = None
    _tree: Path | None = None
    _totals: dict[str, TurnUsage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seconds = self.job.seconds
        self._until = self._clock.monotonic() + seconds
        self._policy = replace(
            self.access.turns.settings.policy,
            models=len(self.chain.candidates),
            on_cap="",
            deadline=self._clock.now() + seconds,
            retry_rejected=False,
        )

    @property
    def _count(self) -> int:
        """How many tries were made; a tier that was skipped is none."""
        return sum(one.attempt.asked for one in self.made)

    @property
    def _clock(self) -> Clock:
        return self.access.clock

    async def run(self) -> tuple[Result, str]:
        """The result, and, where no output was accepted, why. What is not accepted leaves no trace in the project."""
        try:
            return await self._go()
        except Stopped:
            self._mark("error", None, self.stop.why)
            after = f" after {self._count} attempt(s)" if self._count else ""
            return self._without(self.stop.why + after, "error")
        except BailiwickError as error:
            self._mark("error", None, error.sentence)
            return self._without(error.sentence, "error")
        finally:
            if self.bench is not None:
                await self.bench.drop()

    async def _go(self) -> tuple[Result, str]:
        plan = AttemptPlan()
        while True:
            self._check_stop()
            said = await self._attempt(plan)
            if said is None:
                return await self._accept()
            step = next_rung(self._tries, self._policy, self.call)
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

    def _check_stop(self) -> None:
        if self.stop.event.is_set():
            raise Stopped

    async def _attempt(self, plan: AttemptPlan) -> str | None:
        """Ask one model and look at what it gave; None where that is accepted, else what was wrong."""
        candidate = self.chain.candidates[plan.model]
        self._now = now = Trying(plan, candidate, self._clock.now(), self.job.task)
        if self.allowance is not None and self.allowance < LEAST and candidate.cloud:
            return self._failed(now, FailureKind.BUDGET, "the money reserved for this call is used up")
        reply = await ask_candidate(
            self.access,
            candidate,
            lambda: self._turn(now),
            llama_swap_url=self.llama_swap_url,
            although_cooling=self._is_last(plan),
        )
        failure = reply.told.failure
        if failure is not None and failure.kind == FailureKind.HELD:
            reply.was_warm()
            self._now = None
            return await self._skip(plan, failure.message, Detail.from_json(failure.detail).retry_after or 1.0)
        now.reply = reply
        self._charge(now, reply)
        self._check_stop()
        return await self._look(now, reply)

    def _is_last(self, plan: AttemptPlan) -> bool:
        return plan.model + 1 == len(self.chain.candidates)

    async def _skip(self, plan: AttemptPlan, why: str, seconds: float) -> str:
        """Put on record that a tier is not asked, and what its last try said; the last tier is waited for instead."""
        candidate = self.chain.candidates[plan.model]
        because = await self.access.cooldowns.because({candidate.model})
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

    async def _turn(self, now: Trying) -> tuple[Turn, TurnContext]:
        """What this tier is asked, in a fresh tree unless the attempt goes on with what is there.

        A tier that others follow gets its share of the time that is left; the last gets all of it.
        """
        plan, job, candidate = now.plan, self.job, now.candidate
        if self.bench is not None and not (self._tree is not None and plan.rung in IN_SESSION):
            self._tree = await self._bounded(self.bench.begin())
        shown = []
        if candidate.tier == "local" and job.files:
            shown = await asyncio.to_thread(read_files, job.root, self._tree, job.files)
        now.task = task_for(job, objections(self._tries), shown)
        self.show(f"asking {candidate.model} ({plan.model + 1} of {len(self.chain.candidates)})")
        number = len(self.made) + 1
        key = f"{self.call}-{number}"
        turn = Turn(
            key=key,
            prompt=compose(replace(plan, feedback=""), now.task, answer_keys(job), contract=False),
            model=None,
            cwd=self._tree or NOWHERE,
            env=self.access.marked(key, self.call),
            session=plan.session,
            schema=answer_schema(job),
            max_usd=self.allowance,
            options={"rung": plan.rung},
            node=job.phase or job.skill,
            attempt=number,
            system=discipline_for(job, candidate.tier),
        )
        share = self._left() / (len(self.chain.candidates) - plan.model)
        return turn, self._context(min(self.access.turns.settings.total, share), turn.cwd)

    def _context(self, seconds: float, workspace: Path) -> TurnContext:
        return TurnContext(
            cancel=self.stop.event,
            root=self.call,
            workspace=workspace,
            total=seconds,
            silence=self.access.silence(seconds),
            show=self.show,
        )

    def _left(self) -> float:
        return max(0.001, self._until - self._clock.monotonic())

    async def _bounded(self, work: Coroutine[Any, Any, Came]) -> Came:
        return await bounded(work, self.stop.event)

    async def _look(self, now: Trying, reply: ModelReply) -> str | None:
        """What the deterministic checks say of an output, before anybody else is asked."""
        told = reply.told
        if told.answer is None:
            if told.failure is None:
                return self._failed(now, "unknown", "the model gave no answer")
            if reply.place is not None and is_refused(told.failure):  # not waited for, but told how to start it
                return self._failed(now, "not_running", f"{told.failure.message}; {reply.place.to_start}")
            return self._failed(now, told.failure.kind, told.failure.message, Detail.from_json(told.failure.detail))
        result = read_result(told.answer, self.job, now.candidate.tier)
        if isinstance(result, Misread):
            can_resume = reply.backend is not None and reply.backend.capabilities.resume
            evidence = told.answer.text[:EVIDENCE]
            detail = Detail(problem=result.problem, evidence=evidence, session=told.session, can_resume=can_resume)
            return self._failed(now, FailureKind.BAD_OUTPUT, result.problem, detail)
        now.result = result
        if self.bench is not None:
            if result.files and (refused := await self._bounded(self.bench.put(result.files))):
                self._best = self._settled(now)
                return self._rejected(now, one_line(refused, SHOWN), verified=None)
            self.show(f"checking what {now.candidate.model} gave")
            now.checked = await self._bounded(self.bench.check(result))
        self._best = self._settled(now)
        if result.status == "error":
            return self._failed(now, "gave_up", result.message)
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
        self.show(f"asking the verifier {verifier.model}")
        case = VerifierInput(self.job, now.task, now.result, now.checked)
        context = self._context(min(VERIFY_SECONDS, self._left()), NOWHERE)
        key = f"{self.call}-{len(self.made) + 1}-verifier"
        opinion = await verify(self.access, verifier, case, key=key, context=context)
        now.judging = opinion.judging
        self.asked += 1
        self._spend(opinion.judging.cost)
        self._check_stop()
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
        self.show(f"waiting {seconds:.0f} s: {why}")
        await self._bounded(self.pause(seconds))

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
        reply, spent, judging = now.reply, now.spent, now.judging
        costs = [spent.usd, *([judging.cost] if judging else [])]
        if self._best is not None and now.result is not None:
            self._best = replace(self._best, verified=verified)
        attempt = Attempt(
            attempt=len(self.made) + 1,
            model=now.candidate.model,
            tier=now.candidate.tier,
            duration_ms=reply.duration_ms if reply else 0,
            verdict=verdict,
            warm_start=reply is not None and reply.was_warm(),
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

    def _charge(self, now: Trying, reply: ModelReply) -> None:
        """What this attempt alone used: its part of a session that counts on, nothing where it was turned away."""
        told, kind = reply.told, reply.told.failure.kind if reply.told.failure else ""
        now.spent = told.spent
        if told.spent.cumulative and told.session:
            before = self._totals.get(told.session, TurnUsage(0, 0, 0, 0.0))
            self._totals[told.session] = told.spent
            now.spent = _difference(told.spent, before)
        if now.spent.usd is None and kind in UNCALLED | TURNED_AWAY:
            now.spent = replace(now.spent, usd=0.0)
        self.asked += kind not in UNCALLED
        self._spend(now.spent.usd)

    def _spend(self, usd: float | None) -> None:
        if self.allowance is not None and usd is not None:
            self.allowance = max(0.0, self.allowance - usd)


def _difference(now: TurnUsage, before: TurnUsage) -> TurnUsage:
    return replace(
        now,
        input=None if now.input is None else max(0, now.input - (before.input or 0)),
        output=None if now.output is None else max(0, now.output - (before.output or 0)),
        cached=None if now.cached is None else max(0, now.cached - (before.cached or 0)),
        usd=None if now.usd is None else max(0.0, now.usd - (before.usd or 0.0)),
    )
