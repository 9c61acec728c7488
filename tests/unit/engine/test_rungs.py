"""The ladder: every class of failure on every rung, exact attempts and waits, and that it always ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.engine.failures import ENDPOINT, FREE, Detail, FailureKind
from bailiwick.engine.retry_agent import (
    AttemptPlan,
    FailedAttempt,
    RetriesExhausted,
    RetryPause,
    RetryPolicy,
    next_rung,
)

SESSION = Detail(session="s", can_resume=True, can_compact=True, problem="no key 'x'")
BARE = Detail()


def _climb(
    answer: Callable[[int], FailureKind], policy: RetryPolicy, detail: Detail = SESSION, most: int = 200
) -> tuple[list[str], list[FailedAttempt]]:
    """Fail again and again as `answer` says; gives the rungs that followed, up to the one that stops."""
    tries: list[FailedAttempt] = []
    plan, now = AttemptPlan(), 1000.0
    rungs: list[str] = []
    for number in range(most):
        tries.append(FailedAttempt(answer(number), plan.rung, plan.model, plan.level, number + 1, now, detail))
        rung = next_rung(tries, policy, "key")
        match rung:
            case RetriesExhausted():
                return [*rungs, "exhausted"], tries
            case RetryPause():
                rungs.append(rung.kind)
                if rung.seconds is None and rung.until is None:
                    return rungs, tries
                now = rung.until if rung.until is not None else now + (rung.seconds or 0)
                plan = rung.plan
            case AttemptPlan():
                rungs.append(rung.rung)
                plan = rung
        if rungs[-1] == "auth":
            return rungs, tries
    return rungs, tries


def _only(kind: FailureKind) -> Callable[[int], FailureKind]:
    return lambda _number: kind


REASKS = ["reask", "reask", "reframe"]
MATRIX: list[tuple[FailureKind, list[str]]] = [
    (FailureKind.SPAWN, ["auth"]),
    (FailureKind.AUTH, ["auth"]),
    (FailureKind.BILLING, ["auth"]),
    (FailureKind.TIMEOUT, [*["retry"] * 4, "reframe", *["retry"] * 4, "reframe", "retry", "exhausted"]),
    (FailureKind.OVERFLOW, [*["compact", "compact", "reframe"] * 3, "compact", "compact", "exhausted"]),
    (FailureKind.REFUSED, ["reask", "exhausted"]),
    (FailureKind.CRASH, ["retry", "exhausted"]),
    (FailureKind.EMPTY, [*REASKS * 3, "reask", "reask", "exhausted"]),
    (FailureKind.BAD_OUTPUT, [*REASKS * 3, "reask", "reask", "exhausted"]),
    (FailureKind.TOOL_DENIED, [*REASKS * 3, "reask", "reask", "exhausted"]),
    (FailureKind.BUDGET, ["exhausted"]),
    (FailureKind.DISK, ["exhausted"]),
]


@pytest.mark.parametrize(("kind", "rungs"), MATRIX, ids=[str(kind) for kind, _ in MATRIX])
def test_each_class_climbs_its_own_rungs(kind: FailureKind, rungs: list[str]) -> None:
    """The same failure for ever: exactly these rungs, then the end."""
    assert _climb(_only(kind), RetryPolicy())[0] == rungs


@pytest.mark.parametrize("kind", sorted(ENDPOINT))
def test_an_endpoint_at_fault_is_waited_for_and_never_worked_around(kind: FailureKind) -> None:
    """Four retries, then one probe per window for twelve hours, then a person; nothing reframed, nothing defaulted."""
    rungs, tries = _climb(_only(kind), RetryPolicy())
    assert rungs[:4] == ["retry"] * 4
    assert set(rungs[4:-1]) == {"outage"}
    assert rungs[-1] == "auth"
    assert tries[-1].at - tries[0].at >= 12 * 3600
    assert {t.level for t in tries} == {0}


def test_an_outage_of_twenty_minutes_is_survived() -> None:
    """The endpoint comes back: the next attempt is the same task, on the same model, in the same framing."""
    rungs, tries = _climb(_only(FailureKind.OVERLOADED), RetryPolicy(), most=12)
    assert tries[-1].at - tries[0].at >= 20 * 60
    assert "exhausted" not in rungs
    assert "reframe" not in rungs


def test_a_cap_waits_for_its_reset_and_uses_up_nothing() -> None:
    """Forty-eight caps in a row are waited for; the next one ends the ladder."""
    detail = Detail(resets_at=5000.0)
    tries = [FailedAttempt(FailureKind.CAP, "first", 0, 0, 1, 1000.0, detail)]
    rung = next_rung(tries, RetryPolicy(), "key")
    assert rung == RetryPause("cap", AttemptPlan("again", 0, 0), "", until=5120.0)
    rungs, _ = _climb(_only(FailureKind.CAP), RetryPolicy(), BARE)
    assert rungs == [*["cap"] * 48, "exhausted"]


def test_a_cap_that_names_no_time_waits_the_default() -> None:
    """Nothing else is known."""
    rung = next_rung([FailedAttempt(FailureKind.CAP, "first", 0, 0, 1, 1000.0, BARE)], RetryPolicy(), "key")
    assert isinstance(rung, RetryPause)
    assert rung.seconds == 3600


@given(far=st.floats(0, 4000 * 86400.0), most=st.floats(1, 30 * 86400.0))
def test_no_reset_is_waited_for_longer_than_the_longest_wait(far: float, most: float) -> None:
    """A strange reset time is waited for up to the bound, then asked again."""
    policy = RetryPolicy(cap_max_wait=most)
    for kind, detail in (
        (FailureKind.CAP, Detail(resets_at=1000.0 + far)),
        (FailureKind.CAP, BARE),
        (FailureKind.RATE_LIMIT, Detail(retry_after=far)),
    ):
        rung = next_rung([FailedAttempt(kind, "first", 0, 0, 1, 1000.0, detail)], policy, "key")
        assert isinstance(rung, RetryPause)
        wait = rung.seconds if rung.until is None else rung.until - 1000.0
        assert wait is not None
        assert wait <= max(most, 1.1 * policy.backoff_base) + 1e-3
    near = FailedAttempt(FailureKind.CAP, "first", 0, 0, 1, 1000.0, Detail(resets_at=1000.0 + 20 * 86400))
    assert next_rung([near], RetryPolicy(), "key") == RetryPause(
        "cap", AttemptPlan("again", 0, 0), "", until=1000.0 + 8 * 86400
    )


@pytest.mark.parametrize("on_cap", ["", "next_model"])
def test_a_cap_moves_to_the_next_model_of_a_chain(on_cap: str) -> None:
    """As long as there is one; the last is waited for."""
    policy = RetryPolicy(models=2, on_cap=on_cap)
    rungs, tries = _climb(_only(FailureKind.CAP), policy, BARE, most=3)
    assert rungs == ["next_model", "cap", "cap"]
    assert [t.model for t in tries] == [0, 1, 1]


def test_a_cap_is_waited_for_in_a_chain_where_the_node_says_so() -> None:
    """`on_cap: wait`: somebody would rather wait for the cheap model than pay for the strong one."""
    rungs, tries = _climb(_only(FailureKind.CAP), RetryPolicy(models=2, on_cap="wait"), BARE, most=3)
    assert rungs == ["cap", "cap", "cap"]
    assert [t.model for t in tries] == [0, 0, 0]


def test_retry_after_is_honoured_and_backoff_doubles_up_to_its_cap() -> None:
    """Pauses grow with the streak; a server's own word is the least."""
    pauses = []
    tries: list[FailedAttempt] = []
    for number in range(4):
        tries.append(FailedAttempt(FailureKind.RATE_LIMIT, "again", 0, 0, number + 1, 1000.0 + number))
        rung = next_rung(tries, RetryPolicy(), "key")
        assert isinstance(rung, RetryPause)
        pauses.append(rung.seconds or 0)
    assert all(0.9 * 15 * 2**i <= pause <= 1.1 * 15 * 2**i for i, pause in enumerate(pauses))
    asked = Detail(retry_after=900.0)
    rung = next_rung([FailedAttempt(FailureKind.RATE_LIMIT, "first", 0, 0, 1, 0.0, asked)], RetryPolicy(), "key")
    assert isinstance(rung, RetryPause)
    assert rung.seconds == 900


def test_without_a_session_bad_output_is_reframed_at_once() -> None:
    """A backend that can't resume has nobody to ask again."""
    rungs, tries = _climb(_only(FailureKind.BAD_OUTPUT), RetryPolicy(), BARE)
    assert rungs == ["reframe", "reframe", "reframe", "exhausted"]
    assert [t.level for t in tries] == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", sorted(set(FailureKind) - {FailureKind.BUDGET, FailureKind.DISK}))
def test_only_the_last_model_of_a_chain_climbs(kind: FailureKind) -> None:
    """A cheaper model gets exactly one call, whatever fails; nobody waits while a stronger one is there."""
    rungs, tries = _climb(_only(kind), RetryPolicy(models=3, max_attempts=100), most=12)
    assert rungs[:2] == ["next_model", "next_model"]
    assert [sum(t.model == m for t in tries) for m in range(2)] == [1, 1]
    alone = _climb(_only(kind), RetryPolicy(max_attempts=100), most=10)[0]
    assert rungs[2:] == alone[: len(rungs) - 2]


def test_a_failure_that_tells_the_length_of_its_chain_is_believed() -> None:
    """The chain is made when the node begins; what a file says about it later changes nothing for this visit."""
    short, long = (FailedAttempt(FailureKind.CRASH, "first", 0, 0, 1, 1.0, Detail(models=count)) for count in (1, 2))
    assert next_rung([long], RetryPolicy(), "key") == AttemptPlan("next_model", 1)
    assert isinstance(next_rung([short], RetryPolicy(models=2), "key"), RetryPause)


def test_what_a_verifier_held_against_answers_is_handed_on_and_errors_are_not() -> None:
    """The next model builds on the verdicts; an outage of the model before says nothing about the task."""
    tries = [
        FailedAttempt(FailureKind.REJECTED, "first", 0, 0, 1, 1.0, Detail(problem="no test")),
        FailedAttempt(FailureKind.UNREACHABLE, "next_model", 1, 0, 2, 2.0, Detail(problem="refused")),
        FailedAttempt(FailureKind.REJECTED, "next_model", 2, 0, 3, 3.0, Detail(problem="wrong file")),
    ]
    plan = next_rung(tries, RetryPolicy(models=4), "key")
    assert isinstance(plan, AttemptPlan)
    assert plan.feedback == "Prior attempt feedback: no test\nPrior attempt feedback: wrong file"


def test_a_turn_held_back_is_not_counted() -> None:
    """Nothing was tried: the bucket of the credential said wait."""
    held = Detail(retry_after=7.0)
    tries = [FailedAttempt(FailureKind.HELD, "first", 0, 0, n + 1, 1000.0 + n, held) for n in range(60)]
    rung = next_rung(tries, RetryPolicy(), "key")
    assert rung == RetryPause("retry", AttemptPlan("again", 0, 0), "its credential is held back", seconds=7.0)


WAITING = RetryPolicy(deadline=1600.0)
"""Somebody waits for the answer, ten minutes from the failure on."""


@pytest.mark.parametrize(
    ("kind", "detail", "wait"),
    [
        (FailureKind.CAP, Detail(resets_at=1480.0), 600),
        (FailureKind.CAP, BARE, 3600),
        (FailureKind.RATE_LIMIT, Detail(retry_after=700.0), 700),
        (FailureKind.HELD, Detail(retry_after=601.0), 601),
    ],
)
def test_a_pause_that_outlasts_the_deadline_is_the_end(kind: FailureKind, detail: Detail, wait: int) -> None:
    """Who waits hears at once that it would take too long, and how long."""
    rung = next_rung([FailedAttempt(kind, "first", 0, 0, 1, 1000.0, detail)], WAITING, "key")
    why = f"waiting {wait} s for it would be longer than the deadline allows"
    assert rung == RetriesExhausted(why, late=True)


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        (FailureKind.CAP, Detail(resets_at=1479.0)),
        (FailureKind.RATE_LIMIT, Detail(retry_after=599.0)),
        (FailureKind.HELD, Detail(retry_after=599.0)),
        (FailureKind.OVERLOADED, BARE),
        (FailureKind.CRASH, BARE),
    ],
)
def test_a_pause_that_ends_before_the_deadline_is_made(kind: FailureKind, detail: Detail) -> None:
    """The same pause as without a deadline."""
    tries = [FailedAttempt(kind, "first", 0, 0, 1, 1000.0, detail)]
    assert isinstance(next_rung(tries, WAITING, "key"), RetryPause)
    assert next_rung(tries, WAITING, "key") == next_rung(tries, RetryPolicy(), "key")


@pytest.mark.parametrize("kind", [FailureKind.AUTH, FailureKind.BILLING, FailureKind.SPAWN])
def test_nobody_signs_in_while_somebody_waits_for_the_answer(kind: FailureKind) -> None:
    """A pause that only a person ends is the end, however far away the deadline is."""
    policy = RetryPolicy(deadline=1e12)
    asked = [FailedAttempt(kind, "first", 0, 0, 1, 1000.0, Detail(evidence="sign in"))]
    assert next_rung(asked, policy, "key") == RetriesExhausted("sign in")


@pytest.mark.parametrize("kind", [FailureKind.BUDGET, FailureKind.DISK])
def test_what_was_used_up_on_one_model_ends_a_visit_and_not_a_call(kind: FailureKind) -> None:
    """A run asks a person for more; a call has nobody to ask, and the next model may cost nothing."""
    tries = [FailedAttempt(kind, "first", 0, 0, 1, 1000.0)]
    assert isinstance(next_rung(tries, RetryPolicy(models=2), "key"), RetriesExhausted)
    assert next_rung(tries, replace(WAITING, models=2), "key") == AttemptPlan("next_model", 1)
    assert isinstance(next_rung(tries, WAITING, "key"), RetriesExhausted)


@pytest.mark.parametrize(
    ("kind", "detail"),
    [(FailureKind.REJECTED, SESSION), (FailureKind.BAD_OUTPUT, replace(SESSION, unjudged=True))],
)
def test_a_rejected_output_is_asked_for_again_where_nobody_waits(kind: FailureKind, detail: Detail) -> None:
    """Also one that could not be judged; an output that can't be read is another matter."""
    tries = [FailedAttempt(kind, "first", 0, 0, 1, 1000.0, detail)]
    assert isinstance(next_rung(tries, RetryPolicy(), "key"), AttemptPlan)
    ended = next_rung(tries, RetryPolicy(retry_rejected=False), "key")
    assert ended == RetriesExhausted(f"all attempts failed; the last one: {kind}: no key 'x'")
    unread = [FailedAttempt(FailureKind.BAD_OUTPUT, "first", 0, 0, 1, 1000.0, SESSION)]
    assert isinstance(next_rung(unread, RetryPolicy(retry_rejected=False), "key"), AttemptPlan)


def test_knobs_are_stored_as_they_always_were_unless_they_are_used() -> None:
    """A journal of a node has the same bytes as before a call had a deadline; both read back."""
    plain = RetryPolicy(models=3)
    assert {"deadline", "retry_rejected"}.isdisjoint(plain.to_json())
    assert RetryPolicy.from_json(plain.to_json()) == plain
    called = replace(plain, deadline=5.0, retry_rejected=False)
    assert called.to_json() == {**plain.to_json(), "deadline": 5.0, "retry_rejected": False}
    assert RetryPolicy.from_json(called.to_json()) == called


@given(
    kinds=st.lists(st.sampled_from(list(FailureKind)), min_size=1, max_size=60),
    detail=st.sampled_from([SESSION, BARE]),
    models=st.integers(1, 3),
)
def test_the_ladder_always_ends_and_attempts_are_bounded(kinds: list[FailureKind], detail: Detail, models: int) -> None:
    """Whatever fails in whatever order: never more than `max_attempts` that cost something."""
    policy = RetryPolicy(models=models)
    _, tries = _climb(lambda n: kinds[n % len(kinds)], policy, detail, most=400)
    counted = [t for t in tries if t.kind not in FREE | ENDPOINT]
    assert len(counted) <= policy.max_attempts


@given(st.lists(st.sampled_from(list(FailureKind)), min_size=1, max_size=20))
def test_the_same_failures_give_the_same_rung(kinds: list[FailureKind]) -> None:
    """After a crash the same journal climbs the same ladder."""
    tries = [FailedAttempt(kind, "again", 0, 0, n + 1, 1000.0 + n, SESSION) for n, kind in enumerate(kinds)]
    assert next_rung(tries, RetryPolicy(), "k") == next_rung(list(tries), RetryPolicy(), "k")


def test_a_session_in_use_is_resumed_and_one_that_is_gone_is_begun_anew() -> None:
    """A crash right after the agent began: its session is there, though nobody journaled its id."""
    used = Detail(evidence="session-in-use: already in use", session="s")
    first = FailedAttempt(FailureKind.SPAWN, "first", 0, 0, 1, 0.0, used)
    assert next_rung([first], RetryPolicy(), "k") == AttemptPlan("resume", 0, 0, "s")
    gone = replace(first, rung="resume", detail=Detail(evidence="session-unknown: no such session"))
    assert next_rung([first, gone], RetryPolicy(), "k") == AttemptPlan("again", 0, 0)
    assert isinstance(next_rung([first, gone, gone], RetryPolicy(), "k"), RetryPause)


def test_a_detail_comes_back_from_its_stored_form() -> None:
    """Names of a newer version are passed over."""
    assert Detail.from_json({**SESSION.to_json(), "unheard": 1}) == SESSION
