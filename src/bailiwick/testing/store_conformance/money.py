# ruff: noqa: S101 - a conformance suite asserts
"""Promises about the ledger: no limit is passed, no spending is forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bailiwick.errors import BudgetExceeded
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Batch, Reservation, Settlement, Spender, SpendRow
from bailiwick.testing.store_conformance.calls import call
from bailiwick.testing.store_conformance.stage import StoreFixture, event, held_run, on_store, on_two_handles


def _reserve(key: str, amount: float, limit: float | None = 10.0, unit: str = "usd") -> Batch:
    return Batch(after=0, reserve=(Reservation("run:r1", key=key, unit=unit, amount=amount, limit=limit),))


def _settle(key: str, amount: float, *, known: bool = True) -> Batch:
    return Batch(after=0, settle=(Settlement("run:r1", key=key, unit="usd", amount=amount, known=known),))


class MoneyPromises(StoreFixture):
    """What is promised about reservations and settlements."""

    @on_store
    async def test_a_reservation_up_to_the_limit_fits_and_one_above_does_not(self, store: Store) -> None:
        """The limit itself may be spent; nothing may be promised beyond it."""
        await held_run(store)
        await store.append("r1", 1, _reserve("a", 6))
        await store.append("r1", 1, _reserve("b", 4))
        with pytest.raises(BudgetExceeded, match="run:r1"):
            await store.append("r1", 1, _reserve("c", 0.01))
        assert [(row.key, row.reserved, row.settled) for row in await store.spend("run:r1")] == [
            ("a", 6, None),
            ("b", 4, None),
        ]

    @on_store
    async def test_decimal_fractions_fill_a_limit_exactly(self, store: Store) -> None:
        """Ten cents and twenty are thirty, whatever binary fractions make of it."""
        await held_run(store)
        await store.append("r1", 1, _reserve("a", 0.1, 0.3))
        await store.append("r1", 1, _reserve("b", 0.2, 0.3))
        with pytest.raises(BudgetExceeded):
            await store.append("r1", 1, _reserve("more", 0.0001, 0.3))

    @on_store
    async def test_what_was_not_spent_is_free_again(self, store: Store) -> None:
        """A settlement below its reservation gives the difference back, above it takes more."""
        await held_run(store)
        await store.append("r1", 1, _reserve("a", 10))
        await store.append("r1", 1, _settle("a", 2))
        await store.append("r1", 1, _reserve("b", 8))
        await store.append("r1", 1, _settle("b", 9))
        with pytest.raises(BudgetExceeded):
            await store.append("r1", 1, _reserve("c", 0.5))
        spent = [(row.key, row.reserved, row.settled, row.known) for row in await store.spend("run:r1")]
        assert spent == [("a", 0, 2, True), ("b", 0, 9, True)]

    @on_store
    async def test_a_batch_settles_before_it_reserves(self, store: Store) -> None:
        """The end of one effect and the start of the next are one batch; the first pays for the second."""
        await held_run(store)
        await store.append("r1", 1, _reserve("a", 10))
        both = Batch(
            after=0,
            events=(event(),),
            settle=(Settlement("run:r1", "a", "usd", 1),),
            reserve=(Reservation("run:r1", key="b", unit="usd", amount=9, limit=10),),
        )
        assert await store.append("r1", 1, both) == 1

    @on_store
    async def test_a_further_attempt_under_the_same_key_adds_to_it(self, store: Store) -> None:
        """An effect keeps its key over attempts; what the first one cost is still gone, and unknown stays unknown."""
        await held_run(store)
        await store.append("r1", 1, _reserve("a", 4))
        await store.append("r1", 1, _settle("a", 4, known=False))
        await store.append("r1", 1, _reserve("a", 4))
        with pytest.raises(BudgetExceeded):
            await store.append("r1", 1, _reserve("b", 3))
        await store.append("r1", 1, _settle("a", 1))
        assert await store.spend("run:r1") == [
            SpendRow("run:r1", key="a", unit="usd", reserved=0, settled=5, known=False)
        ]

    @on_store
    async def test_spending_that_was_never_reserved_counts(self, store: Store) -> None:
        """A bill that nobody announced is still a bill."""
        await held_run(store)
        await store.append("r1", 1, _settle("surprise", 9))
        with pytest.raises(BudgetExceeded):
            await store.append("r1", 1, _reserve("a", 2))

    @on_store
    async def test_scopes_and_units_do_not_mix(self, store: Store) -> None:
        """Tokens are no dollars, and a credential's limit is not the run's."""
        await held_run(store)
        await store.append("r1", 1, _reserve("a", 10))
        await store.append("r1", 1, _reserve("a", 10, unit="tokens"))
        other = Batch(after=0, reserve=(Reservation("credential:x", key="a", unit="usd", amount=10, limit=10),))
        await store.append("r1", 1, other)
        await store.append("r1", 1, _reserve("no limit", 1e6, None))
        assert len(await store.spend("run:r1")) == 3
        assert await store.spend("credential:y") == []

    @on_two_handles
    async def test_who_spent_goes_by_the_name_that_people_know(self, first: Store, second: Store) -> None:
        """A called run by what was started, a call by its skill; what was removed has no name any more."""
        tree: dict[str, dict[str, Any]] = {
            "top": {"workflow": "night"},
            "part": {"workflow": "step", "root_id": "top", "parent": "top"},
            "orphan": {"workflow": "lone", "root_id": "gone"},
            "removed": {},
        }
        for name, facts in tree.items():
            row = await held_run(first, name, **facts)
            booked = tuple(Settlement("day:1", name, unit, 1) for unit in ("usd", "tokens"))
            await first.append(name, row.epoch, Batch(after=0, settle=booked, status="done", release=True))
        await second.begin_call(call(), [Reservation("day:1", key="", unit="usd", amount=1)])
        await second.delete("removed")
        assert await first.spenders("day:1") == [
            Spender("c-1", skill="review"),
            Spender("orphan", workflow="lone"),
            Spender("part", workflow="night"),
            Spender("top", workflow="night"),
        ]
        assert await first.spenders("day:2") == []

    @on_two_handles
    async def test_a_limit_holds_against_everybody_at_once(self, first: Store, second: Store) -> None:
        """A hundred branches asking in the same moment must not pass what one of them could not."""
        for number in range(20):
            await held_run(first, f"r{number}")
        asks = [
            store.append(
                f"r{number}",
                1,
                Batch(after=0, reserve=(Reservation("day:1", key=f"k{number}", unit="usd", amount=3, limit=10),)),
            )
            for number, store in enumerate([first, second] * 10)
        ]
        answers = await asyncio.gather(*asks, return_exceptions=True)
        assert sum(isinstance(one, BudgetExceeded) for one in answers) == 17
        assert [row.reserved for row in await second.spend("day:1")] == [3, 3, 3]
