"""Promises about credentials that are held back."""
# ruff: noqa: S101

from __future__ import annotations

from bailiwick.journal.port import Store
from bailiwick.testing.store_conformance.stage import NOW, StoreFixture, on_store


class BucketPromises(StoreFixture):
    """One probe per window, across everybody who shares the store."""

    @on_store
    async def test_an_open_bucket_lets_everybody_through(self, store: Store) -> None:
        """Nothing is slowed down before a limit was met."""
        assert [await store.bucket_take("c", NOW, 60) for _ in range(5)] == [0.0] * 5

    @on_store
    async def test_a_closed_bucket_tells_how_long_to_wait(self, store: Store) -> None:
        """Others of the same credential don't run into the same limit."""
        await store.bucket_report("c", NOW + 30)
        assert await store.bucket_take("c", NOW + 10, 60) == 20
        assert [await store.bucket_until(name) for name in ("c", "other")] == [NOW + 30, 0.0]
        assert await store.bucket_take("other", NOW + 10, 60) == 0

    @on_store
    async def test_after_a_window_one_probes_and_the_rest_wait_for_it(self, store: Store) -> None:
        """A storm of retries is one request per window."""
        await store.bucket_report("c", NOW)
        taken = [await store.bucket_take("c", NOW + 1, 60) for _ in range(50)]
        assert taken.count(0.0) == 1
        assert set(taken) == {0.0, 60.0}

    @on_store
    async def test_a_good_probe_opens_and_a_bad_one_closes_again(self, store: Store) -> None:
        """What the probe found holds for all."""
        await store.bucket_report("c", NOW)
        assert await store.bucket_take("c", NOW + 1, 60) == 0
        await store.bucket_report("c", NOW + 100)
        assert await store.bucket_take("c", NOW + 50, 60) == 50
        assert await store.bucket_take("c", NOW + 101, 60) == 0
        await store.bucket_report("c", None)
        assert [await store.bucket_take("c", NOW + 102, 60) for _ in range(3)] == [0.0] * 3

    @on_store
    async def test_a_probe_that_never_reports_is_replaced(self, store: Store) -> None:
        """The process that probed may have died."""
        await store.bucket_report("c", NOW)
        assert await store.bucket_take("c", NOW + 1, 60) == 0
        assert await store.bucket_take("c", NOW + 62, 60) == 0
