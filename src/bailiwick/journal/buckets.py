"""Credentials that are held back after a limit: one probe per window, whoever asks, in whichever process."""

from __future__ import annotations

from bailiwick.journal.transaction import Transaction


def take(tx: Transaction, name: str, now: float, patience: float) -> float:
    """0 to go ahead, else the seconds to wait. After a window the first that asks probes for `patience` seconds."""
    row = tx.one("bucket.read", (name,))
    if row is None:
        return 0.0
    blocked, probed = row
    if blocked > now:
        return float(blocked - now)
    if probed > now:
        return float(probed - now)
    tx.do("bucket.probe", (now + patience, name))
    return 0.0


def report(tx: Transaction, name: str, blocked_until: float | None) -> None:
    """A limit closes the bucket until then; None opens it."""
    if blocked_until is None:
        tx.do("bucket.clear", (name,))
    else:
        tx.do("bucket.block", (name, blocked_until))
