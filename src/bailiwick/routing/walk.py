"""How a call goes over its chain: what happened comes in, what to do next goes out. Pure, so that every walk is tested.

Every tier but the last gets one try; only the last climbs the ladder.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.engine.retry_agent import AttemptPlan, FailedAttempt, RetryPause, RetryPolicy, next_rung
from bailiwick.engine.retry_agent import RetriesExhausted as LadderEnded
from bailiwick.routing.model import Candidate, Chain, Verdict

_KINDS = frozenset(FailureKind)
_NOT_WAITED_FOR = "auth"
"""The ladder's pause for what only a person can mend."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A tier was not asked: its endpoint cools down or its credential is capped, for so many seconds."""

    why: str
    seconds: float


@dataclass(frozen=True, slots=True)
class WalkFailed:
    """A tier gave nothing that can be used; `at` is the time in seconds since the epoch."""

    kind: str
    message: str
    detail: Detail
    at: float


@dataclass(frozen=True, slots=True)
class Passed:
    """A tier's output was read and holds before the deterministic checks, if any `ran`."""

    ran: bool


@dataclass(frozen=True, slots=True)
class Rejected:
    """A deterministic check failed, or (`ran` False) the files of an output could not be written."""

    feedback: str
    ran: bool = True


@dataclass(frozen=True, slots=True)
class Judged:
    """The verifier has spoken."""

    accept: bool
    feedback: str


@dataclass(frozen=True, slots=True)
class Unjudged:
    """The verifier failed, or said something that is no verdict."""

    message: str


@dataclass(frozen=True, slots=True)
class WalkTooLong:
    """The wait that was due does not fit before the deadline."""

    why: str


Event = Skipped | WalkFailed | Passed | Rejected | Judged | Unjudged | WalkTooLong


@dataclass(frozen=True, slots=True)
class Begin:
    """Ask a tier, in the framing of `plan`, with the feedback that earlier tiers earned."""

    tier: int
    plan: AttemptPlan
    feedback: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verify:
    """Ask the verifier about the output there is."""


@dataclass(frozen=True, slots=True)
class WalkWait:
    """Wait some seconds, or until a time, and then begin; where that is too long, say so."""

    then: Begin
    why: str
    seconds: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class Accept:
    """The output there is counts."""


@dataclass(frozen=True, slots=True)
class WalkEnd:
    """No tier is left; `why` is said where it is more than that."""

    why: str = ""


Step = Begin | Verify | WalkWait | Accept | WalkEnd


@dataclass(frozen=True, slots=True)
class WalkMark:
    """How an attempt is put on record."""

    verdict: Verdict
    verified: bool | None = None
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a call is. `tries` are the failures of the last tier, `skips` says which tiers were not asked and why."""

    chain: Chain
    policy: RetryPolicy
    key: str = ""
    tier: int = 0
    plan: AttemptPlan = field(default_factory=AttemptPlan)
    made: int = 0
    feedback: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()
    tries: tuple[FailedAttempt, ...] = ()

    @property
    def candidate(self) -> Candidate:
        """The model whose turn it is."""
        return self.chain.candidates[self.tier]

    @property
    def is_last(self) -> bool:
        """Whether no other tier follows."""
        return self.tier + 1 == len(self.chain.candidates)

    @property
    def begin(self) -> Begin:
        """The step that asks the tier whose turn it is."""
        return Begin(self.tier, self.plan, self.feedback)


@dataclass(frozen=True, slots=True)
class Move:
    """What an event leads to: the new place, how the attempt is recorded where it has ended, and the next step."""

    walk: Walk
    mark: WalkMark | None
    step: Step


def advance(walk: Walk, event: Event) -> Move:
    """Take one event."""
    match event:
        case Skipped():
            return _skipped(walk, event)
        case WalkFailed():
            return _failed(walk, event)
        case Rejected():
            verified = False if event.ran else None
            return _escalate(walk, WalkMark("escalate", verified, event.feedback), event.feedback)
        case Passed():
            return _passed(walk, event)
        case Judged(accept=True):
            return Move(_counted(walk), WalkMark("accept", True, event.feedback), Accept())
        case Judged():
            return _escalate(walk, WalkMark("escalate", False, event.feedback), event.feedback)
        case Unjudged():
            return _escalate(walk, WalkMark("escalate", None, f"verifier error: {event.message}"))
        case WalkTooLong():
            return Move(walk, None, WalkEnd(event.why))
        case never:
            assert_never(never)


def _counted(walk: Walk) -> Walk:
    return replace(walk, made=walk.made + 1)


def _next_tier(walk: Walk) -> Walk:
    return replace(walk, tier=walk.tier + 1, plan=AttemptPlan())


def _skipped(walk: Walk, event: Skipped) -> Move:
    if walk.is_last:
        return Move(walk, None, WalkWait(walk.begin, event.why, seconds=event.seconds))
    there = _next_tier(replace(walk, skips=(*walk.skips, f"{walk.candidate.model}: {event.why}")))
    return Move(there, None, there.begin)


def _failed(walk: Walk, event: WalkFailed) -> Move:
    mark, counted = WalkMark("error", None, event.message), _counted(walk)
    if not walk.is_last:
        there = _next_tier(counted)
        return Move(there, mark, there.begin)
    if event.kind not in _KINDS:
        return Move(counted, mark, WalkEnd(event.message))
    plan = walk.plan
    tried = FailedAttempt(
        FailureKind(event.kind),
        rung=plan.rung,
        model=0,
        level=plan.level,
        attempt=counted.made,
        at=event.at,
        detail=event.detail,
    )
    here = replace(counted, tries=(*walk.tries, tried))
    return Move(*_climb(here, mark, event.message))


def _climb(walk: Walk, mark: WalkMark, message: str) -> tuple[Walk, WalkMark, Step]:
    """The next rung of the last tier; nobody is waited for who has to sign in or pay."""
    match next_rung(walk.tries, replace(walk.policy, models=1), walk.key):
        case AttemptPlan() as plan:
            there = replace(walk, plan=plan)
            return there, mark, there.begin
        case RetryPause() as pause if pause.kind != _NOT_WAITED_FOR:
            there = replace(walk, plan=pause.plan)
            return there, mark, WalkWait(there.begin, message, pause.seconds, pause.until)
        case RetryPause() | LadderEnded():
            return walk, mark, WalkEnd(message)
        case never:
            assert_never(never)


def _passed(walk: Walk, event: Passed) -> Move:
    """The verifier is asked about local models' outputs alone, and never about a model that the caller named."""
    if walk.candidate.tier == "local" and walk.chain.verifier is not None and not walk.chain.pinned:
        return Move(walk, None, Verify())
    mark = WalkMark("accept", True) if event.ran else WalkMark("accept_unverified")
    return Move(_counted(walk), mark, Accept())


def _escalate(walk: Walk, mark: WalkMark, feedback: str = "") -> Move:
    """An output that was not accepted is not asked for again: the next tier hears why, or there is none."""
    heard = (*walk.feedback, feedback) if feedback else walk.feedback
    counted = replace(_counted(walk), feedback=heard)
    if walk.is_last:
        return Move(counted, mark, WalkEnd())
    there = _next_tier(counted)
    return Move(there, mark, there.begin)
