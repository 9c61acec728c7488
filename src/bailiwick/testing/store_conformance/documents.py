# ruff: noqa: S101 - a conformance suite asserts
"""Promises about documents: whole, by version, and no change undone by another."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bailiwick.errors import DocumentChanged
from bailiwick.ids import Json
from bailiwick.journal.documents import change_document
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Document
from bailiwick.testing.store_conformance.stage import StoreFixture, on_store, on_two_handles


class DocumentPromises(StoreFixture):
    """What is promised about documents."""

    @on_store
    async def test_a_document_is_replaced_only_in_the_version_that_was_read(self, store: Store) -> None:
        """Who wrote in between is not overwritten, and is told of."""
        assert await store.document("token", "a") is None
        first = await store.put_document("token", "a", {"scope": "read", "é": [1, None, 2.5]})
        assert first == Document("token", "a", 1, {"scope": "read", "é": [1, None, 2.5]})
        with pytest.raises(DocumentChanged):
            await store.put_document("token", "a", {})
        second = await store.put_document("token", "a", {"scope": "write"}, first.version)
        assert (second.version, await store.document("token", "a")) == (2, second)
        for late in (first.version, 7):
            with pytest.raises(DocumentChanged):
                await store.put_document("token", "a", {}, late)
            with pytest.raises(DocumentChanged):
                await store.drop_document("token", "a", late)
        with pytest.raises(DocumentChanged):
            await store.put_document("token", "b", {}, 1)
        await store.drop_document("token", "a", second.version)
        assert await store.document("token", "a") is None

    def test_documents_are_listed_by_kind_and_page_by_page(self, tmp_path: Path) -> None:
        """Kinds do not mix."""

        async def before(store: Store) -> None:
            for name in ("c", "a", "d", "b"):
                await store.put_document("token", name, name)
            await store.put_document("proposal", "a", 1)

        async def after(store: Store) -> None:
            assert [one.body for one in await store.documents("token")] == ["a", "b", "c", "d"]
            assert [one.id for one in await store.documents("token", limit=2, after="b")] == ["c", "d"]
            assert [one.id for one in await store.documents("token", limit=1)] == ["a"]
            assert [one.body for one in await store.documents("proposal")] == [1]
            assert await store.documents("consent") == []

        self.play(tmp_path, before, after)

    @on_two_handles
    async def test_changes_of_two_writers_all_count(self, first: Store, second: Store) -> None:
        """Each reads, changes and writes; none is lost."""

        def one_more(known: Json) -> Json:
            return (known or 0) + 1

        await asyncio.gather(*(change_document(store, "count", "n", one_more) for store in (first, second) * 10))
        assert (await first.document("count", "n")) == Document("count", "n", 20, 20)
