"""Every walk of a call over one to four tiers: what is on record for each attempt, and what the call comes to."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from bailiwick.agents.asking import TurnResult
from bailiwick.agents.settings import AgentSettings
from bailiwick.engine.failures import FailureKind
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.ids import Json
from bailiwick.routing.model import CheckOutcome, Result, Verdict
from bailiwick.routing.models_file import Models
from tests.unit.routing.stand_ins import (
    CLAUDE,
    ENDPOINTS,
    JUDGE,
    LARGE,
    SMALL,
    PaperBench,
    fails,
    job,
    lone_course,
    models,
    passes,
    play,
    says,
    verdict,
    verdicts,
)

HAPPENINGS = ("accept", "reject", "error", "verifier error", "check fails", "skipped")
SECONDS = 20.0
"""The deadline: sooner than a model that is held back may be asked."""
ANSWERS: dict[str, TurnResult] = {
    "error": fails("auth", "sign in"),
    "skipped": fails("held", "cooling down", retry_after=30.0),
}
VERDICTS = {
    "accept": verdict(accept=True),
    "reject": verdict(accept=False, feedback="vague"),
    "verifier error": says("no JSON"),
}
RECORDED: dict[str, tuple[Verdict, bool | None, str]] = {
    "accept": ("accept", True, ""),
    "reject": ("escalate", False, "vague"),
    "error": ("error", None, "sign in"),
    "verifier error": ("escalate", None, "verifier error: the answer is not one JSON object and nothing else"),
    "check fails": ("escalate", False, "line 9 is not there"),
    "skipped": ("error", None, "not asked: cooling down"),
}
HEARD = {"reject": "vague", "check fails": "line 9 is not there"}


def reached(happenings: tuple[str, ...]) -> tuple[str, ...]:
    """What happens before nobody is asked any more."""
    return happenings[: happenings.index("accept") + 1] if "accept" in happenings else happenings


def bench_for(happenings: Sequence[str]) -> PaperBench:
    """A bench whose checks fail where that is what happens; they run where there is an output."""
    outputs = [one for one in happenings if one not in ANSWERS]
    good, bad = CheckOutcome(ok=True, ran=False), CheckOutcome(ok=False, feedback="line 9 is not there")
    return PaperBench(checks=[bad if one == "check fails" else good for one in outputs])


@pytest.mark.parametrize("tiers", [1, 2, 3, 4])
def test_every_walk_is_on_record_as_it_went(tiers: int) -> None:
    """1,554 walks: whatever happens on each tier, attempts, feedback and the end follow from the list alone."""

    async def go() -> None:
        for happenings in product(HAPPENINGS, repeat=tiers):
            there, names = reached(happenings), "abcd"[:tiers]
            script = {name: [ANSWERS.get(one, passes(one))] for name, one in zip(names, happenings, strict=True)}
            spoken = [VERDICTS[one] for one in there if one in VERDICTS]
            course, desk = lone_course({**script, JUDGE: spoken or [says("never asked")]}, bench_for(there), SECONDS)
            result, error = await course.run()
            _is_recorded(result, there)
            assert (error == "") == ("accept" in happenings), happenings
            prompts = [turn.prompt for turn in desk.turns if turn.model != JUDGE]
            for number, prompt in enumerate(prompts):
                heard = [HEARD[before] for before in there[:number] if before in HEARD]
                told = "".join(f"\n\nPrior attempt feedback: {one}" for one in heard)
                assert prompt == f"phase: review{told}", happenings

    asyncio.run(go())


def _is_recorded(result: Result, there: tuple[str, ...]) -> None:
    """Each attempt in order; a last tier that is held back is on record only where nobody was asked."""
    asked = [one for one in there if one != "skipped"]
    listed = there if there[-1] != "skipped" or not asked else there[:-1]
    assert [(one.verdict, one.verified, one.feedback) for one in result.attempts] == [RECORDED[one] for one in listed]
    assert [one.attempt for one in result.attempts] == list(range(1, len(listed) + 1))
    assert [one.asked for one in result.attempts] == [one != "skipped" for one in listed]


@pytest.mark.parametrize("kind", [*FailureKind, "gave_up_by_itself"])
def test_before_the_last_tier_any_failure_goes_to_the_next_at_once(tmp_path: Path, kind: str) -> None:
    """Retrying a cheap model costs the time in which a better one would have answered."""
    script = {"small": [fails(kind, "it failed")], CLAUDE: [passes()]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job()), models(SMALL, CLAUDE))
    assert (verdicts(outcome), stage.turns.asked, stage.paused) == (
        ["error", "accept_unverified"],
        ["small", CLAUDE],
        [],
    )
    assert [turn.options["rung"] for turn in stage.turns.turns] == ["first", "next_model"]


def test_a_configured_wait_for_caps_is_for_runs(tmp_path: Path) -> None:
    """Somebody waits for a call: the next tier answers it before the cap is over."""
    script = {"small": [fails("cap", resets_at=1_700_000_060.0)], CLAUDE: [passes()]}
    patient = AgentSettings(endpoints=ENDPOINTS, policy=RetryPolicy(on_cap="wait"))
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job()), models(SMALL, CLAUDE), patient)
    assert (verdicts(outcome), stage.paused) == (["error", "accept_unverified"], [])


def test_the_ladder_of_the_last_tier_has_an_end(tmp_path: Path) -> None:
    """A model that never answers in JSON is not asked for ever: once, and in each of the other framings."""
    outcome, stage = play(tmp_path, {"small": [says("prose")]}, lambda stage: stage.call(job()), models(SMALL))
    assert len(stage.turns.turns) == 1 + RetryPolicy().max_rephrase_attempts
    assert (outcome.result.status, stage.paused) == ("error", [])


def test_a_short_cap_of_the_last_tier_is_waited_for(tmp_path: Path) -> None:
    """Where it ends, with its margin, before the deadline."""
    script = {"small": [fails("cap", resets_at=1_700_000_060.0), passes()]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job()), models(SMALL, verifier=""))
    assert (verdicts(outcome), stage.paused) == (["error", "accept_unverified"], [60.0 + RetryPolicy().cap_wait_margin])


@pytest.mark.parametrize("kind", ["auth", "billing", "spawn", "budget", "disk", "no_backend", "unheard of"])
def test_what_waiting_does_not_mend_ends_the_call(tmp_path: Path, kind: str) -> None:
    """Nobody signs in or pays while a call is waiting for its answer."""
    outcome, stage = play(tmp_path, {"small": [fails(kind, "sign in")]}, lambda stage: stage.call(job()), models(SMALL))
    assert outcome.error == "all tiers exhausted after 1 attempt(s); sign in"
    assert (len(stage.turns.turns), stage.paused) == (1, [])


@pytest.mark.parametrize(
    ("given", "said", "ran", "expected"),
    [
        ({"model": SMALL}, models(LARGE), False, ("accept_unverified", None)),
        ({"model": SMALL}, models(LARGE), True, ("accept", True)),
        ({}, models(CLAUDE), False, ("accept_unverified", None)),
        ({}, models(CLAUDE), True, ("accept", True)),
        ({}, models(SMALL, verifier=""), False, ("accept_unverified", None)),
        ({}, models(SMALL, verifier=""), True, ("accept", True)),
    ],
    ids=["named", "named, checked", "subagent", "subagent, checked", "no verifier", "no verifier, checked"],
)
def test_without_the_verifier_only_a_check_that_ran_verifies(
    tmp_path: Path, given: dict[str, Json], said: Models, ran: bool, expected: tuple[str, bool | None]
) -> None:
    """It is not asked about a model that the caller named nor about a subagent, whose own word counts for nothing."""
    script = {"small": [passes()], CLAUDE: [passes()], JUDGE: [verdict(accept=False, feedback="never asked")]}
    bench = PaperBench(checks=[CheckOutcome(ok=True, ran=ran)])
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job(**given), bench), said)
    (attempt,) = outcome.result.attempts
    assert (attempt.verdict, attempt.verified) == expected
    assert JUDGE not in stage.turns.asked


def test_a_reject_without_words_adds_no_feedback(tmp_path: Path) -> None:
    """An empty line would only confuse the next model."""
    script = {"small": [passes()], CLAUDE: [passes()], JUDGE: [verdict(accept=False)]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job()), models(SMALL, CLAUDE))
    assert verdicts(outcome) == ["escalate", "accept_unverified"]
    assert stage.turns.turns[-1].prompt == "phase: review"
