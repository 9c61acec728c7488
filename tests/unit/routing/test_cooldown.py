"""An endpoint that keeps failing is left alone, by everybody."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bailiwick.clock import ManualClock
from bailiwick.engine.failures import FailureKind
from bailiwick.journal.rows import AttemptRow
from bailiwick.routing.cooldown import LONGEST, Cooldowns, counts, key_of
from bailiwick.routing.endpoints import Endpoints
from bailiwick.routing.model import NOT_ASKED, Candidate


@dataclass
class Memory:
    """A store's memory of cool-downs."""

    kept: dict[str, tuple[int, float]] = field(default_factory=dict)
    held: dict[str, float] = field(default_factory=dict)
    tries: list[AttemptRow] = field(default_factory=list)
    writes: int = 0

    async def cooldown(self, name: str) -> tuple[int, float]:
        return self.kept.get(name, (0, 0.0))

    async def cooldown_report(self, name: str, failures: int, until: float) -> None:
        self.kept[name] = (failures, until)
        self.writes += 1

    async def bucket_until(self, name: str) -> float:
        return self.held.get(name, 0.0)

    async def attempts(self, *, since: float | None = None, call: str | None = None) -> list[AttemptRow]:
        return [row for row in self.tries if since is None or row.at >= since]


@dataclass
class Worker:
    """One process's view, used from a test that is not asynchronous."""

    memory: Memory = field(default_factory=Memory)
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.cooldowns = Cooldowns(self.memory, self.clock)

    def fail(self, times: int = 1, key: str = "k") -> None:
        for _ in range(times):
            asyncio.run(self.cooldowns.report(key, ok=False))

    def succeed(self) -> None:
        asyncio.run(self.cooldowns.report("k", ok=True))

    @property
    def blocked(self) -> float:
        return asyncio.run(self.cooldowns.blocked("k"))


def test_three_failures_in_a_row_close_an_endpoint_for_half_a_minute() -> None:
    """One or two may be chance; more cost every call its wait."""
    worker = Worker()
    worker.fail(2)
    assert worker.blocked == 0
    worker.fail()
    assert worker.blocked == 30
    worker.clock.advance(29)
    assert worker.blocked == 1
    worker.clock.advance(1)
    assert worker.blocked == 0


def test_each_further_failure_doubles_the_pause_up_to_ten_minutes() -> None:
    """A machine that is off for the night is asked now and then, not all the time."""
    worker, pauses = Worker(), []
    worker.fail(2)
    for _ in range(8):
        worker.fail()
        pauses.append(worker.blocked)
        worker.clock.advance(worker.blocked)
    assert pauses == [30, 60, 120, 240, 480, 600, 600, 600]


def test_a_success_forgets_all() -> None:
    """What works is used at once, and the next three failures count from the beginning."""
    worker = Worker()
    worker.fail(3)
    worker.clock.advance(30)
    worker.succeed()
    assert worker.blocked == 0
    worker.fail(2)
    assert worker.blocked == 0


def test_calls_that_were_under_way_do_not_lengthen_the_pause() -> None:
    """Ten calls that fail together are one outage, not ten."""
    worker = Worker()
    worker.fail(13)
    assert worker.blocked == 30


def test_a_success_where_nothing_was_wrong_writes_nothing() -> None:
    """Each good call would cost a transaction."""
    worker = Worker()
    worker.succeed()
    assert worker.memory.writes == 0


def test_all_workers_know_at_once_and_endpoints_are_counted_apart() -> None:
    """The store is what they share."""
    first = Worker()
    second = Worker(first.memory, first.clock)
    first.fail(2)
    second.fail()
    first.fail(2, key="other")
    assert first.blocked == second.blocked == 30
    assert asyncio.run(first.cooldowns.blocked("other")) == 0


def test_why_an_endpoint_is_left_alone_is_on_record() -> None:
    """Whichever process met the failure; what was skipped, or is long ago, is no reason."""
    worker = Worker()
    now = worker.clock.now()
    rows = [
        ("a", now - 5_000, "error", "long ago"),
        ("a", now - 60, "error", "nothing listens"),
        ("a", now - 50, "accept", ""),
        ("b", now - 40, "error", "another's"),
        ("a", now - 30, "error", f"{NOT_ASKED}it is left alone"),
    ]
    worker.memory.tries = [
        AttemptRow("c", 1, at, "review", model, "local", verdict, None, False, 0, feedback=feedback)
        for model, at, verdict, feedback in rows
    ]
    assert asyncio.run(worker.cooldowns.because({"a"})) == "nothing listens"
    assert asyncio.run(worker.cooldowns.because({"c"})) == ""


@pytest.mark.parametrize("kind", list(FailureKind))
def test_only_what_is_the_endpoints_fault_counts(kind: FailureKind) -> None:
    """A limit tells its own reset, and a bad answer is the model's."""
    assert counts(kind) is (kind in (FailureKind.UNREACHABLE, FailureKind.OVERLOADED, FailureKind.TIMEOUT))


def test_an_endpoint_is_known_by_its_address_and_a_program_by_its_name() -> None:
    """Two models behind one server fail together."""
    local, agent = (Candidate("m", "local", "openai", cloud=False), Candidate("m", "subagent", "claude", cloud=True))
    assert key_of(local, Endpoints().place("m")) == "127.0.0.1:11434"
    assert key_of(agent, None) == "program:claude"


@given(st.lists(st.one_of(st.just("fail"), st.just("ok"), st.floats(1, 900)), max_size=60))
def test_an_endpoint_is_never_closed_for_longer_than_the_longest_pause(steps: list[str | float]) -> None:
    """However it fails, it is tried again within ten minutes; and never closed before the third failure in a row."""
    worker, row = Worker(), 0
    for step in steps:
        if step == "fail":
            worker.fail()
            row += 1
        elif step == "ok":
            worker.succeed()
            row = 0
        else:
            worker.clock.advance(float(step))
        assert worker.blocked <= LONGEST
        assert worker.blocked == 0 or row >= 3
