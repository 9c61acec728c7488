# ruff: noqa: S101 - a conformance suite asserts
"""Promises about two writers at once: what one of them is told is true for both."""

from __future__ import annotations

import asyncio

from bailiwick.errors import BudgetExceeded
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Batch, Owner, Reservation
from bailiwick.testing.store_conformance.stage import (
    ANY,
    LAPTOP,
    NOW,
    TOWER,
    StoreFixture,
    ended_run,
    held_run,
    new_run,
    on_store,
    on_two_handles,
)


class WriterPromises(StoreFixture):
    """What is promised where several processes write."""

    @on_two_handles
    async def test_two_writers_that_create_one_name_get_one_run(self, first: Store, second: Store) -> None:
        """Two commands at once: each is told of the same run, and there is no second one."""
        for number in range(8):
            pair = (new_run(f"a{number}", run_key=f"k{number}"), new_run(f"b{number}", run_key=f"k{number}"))
            made = await asyncio.gather(first.create(pair[0]), second.create(pair[1]))
            assert made[0].id == made[1].id
        assert len(await first.runs()) == 8

    @on_store
    async def test_a_name_is_free_again_when_its_run_is_set_aside_or_gone(self, store: Store) -> None:
        """`--fresh` sets it aside, `prune` removes it."""
        await ended_run(store, "a", run_key="k")
        await store.archive("a")
        assert (await store.create(new_run("b", run_key="k"))).id == "b"
        assert (await store.create(new_run("c", run_key="k"))).id == "b"
        await ended_run(store, "d", run_key="other")
        await store.delete("d")
        assert (await store.create(new_run("e", run_key="other"))).id == "e"
        assert (await store.create(new_run("a", run_key="third"))).archived
        assert (await store.create(new_run("f", run_key="third"))).id == "f"

    @on_two_handles
    async def test_two_writers_never_pass_a_limit_together(self, first: Store, second: Store) -> None:
        """Each alone would fit: the limit counts for both."""
        rows = [await held_run(first, f"r{number}") for number in range(16)]

        async def reserve(store: Store, run_id: str, epoch: int) -> bool:
            shared = [Reservation(scope, key=run_id, unit="usd", amount=1, limit=10) for scope in ("day", "all")]
            try:
                await store.append(run_id, epoch, Batch(after=0, reserve=tuple(shared)))
            except BudgetExceeded:
                return False
            return True

        stores = (first, second)
        taken = await asyncio.gather(*(reserve(stores[at % 2], row.id, row.epoch) for at, row in enumerate(rows)))
        assert sum(taken) == 10
        for scope in ("day", "all"):
            assert sum(row.reserved for row in await second.spend(scope)) == 10

    @on_two_handles
    async def test_one_of_many_probes_a_credential_whose_window_is_over(self, first: Store, second: Store) -> None:
        """The others wait for what it reports."""
        await first.bucket_report("key", NOW)
        asked = [store.bucket_take("key", NOW + 1, 30) for store in (first, second) * 5]
        waits = await asyncio.gather(*asked)
        assert sorted(waits) == [0.0] + [30.0] * 9
        await second.bucket_report("key", None)
        assert await first.bucket_take("key", NOW + 1, 30) == 0.0

    @on_two_handles
    async def test_two_workers_share_out_the_runs_and_take_none_twice(self, first: Store, second: Store) -> None:
        """Each run has one holder, and none is left."""
        for number in range(20):
            await first.create(new_run(f"r{number}"))

        async def take(store: Store, owner: Owner) -> list[str]:
            found = []
            while row := await store.claim(owner, NOW, lease_until=NOW + 60, reader=1, which=ANY):
                found.append(row.id)
            return found

        mine, theirs = await asyncio.gather(take(first, LAPTOP), take(second, TOWER))
        assert sorted(mine + theirs) == sorted(f"r{number}" for number in range(20))

    @on_two_handles
    async def test_an_endpoint_has_so_many_slots_over_all_who_share_the_store(
        self, first: Store, second: Store
    ) -> None:
        """Who waits gets the slot that becomes free; who gives up waiting leaves no trace."""
        order: list[str] = []

        async def ask(store: Store, name: str, most: int = 2) -> None:
            async with store.slot("http://h:1", most):
                order.append(name)
                if len(order) == most:
                    full.set()
                await gate.wait()

        gate, full = asyncio.Event(), asyncio.Event()
        held = [asyncio.ensure_future(ask(store, name)) for store, name in ((first, "a"), (second, "b"))]
        await full.wait()
        late, gone = (asyncio.ensure_future(ask(store, name)) for store, name in ((second, "late"), (first, "gone")))
        async with first.slot("http://other:1", 1):
            assert order == ["a", "b"]
        gone.cancel()
        gate.set()
        await asyncio.gather(*held, late)
        assert order == ["a", "b", "late"]
