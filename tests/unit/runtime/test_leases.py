"""Leases of a process that is late: never two holders, and never one that takes its own run away."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bailiwick.clock import ManualClock
from bailiwick.errors import StoreUnavailable
from bailiwick.journal.rows import ClaimFilter, NewRun, Owner, RunRow
from bailiwick.journal.sqlite import SqliteStore
from bailiwick.runtime import leases as leases_module
from bailiwick.runtime.leases import LEASE, MARGIN, Leases

ANY = ClaimFilter()
RUNS = ("r1", "r2")


@dataclass
class Heard:
    """A holder that writes down what it is told."""

    words: list[str] = field(default_factory=list)

    def taken_over(self) -> None:
        """Another process has the run."""
        self.words.append("taken over")

    def suspend(self) -> None:
        """The lease could not be renewed in time."""
        self.words.append("suspend")

    def go_on(self) -> None:
        """The lease is renewed."""
        self.words.append("go on")


@dataclass
class Process:
    """One process on the store, with what it believes to hold."""

    owner: Owner
    leases: Leases
    holds: dict[str, tuple[RunRow, Heard]] = field(default_factory=dict)

    async def claim(self) -> RunRow | None:
        """Claim whatever there is."""
        row = await self.leases.claim(self.owner, ANY)
        if row is not None:
            assert row.id not in self.holds, "a process claimed what it holds itself"
            self.holds[row.id] = (row, Heard())
            self.leases.keep_for(row, self.holds[row.id][1])
        return row

    async def renew(self) -> None:
        """Renew as the thread does, and hear what came of it."""
        await asyncio.to_thread(self.leases.renew)
        await asyncio.sleep(0)
        for run_id, (row, heard) in list(self.holds.items()):
            if "taken over" in heard.words:
                self.leases.drop(row)
                del self.holds[run_id]


Scene = Callable[[SqliteStore, ManualClock, list[Process]], Awaitable[None]]


def play(home: Path, scene: Scene) -> None:
    """Play a scene with two processes of two hosts on one store with two runs."""

    async def whole() -> None:
        clock = ManualClock()
        store = await SqliteStore.open(home / "bailiwick.db", now=clock.now)
        for run_id in RUNS:
            await store.create(NewRun(run_id, "flow", run_id, "d", run_id, clock.now()))
        owners = [Owner(host, "boot", "ns", 1, 1) for host in ("laptop", "tower")]
        made = [Process(owner, Leases(store, clock, lambda _run, _text: None)) for owner in owners]
        for process in made:
            process.leases._start = lambda: None  # type: ignore[method-assign]
        try:
            await scene(store, clock, made)
        finally:
            await store.close()

    asyncio.run(whole())


def test_a_late_process_renews_what_nobody_took_and_goes_on(tmp_path: Path) -> None:
    """Stopped for longer than the lease: the epoch stands, so nothing is lost, and nothing is claimed twice."""

    async def scene(store: SqliteStore, clock: ManualClock, made: list[Process]) -> None:
        me = made[0]
        assert [row and row.id for row in (await me.claim(), await me.claim())] == list(RUNS)
        clock.advance(18)
        assert await me.claim() is None
        await me.renew()
        assert {run_id: heard.words for run_id, (_, heard) in me.holds.items()} == {r: ["go on"] for r in RUNS}
        rows = [await store.run(run_id) for run_id in RUNS]
        assert [(row.epoch, row.lease_until) for row in rows if row] == [(1, clock.now() + LEASE)] * 2

    play(tmp_path, scene)


def test_a_process_that_let_go_may_claim_again(tmp_path: Path) -> None:
    """Only what is held is left out: a run that was released, or failed to begin, is not lost to its process."""

    async def scene(store: SqliteStore, clock: ManualClock, made: list[Process]) -> None:
        me = made[0]
        row = await me.claim()
        assert row is not None
        me.leases.drop(row)
        me.holds.clear()
        assert await store.release(row.id, row.epoch, clock.now())
        again = await me.claim()
        assert again is not None
        assert (again.id, again.epoch) == (row.id, 2)
        me.leases.drop(row)
        assert row.id in me.leases._held, "a drop of a former claim concerns that one alone"

    play(tmp_path, scene)


def test_who_can_not_renew_in_time_ends_its_children_and_goes_on_when_it_can(tmp_path: Path) -> None:
    """The margin before the end of the lease is when children have to go."""

    async def scene(store: SqliteStore, clock: ManualClock, made: list[Process]) -> None:
        me, troubles = made[0], list[str]()
        me.leases._on_trouble = lambda _run, text: troubles.append(text)
        row = await me.claim()
        assert row is not None
        heard = me.holds[row.id][1]
        real = store.renew

        def broken(_leases: object, _until: float) -> set[str]:
            raise StoreUnavailable("the disk is full")

        store.renew = broken  # type: ignore[assignment,method-assign]
        await me.renew()
        assert heard.words == []
        clock.advance(LEASE - MARGIN)
        await me.renew()
        assert heard.words == ["suspend"]
        assert len(troubles) == 2
        store.renew = real  # type: ignore[method-assign]
        clock.advance(LEASE)
        await me.renew()
        assert heard.words == ["suspend", "go on"]

    play(tmp_path, scene)


def test_the_thread_renews_while_the_event_loop_is_held_up(tmp_path: Path) -> None:
    """Renewal does not depend on the loop's punctuality: here the loop does not run at all until it has happened."""

    async def scene(store: SqliteStore, clock: ManualClock, _made: list[Process]) -> None:
        leases = Leases(store, clock, lambda _run, _text: None)
        row = await leases.claim(Owner("laptop", "boot", "ns", 1, 1), ANY)
        assert row is not None
        clock.advance(LEASE + 3)
        _spin_until(store, row.id, clock.now() + LEASE)
        await leases.close()

    before, leases_module.RENEW = leases_module.RENEW, 0.01
    try:
        play(tmp_path, scene)
    finally:
        leases_module.RENEW = before


def _spin_until(store: SqliteStore, run_id: str, lease_until: float) -> None:
    """Hold the event loop up until another thread has renewed the lease."""
    from bailiwick.testing.polling import until

    def renewed() -> bool:
        rows = store._reader.rows("SELECT lease_until FROM run WHERE id = ?", (run_id,))
        return bool(rows[0][0] == lease_until)

    until(renewed, what="the renewal")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("late"), st.sampled_from([0.5, 4.0, 6.0, 14.9, 15.0, 18.0, 3600.0])),
        st.tuples(st.sampled_from(["renew", "claim"]), st.sampled_from([0, 1])),
    ),
    max_size=25,
)


@given(STEPS)
@settings(deadline=None, max_examples=40)
def test_there_are_never_two_holders_and_nobody_fences_himself(steps: list[tuple[str, float]]) -> None:
    """Whatever the order of late loops, renewals and claims: an epoch moves only by the hand of the other process."""

    async def scene(store: SqliteStore, clock: ManualClock, made: list[Process]) -> None:
        for word, value in steps:
            if word == "late":
                clock.advance(value)
                continue
            me, other = made[int(value)], made[1 - int(value)]
            if word == "renew":
                await me.renew()
            elif word == "claim":
                await me.claim()
            for run_id in RUNS:
                row = await store.run(run_id)
                assert row is not None
                true = [p for p in made if run_id in p.holds and p.holds[run_id][0].epoch == row.epoch]
                assert len(true) <= 1
                if run_id in me.holds and me not in true:
                    assert other in true, "the epoch moved although nobody else claimed"

    with tempfile.TemporaryDirectory() as home:
        play(Path(home), scene)
