"""A call on its way over the chain: who is asked, what they are told, what counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.agents.asking import TurnResult
from bailiwick.agents.http import CONNECTION_REFUSED
from bailiwick.agents.settings import AgentSettings
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.routing.endpoints import EndpointAddress
from bailiwick.routing.model import CheckOutcome, Outcome
from tests.unit.routing.stand_ins import (
    CLAUDE,
    ENDPOINTS,
    JUDGE,
    LARGE,
    SMALL,
    PaperBench,
    RouterSetup,
    fails,
    job,
    models,
    passes,
    play,
    says,
    verdict,
    verdicts,
)

CHAIN = models(SMALL, LARGE, CLAUDE)
GOOD = verdict(accept=True)
PAID = AgentSettings(endpoints=ENDPOINTS, policy=RetryPolicy(reserve_usd=1.0))


def test_the_cheapest_model_whose_output_holds_answers(tmp_path: Path) -> None:
    """Nobody dearer is asked, and the verifier's accept is what makes it verified."""
    outcome, stage = play(tmp_path, {"small": [passes("found 2")], JUDGE: [GOOD]}, lambda stage: stage.call(job()))
    result = outcome.result
    assert (result.status, result.message, result.model_used, result.verified) == ("pass", "found 2", SMALL, True)
    assert (outcome.error, verdicts(outcome), stage.turns.asked) == ("", ["accept"], ["small", JUDGE])
    (attempt,) = result.attempts
    assert (attempt.tier, attempt.warm_start, attempt.input_tokens, attempt.output_tokens) == ("local", False, 100, 10)
    assert attempt.cost == 0.002
    assert attempt.verifier is not None
    assert attempt.output_summary == "pass: found 2"
    assert outcome.why.startswith("review: default_chain")


def test_a_local_model_gets_the_discipline_as_system_and_the_task_as_user(tmp_path: Path) -> None:
    """It has no tools: the named files stand in its task, and no key is sent where none is set."""
    (tmp_path / "a.py").write_text("x = 1\n")
    _, stage = play(
        tmp_path / "state",
        {"small": [passes()], JUDGE: [GOOD]},
        lambda stage: stage.call(job(root=str(tmp_path), files=("a.py",))),
    )
    turn, judge = stage.turns.turns
    assert turn.system.startswith("Iron law: cite lines.")
    assert turn.prompt.startswith("phase: review\n\nContents of the named files.")
    assert "x = 1" in turn.prompt
    assert (turn.model, turn.base_url, turn.token, turn.env) == ("small", "http://127.0.0.1:9", None, {})
    assert turn.prompt in judge.prompt


def test_every_reject_reaches_the_next_tier_and_errors_don_t(tmp_path: Path) -> None:
    """Feedback accumulates; that a server was down says nothing about the work."""
    said = models(SMALL, LARGE, "ollama/broken", CLAUDE)
    script = {
        "small": [passes()],
        "large": [passes()],
        "broken": [fails("overloaded")],
        CLAUDE: [passes("at last")],
        JUDGE: [verdict(accept=False, feedback="too vague"), verdict(accept=False, feedback="no lines")],
    }
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job()), said)
    prompts = [turn.prompt for turn in stage.turns.turns if turn.model != JUDGE]
    one, two = "\n\nPrior attempt feedback: too vague", "\n\nPrior attempt feedback: no lines"
    assert prompts == ["phase: review", f"phase: review{one}", f"phase: review{one}{two}", f"phase: review{one}{two}"]
    assert verdicts(outcome) == ["escalate", "escalate", "error", "accept_unverified"]
    assert [attempt.feedback for attempt in outcome.result.attempts] == [
        "too vague",
        "no lines",
        "it was overloaded",
        "",
    ]
    assert (outcome.result.verified, outcome.result.attempts[-1].tier) == (None, "subagent")


@pytest.mark.parametrize(
    "step",
    [
        fails("unreachable"),
        fails("rate_limit", retry_after=3600.0),
        fails("cap", resets_at=1e10),
        fails("timeout"),
        fails("auth"),
        says("prose"),
        says({"status": "pass"}),
        says({"status": "error", "message": "I can't"}),
    ],
    ids=["unreachable", "429", "cap", "timeout", "auth", "unparseable", "invalid", "gave up"],
)
def test_any_failure_is_one_attempt_and_the_next_tier_runs_at_once(tmp_path: Path, step: TurnResult) -> None:
    """Every tier but the last gets exactly one call."""
    outcome, stage = play(
        tmp_path, {"small": [step], CLAUDE: [passes()]}, lambda stage: stage.call(job()), models(SMALL, CLAUDE)
    )
    assert (verdicts(outcome), stage.turns.asked) == (["error", "accept_unverified"], ["small", CLAUDE])
    assert outcome.result.attempts[0].feedback
    assert stage.paused == []


def test_a_failing_check_escalates_before_anybody_is_asked(tmp_path: Path) -> None:
    """The verifier costs money; a test that is red needs no opinion."""
    bench = PaperBench(
        checks=[CheckOutcome(False, output="1 failed", feedback="the test fails"), CheckOutcome(True, output="ok")]
    )
    script = {"small": [passes()], CLAUDE: [passes()]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job(), bench), models(SMALL, CLAUDE))
    assert stage.turns.asked == ["small", CLAUDE]
    first, second = outcome.result.attempts
    assert (first.verdict, first.verified, first.feedback, first.runner_output) == (
        "escalate",
        False,
        "the test fails",
        "1 failed",
    )
    assert (second.verdict, second.verified, outcome.result.verified) == ("accept", True, True)
    assert outcome.result.runner_output == "ok"
    assert bench.done == ["begin", "check", "begin", "check", "keep", "drop"]


def test_files_are_written_by_us_and_a_path_that_is_refused_escalates(tmp_path: Path) -> None:
    """A model without tools never writes itself; what it may not write it hears about from the next tier's task."""
    bench = PaperBench(refuses="../x leads out of the project")
    files = [{"path": "../x", "content": ""}]
    script = {"small": [passes(files=files)], CLAUDE: [passes()]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job(writes=True), bench), models(SMALL, CLAUDE))
    assert verdicts(outcome) == ["escalate", "accept_unverified"]
    assert outcome.result.attempts[0].verified is None
    assert stage.turns.turns[1].prompt.endswith("Prior attempt feedback: ../x leads out of the project")
    assert bench.done == ["begin", "put ../x", "begin", "check", "keep", "drop"]


@pytest.mark.parametrize(
    "step", [fails("timeout", "30 s passed"), says("I accept"), says({"accept": 1, "feedback": ""})]
)
def test_a_verifier_that_gives_no_verdict_escalates(tmp_path: Path, step: TurnResult) -> None:
    """Recorded as an escalation with the reason; the next tier is told nothing, for nothing was found wrong."""
    script = {"small": [passes()], CLAUDE: [passes()], JUDGE: [step]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job()), models(SMALL, CLAUDE))
    first = outcome.result.attempts[0]
    assert (first.verdict, first.verified) == ("escalate", None)
    assert first.feedback.startswith("verifier error: ")
    assert stage.turns.turns[-1].prompt == "phase: review"


def test_all_used_up_gives_the_trail_and_the_best_attempt(tmp_path: Path) -> None:
    """The last output that parsed may still be of use; that it was not accepted is said."""
    script = {
        "small": [passes("first", findings=[{"line": 1}])],
        "large": [passes("second", findings=[{"line": 2}])],
        CLAUDE: [fails("auth", "sign in")],
        JUDGE: [verdict(accept=False, feedback="no")],
    }
    outcome, _ = play(tmp_path, script, lambda stage: stage.call(job()))
    assert outcome.error == "all tiers exhausted after 3 attempt(s); sign in"
    assert outcome.result.message == outcome.error
    assert (outcome.result.status, outcome.result.verified, outcome.result.model_used) == ("fail", False, LARGE)
    assert outcome.result.findings == ({"line": 2},)
    assert verdicts(outcome) == ["escalate", "escalate", "error"]


def test_with_nothing_to_show_the_status_is_error(tmp_path: Path) -> None:
    """No output is not a negative outcome."""
    outcome, _ = play(tmp_path, {"small": [fails("auth")]}, lambda stage: stage.call(job()), models(SMALL))
    assert (outcome.result.status, outcome.result.model_used) == ("error", "")
    assert outcome.error.startswith("all tiers exhausted after 1 attempt(s)")


def test_a_named_model_is_asked_alone_and_not_verified(tmp_path: Path) -> None:
    """A chain of one: no escalation, no verifier."""
    script = {"large": [passes()], JUDGE: [GOOD], CLAUDE: [passes()]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job(model=LARGE)))
    assert (stage.turns.asked, verdicts(outcome), outcome.result.verified) == (["large"], ["accept_unverified"], None)


def test_the_last_tier_climbs_the_ladder_within_the_deadline(tmp_path: Path) -> None:
    """Overloaded once, then prose, then other words: each try is an attempt on record."""
    script = {CLAUDE: [fails("overloaded", retry_after=20.0), says("prose"), passes()]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job()), models(CLAUDE))
    assert verdicts(outcome) == ["error", "error", "accept_unverified"]
    assert stage.paused == [20.0]
    assert stage.turns.turns[2].prompt != stage.turns.turns[0].prompt
    assert "phase: review" in stage.turns.turns[2].prompt


def test_in_its_session_a_subagent_goes_on_with_what_it_did(tmp_path: Path) -> None:
    """Asked again for the JSON alone it must find its work: no fresh tree; its totals are counted once."""
    bench = PaperBench(tree=tmp_path)
    script = {
        CLAUDE: [
            says("Done, see the files.", usd=0.5, session="s1", cumulative=True),
            says({"status": "pass", "message": "x"}, usd=0.7, session="s1", cumulative=True),
        ]
    }
    outcome, stage = play(tmp_path / "state", script, lambda stage: stage.call(job(), bench), models(CLAUDE))
    assert [turn.session for turn in stage.turns.turns] == [None, "s1"]
    assert bench.done == ["begin", "check", "keep", "drop"]
    assert [attempt.cost for attempt in outcome.result.attempts] == [0.5, pytest.approx(0.2)]
    assert [turn.cwd for turn in stage.turns.turns] == [tmp_path, tmp_path]


def test_a_cap_of_the_last_tier_is_not_waited_out(tmp_path: Path) -> None:
    """Ten minutes are the deadline, three hours the cap: the caller gets the structured error at once."""
    script = {CLAUDE: [fails("cap", "the weekly limit is reached", resets_at=1_700_000_000.0 + 3 * 3600)]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job()), models(CLAUDE))
    assert stage.paused == []
    assert (outcome.result.status, len(stage.turns.turns)) == ("error", 1)
    assert "the weekly limit is reached" in outcome.error
    assert "longer than the deadline" in outcome.error


def test_a_credential_that_is_held_back_is_skipped_or_waited_for(tmp_path: Path) -> None:
    """Who was not asked is on record with the reason; the last tier waits where that fits."""
    held = fails("held", "held back for 40 s", retry_after=40.0)
    script = {CLAUDE: [held], "claude-opus-4-6": [held, passes()]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job()), models(CLAUDE, "claude-opus-4-6"))
    assert (verdicts(outcome), stage.paused) == (["error", "accept_unverified"], [40.0])
    skipped, _ = outcome.result.attempts
    assert (skipped.asked, skipped.feedback, skipped.cost) == (False, "not asked: held back for 40 s", 0.0)


def test_a_wait_that_is_too_long_is_on_record(tmp_path: Path) -> None:
    """Nobody was asked: then at least it is known who would have been, and why not."""
    held = fails("held", "held back for 4000 s", retry_after=4000.0)
    outcome, _ = play(tmp_path, {CLAUDE: [held]}, lambda stage: stage.call(job()), models(CLAUDE))
    assert [(one.model, one.feedback) for one in outcome.result.attempts] == [
        (CLAUDE, "not asked: held back for 4000 s")
    ]
    assert outcome.error.startswith("all tiers exhausted after 0 attempt(s); held back for 4000 s")


def test_the_last_tier_is_asked_although_it_kept_failing(tmp_path: Path) -> None:
    """There is nobody else: to ask takes less time than to wait until it may be asked."""

    async def act(stage: RouterSetup) -> Outcome:
        for _ in range(3):
            await stage.call(job())
        stage.paused.clear()
        stage.turns.script["small"] = [passes("it is back")]
        return await stage.call(job(model=SMALL))

    script = {"small": [fails("unreachable")], CLAUDE: [passes()]}
    outcome, stage = play(tmp_path, script, act, models(SMALL, CLAUDE))
    assert (outcome.result.message, stage.paused) == ("it is back", [])


def test_a_server_that_is_not_running_ends_the_call_with_what_to_start(tmp_path: Path) -> None:
    """Asking again changes nothing: one try, no wait, and the command that helps; the next call asks again."""
    gone = fails("unreachable", f"nothing listens at localhost:11434: {CONNECTION_REFUSED}")

    async def act(stage: RouterSetup) -> Outcome:
        for _ in range(5):
            outcome = await stage.call(job())
        return outcome

    outcome, stage = play(tmp_path, {"small": [gone]}, act, models(SMALL))
    assert (len(stage.turns.turns), stage.paused) == (5, [])
    assert outcome.result.status == "error"
    assert "connection refused; start the server of the endpoint 'openai'; or name another address" in outcome.error
    assert EndpointAddress("http://localhost:11434", "x").to_start.startswith(
        "start Ollama: ollama serve; or name another"
    )


def test_an_endpoint_that_keeps_failing_is_skipped(tmp_path: Path) -> None:
    """After three failures in a row it is left alone, also by the next call; who was not asked is named."""

    async def act(stage: RouterSetup) -> Outcome:
        for _ in range(3):
            await stage.call(job())
        stage.turns.turns.clear()
        stage.turns.script[CLAUDE] = [fails("auth", "sign in")]
        return await stage.call(job())

    script = {"small": [fails("unreachable")], CLAUDE: [passes()]}
    outcome, stage = play(tmp_path, script, act, models(SMALL, CLAUDE))
    assert stage.turns.asked == [CLAUDE]
    assert outcome.error.startswith("all tiers exhausted after 1 attempt(s); sign in; skipped ollama/small: ")
    skipped, asked = outcome.result.attempts
    assert skipped.feedback == "not asked: its endpoint kept failing: backing off for 30 s (it was unreachable)"
    assert asked.attempt == 2


def test_the_file_of_a_result_is_named_where_it_will_be(tmp_path: Path) -> None:
    """A subagent names the copy that it worked in, and what the checks say goes before its word."""
    bench = PaperBench(tree=tmp_path, checks=[CheckOutcome(True, file_path="src/b.py", details={"tests": 3})])
    script = {CLAUDE: [passes(file_path=f"{tmp_path}/src/a.py")]}
    outcome, _ = play(tmp_path / "s", script, lambda stage: stage.call(job(root="/p"), bench), models(CLAUDE))
    assert outcome.result.file_path == "/p/src/b.py"
    assert dict(outcome.result.details) == {"tests": 3}
    plain, _ = play(
        tmp_path / "t", script, lambda stage: stage.call(job(root="/p"), PaperBench(tmp_path)), models(CLAUDE)
    )
    assert plain.result.file_path == "/p/src/a.py"


@pytest.mark.parametrize(("writes", "status"), [(True, "pass"), (False, "fail")])
def test_a_check_that_ran_decides_the_status_of_written_work(tmp_path: Path, writes: bool, status: str) -> None:
    """The tests are green whatever a modest model says; a review's own verdict stays its own."""
    bench = PaperBench(checks=[CheckOutcome(True)])
    script = {CLAUDE: [says({"status": "fail", "message": "unsure"})]}
    outcome, _ = play(tmp_path, script, lambda stage: stage.call(job(writes=writes), bench), models(CLAUDE))
    assert (outcome.result.status, outcome.error) == (status, "")


def test_each_step_is_told_to_who_watches(tmp_path: Path) -> None:
    """Progress notifications of a call that may take minutes."""
    script = {"small": [passes()], JUDGE: [GOOD]}
    _, stage = play(tmp_path, script, lambda stage: stage.call(job(), PaperBench()))
    assert stage.shown == [
        "asking ollama/small (1 of 3)",
        "checking what ollama/small gave",
        f"asking the verifier {JUDGE}",
    ]
