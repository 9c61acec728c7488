# ruff: noqa: S101 - a conformance suite asserts
"""Promises about ownership: who may take a run, in which order, and who has lost it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bailiwick.errors import LeaseLost
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Batch, ClaimFilter, RunClaim, Status
from bailiwick.testing.store_conformance.stage import (
    ANY,
    LAPTOP,
    NOW,
    TOWER,
    StoreFixture,
    ended_run,
    held_run,
    message,
    new_run,
    on_store,
    on_two_handles,
    sure,
)


async def renewed(store: Store, leases: dict[str, int], until: float) -> set[str]:
    """Renew as a holder does, in a thread; those that were lost."""
    return await asyncio.to_thread(store.renew, leases, until)


class ClaimPromises(StoreFixture):
    """What is promised about leases."""

    @on_store
    async def test_a_claim_raises_the_epoch_and_names_the_owner(self, store: Store) -> None:
        """The epoch is what fences a former holder off."""
        row = await held_run(store)
        assert (row.epoch, row.owner, row.lease_until) == (1, LAPTOP, NOW + 60)
        assert await sure(store) == row

    @on_store
    async def test_claims_go_by_priority_then_by_due_time(self, store: Store) -> None:
        """The order in which people were promised their turn."""
        await store.create(new_run("late", created_at=NOW - 1))
        await store.create(new_run("early", created_at=NOW - 9))
        await store.create(new_run("urgent", priority=-1))
        order = [await store.claim(LAPTOP, NOW, lease_until=NOW + 60, reader=1, which=ANY) for _ in range(4)]
        assert [row and row.id for row in order] == ["urgent", "early", "late", None]

    @on_store
    async def test_only_what_is_ready_due_and_readable_here_is_claimed(self, store: Store) -> None:
        """Each of these would walk a run that must rest, or read what it can't."""
        await ended_run(store, "done")
        await store.create(new_run("future", created_at=NOW + 1))
        await store.create(new_run("newer", min_reader=2))
        parked = await held_run(store, "parked")
        await store.release("parked", parked.epoch, None)
        bound = await held_run(store, "bound")
        await store.append("bound", bound.epoch, Batch(after=0, host="laptop", release=True, wake_at=NOW))
        assert await store.claim(TOWER, NOW, lease_until=NOW + 60, reader=1, which=ANY) is None
        here = await store.claim(LAPTOP, NOW, lease_until=NOW + 60, reader=1, which=ANY)
        assert here is not None
        assert here.id == "bound"
        newer = await store.claim(TOWER, NOW, lease_until=NOW + 60, reader=2, which=ANY)
        assert newer is not None
        assert newer.id == "newer"
        future = await store.claim(TOWER, NOW + 1, lease_until=NOW + 60, reader=1, which=ANY)
        assert future is not None
        assert future.id == "future"

    @on_store
    async def test_an_empty_host_unbinds_a_run(self, store: Store) -> None:
        """Once nothing local is held, any host may go on."""
        row = await held_run(store)
        await store.append("r1", row.epoch, Batch(after=0, host="laptop"))
        await store.append("r1", row.epoch, Batch(after=0, definition="d2"))
        assert (await sure(store)).host == "laptop"
        await store.append("r1", row.epoch, Batch(after=0, host="", release=True, wake_at=NOW))
        assert (await sure(store)).host is None
        assert await store.claim(TOWER, NOW, lease_until=NOW + 60, reader=1, which=ANY) is not None

    @on_store
    async def test_a_live_lease_is_never_taken_and_an_expired_one_is(self, store: Store) -> None:
        """A holder may rely on its lease to the end."""
        await held_run(store)
        assert await store.claim(TOWER, NOW + 59.9, lease_until=NOW + 99, reader=1, which=ANY) is None
        taken = await store.claim(TOWER, NOW + 60, lease_until=NOW + 120, reader=1, which=ANY)
        assert taken is not None
        assert (taken.epoch, taken.owner) == (2, TOWER)

    @on_store
    async def test_a_dead_owner_is_replaced_at_once_at_that_very_epoch(self, store: Store) -> None:
        """Proof of death is about one epoch: a run that was taken over since has a live owner."""
        row = await held_run(store)
        for stale in ((("r1", row.epoch - 1),), (("other", row.epoch),)):
            assert await store.claim(TOWER, NOW, lease_until=NOW + 60, reader=1, which=ClaimFilter(dead=stale)) is None
        dead = ClaimFilter(dead=(("other", 9), ("r1", row.epoch)))
        taken = await store.claim(TOWER, NOW, lease_until=NOW + 60, reader=1, which=dead)
        assert taken is not None
        assert taken.epoch == row.epoch + 1
        assert await store.claim(LAPTOP, NOW, lease_until=NOW + 60, reader=1, which=dead) is None

    @on_store
    async def test_a_filter_takes_one_run_or_one_tree(self, store: Store) -> None:
        """A foreground run is a worker for its own tree only."""
        for run_id, root in (("a", "a"), ("b", "b"), ("b2", "b")):
            await store.create(new_run(run_id, root_id=root))
        one = await store.claim(LAPTOP, NOW, lease_until=NOW + 60, reader=1, which=ClaimFilter(run_id="b2"))
        tree = await store.claim(LAPTOP, NOW, lease_until=NOW + 60, reader=1, which=ClaimFilter(root_id="b"))
        assert (one and one.id, tree and tree.id) == ("b2", "b")
        assert await store.claim(LAPTOP, NOW, lease_until=NOW + 60, reader=1, which=ClaimFilter(root_id="b")) is None

    @on_store
    async def test_held_lists_due_runs_whose_lease_still_runs(self, store: Store) -> None:
        """Among these the caller looks for owners that died."""
        await held_run(store, "mine")
        await held_run(store, "tree", root_id="mine")
        await store.create(new_run("free"))
        assert [row.id for row in await store.held(NOW, ANY)] == ["mine", "tree"]
        assert [row.id for row in await store.held(NOW, ClaimFilter(run_id="tree"))] == ["tree"]
        assert [row.id for row in await store.held(NOW, ClaimFilter(root_id="mine"))] == ["mine", "tree"]
        assert await store.held(NOW + 60, ANY) == []

    @on_store
    async def test_only_the_present_holder_renews_and_releases(self, store: Store) -> None:
        """A holder that was replaced learns it here and changes nothing."""
        row = await held_run(store)
        assert await renewed(store, {"r1": row.epoch}, NOW + 90) == set()
        assert (await sure(store)).lease_until == NOW + 90
        taken = await store.claim(TOWER, NOW + 90, lease_until=NOW + 150, reader=1, which=ANY)
        assert taken is not None
        assert await renewed(store, {"r1": row.epoch}, NOW + 999) == {"r1"}
        assert await store.release("r1", row.epoch, None) is False
        assert await sure(store) == taken
        assert await store.release("r1", taken.epoch, NOW + 7) is True
        free = await sure(store)
        assert (free.owner, free.wake_at, free.epoch) == (None, NOW + 7, taken.epoch)
        assert await renewed(store, {"r1": taken.epoch}, NOW + 999) == {"r1"}

    @on_store
    async def test_an_expired_lease_is_renewed_while_nobody_has_taken_the_run(self, store: Store) -> None:
        """A process that was late has lost nothing: the epoch is what counts, not the time."""
        one, two = await held_run(store, "one"), await held_run(store, "two")
        taken = await store.claim(TOWER, NOW + 60, lease_until=NOW + 120, reader=1, which=ClaimFilter(run_id="two"))
        assert taken is not None
        lost = await renewed(store, {"one": one.epoch, "two": two.epoch}, NOW + 150)
        assert lost == {"two"}
        assert (await sure(store, "one")).lease_until == NOW + 150
        assert await sure(store, "two") == taken

    @on_two_handles
    async def test_a_claim_leaves_out_what_its_process_holds(self, first: Store, second: Store) -> None:
        """Its lease may have ended while the process was late; a second claim of its own would fence it."""
        late = await held_run(first, "late")
        mine = ClaimFilter(without=("late",), dead=(("late", late.epoch),))
        for store in (first, second):
            assert await store.claim(LAPTOP, NOW + 60, lease_until=NOW + 120, reader=1, which=mine) is None
        await first.create(new_run("other"))
        other = await first.claim(LAPTOP, NOW + 60, lease_until=NOW + 120, reader=1, which=mine)
        assert other is not None
        assert (other.id, await sure(first, "late")) == ("other", late)

    @on_store
    async def test_a_message_that_came_while_held_is_not_slept_over(self, store: Store) -> None:
        """Letting go after a message has to end like a message after letting go, else it is never read."""
        for run_id in ("released", "appended", "ended"):
            row = await held_run(store, run_id)
            await store.send(message(run_id, at=NOW + 1))
            if run_id == "released":
                await store.release(run_id, row.epoch, None)
            else:
                status: Status | None = "done" if run_id == "ended" else None
                await store.append(run_id, row.epoch, Batch(after=0, status=status, wake_at=NOW + 99, release=True))
            after = await sure(store, run_id)
            assert (after.status, after.wake_at, after.owner) == ("ready", NOW + 1, None)

    @on_store
    async def test_a_consumed_message_does_not_wake_again(self, store: Store) -> None:
        """Else a run that has read everything would be claimed for nothing, for ever."""
        row = await held_run(store)
        await store.send(message())
        ids = tuple(one.id for one in await store.inbox("r1"))
        await store.append("r1", row.epoch, Batch(after=0, consumed=ids, wake_at=NOW + 99, release=True))
        assert (await sure(store)).wake_at == NOW + 99

    @on_store
    async def test_next_wake_is_the_earliest_of_the_runs_nobody_holds(self, store: Store) -> None:
        """How long a worker with nothing to do may sleep."""
        assert await store.next_wake() is None
        await held_run(store, "held")
        await ended_run(store, "ended")
        assert await store.next_wake() is None
        await store.create(new_run("later", created_at=NOW + 9))
        await store.create(new_run("sooner", created_at=NOW + 3, priority=5))
        assert await store.next_wake() == NOW + 3

    @on_two_handles
    async def test_a_call_is_never_claimed(self, first: Store, second: Store) -> None:
        """Its caller carries it out or nobody: an answer that comes after its caller left must not be delivered."""
        await first.create(new_run("call", kind="call"))
        dead = ClaimFilter(dead=(("call", 0),))
        for which in (ANY, ClaimFilter(run_id="call"), ClaimFilter(root_id="call"), dead):
            assert await second.claim(TOWER, NOW + 9, lease_until=NOW + 60, reader=9, which=which) is None
        assert await second.next_wake() is None
        await first.create(new_run("run"))
        await second.send(message("call"))
        taken = await asyncio.gather(
            *(store.claim(TOWER, NOW, lease_until=NOW + 60, reader=9, which=ANY) for store in (first, second))
        )
        assert [row.id for row in taken if row] == ["run"]
        assert await first.next_wake() is None
        assert [row.id for row in await first.held(NOW, ANY)] == ["run"]

    @on_two_handles
    async def test_what_a_dead_owner_held_is_seized_by_one(self, first: Store, second: Store) -> None:
        """A call whose process died is ended by whoever finds it, once; its money is settled once."""
        for kind in ("call", "run"):
            dead = await first.create(new_run(kind, kind=kind), RunClaim(LAPTOP, NOW + 60))
            finders = [(first, replace(LAPTOP, pid=101)), (second, TOWER)] * 3
            taken = await asyncio.gather(
                *(store.seize(kind, dead.epoch, RunClaim(owner, NOW + 90)) for store, owner in finders)
            )
            (row,) = [one for one in taken if one]
            assert (row.id, row.kind, row.epoch, row.lease_until) == (kind, kind, dead.epoch + 1, NOW + 90)
            assert row == await sure(second, kind)
            with pytest.raises(LeaseLost):
                await first.append(kind, dead.epoch, Batch(after=0))
            await second.append(kind, row.epoch, Batch(after=0, status="failed", release=True))

    @on_store
    async def test_only_what_the_dead_owner_still_held_is_seized(self, store: Store) -> None:
        """Proof of death is about one epoch: what was let go of, taken over or ended since is another's matter."""
        mine = RunClaim(TOWER, NOW + 90)
        assert await store.seize("nobody", 1, mine) is None
        held = await held_run(store, "held")
        assert await store.seize("held", held.epoch - 1, mine) is None
        assert await store.seize("held", held.epoch + 1, mine) is None
        free = await held_run(store, "free")
        await store.release("free", free.epoch, NOW)
        assert await store.seize("free", free.epoch, mine) is None
        over = await ended_run(store, "over")
        assert await store.seize("over", over.epoch, mine) is None
        later = await store.create(new_run("not due", created_at=NOW + 999), RunClaim(LAPTOP, NOW + 60))
        assert await store.seize("not due", later.epoch, mine) is not None
        assert (await sure(store, "held")).owner == LAPTOP

    @on_two_handles
    async def test_a_run_goes_to_one_of_many_claimers(self, first: Store, second: Store) -> None:
        """Two holders of one run would both act."""
        for number in range(5):
            await first.create(new_run(f"r{number}"))
        tries = [(first, LAPTOP), (second, TOWER)] * 6
        rows = await asyncio.gather(
            *(store.claim(owner, NOW, lease_until=NOW + 60, reader=1, which=ANY) for store, owner in tries)
        )
        assert sorted(row.id for row in rows if row) == ["r0", "r1", "r2", "r3", "r4"]
