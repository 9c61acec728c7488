"""The ledger: what is set aside and what was spent, by scope. Checked and written in the transaction of the events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bailiwick.errors import BudgetExceeded
from bailiwick.journal.columns import encode
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
        _add(tx, one.scope, one.unit, one.amount - reserved)


def reserve(tx: Transaction, run_id: str, reservations: Iterable[Reservation]) -> None:
    """Set amounts aside; `BudgetExceeded` for the first that does not fit what its scope has left."""
    for one in reservations:
        row = tx.one("spend.total", (one.scope, one.unit))
        taken = row[0] if row else 0.0
        if one.limit is not None and taken + one.amount > one.limit + GRAIN:
            raise BudgetExceeded(
                f"{one.scope}: {one.amount:g} {one.unit} do not fit: {taken:g} of {one.limit:g} are spent or reserved",
                hint="raise the limit, or wait for what is reserved to be settled",
                unit=one.unit,
                scope=one.scope,
                limit=one.limit,
            )
        key = {"scope": one.scope, "unit": one.unit, "key": one.key}
        tx.do("spend.reserve", {**key, "amount": one.amount, "run_id": run_id})
        _add(tx, one.scope, one.unit, one.amount)


def forget(tx: Transaction, run_ids: Sequence[str]) -> None:
    """Remove the scopes that name one of these runs; what they spent of a day or a credential stays spent."""
    gone = set(run_ids)
    for (scope,) in tx.all("spend.scopes_of", {"tree": encode(list(run_ids))}):
        if gone.intersection(re.split(r"[:/]", scope)):
            tx.do("spend.drop", (scope,))
            tx.do("spend.drop_total", (scope,))


def _add(tx: Transaction, scope: str, unit: str, amount: float) -> None:
    tx.do("spend.add", {"scope": scope, "unit": unit, "amount": amount})
