"""Documents: written whole, in place of the version that was read, so that no writer undoes another's change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bailiwick.errors import DocumentChanged
from bailiwick.ids import Json
from bailiwick.journal.columns import decode, encode
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Document
from bailiwick.journal.transaction import Transaction


async def change_document(store: Store, kind: str, name: str, change: Callable[[Json], Json]) -> Json:
    """Read, change and write a document until nobody came between; `change` gets None where there is none."""
    while True:
        known = await store.document(kind, name)
        made = change(known.body if known else None)
        try:
            return (await store.put_document(kind, name, made, known.version if known else 0)).body
        except DocumentChanged:
            continue


def row(columns: Sequence[Any]) -> Document:
    """A document from the columns of `document.read`."""
    kind, name, version, body = columns
    return Document(kind, name, version, decode(body))


def put(tx: Transaction, one: Document) -> Document:
    """Write a document in place of its version."""
    bindings = {"kind": one.kind, "id": one.id, "version": one.version, "body": encode(one.body)}
    made = tx.one("document.replace" if one.version else "document.insert", bindings)
    if made is None:
        raise _changed(one.kind, one.id)
    return Document(one.kind, one.id, int(made[0]), one.body)


def drop(tx: Transaction, kind: str, name: str, version: int) -> None:
    """Remove a version of a document."""
    if tx.one("document.drop", {"kind": kind, "id": name, "version": version}) is None:
        raise _changed(kind, name)


def _changed(kind: str, name: str) -> DocumentChanged:
    return DocumentChanged(f"{kind} {name} was changed by another process", hint="give the command again")
