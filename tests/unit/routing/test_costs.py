"""What days, workflows and models cost: every line of the ledger once, under the name that people know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bailiwick.clock import day
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Batch, Reservation, Settlement
from bailiwick.routing.costs import REMOVED, Costs, costs_since, days_between
from bailiwick.testing.store_conformance.stage import held_run
from tests.unit.routing.records import NOW, agent_log, attempt, call, ended, walked, with_store

TODAY = f"day:{day(NOW)}"


def usd(amount: float, key: str = "") -> Reservation:
    return Reservation(TODAY, key, "usd", amount)


async def booked(store: Store, run: str, amount: float, *, known: bool = True) -> None:
    """A run that spent something today."""
    row = await held_run(store, run, workflow="night")
    settle = (Settlement(TODAY, f"k-{run}", "usd", amount, known), Settlement(TODAY, f"k-{run}", "tokens", 99))
    await store.append(run, row.epoch, Batch(after=0, settle=settle))


def test_every_line_of_the_ledger_is_counted_under_its_day_and_its_workflow(tmp_path: Path) -> None:
    """Known, unknown and still open are three things; tokens are no dollars."""

    async def look(store: Store) -> Costs:
        await booked(store, "r1", 1.5)
        await booked(store, "r2", 2.0, known=False)
        await store.begin_call(call("c-1"), [usd(1.0)])
        await store.end_call(ended(call("c-1")), [attempt(cost=0.25)], {"usd": 0.25})
        await store.begin_call(call("c-2"), [usd(3.0)])
        return await costs_since(store, NOW - 60, NOW)

    found = with_store(tmp_path, look)
    (today,) = found.days
    assert (today.name, today.usd, today.unknown_usd, today.open_usd, today.lines) == (day(NOW), 1.75, 2.0, 3.0, 4)
    assert [(one.name, one.usd, one.unknown_usd, one.open_usd) for one in found.workflows] == [
        ("night", 1.5, 2.0, 0.0),
        ("skill review", 0.25, 0.0, 3.0),
    ]
    assert [(one.model, one.calls, one.use.cost) for one in found.models] == [("small", 1, 0.25)]
    assert json.loads(json.dumps(found.to_json())) == found.to_json()


def test_what_a_removed_run_spent_of_a_day_stays_spent(tmp_path: Path) -> None:
    """Removing it frees the disk, not the money."""

    async def look(store: Store) -> Costs:
        await booked(store, "r1", 1.5)
        row = await store.run("r1")
        assert row is not None
        await store.append("r1", row.epoch, Batch(after=row.seq, status="done", release=True))
        await store.delete("r1")
        return await costs_since(store, NOW - 60, NOW)

    found = with_store(tmp_path, look)
    assert [(one.name, one.usd) for one in found.workflows] == [(REMOVED, 1.5)]


def test_older_days_and_older_answers_are_left_out(tmp_path: Path) -> None:
    """`--since 7d` asks for a week."""

    async def look(store: Store) -> Costs:
        await booked(store, "r1", 1.5)
        await walked(store, "r2", [agent_log()])
        return await costs_since(store, NOW + 3 * 86_400, NOW + 4 * 86_400)

    found = with_store(tmp_path, look)
    assert not found
    assert found.to_json() == {"days": [], "workflows": [], "models": []}


@pytest.mark.parametrize(("span", "count"), [(0.0, 1), (86_400.0, 2), (7 * 86_400.0, 8)])
def test_days_are_local_dates_with_both_ends(span: float, count: int) -> None:
    """The ledger's days are those of the person's calendar."""
    found = days_between(NOW - span, NOW)
    assert (len(found), found[0], found[-1]) == (count, day(NOW - span), day(NOW))
    assert found == sorted(found)
