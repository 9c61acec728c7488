"""The router around the walk: deadlines, cancellation, what is on record, what it may cost, what is refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bailiwick.agents.asking import TurnContext, TurnResult
from bailiwick.agents.port import Turn
from bailiwick.agents.settings import AgentSettings
from bailiwick.clock import day
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.errors import UsageError
from bailiwick.routing.call_log import read_calls, sessions_folder
from bailiwick.routing.model import CheckOutcome, Outcome
from bailiwick.routing.models_file import Models
from tests.unit.routing.stand_ins import (
    CLAUDE,
    ENDPOINTS,
    JUDGE,
    LARGE,
    SMALL,
    PaperBench,
    RouterSetup,
    Step,
    fails,
    hangs,
    job,
    models,
    passes,
    play,
    routed,
    says,
    verdict,
    verdicts,
)

CHAIN = models(SMALL, LARGE, CLAUDE)
GOOD = verdict(accept=True)
PAID = AgentSettings(endpoints=ENDPOINTS, policy=RetryPolicy(reserve_usd=1.0))


def test_a_deadline_gives_the_structured_error_and_leaves_nothing(tmp_path: Path) -> None:
    """The attempt is on record with what it cost, the bench is cleared, and the project is as it was."""
    bench = PaperBench()
    outcome, _ = play(tmp_path, {CLAUDE: [hangs]}, lambda stage: stage.call(job(seconds=1.5), bench), models(CLAUDE))
    assert outcome.error == "the deadline of 1.5 s passed after 1 attempt(s)"
    assert outcome.result.status == "error"
    (attempt,) = outcome.result.attempts
    assert (attempt.verdict, attempt.cost, attempt.feedback) == ("error", 0.25, "the deadline of 1.5 s passed")
    assert bench.done == ["begin", "drop"]


def test_a_check_that_hangs_ends_with_the_deadline(tmp_path: Path) -> None:
    """Tests of a project may hang; the call does not."""

    class Slow(PaperBench):
        async def check(self, result: object) -> CheckOutcome:
            await asyncio.Event().wait()
            raise AssertionError

    outcome, _ = play(
        tmp_path, {CLAUDE: [passes()]}, lambda stage: stage.call(job(seconds=1.5), Slow()), models(CLAUDE)
    )
    assert outcome.error == "the deadline of 1.5 s passed after 1 attempt(s)"


@pytest.mark.parametrize("how", ["event", "task"])
def test_a_cancelled_call_is_on_record_and_changes_nothing(tmp_path: Path, how: str) -> None:
    """By the caller's event or by the end of its task: the attempt ends in order, and nothing is brought."""
    bench, asked, cancel = PaperBench(), asyncio.Event(), asyncio.Event()

    async def waits(turn: Turn, context: TurnContext) -> TurnResult:
        asked.set()
        return await hangs(turn, context)

    async def go() -> None:
        async with routed(tmp_path, {"small": [waits], CLAUDE: [passes()]}, models(SMALL, CLAUDE)) as stage:
            doing = asyncio.ensure_future(stage.call(job(session_id="s"), bench, cancel))
            await asked.wait()
            if how == "event":
                cancel.set()
                assert (await doing).error == "cancelled after 1 attempt(s)"
            else:
                doing.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await doing
            (row,) = await stage.store.calls()
            assert (row.status, row.message) == ("error", "cancelled after 1 attempt(s)")
            assert [one.verdict for one in await stage.store.attempts(call=row.id)] == ["error"]
            assert stage.turns.asked == ["small"]
            (entry,) = read_calls(sessions_folder(stage.router.config), "s")
            assert entry["final_status"] == "error"

    asyncio.run(go())
    assert bench.done == ["begin", "drop"]


def test_a_call_that_ends_while_it_is_judged_pays_for_both_questions(tmp_path: Path) -> None:
    """Cancelled is not rejected: nobody else is asked, and what the verifier used until then is on record."""
    cancel, bench = asyncio.Event(), PaperBench()

    async def judges(turn: Turn, context: TurnContext) -> TurnResult:
        cancel.set()
        return await hangs(turn, context)

    script: dict[str, list[Step]] = {"small": [passes()], CLAUDE: [passes()], JUDGE: [judges]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job(), bench, cancel), models(SMALL, CLAUDE))
    assert outcome.error == "cancelled after 1 attempt(s)"
    (attempt,) = outcome.result.attempts
    assert (attempt.verdict, attempt.verified, attempt.feedback, attempt.cost) == ("error", None, "cancelled", 0.25)
    assert attempt.verifier is not None
    assert (stage.turns.asked, bench.done) == (["small", JUDGE], ["begin", "check", "drop"])


def test_what_was_accepted_is_brought_whole_even_when_cancelled_meanwhile(tmp_path: Path) -> None:
    """Half a change in a project is worse than none or all of it."""
    cancel = asyncio.Event()

    class Keeps(PaperBench):
        async def keep(self) -> str:
            cancel.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return await super().keep()

    bench = Keeps()
    outcome, _ = play(tmp_path, {CLAUDE: [passes()]}, lambda stage: stage.call(job(), bench, cancel), models(CLAUDE))
    assert (outcome.error, bench.done) == ("", ["begin", "check", "keep", "drop"])


def test_a_project_that_changed_meanwhile_gets_nothing(tmp_path: Path) -> None:
    """Somebody else's work is not overwritten; the attempt is not called accepted."""
    bench = PaperBench(misses="a.py was changed meanwhile")
    outcome, _ = play(tmp_path, {CLAUDE: [passes()]}, lambda stage: stage.call(job(), bench), models(CLAUDE))
    assert outcome.error == "accepted, but not written into the project: a.py was changed meanwhile"
    assert (outcome.result.status, verdicts(outcome)) == ("error", ["error"])


def test_a_fault_of_the_bench_is_a_result_not_a_crash(tmp_path: Path) -> None:
    """Without a sandbox tests can't be run: said in the result, and on record."""

    class Broken(PaperBench):
        async def begin(self) -> Path | None:
            raise UsageError("there is no sandbox", hint="install bubblewrap")

    bench = Broken()
    outcome, _ = play(tmp_path, {CLAUDE: [passes()]}, lambda stage: stage.call(job(), bench), models(CLAUDE))
    assert outcome.error == "there is no sandbox; install bubblewrap"
    assert (outcome.result.status, bench.done) == ("error", ["drop"])


def test_our_own_bug_is_raised_but_the_call_is_closed(tmp_path: Path) -> None:
    """An open call would look like one at work; its reservation would bind money."""

    class Buggy(PaperBench):
        async def check(self, result: object) -> CheckOutcome:
            raise ZeroDivisionError

    async def go() -> None:
        async with routed(tmp_path, {CLAUDE: [passes()]}, models(CLAUDE)) as stage:
            with pytest.raises(ZeroDivisionError):
                await stage.call(job(), Buggy())
            (row,) = await stage.store.calls()
            assert row.status == "error"

    asyncio.run(go())


def test_a_call_is_in_the_database_and_in_its_sessions_log(tmp_path: Path) -> None:
    """Who asked, what for, every attempt, how it ended, and what it cost the day."""

    async def go() -> None:
        script = {
            "small": [passes("one")],
            CLAUDE: [says({"status": "pass", "message": "two"}, usd=0.3)],
            JUDGE: [verdict(accept=False, feedback="no")],
        }
        async with routed(tmp_path, script, models(SMALL, CLAUDE), PAID) as stage:
            outcome = await stage.call(job(session_id="s-1", by="ann", origin="mcp", root="/p"))
            (row,) = await stage.store.calls()
            assert (row.id, row.status, row.by, row.origin, row.project) == (outcome.call, "pass", "ann", "mcp", "/p")
            assert (row.model_used, row.chain, row.size, row.reserved_usd) == (CLAUDE, (SMALL, CLAUDE), 13, 1.0)
            assert row.why == outcome.why
            rows = await stage.store.attempts(call=row.id)
            assert [(one.attempt, one.model, one.verdict, one.cost) for one in rows] == [
                (1, SMALL, "escalate", 0.002),
                (2, CLAUDE, "accept_unverified", 0.3),
            ]
            assert rows[1].size == len("phase: review\n\nPrior attempt feedback: no")
            spent = {one.unit: one.settled for one in await stage.store.spend(f"day:{day(stage.clock.now())}")}
            assert spent == {"usd": pytest.approx(0.302), "tokens": 330.0, "agent_calls": 3.0}
            (entry,) = read_calls(sessions_folder(stage.router.config), "s-1")
            assert (entry["final_status"], entry["model_used"], len(entry["attempts"])) == ("pass", CLAUDE, 2)

    asyncio.run(go())


def test_when_the_days_money_is_used_up_nobody_is_asked(tmp_path: Path) -> None:
    """The refusal is a result like others, and on record."""

    async def go() -> None:
        async with routed(tmp_path, {CLAUDE: [passes()]}, models(CLAUDE), PAID) as stage:
            stage.turns.script[CLAUDE] = [says({"status": "pass", "message": "dear"}, usd=40.0)]
            await stage.call(job())
            stage.turns.turns.clear()
            bench = PaperBench()
            outcome = await stage.call(job(), bench)
            assert outcome.result.status == "error"
            assert "usd" in outcome.error
            assert (stage.turns.turns, bench.done) == ([], ["drop"])
            assert [row.status for row in await stage.store.calls()] == ["error", "pass"]

    asyncio.run(go())


def test_a_call_costs_no_more_than_was_set_aside(tmp_path: Path) -> None:
    """Each turn may use what is left; when nothing is left no cloud model is asked."""
    said = models(CLAUDE, "claude-opus-4-6", "claude-haiku-4-5")
    dear = says("prose", usd=0.6)
    script = {CLAUDE: [dear], "claude-opus-4-6": [dear], "claude-haiku-4-5": [passes()]}
    outcome, stage = play(tmp_path, script, lambda stage: stage.call(job()), said, PAID)
    assert [turn.max_usd for turn in stage.turns.turns] == [1.0, pytest.approx(0.4)]
    assert outcome.error.endswith("the money reserved for this call is used up")


def test_a_node_of_a_run_brings_its_own_money_and_chain(tmp_path: Path) -> None:
    """Its attempt has reserved already: a second reservation would count the same dollar twice."""

    async def go() -> None:
        async with routed(tmp_path, {"large": [passes()]}, models(SMALL, verifier=""), PAID) as stage:
            given = job(origin="node", run="r1", node="n", chain=(LARGE,), max_usd=0.2)
            outcome = await stage.call(given)
            assert outcome.result.model_used == LARGE
            assert stage.turns.turns[0].max_usd == 0.2
            assert await stage.store.spend(f"day:{day(stage.clock.now())}") == []

    asyncio.run(go())


@pytest.mark.parametrize("where", ["job", "file"])
def test_local_only_never_reaches_a_cloud_tier(tmp_path: Path, where: str) -> None:
    """Neither chain nor verifier: what can't be kept in the house is refused before anything is asked."""

    async def go() -> None:
        script = {"small": [fails("unreachable")], "judge": [GOOD], CLAUDE: [passes()]}
        given, at_home = job(local_only=where == "job"), models(SMALL, CLAUDE, verifier="ollama/judge")
        async with routed(tmp_path, script, replace(at_home, local_only=where == "file")) as stage:
            outcome = await stage.router.call(given, None, show=stage.shown.append, cancel=asyncio.Event())
            assert outcome.result.status == "error"
            assert CLAUDE not in stage.turns.asked
            abroad = replace(at_home, verifier=JUDGE, local_only=where == "file")
            with pytest.raises(UsageError):
                await stage.router.call(given, None, show=print, cancel=asyncio.Event(), models=abroad)
            assert JUDGE not in stage.turns.asked

    asyncio.run(go())


@pytest.mark.parametrize("given", [job(session_id="../x"), job()])
def test_a_call_that_can_not_be_made_is_refused_before_it_is_one(tmp_path: Path, given: object) -> None:
    """A session that is no file name, or no chain at all: an error of the caller, and nothing on record."""

    async def go() -> None:
        said = models(SMALL) if given != job() else Models()
        async with routed(tmp_path, {}, said) as stage:
            with pytest.raises(UsageError):
                await stage.call(given)  # type: ignore[arg-type]
            assert await stage.store.calls() == []

    asyncio.run(go())


def test_what_is_recorded_holds_no_secret(tmp_path: Path) -> None:
    """Models and test runners repeat what they see."""

    async def act(stage: RouterSetup) -> Outcome:
        stage.router.clean = lambda value: value.replace("hunter2", "***") if isinstance(value, str) else value
        return await stage.call(job(), PaperBench(checks=[CheckOutcome(True, output="token hunter2")]))

    outcome, _ = play(tmp_path, {CLAUDE: [passes("hunter2 works")]}, act, models(CLAUDE))
    assert "hunter2" not in str(outcome.result)
    assert outcome.result.runner_output == "token ***"


def test_the_size_of_a_call_counts_its_files(tmp_path: Path) -> None:
    """A short question about a long file is a long task."""
    (tmp_path / "long.py").write_text("x" * 5_000)

    async def go() -> int:
        async with routed(tmp_path / "state", {CLAUDE: [passes()]}, models(CLAUDE)) as stage:
            await stage.call(job(task="task", root=str(tmp_path), files=("long.py", "gone.py")))
            (row,) = await stage.store.calls()
            return row.size

    assert asyncio.run(go()) == 5_000 + len("task")
