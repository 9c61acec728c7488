"""The money of a turn over any order of requests, answers and cuts: never beyond the limit, never lost."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bailiwick.agents.broker.purse import BudgetHeld, Hold, Purse

LIMIT = 100.0
ROUNDING = 1e-6
AMOUNT = st.floats(0.0, 120.0)
SHARE = st.floats(0.0, 1.0)


class Turn(RuleBasedStateMachine):
    """Requests come, wait, are admitted, answered, cut or given up, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.purse = Purse(LIMIT)
        self.waiting: list[asyncio.Task[Hold | None]] = []
        self.running: list[Hold] = []
        self.paid = 0.0

    def _turn_over(self) -> None:
        """Let everything happen that can."""
        for _ in range(5):
            self.loop.run_until_complete(asyncio.sleep(0))
        for task in [task for task in self.waiting if task.done()]:
            self.waiting.remove(task)
            hold = task.result()
            if hold is not None:
                self.running.append(hold)

    @rule(full=AMOUNT, share=SHARE)
    def ask(self, full: float, share: float) -> None:
        """A request comes."""
        self.waiting.append(self.loop.create_task(self.purse.take(full, full * share, 1000.0)))
        self._turn_over()

    @precondition(lambda self: self.running)
    @rule(share=SHARE, which=st.integers(0, 99))
    def answer(self, share: float, which: int) -> None:
        """An answer ends, or is cut: it cost a part of what was set aside."""
        hold = self.running.pop(which % len(self.running))
        self.paid += hold.amount * share
        self.purse.settle(hold, hold.amount * share)
        self._turn_over()

    @precondition(lambda self: self.waiting)
    @rule(which=st.integers(0, 99))
    def leave(self, which: int) -> None:
        """A client leaves while it waits."""
        task = self.waiting.pop(which % len(self.waiting))
        task.cancel()
        self._turn_over()
        assert task.cancelled()

    @invariant()
    def never_beyond_the_limit(self) -> None:
        """What is spent and what may still be spent fit together."""
        assert self.purse.spent + self.purse.reserved <= LIMIT + ROUNDING

    @invariant()
    def nothing_is_free_and_nothing_is_lost(self) -> None:
        """Each dollar is either spent, set aside for a request that runs, or left."""
        assert self.purse.spent == pytest.approx(self.paid)
        assert self.purse.reserved == pytest.approx(sum(hold.amount for hold in self.running))

    @invariant()
    def nobody_waits_for_nobody(self) -> None:
        """A request waits only while another runs."""
        assert not self.waiting or self.running

    def teardown(self) -> None:
        """Everybody leaves: nothing stays set aside."""
        for hold in self.running:
            self.purse.settle(hold, 0.0)
        self.running.clear()
        self._turn_over()
        while self.waiting or self.running:
            for hold in self.running:
                self.purse.settle(hold, 0.0)
            self.running.clear()
            self._turn_over()
        assert self.purse.reserved == 0.0
        self.loop.close()


TestTurn = Turn.TestCase
TestTurn.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_requests_are_admitted_in_the_order_in_which_they_came() -> None:
    """A large one is not passed by small ones for ever."""

    async def history() -> list[str]:
        purse, order = Purse(10.0), list[str]()
        first = await purse.take(8.0, 8.0, 1.0)
        assert first is not None

        async def ask(name: str, amount: float) -> None:
            hold = await purse.take(amount, amount, 60.0)
            order.append(name)
            if hold is not None:
                purse.settle(hold, 0.0)

        tasks = [asyncio.ensure_future(ask(name, amount)) for name, amount in (("large", 9.0), ("small", 1.0))]
        await asyncio.sleep(0)
        purse.settle(first, 0.0)
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(history()) == ["large", "small"]


def test_who_waited_long_enough_gets_what_is_left_or_is_told() -> None:
    """The wait for others has an end."""

    async def history() -> None:
        purse = Purse(10.0)
        held = await purse.take(8.0, 8.0, 1.0)
        assert held is not None
        with pytest.raises(BudgetHeld):
            await purse.take(5.0, 3.0, 0.0)
        part = await purse.take(5.0, 1.0, 0.0)
        assert part is not None
        assert part.amount == 2.0
        assert (purse.left, purse.reserved) == (0.0, 10.0)

    asyncio.run(history())


def test_without_a_limit_everything_is_admitted() -> None:
    """A turn that may cost what it likes is only counted."""

    async def history() -> None:
        purse = Purse(None)
        hold = await purse.take(1e9, 1e9, 1.0)
        assert hold is not None
        purse.settle(hold, 5.0)
        assert (purse.spent, purse.reserved, purse.is_empty) == (5.0, 0.0, False)

    asyncio.run(history())
