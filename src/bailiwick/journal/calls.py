"""Routed calls: on record and paid for in advance before a model is asked, settled in one transaction at their end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bailiwick.errors import NotFound
from bailiwick.journal import ledger
from bailiwick.journal.columns import decode, encode, encode_owner
from bailiwick.journal.rows import AttemptRow, CallRow, Owner, Reservation, Settlement
from bailiwick.journal.transaction import Transaction

KEPT = 64 * 1024
"""Characters of a test runner's output that are kept of an attempt: its end, which says what failed."""


def begin(tx: Transaction, row: CallRow, reserve: Sequence[Reservation]) -> None:
    """Put a call on record as it is and set aside what it may cost; a call that is there already stays as it is."""
    if tx.one("call.insert", _columns(row)) is not None:
        ledger.reserve(tx, row.id, (replace(one, key=row.id) for one in reserve))


def end(tx: Transaction, row: CallRow, attempts: Sequence[AttemptRow], spent: Mapping[str, float | None]) -> None:
    """Write what a call came to and settle it; the end that was written first stands."""
    standing = tx.one("call.standing", (row.id,))
    if standing is None:
        raise NotFound(f"there is no call {row.id}", hint="bailiwick stats models")
    if standing[0] != "open":
        return
    names = ("id", "finished_at", "status", "model_used", "file_path", "message", "why", "duration_ms")
    tx.do("call.finish", {name: getattr(row, name) for name in names})
    index(tx, attempts)
    ledger.settle(tx, row.id, _settlements(tx, row.id, spent))


def index(tx: Transaction, attempts: Sequence[AttemptRow]) -> None:
    """Note that models were asked; in the transaction that writes what came of it."""
    if attempts:
        tx.do_each("attempt.insert", (_attempt_columns(one) for one in attempts))


def report(tx: Transaction, name: str, failures: int, until: float) -> None:
    """Note how often in a row an endpoint has failed and until when it is left alone; no failure forgets it."""
    if failures:
        tx.do("cooldown.keep", (name, failures, until))
    else:
        tx.do("cooldown.clear", (name,))


def _settlements(tx: Transaction, call: str, spent: Mapping[str, float | None]) -> list[Settlement]:
    """What is open under a call, in the scopes where it was set aside; what nobody knows is as much as that was."""
    held: dict[str, dict[str, float]] = {}
    for scope, unit, reserved in tx.all("spend.of_call", {"call": call}):
        held.setdefault(scope, {})[unit] = reserved
    out = []
    for scope, reserved in held.items():
        for unit in dict.fromkeys((*reserved, *spent)):
            amount = spent.get(unit)
            charged = reserved.get(unit, 0.0) if amount is None else amount
            out.append(Settlement(scope, call, unit, charged, known=amount is not None))
    return out


def _columns(row: CallRow) -> tuple[Any, ...]:
    owner = None if row.owner is None else encode_owner(row.owner)
    return (
        row.id,
        row.session_id,
        row.skill,
        row.phase,
        row.project,
        row.model,
        row.by,
        row.origin,
        row.run,
        row.node,
        row.started_at,
        row.finished_at,
        row.status,
        row.model_used,
        row.file_path,
        row.message,
        row.why,
        row.duration_ms,
        row.size,
        row.reserved_usd,
        row.until,
        encode(row.chain),
        owner,
    )


def _attempt_columns(row: AttemptRow) -> tuple[Any, ...]:
    verified = None if row.verified is None else int(row.verified)
    return (
        row.call or None,
        row.run or None,
        row.attempt,
        row.at,
        row.skill,
        row.model,
        row.tier,
        row.verdict,
        verified,
        int(row.warm_start),
        row.duration_ms,
        row.input_tokens,
        row.output_tokens,
        row.cost,
        row.size,
        _text(row.feedback),
        _text(row.output_summary),
        _text(row.runner_output[-KEPT:]),
    )


def _text(text: str) -> str:
    """A text that a column can hold: what a model or a program says may have half a character in it."""
    return text.encode("utf-8", "replace").decode("utf-8")


def call_row(columns: Sequence[Any]) -> CallRow:
    """A call from the columns of `call.columns`."""
    owner = decode(columns[22])
    return CallRow(*(*columns[:21], tuple(decode(columns[21])), Owner(*owner) if owner else None))


def attempt_row(columns: Sequence[Any]) -> AttemptRow:
    """An attempt from the columns of `attempt.listed`."""
    verified = None if columns[7] is None else bool(columns[7])
    return AttemptRow(*(*columns[:7], verified, bool(columns[8]), *columns[9:]))
