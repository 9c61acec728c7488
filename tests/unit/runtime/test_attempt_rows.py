"""Each model attempt of a walk is in the index: in the transaction of its event, whatever is refused beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bailiwick.engine import graph as g
from bailiwick.engine.events import Failure
from bailiwick.ids import Json
from bailiwick.journal.rows import RunRow
from bailiwick.runs.control import Control
from bailiwick.runs.foreground import BUDGET, DONE
from bailiwick.runtime.assemble import Runtime
from bailiwick.runtime.kinds import AttemptRequest, Done, Failed, Io
from tests.unit.runtime.stage import RuntimeSetup, Scripted, at_once, chain, work


@dataclass
class CountingModel(Scripted):
    """A kind that asks a model, whose session counts up: a dollar for each attempt."""

    async def attempt(self, request: AttemptRequest, io: Io) -> Done | Failed:
        """What the test answers, with the totals of the session."""
        found = await super().attempt(request, io)
        count = sum(one.key == request.key for one in self.seen)
        usage: Json = {"input": 100 * count, "output": 10, "usd": float(count), "cumulative": True}
        return replace(found, log={"backend": "claude", "model": "m", "session": request.key, "usage": usage})


async def indexed(runtime: Runtime, row: RunRow) -> list[tuple[int, float, str, int | None, float | None]]:
    """The index of a run; its numbers are those of the events that ended attempts, at the time of which it speaks."""
    rows = [one for one in await runtime.store.attempts() if one.run == row.id]
    ended = [(one.seq, one.at) for one in await runtime.store.read(row.id) if one.type == "EffectFinished"]
    assert [(one.attempt, one.at) for one in rows] == ended
    return [(one.attempt, one.at, one.verdict, one.input_tokens, one.cost) for one in rows]


def test_an_attempt_is_indexed_although_the_next_one_has_no_money(tmp_path: Path) -> None:
    """The batch is made again without the start that was refused, and its events move up: the index moves with them."""
    stage = RuntimeSetup(tmp_path, CountingModel(at_once))
    graph = chain(*(work(f"n{i}", "agent") for i in range(3)), budget=g.Budget(agent_calls=1))

    async def scene(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == BUDGET
        assert len(await indexed(runtime, verdict.row)) == 1
        await Control(runtime, "tester").raise_budget(verdict.row, "agent_calls", 9)
        verdict = await stage.walk(runtime, graph)
        assert verdict.code == DONE
        assert [cost for *_, cost in await indexed(runtime, verdict.row)] == [1.0, 1.0, 1.0]

    stage.play(scene)


def test_a_session_that_goes_on_is_indexed_beyond_what_it_was(tmp_path: Path) -> None:
    """Its backend tells totals: counted whole each time, a turn would be paid for again and again."""

    async def second_time(request: AttemptRequest) -> dict[str, Json] | Failure:
        return {} if request.attempt > 1 else Failure("bad_output", "no JSON")

    stage = RuntimeSetup(tmp_path, CountingModel(second_time))

    async def scene(runtime: Runtime) -> None:
        verdict = await stage.walk(runtime, chain(work("n", "agent")))
        assert verdict.code == DONE
        found = await indexed(runtime, verdict.row)
        assert [one[2:] for one in found] == [("error", 100, 1.0), ("accept_unverified", 100, 1.0)]
        assert [row.feedback for row in await runtime.store.attempts()] == ["no JSON", ""]
        assert [row.workflow for row in await runtime.store.attempts()] == ["flow", "flow"]

    stage.play(scene)


def test_what_asks_no_model_is_in_no_index(tmp_path: Path) -> None:
    """Scripts and waits have a journal; statistics of models know nothing of them."""
    stage = RuntimeSetup(tmp_path, Scripted(at_once))

    async def scene(runtime: Runtime) -> None:
        assert (await stage.walk(runtime, chain(work("a"), work("b")))).code == DONE
        assert await runtime.store.attempts() == []

    stage.play(scene)
