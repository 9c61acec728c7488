"""The walk over a chain: every walk of one to four tiers, and the ladder of the last one."""

from __future__ import annotations

from itertools import product

import pytest

from bailiwick.engine.failures import Detail, FailureKind
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.routing.model import Candidate, Chain
from bailiwick.routing.walk import (
    Accept,
    Begin,
    Event,
    Judged,
    Move,
    Passed,
    Rejected,
    Skipped,
    Step,
    Unjudged,
    Verify,
    Walk,
    WalkEnd,
    WalkFailed,
    WalkMark,
    WalkTooLong,
    WalkWait,
    advance,
)

JUDGE = Candidate("judge", "subagent", "claude", cloud=True)
HAPPENINGS = ("accept", "reject", "error", "verifier error", "check fails", "skipped")
MARKS = {
    "accept": WalkMark("accept", True, ""),
    "reject": WalkMark("escalate", False, "vague"),
    "error": WalkMark("error", None, "sign in"),
    "verifier error": WalkMark("escalate", None, "verifier error: no JSON"),
    "check fails": WalkMark("escalate", False, "line 9 is not there"),
}
HEARD = {"reject": "vague", "check fails": "line 9 is not there"}


def local(name: str) -> Candidate:
    return Candidate(name, "local", "openai", cloud=False)


def walk(*names: str, pinned: bool = False, verifier: Candidate | None = JUDGE) -> Walk:
    chain = Chain(tuple(local(name) for name in names), verifier, "why", pinned)
    return Walk(chain, RetryPolicy(), "key")


def failed(kind: FailureKind | str, **detail: object) -> WalkFailed:
    return WalkFailed(str(kind), "sign in", Detail(**detail), 100.0)  # type: ignore[arg-type]


def events(happening: str) -> list[Event]:
    """What comes in when this happens on a tier."""
    match happening:
        case "accept":
            return [Passed(ran=False), Judged(True, "")]
        case "reject":
            return [Passed(ran=True), Judged(False, "vague")]
        case "verifier error":
            return [Passed(ran=False), Unjudged("no JSON")]
        case "check fails":
            return [Rejected("line 9 is not there")]
        case "skipped":
            return [Skipped("cooling down", 30.0)]
        case _:
            return [failed(FailureKind.AUTH)]


def play(start: Walk, happenings: tuple[str, ...]) -> tuple[list[WalkMark], list[Begin], Step]:
    """The marks, the tiers that were begun, and the last step, when these things happen on the tiers in turn."""
    place, step = start, Move(start, None, start.begin).step
    marks: list[WalkMark] = []
    begun: list[Begin] = []
    for happening in happenings:
        assert isinstance(step, Begin)
        begun.append(step)
        for event in events(happening):
            assert not isinstance(event, Judged | Unjudged) or isinstance(step, Verify)
            move = advance(place, event)
            place, step = move.walk, move.step
            marks += [move.mark] if move.mark else []
        if isinstance(step, WalkWait):
            step = advance(place, WalkTooLong("too long")).step
        if isinstance(step, Accept | WalkEnd):
            break
    assert place.made == len(marks)
    return marks, begun, step


@pytest.mark.parametrize("tiers", [1, 2, 3, 4])
def test_every_walk_ends_as_the_contract_says(tiers: int) -> None:
    """1,554 walks: whatever happens on each tier, the attempts, the feedback and the end follow from the list alone."""
    for happenings in product(HAPPENINGS, repeat=tiers):
        marks, begun, end = play(walk(*"abcd"[:tiers]), happenings)
        reached = happenings[: happenings.index("accept") + 1] if "accept" in happenings else happenings
        assert marks == [MARKS[one] for one in reached if one != "skipped"], happenings
        assert [one.tier for one in begun] == list(range(len(reached))), happenings
        for number, one in enumerate(begun):
            assert one.feedback == tuple(HEARD[before] for before in reached[:number] if before in HEARD), happenings
        assert isinstance(end, Accept if "accept" in happenings else WalkEnd), happenings


def test_a_tier_that_was_skipped_is_named_with_its_reason() -> None:
    """Who reads an exhausted call has to see which models nobody asked."""
    there = advance(walk("a", "b"), Skipped("cooling down", 30.0)).walk
    assert there.skips == ("a: cooling down",)
    assert there.made == 0


@pytest.mark.parametrize("kind", list(FailureKind))
def test_before_the_last_tier_any_failure_goes_to_the_next_at_once(kind: FailureKind) -> None:
    """Retrying a cheap model costs the time in which a better one would have answered."""
    move = advance(walk("a", "b"), failed(kind))
    assert isinstance(move.step, Begin)
    assert (move.step.tier, move.step.plan.rung, move.mark) == (1, "first", MARKS["error"])


def test_the_last_tier_backs_off_and_tries_again() -> None:
    """An overloaded last tier is all there is left: the ladder's pause, then the same once more."""
    move = advance(walk("a"), failed(FailureKind.OVERLOADED, retry_after=40.0))
    assert isinstance(move.step, WalkWait)
    assert move.step.seconds == 40.0
    assert move.step.then.plan.rung == "again"
    assert move.walk.begin == move.step.then


def test_the_last_tier_is_asked_again_in_its_session_and_then_in_other_words() -> None:
    """An answer that could not be read is first asked for again, as a node's would be."""
    first = advance(walk("a"), failed(FailureKind.BAD_OUTPUT, session="s", can_resume=True, problem="no JSON"))
    assert isinstance(first.step, Begin)
    assert (first.step.plan.rung, first.step.plan.session, first.step.plan.problem) == ("reask", "s", "no JSON")
    second = advance(walk("a"), failed(FailureKind.BAD_OUTPUT, problem="no JSON"))
    assert isinstance(second.step, Begin)
    assert (second.step.plan.rung, second.step.plan.level) == ("reframe", 1)


def test_the_ladder_of_the_last_tier_has_an_end() -> None:
    """A model that never answers in JSON is not asked for ever."""
    place, step = walk("a"), walk("a").begin
    for _ in range(20):
        move = advance(place, failed(FailureKind.BAD_OUTPUT))
        place = move.walk
        if isinstance(move.step, WalkEnd):
            break
        assert isinstance(move.step, Begin)
    assert isinstance(move.step, WalkEnd)
    assert place.made == 1 + RetryPolicy().max_rephrase_attempts
    assert step.tier == 0


def test_a_cap_of_the_last_tier_is_told_with_its_end() -> None:
    """Whether that is too long is the caller's to say: the walk only names the time."""
    move = advance(walk("a"), failed(FailureKind.CAP, resets_at=5_000.0))
    assert isinstance(move.step, WalkWait)
    assert move.step.until == 5_000.0 + RetryPolicy().cap_wait_margin


@pytest.mark.parametrize(
    "kind", [FailureKind.AUTH, FailureKind.BILLING, FailureKind.SPAWN, FailureKind.BUDGET, "no_backend", "gave_up"]
)
def test_what_waiting_does_not_mend_ends_the_walk(kind: FailureKind | str) -> None:
    """Nobody signs in or pays while a call is waiting for its answer."""
    assert advance(walk("a"), failed(kind)).step == WalkEnd("sign in")


def test_a_model_that_the_caller_named_is_not_verified() -> None:
    """A chain of one by the caller's word: the verifier is not asked, and what is not verified is not called so."""
    assert advance(walk("a", pinned=True), Passed(ran=False)).mark == WalkMark("accept_unverified")
    assert advance(walk("a", pinned=True), Passed(ran=True)).mark == WalkMark("accept", True)


def test_a_subagent_is_verified_by_a_check_or_by_nobody() -> None:
    """Its own word counts for nothing, and the verifier is for local models."""
    chain = Chain((Candidate("claude-x", "subagent", "claude", cloud=True),), JUDGE, "why")
    place = Walk(chain, RetryPolicy())
    assert advance(place, Passed(ran=False)).mark == WalkMark("accept_unverified")
    assert advance(place, Passed(ran=True)).mark == WalkMark("accept", True)


def test_without_a_verifier_a_local_output_is_accepted_unverified() -> None:
    """A chain without a verifier is the person's choice; it does not make outputs verified."""
    assert advance(walk("a", verifier=None), Passed(ran=False)).mark == WalkMark("accept_unverified")


def test_an_output_that_could_not_be_written_is_not_called_checked() -> None:
    """No check ran: verified stays open, and the next tier hears what was wrong."""
    move = advance(walk("a", "b"), Rejected("../x leads out of the project", ran=False))
    assert move.mark == WalkMark("escalate", None, "../x leads out of the project")
    assert move.walk.feedback == ("../x leads out of the project",)


def test_a_reject_without_words_adds_no_feedback() -> None:
    """An empty line would only confuse the next model."""
    there = advance(walk("a", "b"), Judged(False, "")).walk
    assert there.feedback == ()
