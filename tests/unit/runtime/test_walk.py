"""Walking a run: commits, budgets, questions, trouble with the store, losing the lease."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from bailiwick.clock import ManualClock
from bailiwick.engine import graph as g
from bailiwick.engine.events import Failure
from bailiwick.engine.render import Lookup, Rendered, Renderer
from bailiwick.errors import LeaseLost, StoreUnavailable
from bailiwick.ids import Json
from bailiwick.journal.rows import Batch, ClaimFilter, Message, WaitFilter
from bailiwick.processes.owner import current_owner
from bailiwick.runs.control import Control
from bailiwick.runs.foreground import BUDGET, DONE, FAILED, WAITS
from bailiwick.runs.start import StartRequest, start
from bailiwick.runtime import walker as walking
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.kinds import AttemptRequest
from bailiwick.runtime.worker import Worker
from tests.unit.runtime.stage import RuntimeSetup, Scripted, at_once, chain, types, work


def test_a_chain_of_n_effects_costs_n_plus_one_commits(tmp_path: Path) -> None:
    """`finished` of one node and `started` of the next are one transaction."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))

    async def scene(runtime: Runtime) -> None:
        commits = 0
        plain = runtime.store.append

        async def counted(run_id: str, epoch: int, batch: Batch) -> int:
            nonlocal commits
            commits += 1
            return await plain(run_id, epoch, batch)

        runtime.store.append = counted  # type: ignore[method-assign]
        verdict = await stage.walk(runtime, chain(*(work(f"n{i}") for i in range(5))))
        assert verdict.code == DONE
        assert commits == 6

    stage.play(scene)


def test_calls_beyond_the_budget_do_not_start_and_a_raise_lets_them(tmp_path: Path) -> None:
    """The reservation is in the transaction of `started`: the call that does not fit never begins."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))
    graph = chain(*(work(f"n{i}", "agent") for i in range(4)), budget=g.Budget(agent_calls=2))

    async def scene(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == BUDGET
        assert [r.node.id for r in stage.kind.seen] == ["n0", "n1"]
        outcome = await Control(runtime, "tester").answer(verdict.row, "raise")
        assert not outcome.refused
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == DONE
        assert [r.node.id for r in stage.kind.seen] == ["n0", "n1", "n2", "n3"]

    stage.play(scene)


def test_a_fan_out_never_starts_more_calls_than_the_budget_allows(tmp_path: Path) -> None:
    """Concurrent reservations are counted before they begin, not after."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))
    nodes: dict[str, g.Node] = {
        "each": g.Map(id="each", over="items", body="call", join="done", max=8),
        "call": work("call", "agent", next="done"),
        "done": g.End(id="done"),
    }
    graph = g.Graph(
        name="flow", start="each", nodes=nodes, vars={"items": list(range(8))}, budget=g.Budget(agent_calls=5)
    )

    async def scene(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == BUDGET
        assert len(stage.kind.seen) <= 5

    stage.play(scene)


def test_the_time_of_a_run_is_limited_and_waiting_for_a_person_is_free(tmp_path: Path) -> None:
    """`wall` counts what the run takes, not the night in which a question lay open."""
    clock = ManualClock()

    async def slow(_request: AttemptRequest) -> dict[str, Json]:
        clock.advance(40)
        return {}

    stage = RuntimeSetup(tmp_path, Scripted(slow), clock)
    ask = g.Ask(id="ask", question="?", choices=("yes",))
    graph = chain(work("a"), ask, work("b"), work("c"), budget=g.Budget(wall=100.0))

    async def scene(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == WAITS
        clock.advance(10_000)
        await Control(runtime, "tester").answer(verdict.row, "yes")
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == DONE, verdict.row.summary
        state = await runtime.library.state(verdict.row.id)
        assert state.wall == pytest.approx(120)

    stage.play(scene)


def test_a_run_over_its_time_parks_before_the_next_effect(tmp_path: Path) -> None:
    """It asks instead of ending: what was done is kept."""
    clock = ManualClock()

    async def slow(_request: AttemptRequest) -> dict[str, Json]:
        clock.advance(40)
        return {}

    stage = RuntimeSetup(tmp_path, Scripted(slow), clock)
    graph = chain(work("a"), work("b"), work("c"), budget=g.Budget(wall=60.0))

    async def scene(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == BUDGET
        assert [r.node.id for r in stage.kind.seen] == ["a", "b"]
        await Control(runtime, "tester").raise_budget(verdict.row, "wall", 600.0)
        assert (await stage.walk(runtime, graph)).code == DONE

    stage.play(scene)


def test_a_full_disk_pauses_the_run_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder stops dispatching, says so, and tries again; the same events land once."""
    monkeypatch.setattr(walking, "RETRY_STORE", 0.01)
    stage = RuntimeSetup(tmp_path, Scripted(at_once))

    async def scene(runtime: Runtime) -> None:
        plain, failures = runtime.store.append, 3

        async def full(run_id: str, epoch: int, batch: Batch) -> int:
            nonlocal failures
            if batch.after > 1 and failures:
                failures -= 1
                raise StoreUnavailable("database or disk is full")
            return await plain(run_id, epoch, batch)

        runtime.store.append = full  # type: ignore[method-assign]
        verdict = await stage.walk(runtime, chain(work("a"), work("b")))
        assert verdict.code == DONE
        assert sum("disk is full" in text for text in stage.troubles) == 3
        assert (await types(runtime, verdict.row)).count("EffectFinished") == 2
        assert len(stage.kind.seen) == 2

    stage.play(scene)


def test_an_append_that_landed_despite_an_error_is_not_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An I/O error after the commit leaves it open what happened: the journal tells."""
    monkeypatch.setattr(walking, "RETRY_STORE", 0.01)
    stage = RuntimeSetup(tmp_path, Scripted(at_once))

    async def scene(runtime: Runtime) -> None:
        plain, lied = runtime.store.append, False

        async def lies(run_id: str, epoch: int, batch: Batch) -> int:
            nonlocal lied
            seq = await plain(run_id, epoch, batch)
            if batch.after > 1 and not lied and not batch.release:
                lied = True
                raise StoreUnavailable("disk I/O error")
            return seq

        runtime.store.append = lies  # type: ignore[method-assign]
        verdict = await stage.walk(runtime, chain(work("a"), work("b"), work("c")))
        assert verdict.code == DONE
        assert (await types(runtime, verdict.row)).count("EffectFinished") == 3
        assert len(stage.kind.seen) == 3

    stage.play(scene)


def test_a_holder_that_was_fenced_appends_nothing_more(tmp_path: Path) -> None:
    """Another epoch owns the run: stop, end the children, let go."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))

    async def scene(runtime: Runtime) -> None:
        taken: list[int] = []

        async def robbed(_request: AttemptRequest) -> dict[str, Json]:
            rows = await runtime.store.runs()
            thief = current_owner("thief")
            far = runtime.clock.now() + 100
            which = ClaimFilter(run_id=rows[0].id, dead=((rows[0].id, rows[0].epoch),))
            row = await runtime.store.claim(thief, far, far + 15, 1, which)
            assert row is not None
            taken.append(row.seq)
            return {}

        stage.kind.answer = robbed
        with pytest.raises(LeaseLost):
            await stage.walk(runtime, chain(work("a"), work("b")))
        rows = await runtime.store.runs()
        assert rows[0].seq == taken[0]

    stage.play(scene)


def test_a_lost_effect_is_asked_about_where_the_node_says_so(tmp_path: Path) -> None:
    """`on_unknown: ask`: it may or may not have happened, so a person decides."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))
    graph = chain(work("a", on_unknown="ask"))

    async def cut(_request: AttemptRequest) -> Failure:
        stage.signals.caught = "SIGTERM"
        assert stage.signals.worker is not None
        stage.signals.worker.drain("SIGTERM", now=True)
        return Failure("cancelled", "cut off")

    async def scene(runtime: Runtime) -> None:
        stage.kind.answer = cut
        verdict = await stage.walk(runtime, graph)
        assert verdict.row.status == "stopped"
        stage.signals.caught, stage.kind.answer = "", at_once
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == WAITS
        await Control(runtime, "tester").answer(verdict.row, "again")
        assert (await stage.walk(runtime, graph)).code == DONE
        assert [r.entry for r in stage.kind.seen] == [1, 2]
        assert len({r.key for r in stage.kind.seen}) == 1

    stage.play(scene)


def test_a_signal_that_no_longer_applies_is_kept_with_its_reason(tmp_path: Path) -> None:
    """Nothing that people send disappears in silence."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))

    async def scene(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, chain(work("a")))
        outcome = await Control(runtime, "tester").stop(verdict.row, now=False)
        assert "done" in outcome.refused
        row = await runtime.store.run(verdict.row.id)
        assert row is not None
        assert row.status == "done"

    stage.play(scene)


def test_a_message_sent_while_the_holder_lets_go_is_not_lost(tmp_path: Path) -> None:
    """The run is due again at once: a lost wake-up would park it for ever."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))
    ask = g.Ask(id="ask", question="?", choices=("yes",))

    async def scene(runtime: Runtime) -> None:
        plain = runtime.store.append

        async def racing(run_id: str, epoch: int, batch: Batch) -> int:
            if batch.release and batch.waits_opened:
                body = {"value": "yes", "wait": "ask"}
                await runtime.store.send(Message(run_id, "answer", "early", body, runtime.clock.now()))
                batch_events = [e.type for e in batch.events]
                assert "WaitOpened" in batch_events
            return await plain(run_id, epoch, batch)

        runtime.store.append = racing  # type: ignore[method-assign]
        assert (await stage.walk(runtime, chain(ask))).code == DONE

    stage.play(scene)


def test_a_kind_that_breaks_fails_its_node_and_not_the_worker(tmp_path: Path) -> None:
    """A plug-in's bug is a failed attempt with the exception's words."""

    async def breaks(_request: AttemptRequest) -> dict[str, Json]:
        raise ZeroDivisionError("division by zero")

    stage = RuntimeSetup(tmp_path, Scripted(breaks))

    async def scene(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, chain(work("a")))
        assert verdict.code == FAILED
        assert "division by zero" in str((verdict.row.summary or {})["reason"])

    stage.play(scene)


def test_one_broken_run_does_not_stop_the_others(tmp_path: Path) -> None:
    """A worker for everybody goes on when one journal can't be read."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))

    async def scene(runtime: Runtime) -> None:
        good = chain(work("a"))
        bad = replace(good, name="bad")
        await start(runtime, StartRequest(stage.loaded(bad)))
        await start(runtime, StartRequest(stage.loaded(good)))
        plain = runtime.store.read

        async def torn(run_id: str, after: int = 0, upto: int | None = None) -> list[object]:
            rows = await plain(run_id, after, upto)
            row = await runtime.store.run(run_id)
            return [] if row is not None and row.workflow == "bad" else rows  # type: ignore[return-value]

        runtime.store.read = torn  # type: ignore[method-assign,assignment]
        worker = Worker(runtime, current_owner("test"), ClaimFilter())

        async def finished() -> bool:
            found = await runtime.store.find("flow", "default")
            return found is not None and found.status == "done"

        async with asyncio.timeout(600):
            await worker.run(finished)
        assert any("no events" in text for text in stage.troubles)

    stage.play(scene)


def test_every_attempt_of_a_visit_is_asked_for_what_the_first_was(tmp_path: Path) -> None:
    """Whatever changed in between; a value too big for its row comes back from the store after a restart."""
    made = iter(range(100))

    class Moving(Scripted):
        def prepare(self, node: g.Node, lookup: Lookup, renderer: Renderer) -> Rendered:
            return Rendered({"look": next(made), "text": "x" * 10_000})

    async def twice(request: AttemptRequest) -> dict[str, Json] | Failure:
        return Failure("bad_output", "no", {}) if request.attempt < 3 and request.visit == 1 else {}

    kind = Moving(twice)
    stage = RuntimeSetup(tmp_path, kind)
    graph = chain(work("a", "agent"), g.Branch(id="b", path="again", cases={"no": "done"}, default="a"))

    async def first(runtime: Runtime) -> None:
        row = (await start(runtime, StartRequest(stage.loaded(graph)))).row
        worker = Worker(runtime, current_owner("test"), ClaimFilter(root_id=row.id))

        async def answer(request: AttemptRequest) -> dict[str, Json] | Failure:
            worker.drain("test", now=False)
            return await twice(request)

        kind.answer = answer
        await worker.run(_never)

    async def second(runtime: Runtime) -> None:
        async def answer(request: AttemptRequest) -> dict[str, Json] | Failure:
            found = await twice(request)
            return {"again": "no"} if request.visit == 2 else found

        kind.answer = answer
        assert (await stage.walk(runtime, graph)).code == DONE

    stage.play(first)
    stage.play(second)
    assert [(r.visit, r.attempt, r.prepared["look"]) for r in kind.seen] == [(1, 1, 0), (1, 2, 0), (1, 3, 0), (2, 1, 1)]


def test_every_worker_of_a_process_hears_what_the_process_sends(tmp_path: Path) -> None:
    """What is written here is no news to this process's own handle: each of its workers is told."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))
    graph = chain(g.Ask(id="ask", question="?", choices=("yes",)))

    async def scene(runtime: Runtime) -> None:
        flows = [replace(graph, name=name) for name in ("first", "second")]
        rows = [(await start(runtime, StartRequest(stage.loaded(flow)))).row for flow in flows]
        workers = [Worker(runtime, current_owner("test"), ClaimFilter(root_id=row.id)) for row in rows]

        async def answered(run_id: str) -> bool:
            row = await runtime.store.run(run_id)
            if row is not None and await runtime.store.waits(WaitFilter(run_id=run_id)):
                asked.add(run_id)
            if len(asked) == len(rows) and not sent:
                sent.append(True)
                for one in rows:
                    body: dict[str, Json] = {"value": "yes"}
                    await runtime.store.send(
                        Message(one.id, kind="answer", dedupe="a", body=body, at=runtime.clock.now())
                    )
                runtime.nudge()
            return row is not None and row.status == "done"

        asked: set[str] = set()
        sent: list[bool] = []
        pairs = zip(workers, rows, strict=True)
        async with asyncio.timeout(600):
            await asyncio.gather(*(worker.run(partial(answered, row.id)) for worker, row in pairs))
        assert not runtime.wakers

    stage.play(scene)


async def _never() -> bool:
    return False
