# ruff: noqa: S101 - a conformance suite asserts
"""Promises about blobs: there with the events that name them, true to their digest, gone with their last user."""

from __future__ import annotations

from pathlib import Path

import pytest

from bailiwick.errors import JournalCorrupt
from bailiwick.ids import digest
from bailiwick.journal.port import Store
from bailiwick.journal.rows import Batch
from bailiwick.testing.store_conformance.stage import StoreFixture, ended_run, event, held_run, message, on_store

MIB = 1024 * 1024
SIZES = (0, 1, 5000, MIB, MIB + 1, 3 * MIB)


def _with(*values: bytes, after: int = 0) -> Batch:
    return Batch(after=after, events=(event(),), blobs={digest(one): one for one in values})


async def _finish(store: Store, run_id: str, after: int) -> None:
    await store.append(run_id, 1, Batch(after=after, status="done", release=True))


class BlobPromises(StoreFixture):
    """What is promised about values that are too big for a row."""

    @pytest.mark.parametrize("size", SIZES)
    def test_a_blob_of_any_size_comes_back_also_after_reopening(self, tmp_path: Path, size: int) -> None:
        """Where it is kept depends on its size and must not show."""
        data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

        async def write(store: Store) -> None:
            await held_run(store)
            await store.append("r1", 1, _with(data))
            assert store.blob(digest(data)) == data

        async def read(store: Store) -> None:
            assert store.blob(digest(data)) == data

        self.play(tmp_path, write, read)

    @on_store
    async def test_a_blob_that_is_not_there_is_corruption(self, store: Store) -> None:
        """The journal named it, so it can't be missing for a good reason."""
        with pytest.raises(JournalCorrupt):
            store.blob(digest(b"never written"))

    @pytest.mark.parametrize("size", [10, 2 * MIB])
    def test_bytes_that_belie_their_digest_are_not_given_out(self, tmp_path: Path, size: int) -> None:
        """A rotten disk is told apart from an agent's answer."""

        async def scene(store: Store) -> None:
            await held_run(store)
            lie = digest(b"something else")
            await store.append("r1", 1, Batch(after=0, blobs={lie: b"y" * size}))
            with pytest.raises(JournalCorrupt, match=lie):
                store.blob(lie)

        self.play(tmp_path, scene)

    @pytest.mark.parametrize("size", [5000, 2 * MIB])
    def test_a_blob_goes_with_the_last_run_that_uses_it(self, tmp_path: Path, size: int) -> None:
        """Equal values are kept once, so one run's end may not be another's loss."""
        data = b"z" * size

        async def scene(store: Store) -> None:
            for run_id in ("r1", "r2"):
                await held_run(store, run_id)
                await store.append(run_id, 1, _with(data))
                await _finish(store, run_id, 1)
            await store.delete("r1")
            assert store.blob(digest(data)) == data
            await store.delete("r2")
            with pytest.raises(JournalCorrupt):
                store.blob(digest(data))
            await held_run(store, "r3")
            await store.append("r3", 1, _with(data))
            assert store.blob(digest(data)) == data

        self.play(tmp_path, scene)

    def test_a_blob_that_is_only_referred_to_is_in_use(self, tmp_path: Path) -> None:
        """A child's result reaches its parent as a reference; the bytes came with the child."""
        data = b"r" * 5000
        body = {"result": {"$blob": digest(data)}}

        async def scene(store: Store) -> None:
            await held_run(store, "kid")
            await store.append("kid", 1, _with(data))
            await _finish(store, "kid", 1)
            await ended_run(store, "by event", first=(event(f'{{"value":{{"$blob":"{digest(data)}"}}}}'),))
            await held_run(store, "by message")
            await store.send(message("by message", body=body))
            await store.delete("kid")
            await store.delete("by event")
            assert store.blob(digest(data)) == data

        self.play(tmp_path, scene)
