"""The ledger: what is set aside and what was spent, by scope. Checked and written in the transaction of the events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bailiwick.errors import BudgetExceeded
from bailiwick.journal.rows import Reservation, Settlement
from bailiwick.journal.transaction import Transaction

GRAIN = 1e-9
"""Sums of decimal fractions are off by less than this; a limit is not missed by it."""


def settle(tx: Transaction, run_id: str, settlements: Iterable[Settlement]) -> None:
    """Close what is reserved under each key and add what it came to; earlier settlements of the key stay spent."""
    for one in settlements:
        key = {"scope": one.scope, "unit": one.unit, "key": one.key}
        row = tx.one("spend.open", key)
        reserved = row[0] if row else 0.0
        tx.do("spend.settle", {**key, "amount": one.amount, "known": int(one.known), "run_id": run_id})
        tx.do("spend.add", {"scope": one.scope, "unit": one.unit, "amount": one.amount - reserved})


def reserve(tx: Transaction, run_id: str, reservations: Iterable[Reservation]) -> None:
    """Set amounts aside; `BudgetExceeded` for the first that does not fit what its scope has left.

    Scopes are taken in one order by everybody, so that two writers never wait for each other.
    """
    for one in sorted(reservations, key=lambda one: (one.scope, one.unit)):
        most = None if one.limit is None else one.limit + GRAIN
        total = {"scope": one.scope, "unit": one.unit, "amount": one.amount, "most": most}
        if tx.one("spend.take", total) is None and one.limit is not None:
            row = tx.one("spend.total", (one.scope, one.unit))
            taken = row[0] if row else 0.0
            raise BudgetExceeded(
                f"{one.scope}: {one.amount:g} {one.unit} do not fit: {taken:g} of {one.limit:g} are spent or reserved",
                hint="raise the limit, or wait for what is reserved to be settled",
                unit=one.unit,
                scope=one.scope,
                limit=one.limit,
            )
        key = {"scope": one.scope, "unit": one.unit, "key": one.key}
        tx.do("spend.reserve", {**key, "amount": one.amount, "run_id": run_id})


def forget(tx: Transaction, run_ids: Sequence[str]) -> None:
    """Remove the scopes that name one of these runs; what they spent of a day or a credential stays spent."""
    gone = set(run_ids)
    for (scope,) in tx.all_of("spend.scopes_of", run_ids):
        if gone.intersection(re.split(r"[:/]", scope)):
            tx.do("spend.drop", (scope,))
            tx.do("spend.drop_total", (scope,))
