"""The ladder of a turn that failed: which rung follows. Pure: the same journal climbs the same ladder after a crash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import assert_never

from bailiwick.engine.failures import ENDPOINT, FREE, TRANSIENT, Detail, FailureKind
from bailiwick.ids import Json, digest

PERSON = "auth"
"""The kind of a pause that somebody has to end: by signing in, paying, mending an endpoint."""
WORDS = 300
"""Characters of the last failure that are told when nothing is left to try."""
HOUR = 3600.0
MAX_BACKOFF = HOUR
_LATER: dict[str, Json] = {"deadline": None, "retry_rejected": True}
"""Knobs that older journals do not have, and what that means."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The knobs of one node. Spans in seconds; `models` is how many the chain has.

    `on_cap`: "wait" waits for a cap also where another model follows in the chain. `deadline`: somebody waits for the
    answer until then, in seconds since the epoch, so what would take longer, or a person, ends it. `retry_rejected`:
    the last model is asked again for an output that was rejected or not judged.
    """

    max_output_retries: int = 2
    max_invoke_retries: int = 4
    backoff_base: float = 15.0
    backoff_cap: float = 300.0
    max_compact_attempts: int = 2
    max_rephrase_attempts: int = 3
    cap_default_wait: float = HOUR
    cap_wait_margin: float = 120.0
    cap_max_wait: float = 192 * HOUR
    max_cap_waits: int = 48
    max_attempts: int = 12
    outage_wait: float = 12 * HOUR
    probe: float = 600.0
    models: int = 1
    on_cap: str = ""
    use_defaults: bool = True
    reserve_usd: float = 0.0
    deadline: float | None = None
    retry_rejected: bool = True

    def to_json(self) -> dict[str, Json]:
        """The knobs as they are journaled. Those that came later are left out while they are as they always were."""
        return {name: value for name, value in asdict(self).items() if name not in _LATER or value != _LATER[name]}

    @classmethod
    def from_json(cls, found: dict[str, Json]) -> RetryPolicy:
        """The knobs as they were journaled; names that this version does not have are left out."""
        known = {knob.name for knob in fields(cls)}
        return cls(**{name: value for name, value in found.items() if name in known})


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One failed attempt of a visit: what it was and what it came to. `level` counts the reframings."""

    kind: FailureKind
    rung: str
    model: int
    level: int
    attempt: int
    at: float
    detail: Detail = field(default_factory=Detail)


@dataclass(frozen=True, slots=True)
class AttemptPlan:
    """How the next attempt is made: on which model, in which framing, in whose session, naming which problem.

    `feedback` is what a verifier held against the answers of earlier models of the chain.
    """

    rung: str = "first"
    model: int = 0
    level: int = 0
    session: str | None = None
    problem: str = ""
    feedback: str = ""


@dataclass(frozen=True, slots=True)
class RetryPause:
    """Wait before the next attempt; `kind` is the wait's. `until` is a time, `seconds` a span; both empty: a person."""

    kind: str
    plan: AttemptPlan
    why: str
    seconds: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class RetriesExhausted:
    """Nothing more can be tried by itself; `late`: only a pause would help, and it would end after the deadline."""

    why: str
    late: bool = False


def next_rung(
    tries: Sequence[FailedAttempt], policy: RetryPolicy, key: str
) -> AttemptPlan | RetryPause | RetriesExhausted:
    """Choose the rung after the last of `tries`. Of a chain only the last model climbs: the others get one call."""
    last = tries[-1]
    stays = (last.kind in (FailureKind.BUDGET, FailureKind.DISK) and policy.deadline is None) or (
        last.kind in (FailureKind.CAP, FailureKind.HELD) and policy.on_cap == "wait"
    )
    if last.model + 1 < (last.detail.models or policy.models) and not stays:
        return AttemptPlan("next_model", last.model + 1, feedback=feedback_of(tries))
    step = _climb(tries, policy, key)
    match step:
        case AttemptPlan():
            return replace(step, feedback=feedback_of(tries))
        case RetryPause():
            return _in_time(replace(step, plan=replace(step.plan, feedback=feedback_of(tries))), last.at, policy)
        case RetriesExhausted():
            return step
        case never:
            assert_never(never)


def _in_time(pause: RetryPause, at: float, policy: RetryPolicy) -> RetryPause | RetriesExhausted:
    """The pause that is due after a failure at this time, unless somebody waits who can't wait so long."""
    if policy.deadline is None:
        return pause
    if pause.kind == PERSON:
        return RetriesExhausted(pause.why)
    end = at + (pause.seconds or 0.0) if pause.until is None else pause.until
    if end < policy.deadline:
        return pause
    return RetriesExhausted(f"waiting {max(0.0, end - at):.0f} s for it would be longer than the deadline allows", True)


def objections(tries: Sequence[FailedAttempt]) -> tuple[str, ...]:
    """What was held against the answers so far; errors add nothing."""
    return tuple(t.detail.problem for t in tries if t.kind is FailureKind.REJECTED and t.detail.problem)


def feedback_of(tries: Sequence[FailedAttempt]) -> str:
    """The objections as the next task has them, a line each."""
    return "\n".join(f"Prior attempt feedback: {text}" for text in objections(tries))


def _climb(
    tries: Sequence[FailedAttempt], policy: RetryPolicy, key: str
) -> AttemptPlan | RetryPause | RetriesExhausted:
    last = tries[-1]
    if not policy.retry_rejected and (last.kind is FailureKind.REJECTED or last.detail.unjudged):
        return _used_up(last)
    if last.kind is FailureKind.SPAWN and (plan := _session_trouble(tries)) is not None:
        return plan
    match last.kind:
        case FailureKind.AUTH | FailureKind.BILLING | FailureKind.SPAWN:
            return RetryPause(PERSON, _same(last), last.detail.evidence or str(last.kind), seconds=policy.probe)
        case FailureKind.CAP:
            return _cap(tries, policy)
        case FailureKind.HELD:
            return RetryPause(
                "retry", _same(last), "its credential is held back", seconds=last.detail.retry_after or 1.0
            )
        case FailureKind.BUDGET:
            return RetriesExhausted("it reached its budget")
        case FailureKind.DISK:
            return RetriesExhausted(last.detail.evidence or "it wrote more than a sandbox may hold")
        case _:
            pass
    counted = [t for t in tries if t.kind not in FREE | ENDPOINT]
    if len(counted) >= policy.max_attempts:
        return RetriesExhausted(f"{policy.max_attempts} attempts were made")
    if last.kind in TRANSIENT - {FailureKind.EMPTY} or last.detail.transient:
        return _transient(tries, policy, key)
    return _answerless(tries, policy, key)


def _session_trouble(tries: Sequence[FailedAttempt]) -> AttemptPlan | None:
    """A session that is there already is resumed; one that is gone is begun again, once."""
    last = tries[-1]
    evidence = last.detail.evidence
    if evidence.startswith("session-in-use") and last.detail.session and last.rung != "resume":
        return AttemptPlan("resume", last.model, last.level, last.detail.session)
    gone = [t for t in tries if t.detail.evidence.startswith(("session-unknown", "thread-unknown"))]
    return _same(last) if gone and gone[-1] is last and len(gone) == 1 else None


def _same(last: FailedAttempt) -> AttemptPlan:
    """The same task once more: same model, same framing, a fresh session."""
    return AttemptPlan("again", last.model, last.level)


def _cap(tries: Sequence[FailedAttempt], policy: RetryPolicy) -> AttemptPlan | RetryPause | RetriesExhausted:
    """The rate-limit wait: until the time the vendor names, else for the configured default."""
    last = tries[-1]
    if sum(t.kind is FailureKind.CAP for t in tries) > policy.max_cap_waits:
        return RetriesExhausted(f"{policy.max_cap_waits} caps were waited for")
    resets = last.detail.resets_at
    if resets is not None:
        until = min(max(resets, last.at) + policy.cap_wait_margin, last.at + policy.cap_max_wait)
        return RetryPause("cap", _same(last), last.detail.evidence, until=until)
    wait = min(policy.cap_default_wait, policy.cap_max_wait)
    return RetryPause("cap", _same(last), last.detail.evidence, seconds=wait)


def _transient(
    tries: Sequence[FailedAttempt], policy: RetryPolicy, key: str
) -> AttemptPlan | RetryPause | RetriesExhausted:
    """The rate-limit wait and every other short one: at least what the server asks for; longer ones are an outage."""
    last, streak = tries[-1], _streak(tries)
    asked = min(last.detail.retry_after or 0.0, policy.cap_max_wait)
    if len(streak) <= policy.max_invoke_retries:
        pause = min(backoff(policy.backoff_base, len(streak), f"{key}:{last.attempt}"), policy.backoff_cap)
        return RetryPause("retry", _same(last), str(last.kind), seconds=max(pause, asked))
    if last.kind not in ENDPOINT:
        return _reframe(last, policy)
    if last.at - streak[0].at < policy.outage_wait:
        wait = max(policy.backoff_cap, asked)
        return RetryPause("outage", _same(last), f"{last.kind}: {last.detail.evidence}", seconds=wait)
    return RetryPause(PERSON, _same(last), f"the endpoint has been {last.kind} for {policy.outage_wait / HOUR:g} h")


def _streak(tries: Sequence[FailedAttempt]) -> list[FailedAttempt]:
    """The transient failures since something else happened; caps and held turns in between don't count."""
    out: list[FailedAttempt] = []
    last = tries[-1]
    for one in reversed(tries):
        if one.kind in FREE:
            continue
        transient = one.kind in TRANSIENT - {FailureKind.EMPTY} or one.detail.transient
        if not transient or (one.model, one.level) != (last.model, last.level):
            break
        out.append(one)
    return out[::-1]


def _answerless(
    tries: Sequence[FailedAttempt], policy: RetryPolicy, key: str
) -> AttemptPlan | RetryPause | RetriesExhausted:
    """Failures of the answer itself: too long, refused, crashed, empty, not what was asked for."""
    last = tries[-1]
    here = [t for t in tries if (t.model, t.level) == (last.model, last.level)]
    count = sum(t.kind is last.kind for t in here)
    match last.kind:
        case FailureKind.OVERFLOW:
            compacted = sum(t.rung == "compact" for t in here)
            if last.detail.can_compact and last.detail.session and compacted < policy.max_compact_attempts:
                return AttemptPlan("compact", last.model, last.level, last.detail.session)
            return _reframe(last, policy)
        case FailureKind.REFUSED:
            return _reask(last) if count == 1 and _can_reask(last) else _used_up(last)
        case FailureKind.CRASH if last.detail.final:
            return RetriesExhausted(last.detail.evidence.partition(": ")[2] or "it failed")
        case FailureKind.CRASH:
            if count == 1:
                return RetryPause("retry", _same(last), "crashed", seconds=backoff(policy.backoff_base, 1, key))
            return RetriesExhausted("it crashed twice")
        case _:
            asked = sum(t.rung == "reask" for t in here)
            if asked < policy.max_output_retries and _can_reask(last):
                return _reask(last)
            return _reframe(last, policy)


def _can_reask(last: FailedAttempt) -> bool:
    return last.detail.can_resume and last.detail.session is not None


def _reask(last: FailedAttempt) -> AttemptPlan:
    return AttemptPlan(
        "reask",
        model=last.model,
        level=last.level,
        session=last.detail.session,
        problem=last.detail.problem or last.detail.evidence,
    )


def _reframe(last: FailedAttempt, policy: RetryPolicy) -> AttemptPlan | RetriesExhausted:
    if last.level < policy.max_rephrase_attempts:
        return AttemptPlan("reframe", last.model, last.level + 1, problem=last.detail.problem)
    return _used_up(last)


def _used_up(last: FailedAttempt) -> RetriesExhausted:
    words = (last.detail.problem or last.detail.evidence)[:WORDS]
    return RetriesExhausted(f"all attempts failed; the last one: {last.kind}{f': {words}' if words else ''}")


def backoff(base: float, attempt: int, key: str) -> float:
    """The pause after an attempt: doubled each time, up to an hour; (key, attempt) fixes a jitter of a tenth."""
    pause = min(base * float(2 ** min(attempt - 1, 32)), MAX_BACKOFF)
    share = int(digest(f"{key}\0{attempt}")[:8], 16) / 0xFFFFFFFF
    return round(pause * (0.9 + 0.2 * share), 3)
