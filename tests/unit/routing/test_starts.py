"""Learned routing over a store: what it reads, once, and what it makes of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from bailiwick.clock import ManualClock
from bailiwick.journal.port import Store
from bailiwick.routing.learned import Aims
from bailiwick.routing.model import Candidate, Chain, Job
from bailiwick.routing.models_file import Models
from bailiwick.routing.starts import FRESH, OVERLAP, LearnedStarts, job_size
from bailiwick.testing.store_conformance.calls import attempt, call
from bailiwick.testing.store_conformance.stage import NOW
from tests.unit.routing import stand_ins
from tests.unit.routing.records import routed, with_store

CHEAP, STRONG = "ollama/cheap", "claude-strong"
TIERS = (Candidate(CHEAP, "local", "openai", cloud=False), Candidate(STRONG, "subagent", "claude", cloud=True))
CHAIN = Chain(TIERS, TIERS[1], "skill tdd")
JOB = Job("tdd", "green", "discipline", "task")


async def _failed_calls(store: Store, first: int, count: int, start: float = NOW) -> None:
    """Calls in which the cheap tier was rejected and the strong one taken, ten seconds apart."""
    for number in range(first, first + count):
        at, name = start + 10 * number, f"call-{number}"
        tries = [
            replace(attempt(name, 1), at=at, skill="tdd", model=CHEAP, verdict="escalate", verified=False, cost=0.9),
            replace(attempt(name, 2), at=at + 5, skill="tdd", model=STRONG, verdict="accept_unverified", cost=1.0),
        ]
        await routed(store, replace(call(name), skill="tdd", started_at=at, size=10), tries)


def _clock(at: float) -> ManualClock:
    return ManualClock(at)


def test_a_tier_that_failed_on_record_is_skipped_with_the_reason(tmp_path: Path) -> None:
    """What one process recorded, the next one routes by."""

    async def look(store: Store) -> Chain:
        await _failed_calls(store, 0, 60)
        return await LearnedStarts(store=store, clock=_clock(NOW + 3600))(JOB, CHAIN, "call-new")

    chain = with_store(tmp_path, look)
    assert [one.model for one in chain.candidates] == [STRONG]
    assert chain.why.startswith("skill tdd; learned: starts at claude-strong, $1.0000 expected")


def test_without_a_record_the_fixed_chain_stands(tmp_path: Path) -> None:
    """Learned routing is safe to switch on from the first day."""

    async def look(store: Store) -> Chain:
        return await LearnedStarts(store=store, clock=_clock(NOW))(JOB, CHAIN, "call-new")

    chain = with_store(tmp_path, look)
    assert chain.candidates == TIERS
    assert "fixed chain" in chain.why


def test_each_call_is_learnt_once_and_later_ones_are_seen(tmp_path: Path) -> None:
    """A process that lives for days neither counts twice nor stops learning."""

    async def look(store: Store) -> list[float]:
        clock = _clock(NOW + 3600)
        starts = LearnedStarts(store=store, clock=clock)
        seen = []
        for first, count in ((0, 10), (10, 0), (10, 5)):
            await _failed_calls(store, first, count)
            await starts(JOB, CHAIN, "call-new")
            clock.advance(FRESH)
            seen.append(starts._known.evidence("tdd", CHEAP))
        return [round(one, 0) for one in seen]

    assert with_store(tmp_path, look) == [10, 10, 15]


def test_the_record_is_not_read_for_every_call(tmp_path: Path) -> None:
    """Routing must stay quick when the record is long."""

    async def look(store: Store) -> list[float]:
        clock = _clock(NOW + 3600)
        starts = LearnedStarts(store=store, clock=clock)
        await starts(JOB, CHAIN, "call-a")
        await _failed_calls(store, 0, 10)
        seen = []
        for seconds in (FRESH - 1, 1):
            clock.advance(seconds)
            await starts(JOB, CHAIN, "call-b")
            seen.append(round(starts._known.evidence("tdd", CHEAP), 0))
        return seen

    assert with_store(tmp_path, look) == [0, 10]


def test_a_long_memory_is_not_kept_of_calls_that_are_not_read_again(tmp_path: Path) -> None:
    """What is remembered to count once must not grow with the age of the process."""

    async def look(store: Store) -> int:
        clock = _clock(NOW + 10 * OVERLAP)
        starts = LearnedStarts(store=store, clock=clock)
        await _failed_calls(store, 0, 5)
        await starts(JOB, CHAIN, "call-a")
        clock.advance(FRESH)
        await _failed_calls(store, 5, 5, NOW + 5 * OVERLAP)
        await starts(JOB, CHAIN, "call-b")
        return len(starts._learnt)

    assert with_store(tmp_path, look) == 5


def test_the_size_of_a_call_counts_its_files(tmp_path: Path) -> None:
    """A short question about a long file is a long task."""
    (tmp_path / "long.py").write_text("x" * 5_000)
    job = replace(JOB, root=str(tmp_path), files=("long.py", "gone.py"))
    assert job_size(job) == 5_000 + len("task")


def test_a_router_starts_where_the_record_says_only_if_the_file_asks_for_it(tmp_path: Path) -> None:
    """Learned routing is off by default: the record alone changes no call."""

    async def asked(folder: Path, said: Models) -> list[str]:
        script = {
            "cheap": [stand_ins.passes()],
            STRONG: [stand_ins.passes()],
            stand_ins.JUDGE: [stand_ins.verdict(accept=True)],
        }
        async with stand_ins.routed(folder, script, said) as stage:
            await _failed_calls(stage.store, 0, 60)
            stage.clock.advance(3600)
            stage.router.start = LearnedStarts(
                store=stage.store, clock=stage.clock, aims=Aims(extra=0.0)
            )  # no exploring
            outcome = await stage.call(stand_ins.job(skill="tdd", phase="green"))
            assert ("learned: starts at" in outcome.why) == (said.routing == "learned")
            return stage.turns.asked

    learned, fixed = stand_ins.models(CHEAP, STRONG, routing="learned"), stand_ins.models(CHEAP, STRONG)
    assert asyncio.run(asked(tmp_path / "learned", learned)) == [STRONG]
    assert asyncio.run(asked(tmp_path / "fixed", fixed)) == ["cheap", stand_ins.JUDGE]
