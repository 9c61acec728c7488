"""What every store has to pass: inherit `StoreConformance` in a test class and say how to open the store."""

from __future__ import annotations

from bailiwick.testing.store_conformance.appends import AppendPromises
from bailiwick.testing.store_conformance.attempts import AttemptPromises
from bailiwick.testing.store_conformance.blobs import BlobPromises
from bailiwick.testing.store_conformance.buckets import BucketPromises
from bailiwick.testing.store_conformance.calls import CallPromises
from bailiwick.testing.store_conformance.claims import ClaimPromises
from bailiwick.testing.store_conformance.creation import CreationPromises
from bailiwick.testing.store_conformance.documents import DocumentPromises
from bailiwick.testing.store_conformance.inbox import InboxPromises
from bailiwick.testing.store_conformance.money import MoneyPromises
from bailiwick.testing.store_conformance.runs import RunPromises
from bailiwick.testing.store_conformance.writers import WriterPromises


class StoreConformance(
    AppendPromises,
    AttemptPromises,
    BlobPromises,
    BucketPromises,
    CallPromises,
    ClaimPromises,
    CreationPromises,
    DocumentPromises,
    InboxPromises,
    MoneyPromises,
    RunPromises,
    WriterPromises,
):
    """Every promise of `bailiwick.journal.port.Store`."""


__all__ = ["StoreConformance"]
