"""Agent nodes on the real runtime with a backend of the test's own: the ladder, sessions, buckets, defaults, taint."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bailiwick.agents.port import (
    Answered,
    Capabilities,
    Emit,
    ProcessEnded,
    SessionKnown,
    Trouble,
    Turn,
    TurnIo,
)
from bailiwick.clock import ManualClock
from bailiwick.engine import graph as g
from bailiwick.engine.retry_agent import RetryPolicy
from bailiwick.runs.control import Control
from bailiwick.runs.foreground import DEGRADED, DONE, FAILED, TIME, WAITS
from tests.unit.agents.played import CAPPED, GOOD, LIMIT, LIMITED, OVERFLOW, RUBBISH, ScriptedBackend, agent, stage_of
from tests.unit.runtime.stage import chain, types

if TYPE_CHECKING:
    from pathlib import Path

    from bailiwick.runtime.assemble import Runtime


def test_a_good_turn_gives_its_outputs_and_sees_its_args(tmp_path: Path) -> None:
    """The prompt is rendered against context and args; the answer's JSON enters the context."""
    backend = ScriptedBackend([GOOD])
    stage = stage_of(tmp_path, backend)

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, chain(agent()))
        assert verdict.code == DONE
        assert (await runtime.library.state(verdict.row.id)).context()["x"] == 1
        assert [t.prompt for t in backend.seen] == ["Do it for me."]

    stage.play(context)


def test_with_a_version_the_contract_follows_the_prompt(tmp_path: Path) -> None:
    """Files of this version need not describe the JSON themselves; older files' prompts are sent as they are."""
    backend = ScriptedBackend([GOOD])
    stage = stage_of(tmp_path, backend)

    async def context(runtime: Runtime) -> None:
        await stage.walk(runtime, chain(agent(), version=1))
        assert backend.seen[0].prompt.startswith("Do it for me.\n")
        assert "`x`" in backend.seen[0].prompt

    stage.play(context)


def test_rubbish_is_asked_about_in_the_same_session(tmp_path: Path) -> None:
    """Only the JSON is asked for, with what was wrong; then it goes on."""
    backend = ScriptedBackend([RUBBISH, GOOD])
    stage = stage_of(tmp_path, backend)

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, chain(agent()))
        assert verdict.code == DONE
        first, second = backend.seen
        assert (first.session, second.session) == (None, "s1")
        assert "Do it for me" not in second.prompt
        assert first.key == second.key

    stage.play(context)


def test_a_rate_limit_is_waited_out(tmp_path: Path) -> None:
    """The same prompt, in a fresh session, after a pause."""
    backend = ScriptedBackend([LIMITED, LIMITED, GOOD])
    backend.turns[0] = backend.turns[1] = [replace(LIMIT, retry_after=0.01)]
    stage = stage_of(tmp_path, backend)

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, chain(agent()))
        assert verdict.code == DONE
        assert {t.prompt for t in backend.seen} == {"Do it for me."}
        assert {t.session for t in backend.seen} == {None}
        assert len(backend.seen) == 3

    stage.play(context)


def test_an_overflow_is_compacted_and_sent_again(tmp_path: Path) -> None:
    """The session keeps what it has done so far."""
    backend = ScriptedBackend([OVERFLOW, GOOD])
    stage = stage_of(tmp_path, backend)

    async def context(runtime: Runtime) -> None:
        assert (await stage.walk(runtime, chain(agent()))).code == DONE
        assert backend.compacted == 1
        assert backend.seen[1].session == "s1"
        assert backend.seen[1].prompt == "Do it for me."

    stage.play(context)


def test_a_cap_sleeps_until_its_reset_over_a_reboot(tmp_path: Path) -> None:
    """The wait is in the journal: another process goes on at the same time, and not before."""
    clock = ManualClock(1_700_000_000.0)
    backend = ScriptedBackend([CAPPED, GOOD])
    graph = chain(agent())

    async def first(runtime: Runtime) -> None:
        assert (await stage.walk(runtime, graph, no_wait=True)).code == TIME
        waits = await runtime.store.waits()
        assert [(w.kind, w.due_at) for w in waits] == [("cap", 1_700_003_600.0 + 120)]

    async def later(runtime: Runtime) -> None:
        clock.advance(3600)
        assert (await stage.walk(runtime, graph, no_wait=True)).code == TIME
        assert len(backend.seen) == 1
        clock.advance(130)
        assert (await stage.walk(runtime, graph, no_wait=True)).code == DONE

    stage = stage_of(tmp_path, backend, clock=clock)
    stage.play(first)
    stage.play(later)


def test_a_strange_reset_closes_the_credential_no_longer_than_a_cap_may_last(tmp_path: Path) -> None:
    """One wrong number of a vendor must not keep every run of a credential waiting for weeks."""
    clock = ManualClock(1_700_000_000.0)
    backend = ScriptedBackend(
        [[Trouble("limit", 429, "usage_limit_reached", resets_at=clock.now() + 20 * 86400)], GOOD]
    )
    stage = stage_of(tmp_path, backend, RetryPolicy(cap_max_wait=3600.0), clock)

    async def context(runtime: Runtime) -> None:
        assert (await stage.walk(runtime, chain(agent()), no_wait=True)).code == TIME
        waits = await runtime.store.waits()
        assert [(w.kind, w.due_at) for w in waits] == [("cap", clock.now() + 3600)]
        assert await runtime.store.bucket_take("played", clock.now(), 60) == 3600
        clock.advance(3601)
        assert (await stage.walk(runtime, chain(agent()), no_wait=True)).code == DONE

    stage.play(context)


def test_a_file_without_a_version_defaults_and_the_run_is_degraded(tmp_path: Path) -> None:
    """Null where nothing is declared; the exit code differs, and the node is named."""
    backend = ScriptedBackend([RUBBISH])
    stage = stage_of(tmp_path, backend)
    graph = chain(agent(outputs=(g.Output(key="x"), g.Output(key="y", default=7, declared=True))))

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == DEGRADED
        assert (verdict.row.summary or {})["degraded"] == ["a"]
        state = await runtime.library.state(verdict.row.id)
        assert (state.context()["x"], state.context()["y"]) == (None, 7)
        assert len(backend.seen) <= 12

    stage.play(context)


@pytest.mark.parametrize(("answer", "code"), [("default", DEGRADED), ("fail", FAILED), ("retry", DONE)])
def test_with_a_version_a_person_is_asked_unless_a_default_is_declared(tmp_path: Path, answer: str, code: int) -> None:
    """`on_exhausted: ask`: try again, take the default, or fail."""
    backend = ScriptedBackend([RUBBISH])
    stage = stage_of(tmp_path, backend)
    graph = chain(agent(outputs=(g.Output(key="x", default=0, declared=True),), on_exhausted="ask"), version=1)

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == WAITS
        backend.turns.append(GOOD)
        backend.turns[:] = [GOOD] if answer == "retry" else backend.turns[:1]
        outcome = await Control(runtime, "tester").answer(verdict.row, answer)
        assert not outcome.refused
        assert (await stage.walk(runtime, graph)).code == code

    stage.play(context)


def test_undeclared_outputs_are_never_defaulted_with_a_version(tmp_path: Path) -> None:
    """The question has no such choice."""
    stage = stage_of(tmp_path, ScriptedBackend([RUBBISH]))
    graph = chain(agent(on_exhausted="default"), version=1)

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == WAITS
        waits = await runtime.store.waits()
        assert waits[0].body["choices"] == ["retry", "fail"]

    stage.play(context)


def test_auth_parks_with_what_to_do_and_nothing_is_tried_again(tmp_path: Path) -> None:
    """Trying again can't help; a person can."""
    backend = ScriptedBackend([[Trouble("Invalid API key", 401, "authentication_error")]])
    stage = stage_of(tmp_path, backend)

    async def context(runtime: Runtime) -> None:
        assert (await stage.walk(runtime, chain(agent()))).code == WAITS
        assert len(backend.seen) == 1
        waits = await runtime.store.waits()
        assert waits[0].kind == "auth"
        assert waits[0].due_at is not None, "it goes on by itself when it works again"

    stage.play(context)


def test_a_turn_that_was_cut_off_goes_on_in_its_session(tmp_path: Path) -> None:
    """The session id was journaled in the middle of the turn."""
    backend = ScriptedBackend([[SessionKnown("mid"), ProcessEnded(-15, why="cancelled")], GOOD])
    stage = stage_of(tmp_path, backend)

    async def context(runtime: Runtime) -> None:
        plain = backend.turn

        async def cut(turn: Turn, io: TurnIo, emit: Emit) -> None:
            await plain(turn, io, emit)
            await asyncio.sleep(0)
            if len(backend.seen) == 1:
                stage.signals.caught = "SIGTERM"
                assert stage.signals.worker is not None
                stage.signals.worker.drain("SIGTERM", now=True)

        backend.turn = cut  # type: ignore[method-assign]
        verdict = await stage.walk(runtime, chain(agent()))
        assert verdict.row.status == "stopped"
        stage.signals.caught = ""
        assert (await stage.walk(runtime, chain(agent()))).code == DONE
        assert [t.session for t in backend.seen] == [None, "mid"]
        assert "EffectLost" in await types(runtime, verdict.row)

    stage.play(context)


def test_fifty_agents_under_a_storm_of_limits_probe_once_per_window(tmp_path: Path) -> None:
    """One credential, one bucket: after the first limit a window lets one turn through, not fifty."""
    clock = ManualClock(1_700_000_000.0)
    backend = ScriptedBackend([[replace(LIMIT, retry_after=100.0)]])
    stage = stage_of(tmp_path, backend, RetryPolicy(), clock)
    nodes: dict[str, g.Node] = {
        "each": g.Map(id="each", over="items", body="a", join="done", max=50),
        "a": replace(agent(), next="done"),
        "done": g.End(id="done"),
    }
    graph = g.Graph(name="flow", start="each", nodes=nodes, vars={"items": list(range(50))})

    async def context(runtime: Runtime) -> None:
        assert (await stage.walk(runtime, graph, no_wait=True)).code == TIME
        storm = len(backend.seen)
        for window in range(1, 6):
            clock.advance(101)
            await stage.walk(runtime, graph, no_wait=True)
            assert len(backend.seen) - storm <= window
        backend.turns[:] = [GOOD]
        for _ in range(60):
            clock.advance(400)
            verdict = await stage.walk(runtime, graph, no_wait=True)
            if verdict.row.status != "ready":
                break
        assert verdict.code == DONE, verdict.row.summary

    stage.play(context)


def test_an_answer_that_can_not_be_used_still_opens_the_credential(tmp_path: Path) -> None:
    """The endpoint answered: nobody has to wait for its next window any more."""
    backend = ScriptedBackend([[replace(LIMIT, retry_after=0.01)], RUBBISH, GOOD])
    stage = stage_of(tmp_path, backend)

    async def context(runtime: Runtime) -> None:
        assert (await stage.walk(runtime, chain(agent()))).code == DONE
        assert len(backend.seen) == 3
        assert await runtime.store.bucket_take("played", runtime.clock.now(), 60) == 0

    stage.play(context)


def test_an_outage_of_twenty_minutes_defaults_nothing(tmp_path: Path) -> None:
    """The endpoint is at fault, not the node: it is waited for."""
    clock = ManualClock(1_700_000_000.0)
    backend = ScriptedBackend([[Trouble("overloaded", 529, "overloaded_error")]])
    stage = stage_of(tmp_path, backend, RetryPolicy(), clock)
    graph = chain(agent())

    async def context(runtime: Runtime) -> None:
        began = clock.now()
        while clock.now() - began < 20 * 60:
            assert (await stage.walk(runtime, graph, no_wait=True)).code == TIME
            clock.advance(60)
        backend.turns[:] = [GOOD]
        while (verdict := await stage.walk(runtime, graph, no_wait=True)).code == TIME:
            clock.advance(60)
        assert verdict.code == DONE
        assert {t.prompt for t in backend.seen} == {"Do it for me."}

    stage.play(context)


def test_a_reboot_in_the_middle_of_an_outage_goes_on_waiting(tmp_path: Path) -> None:
    """The waits are in the journal: each process finds the same one, and the node is never defaulted."""
    clock = ManualClock(1_700_000_000.0)
    backend = ScriptedBackend([[Trouble("overloaded", 529, "overloaded_error")]])
    graph = chain(agent())

    async def wait(runtime: Runtime) -> None:
        assert (await stage.walk(runtime, graph, no_wait=True)).code == TIME
        clock.advance(90)

    async def recover(runtime: Runtime) -> None:
        while (verdict := await stage.walk(runtime, graph, no_wait=True)).code == TIME:
            clock.advance(60)
        assert verdict.code == DONE

    stage = stage_of(tmp_path, backend, RetryPolicy(), clock)
    for _ in range(8):
        stage.play(wait)
    backend.turns[:] = [GOOD]
    stage.play(recover)


FILES = {"without_json": {"x": "by files"}}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("", DONE),
        ("Applied edit to a.py:\n+ x = {}\n+ if (y) { return 1; }\n", DONE),
        ('{"x": 1}', DONE),
        ('{"y": 1}', DEGRADED),
        ('Here: {"x": "cut', DEGRADED),
        ('```json\n{"y": 1}\n```', DEGRADED),
    ],
)
def test_a_command_that_says_no_json_answers_with_its_files(tmp_path: Path, said: str, code: int) -> None:
    """Where the node says what that stands for; JSON that is there has to be right all the same."""
    backend = ScriptedBackend([[Answered(said)]], capabilities=Capabilities())
    stage = stage_of(tmp_path, backend)
    backend.name = "command"

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, chain(agent(spec=FILES)))
        assert verdict.code == code
        if code == DONE:
            assert len(backend.seen) == 1
            said_x = 1 if said.startswith('{"x"') else "by files"
            assert (await runtime.library.state(verdict.row.id)).context()["x"] == said_x

    stage.play(context)


def test_only_a_command_may_leave_its_json_out(tmp_path: Path) -> None:
    """The other agents are asked for it, and can give it."""
    stage = stage_of(tmp_path, ScriptedBackend([[Answered("done")]], capabilities=Capabilities()))

    async def context(runtime: Runtime) -> None:
        assert (await stage.walk(runtime, chain(agent(spec=FILES)))).code == DEGRADED

    stage.play(context)


def test_a_command_that_fails_is_asked_once_and_its_code_is_in_the_question(tmp_path: Path) -> None:
    """It would only fail again; without the code and its last words nobody knows what to mend."""
    backend = ScriptedBackend([[Trouble("the command ended with code 7: loading\nno model is loaded\n", type="exit")]])
    stage = stage_of(tmp_path, backend)

    async def context(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, chain(agent(), version=1))
        assert verdict.code == WAITS
        assert len(backend.seen) == 1
        question = (await runtime.store.waits())[0].body["question"]
        assert "the command ended with code 7: no model is loaded" in question

    stage.play(context)
